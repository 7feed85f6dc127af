"""podman: finds out by itself what it needs on this machine.

Where the rules come from: podman 4.3 asks for 1,048,576 open files and processes, which only CAP_SYS_RESOURCE allows
beyond the hard limits; crun 1.8 fails on hybrid cgroups where runc works; the ``systemd`` cgroup manager needs systemd;
podman gained ``--cdi-spec-dir`` with 5.x, before that it reads CDI's two default directories. CDI through ``--device``
came with 4.1.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tomllib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from draht.api.finding import Finding
from draht.cdi import is_qualified_name
from draht.host.engine import Container, ContainerRequest, EngineError, EngineInfo, Node, RequestError
from draht.host.engines.client import ClientEngine, container_from
from draht.host.engines.command import Command, Outcome
from draht.host.engines.versions import podman_cdi_version
from draht.host.machine import CAP_SYS_RESOURCE, Machine, read_machine
from draht.host.places import cdi_directory

__all__ = ["Podman"]

PODMAN_LIMIT = 1_048_576
"""Hard limit of open files and of processes that podman gives containers unless told otherwise."""

_CONFIGURATIONS = (
    "/usr/share/containers/containers.conf",
    "/etc/containers/containers.conf",
    "~/.config/containers/containers.conf",
)


class Podman(ClientEngine):
    """podman through its client.

    Args:
        path: The executable.
        machine: Facts about the kernel; None reads them now.
        which: Finds executables; a parameter for tests.
    """

    name = "podman"
    removal = ("--time", "0")
    """Without it podman asks the container to stop and waits for 10 s."""

    def __init__(
        self,
        path: str,
        *,
        machine: Machine | None = None,
        which: Callable[[str], str | None] = shutil.which,
    ) -> None:
        super().__init__(Command(self.name, path))
        self._machine = machine or read_machine()
        self._which = which

    @cached_property
    def _facts(self) -> Mapping[str, Any]:
        """``podman info``, asked with no options of ours."""
        answer = super().command.json("describe itself", "info", "--format", "json")
        if not isinstance(answer, dict):
            raise EngineError("podman can't describe itself: its answer is not an object")
        return answer

    @cached_property
    def _takes_spec_directories(self) -> bool:
        return "--cdi-spec-dir" in super().command.run("--help").stdout

    @cached_property
    def command(self) -> Command:
        """The client with runtime, cgroup manager and spec directories chosen for this machine."""
        options: list[str] = []
        if self._crun_fails and (runc := self._which("runc")):
            options += ["--runtime", runc]
        if self._manager_fails:
            options += ["--cgroup-manager", "cgroupfs"]
        if self._takes_spec_directories:
            for directory in self._spec_directories:
                options += ["--cdi-spec-dir", directory]
        return super().command.with_options(*options)

    @property
    def _host(self) -> Mapping[str, Any]:
        host = self._facts.get("host")
        return host if isinstance(host, dict) else {}

    @property
    def _crun_fails(self) -> bool:
        runtime = self._host.get("ociRuntime")
        name = runtime.get("name") if isinstance(runtime, dict) else None
        return self._machine.cgroups == "hybrid" and name == "crun"

    @property
    def _manager_fails(self) -> bool:
        return self._host.get("cgroupManager") == "systemd" and not self._machine.systemd

    @property
    def _rootless(self) -> bool:
        security = self._host.get("security")
        return isinstance(security, dict) and security.get("rootless") is True

    @cached_property
    def _spec_directories(self) -> tuple[str, ...]:
        if not self._takes_spec_directories:
            return ("/etc/cdi", "/var/run/cdi")
        return tuple(dict.fromkeys([*_configured_directories(), "/etc/cdi", str(cdi_directory())]))

    def info(self) -> EngineInfo:
        """See `draht.host.engine.Engine.info`."""
        path = super().command.path
        try:
            facts = self._facts
            directories = self._spec_directories
        except EngineError as error:
            problem = Finding(
                kind="engine-fails", severity="broken", message=error.message,
                fix=error.hint or self.hint(error.message) or "run `podman info`",
                where=path,
            )  # fmt: skip
            return EngineInfo(name=self.name, version=None, path=path, cdi_version=None, problems=(problem,))
        numbers = facts.get("version")
        version = str(numbers.get("Version") or "") if isinstance(numbers, dict) else ""
        cdi_version, source = podman_cdi_version(version)
        return EngineInfo(
            name=self.name,
            version=version or None,
            path=path,
            cdi_version=cdi_version,
            cdi_source=source,
            spec_directories=directories,
            rootless=self._rootless,
            problems=tuple(self._problems(version, cdi_version)),
        )

    def _problems(self, version: str, cdi_version: str | None) -> list[Finding]:
        found = []
        if cdi_version is None:
            found.append(
                Finding(
                    kind="engine-without-cdi",
                    severity="broken",
                    message=f"podman {version} reads no CDI specs",
                    fix="install podman 4.1 or newer",
                    where="podman",
                )
            )
        if self._crun_fails:
            has_runc = self._which("runc") is not None
            found.append(
                Finding(
                    kind="crun-on-hybrid-cgroups",
                    severity="note" if has_runc else "broken",
                    message="podman's runtime crun fails on hybrid cgroups"
                    + (", so draht passes --runtime runc" if has_runc else " and there is no runc"),
                    fix="" if has_runc else "install runc, or boot with systemd.unified_cgroup_hierarchy=1",
                    where="podman",
                )
            )
        if self._manager_fails:
            found.append(
                Finding(
                    kind="cgroup-manager-without-systemd",
                    severity="note",
                    message="podman is set to the systemd cgroup manager without systemd, "
                    "so draht passes --cgroup-manager cgroupfs",
                    where="podman",
                )
            )
        if ulimits := self._ulimits():
            found.append(
                Finding(
                    kind="small-limits",
                    severity="note",
                    message="podman would ask for limits beyond this machine's without CAP_SYS_RESOURCE, "
                    f"so draht passes {' '.join(ulimits)}",
                    where="podman",
                )
            )
        return found

    def _ulimits(self) -> list[str]:
        """Rootless podman keeps to the user's limits by itself; podman as root doesn't."""
        machine = self._machine
        if self._rootless or machine.may(CAP_SYS_RESOURCE):
            return []
        options: list[str] = []
        if machine.nofile is not None and machine.nofile < PODMAN_LIMIT:
            options += ["--ulimit", f"nofile={machine.nofile}:{machine.nofile}"]
        if machine.nproc is not None and machine.nproc < PODMAN_LIMIT:
            # podman lowers its own hard limit to pid_max and can't give more than it has itself.
            processes = min(machine.nproc, machine.pid_max)
            options += ["--ulimit", f"nproc={processes}:{processes}"]
        return options

    def limits(self, request: ContainerRequest) -> list[str]:
        """``--ulimit`` where podman's own would be refused, unless the user chose some."""
        chosen = " ".join(request.engine_args)
        pairs = self._ulimits()
        return [
            part
            for option, value in zip(pairs[::2], pairs[1::2], strict=True)
            if f"{value.partition('=')[0]}=" not in chosen
            for part in (option, value)
        ]

    def source(self, request: ContainerRequest, *, pull: bool) -> list[str]:
        """The image, pulled with visible progress; or the directory under an overlay, so that it stays as it is."""
        if request.rootfs is not None:
            if ":" in request.rootfs:
                raise RequestError(
                    "podman takes no root file system with a colon in its path",
                    where=request.rootfs,
                    hint="rename the directory, or reach it through a link",
                )
            return ["--rootfs", f"{request.rootfs}:O"]
        image = str(request.image)
        if pull and self.command.run("image", "exists", image).status != 0:
            self.command.visible(f"pull the image {image}", "pull", image)
        return ["--pull", "never", image]

    def ready(self, container_id: str) -> None:
        """``podman init`` builds the container up to the point before its first instruction, so errors come early."""
        outcome = self.command.run("init", container_id)
        if outcome.status != 0:
            raise self.command.refusal("create", outcome, hint=self.hint(outcome.complaint))

    def is_missing(self, outcome: Outcome) -> bool:
        """Podman says ``no such container`` or ``no such object``."""
        text = outcome.stderr.lower()
        return "no such container" in text or "no such object" in text or "no container with" in text

    def details(self, inspected: Mapping[str, Any]) -> Container:
        """See `ClientEngine.details`."""
        return container_from(self.name, inspected, cdi_names=_cdi_names, device_nodes=_device_nodes)

    def hint(self, complaint: str) -> str | None:
        """The next step for complaints that people meet with CDI, or as users without root."""
        if "newuidmap" in complaint:
            return "install newuidmap (Debian's package uidmap) and give yourself ids in /etc/subuid and /etc/subgid"
        if "unresolvable CDI device" in complaint:
            return f"podman reads CDI specs from {' and '.join(self._spec_directories)}; see `draht cdi dirs`"
        if "error setting rlimit" in complaint:
            return "the limits given are above this machine's; see `draht doctor`"
        if "cgroup" in complaint:
            return "see the cgroup lines of `draht doctor`"
        return None


