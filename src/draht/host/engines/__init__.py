"""The engines of this machine: podman, docker, runc, and the choice among them.

`engines` gives those whose executable is on PATH, `engine` the one to use. An adapter is a module; what podman and
docker share is `draht.host.engines.client`, what runc leaves to its caller is `draht.host.engines.bundle`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from draht.host.engine import Engine, EngineInfo, EngineMissingError
from draht.host.engines.docker import Docker
from draht.host.engines.podman import Podman
from draht.host.engines.runc import Runc
from draht.host.places import cdi_directory, state_directory

__all__ = ["NAMES", "engine", "engines"]

NAMES = ("podman", "docker", "runc")
"""In the order of preference: podman needs no daemon, docker knows images, runc knows neither."""


def engines(
    *,
    which: Callable[[str], str | None] = shutil.which,
    state: Path | None = None,
    spec_directories: Sequence[str] | None = None,
) -> dict[str, Engine]:
    """The engines whose executable is found, in the order of `NAMES`; whether one is usable, its `info` says.

    Args:
        which: Finds executables.
        state: Where draht keeps its state; None is `draht.host.places.state_directory`.
        spec_directories: Where CDI specs are read for engines that draht applies them for; None is ``/etc/cdi`` and
            `draht.host.places.cdi_directory`.
    """
    found: dict[str, Engine] = {}
    if path := which("podman"):
        found["podman"] = Podman(path, which=which)
    if path := which("docker"):
        found["docker"] = Docker(path)
    if path := which("runc"):
        directories = ("/etc/cdi", str(cdi_directory())) if spec_directories is None else tuple(spec_directories)
        found["runc"] = Runc(path, state=state or state_directory(), spec_directories=directories)
    return found


def engine(name: str | None = None, *, found: dict[str, Engine] | None = None) -> Engine:
    """The engine of that name, or the first usable one.

    Raises:
        EngineMissingError: There is none, or it can't start containers with CDI devices here; the hint says what to do.
    """
    found = engines() if found is None else found
    if name is not None:
        if name not in found:
            known = name in NAMES
            raise EngineMissingError(
                f"{name} is not installed" if known else f"draht knows no engine {name!r}",
                hint=f"install {name}, or choose among {', '.join(found) or 'podman, docker and runc'}",
            )
        info = found[name].info()
        if not info.usable:
            raise _unusable(info)
        return found[name]
    refused: list[EngineInfo] = []
    for candidate in found.values():
        info = candidate.info()
        if info.usable:
            return candidate
        refused.append(info)
    if not refused:
        raise EngineMissingError(
            "there is no container engine on this machine",
            hint="install podman (`apt install podman`), docker or runc; `draht doctor` checks them",
        )
    raise _unusable(refused[0])


def _unusable(info: EngineInfo) -> EngineMissingError:
    worst = next((problem for problem in info.problems if problem.severity == "broken"), None)
    message = worst.message if worst else f"{info.name} reads no CDI specs"
    return EngineMissingError(message, hint=(worst.fix if worst else None) or "see `draht doctor`")
