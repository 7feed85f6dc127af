"""How devices are, as a file says: the health source of simulated machines.

Owns reading it. A real machine will be watched; a simulated one has nobody to ask, so a person or a test writes what is
to be the case::

    gpu-3: {state: Unhealthy, message: two uncorrectable ECC errors, taint: {key: example.com/ecc, effect: NoSchedule}}
    rack-7/channel-0: {state: Unknown}

Devices that aren't named are healthy, and so are all of them without a file. One entry that can't be read never hides
the others, and a file that is broken as a whole changes nothing until it is repaired.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from draht.api import scalar, yaml
from draht.api.resource import DeviceTaint
from draht.driver.framework import Health
from draht.hardware.inventory import Problem
from draht.hardware.profiles.check import Fault
from draht.hardware.profiles.read import locate, read, spell

__all__ = ["HealthFile"]

_LONGEST: Final = 1 << 20
_HINT: Final = "write DEVICE: {state: Unhealthy, message: …}"


class _Taint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    effect: Literal["None", "NoSchedule", "NoExecute"]
    value: str = ""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    state: Literal["Healthy", "Unhealthy", "Unknown"]
    message: str = ""
    taint: _Taint | None = None


class HealthFile:
    """The source of a driver's health; call it for how the devices are now.

    Args:
        path: The file, in YAML or JSON; it needn't exist.

    Attributes:
        problems: What couldn't be read the last time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[Health, ...] = ()
        self.problems: tuple[Problem, ...] = ()

    def __call__(self) -> tuple[Health, ...]:
        """Read the file."""
        try:
            with self._path.open("rb") as file:
                data = file.read(_LONGEST + 1)
        except FileNotFoundError:
            self._known, self.problems = (), ()
            return ()
        except OSError as error:
            return self._unread(error.strerror or str(error))
        if len(data) > _LONGEST:
            return self._unread(f"it has more than {_LONGEST} bytes")
        try:
            roots = list(yaml.documents(data, source=str(self._path)))
        except yaml.YamlError as error:
            return self._unread(error.message)
        if not roots or roots[0].tag == scalar.NULL:
            self._known, self.problems = (), ()
        elif len(roots) > 1 or not isinstance(roots[0], yaml.MappingNode):
            return self._unread("it isn't one mapping of devices")
        else:
            self._known, self.problems = self._entries(roots[0])
        return self._known

    def _entries(self, root: yaml.MappingNode) -> tuple[tuple[Health, ...], tuple[Problem, ...]]:
        found: dict[tuple[str, str], Health] = {}
        problems = []
        for key, node in root.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            pool, _, device = name.rpartition("/")
            entry, faults = read(node, _Entry)
            if not device:
                faults = [Fault((), "it isn't the name of a device")]
            elif (pool, device) in found:
                faults = [Fault((), f"{name} is given twice")]
            for fault in faults:
                place = f"{name}.{spell(fault.path)}" if fault.path else name
                where = locate(node, fault, str(self._path))
                problems.append(Problem(where=where, message=f"{place}: {fault.message}", hint=_HINT))
            if entry is not None and not faults:
                found[pool, device] = _health(pool, device, entry)
        return tuple(found.values()), tuple(problems)

    def _unread(self, reason: str) -> tuple[Health, ...]:
        message = f"the health of devices can't be read: {reason[:1].lower()}{reason[1:]}"
        self.problems = (Problem(where=str(self._path), message=message, hint=_HINT),)
        return self._known


def _health(pool: str, device: str, entry: _Entry) -> Health:
    taint = entry.taint
    return Health(
        pool=pool,
        device=device,
        state=entry.state,
        message=entry.message,
        taint=None if taint is None else DeviceTaint(key=taint.key, value=taint.value, effect=taint.effect),
    )