def _cdi_names(inspected: Mapping[str, Any]) -> list[str]:
    """CDI names on the command line that made the container: podman keeps them nowhere else."""
    config = inspected.get("Config")
    arguments = config.get("CreateCommand") if isinstance(config, dict) else None
    if not isinstance(arguments, list):
        return []
    words = [str(word) for word in arguments]
    values = [after for word, after in itertools.pairwise(words) if word == "--device"]
    values += [word.removeprefix("--device=") for word in words if word.startswith("--device=")]
    return [value for value in values if is_qualified_name(value)]


def _device_nodes(inspected: Mapping[str, Any]) -> list[Node]:
    host_config = inspected.get("HostConfig")
    devices = host_config.get("Devices") if isinstance(host_config, dict) else None
    return [
        Node(path=str(device.get("PathInContainer", "")), host_path=str(device.get("PathOnHost") or "") or None)
        for device in devices or ()
        if isinstance(device, dict)
    ]


def _configured_directories() -> list[str]:
    """``engine.cdi_spec_dirs`` of containers.conf(5): an explicit ``--cdi-spec-dir`` would hide them."""
    directories: list[str] = []
    for path in _CONFIGURATIONS:
        with contextlib.suppress(OSError, ValueError):
            engine = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8")).get("engine")
            chosen = engine.get("cdi_spec_dirs") if isinstance(engine, dict) else None
            if isinstance(chosen, list):
                directories = [str(one) for one in chosen]
    return directories
