"""Everything a make target needs on a fresh machine, each part only once: ``python3 tools/setup.py TARGET``.

Owns the list of targets with the parts they need, and the order of the parts. It exists so that ``make demo`` or
``make test`` is the only command a newcomer types on Debian 12/13 or Ubuntu 24.04. A part that is in place says
nothing. It runs on the bare interpreter of the system, so nothing outside the standard library may be imported here;
the other modules are imported late, because an interpreter that is too old couldn't read them.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)

PARTS = {
    "demo": ["environment", "containers"],
    "lint": ["environment"],
    "check": ["environment", "go", "oracle"],
    "fuzz": ["environment", "go", "oracle"],
    "bench": ["environment", "go", "oracle"],
    "cluster": ["environment", "go", "cluster"],
    "versions": ["environment", "go", "cluster", "older-cluster"],
    "test": ["environment", "go", "oracle", "containers", "engines", "cluster", "machine"],
}
"""Make target → parts of the set-up that it needs."""


def change_interpreter() -> None:
    """Go on under a Python that is new enough, if this one isn't and the machine has another."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    for minor in range(15, OLDEST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            os.execv(newer, [newer, *sys.argv])  # noqa: S606 - replaces itself, so that signals reach the right process
    old = ".".join(map(str, sys.version_info[:2]))
    sys.exit(f"set-up: Python {old} is too old, draht needs 3.11 or newer\nhint: install a newer python3")


def say(line: str) -> None:
    """Tell the person what is being done."""
    print(f"set-up: {line}", flush=True)


def set_up(target: str) -> None:
    """Bring every part in place that a target needs.

    Raises:
        failure.SetupError: A part can't be had.
        gotoolchain.GoBuildError: A Go program doesn't compile.
    """
    import debian
    import environment

    parts = PARTS[target]
    debian.ensure(parts, say)
    environment.ensure(say)
    if "go" in parts:
        _set_up_go(parts)


def _set_up_go(parts: list[str]) -> None:
    import cluster_programs
    import engines
    import environment
    import gotoolchain

    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    import oracle_client

    directories = [oracle_client.MODULE] if "oracle" in parts else []
    for part, modules in (
        ("engines", engines.MODULES),
        ("cluster", cluster_programs.MODULES),
        ("older-cluster", cluster_programs.OLDER),
    ):
        directories += [module.directory for module in modules if part in parts]
    needed = gotoolchain.required_version(directories)
    try:
        gotoolchain.find(needed)
    except gotoolchain.GoMissingError:
        environment.add_go(say)
        gotoolchain.find(needed)
    if "oracle" in parts:
        oracle_client.build(say)
    if "engines" in parts:
        engines.ensure(say)
    if "cluster" in parts:
        cluster_programs.ensure("1.37", say)
    if "older-cluster" in parts:
        cluster_programs.ensure("1.33", say)


def main() -> None:
    """Entry point of the script."""
    change_interpreter()
    if len(sys.argv) != 2 or sys.argv[1] not in PARTS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(PARTS)}")
    from failure import SetupError
    from gotoolchain import GoBuildError, GoMissingError

    try:
        set_up(sys.argv[1])
    except SetupError as error:
        sys.exit(f"set-up: {error.message}\nhint: {error.hint}")
    except (GoMissingError, GoBuildError) as error:
        sys.exit(f"set-up: {error}")
    except KeyboardInterrupt:
        sys.exit("set-up: interrupted; start it again and it goes on where it was")


if __name__ == "__main__":
    main()
