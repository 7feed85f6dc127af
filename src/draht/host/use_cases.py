"""The use cases of ``examples/use-cases``: what each needs, and running one for real.

A case runs as a person would run it: its manifests are allocated on a machine profile, held in the database, prepared
as CDI specs, and given to real containers; then what was chosen and what the containers saw is compared with what the
case says. It owns no case: they are files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from draht.api import yaml
from draht.api.errors import DrahtError
from draht.api.reader import read_files
from draht.driver.slices import publish
from draht.driver.vendors.classes import device_classes
from draht.hardware.profiles.read import locate, read, spell
from draht.hardware.simulated import from_profile
from draht.host.claims import ClaimsAsk
from draht.host.errors import HostError
from draht.host.order import ContainerOrder, Host, PodsOrder, Wanted
from draht.host.pods import run_pods
from draht.host.selection import Choice
from draht.manifests import Manifests

__all__ = ["Outcome", "UseCase", "ask_of", "chosen", "expected", "run_case", "use_cases"]

_UUID: Final = re.compile(r"\(UUID: ([^)]+)\)")
_CASES: Final = "cases.yaml"


class _Publish(msgspec.Struct, frozen=True, kw_only=True):
    partitions: bool = False
    shares: bool = False


class UseCase(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One case, as ``cases.yaml`` describes it.

    Attributes:
        use_case: What people want.
        since: Kubernetes release that is said to have covered it first.
        mechanism: What it shows.
        profile: Machine profile, or a file beside ``cases.yaml``.
        publish: How the machine offers its GPUs.
        files: Further manifests that stand for what isn't here: a fabric, the labels of a node.
        simulated: What is prepared as simulated beyond the hardware.
        refused: What the node agent says instead of preparing it, where the case needs what draht doesn't do yet.
        devices: Pod → container → names of the devices that it gets.
        directory: The folder with its manifests.
    """

    use_case: str
    since: str
    mechanism: str
    profile: str
    publish: _Publish = _Publish()
    files: tuple[str, ...] = ()
    simulated: tuple[str, ...] = ()
    refused: str = ""
    devices: dict[str, dict[str, tuple[str, ...]]]
    directory: str = ""

    @property
    def number(self) -> str:
        """``01`` … ``12``."""
        return Path(self.directory).name.partition("-")[0]


@dataclass(slots=True)
class Outcome:
    """How a case went.

    Args:
        case: The case.
        devices: Pod/container → names of the devices that were chosen.
        seen: Pod/container → lines that the container wrote.
        reason: Why it failed; empty if it didn't.
    """

    case: UseCase
    devices: dict[str, list[str]] = field(default_factory=dict)
    seen: dict[str, list[str]] = field(default_factory=dict)
    reason: str = ""

    def to_builtins(self) -> dict[str, Any]:
        """The outcome for programs."""
        return {
            "useCase": self.case.use_case,
            "since": self.case.since,
            "mechanism": self.case.mechanism,
            "devices": self.devices,
            "seenInContainer": self.seen,
            "simulated": ["hardware", *self.case.simulated],
            "result": "failed" if self.reason else "ok",
            "reason": self.reason,
        }


def use_cases(directory: Path | None = None) -> tuple[UseCase, ...]:
    """The cases of a directory in the order of their names; without one, those that come with draht.

    Raises:
        HostError: There are none, or one can't be read.
    """
    path = (directory or _shipped()) / _CASES
    try:
        (node,) = yaml.documents(path.read_bytes(), source=str(path))
    except (OSError, ValueError, yaml.YamlError) as error:
        raise HostError(
            f"the use cases can't be read: {error}", where=str(path), hint="name a directory that has cases.yaml"
        ) from None
    cases, faults = read(node, dict[str, UseCase])
    if cases is None:
        fault = faults[0]
        raise HostError(f"{spell(fault.path)}: {fault.message}", where=locate(node, fault, str(path)))
    return tuple(msgspec.structs.replace(case, directory=str(path.parent / name)) for name, case in cases.items())


def run_case(
    host: Host,
    case: UseCase,
    *,
    engine: str,
    rootfs: str | None = None,
    network: str | None = None,
) -> Outcome:
    """Run the pods of a case and compare; nothing is raised for a case that fails."""
    outcome = Outcome(case)
    try:
        _run(host, case, outcome, engine=engine, rootfs=rootfs, network=network)
    except DrahtError as error:
        outcome.reason = str(error)
    return outcome


def ask_of(case: UseCase) -> ClaimsAsk:
    """Everything that the pods of a case ask for, on the case's machine.

    Raises:
        DrahtError: The profile or a manifest can't be read.
    """
    directory = Path(case.directory)
    machine = directory.parent / case.profile
    inventory = from_profile(machine if machine.exists() else case.profile)
    found = read_files([directory / "manifests.yaml", *(directory / name for name in case.files)])
    if found.errors:
        raise HostError(str(found.errors[0]), hint=found.errors[0].hint)
    manifests = Manifests.of((each.object for each in found.objects), classes=device_classes())
    # A case that brings a Node brings what its labels say about this machine.
    node = next(iter(manifests.nodes), inventory.machine)
    published = publish(inventory, node_name=node, partitions=case.publish.partitions, shares=case.publish.shares)
    return ClaimsAsk(inventory, published, manifests, node)


def chosen(ask: ClaimsAsk, choice: Choice) -> dict[str, list[str]]:
    """Pod/container → names of the devices that a choice gives it."""
    names = {device.id: name for (_, name), device in ask.published.devices.items()}
    return {
        part.name: [names.get(device.id, device.id.rpartition("/")[2]) for device in part.devices]
        for part in choice.parts
    }


def expected(case: UseCase) -> dict[str, list[str]]:
    """Pod/container → names of the devices that the case says it gets."""
    return {f"{pod}/{container}": list(names) for pod, by in case.devices.items() for container, names in by.items()}


def _run(host: Host, case: UseCase, outcome: Outcome, *, engine: str, rootfs: str | None, network: str | None) -> None:
    ask = ask_of(case)
    containers = tuple(
        ContainerOrder(
            name=f"{pod.metadata.name}/{each.name}",
            image=None if rootfs else each.image,
            rootfs=rootfs,
            command=(*each.command, *each.args),
        )
        for pod in ask.manifests.pods.values()
        for each in pod.spec.containers
    )
    order = PodsOrder(
        wanted=Wanted(inventory=ask.inventory, ask=ask, engine=engine, command=("use case", case.number)),
        containers=containers,
        network=network,
        output=lambda name, line: outcome.seen.setdefault(name, []).append(line.decode("utf-8", "backslashreplace")),
    )
    done = run_pods(host, order)
    parts = {part.name: part.devices for part in done.held.choice.parts}
    outcome.devices = chosen(ask, done.held.choice)
    outcome.reason = _difference(case, outcome, done.statuses, parts)


def _difference(
    case: UseCase, outcome: Outcome, statuses: Mapping[str, int], parts: Mapping[str, Sequence[Any]]
) -> str:
    """What isn't as it should be; empty if everything is."""
    wanted = expected(case)
    if outcome.devices != wanted:
        return f"chosen were {outcome.devices}, expected {wanted}"
    for name, status in statuses.items():
        if status:
            return f"{name} ended with status {status}: {' / '.join(outcome.seen.get(name, [])[-3:])}"
        saw = {match[1] for line in outcome.seen.get(name, ()) if (match := _UUID.search(line))}
        should = {device.id for device in parts.get(name, ()) if device.kind in {"gpu", "mig"}}
        if saw != should:
            return f"{name} saw {sorted(saw) or 'nothing'}, should see {sorted(should)}"
    return ""


def _shipped() -> Path:
    """Beside the package when installed, in the checkout otherwise."""
    installed = Path(str(resources.files("draht"))) / "use_cases"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "examples" / "use-cases"
