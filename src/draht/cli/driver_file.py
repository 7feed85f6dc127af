"""A driver in a Python file: ``draht node --driver FILE.py[:CLASS]``.

Owns finding the class and saying what is wrong with the file. The file runs with the agent's rights, like any program
that is installed on a node.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from draht.api.errors import DrahtError
from draht.driver.framework import Driver
from draht.validation.names import subdomain

__all__ = ["load_driver"]

_LONGEST_NAME = 63
"""Characters of a driver's name in the API."""


def load_driver(text: str) -> Driver:
    """Make the driver that a file defines.

    Args:
        text: ``FILE.py`` with one subclass of `draht.driver.framework.Driver`, or ``FILE.py:CLASS``.

    Raises:
        DrahtError: There is no such file or class, or it can't be made.
    """
    name, colon, wanted = text.rpartition(":")
    path, wanted = (Path(name), wanted) if colon and name.endswith(".py") else (Path(text), "")
    module = _module(path)
    found = {
        name: each
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, Driver) and each.__module__ == module.__name__
    }
    if wanted and wanted not in found:
        raise DrahtError(
            f"it has no driver class {wanted}", where=str(path), hint=f"there are {', '.join(found) or 'none'}"
        )
    if not wanted and len(found) != 1:
        raise DrahtError(
            f"it has {len(found) or 'no'} driver classes",
            where=str(path),
            hint=f"name one: {path}:{next(iter(found))}" if found else "subclass draht.driver.framework.Driver in it",
        )
    cls = found[wanted] if wanted else next(iter(found.values()))
    if not isinstance(getattr(cls, "name", None), str):
        raise DrahtError(
            f"the class {cls.__name__} has no name", where=str(path), hint='give it one: name = "gpu.example.com"'
        )
    wrong = subdomain(cls.name) or (["it is longer than 63 characters"] if len(cls.name) > _LONGEST_NAME else [])
    if wrong:
        raise DrahtError(
            f"the class {cls.__name__} has the name {cls.name!r}, which can't be a driver's: {wrong[0]}",
            where=str(path),
            hint='name it like a domain: name = "gpu.example.com"',
        )
    try:
        return cls()
    except (Exception, SystemExit) as error:
        raise DrahtError(f"{cls.__name__}() failed: {_last(error)}", where=str(path)) from error


def _module(path: Path) -> ModuleType:
    name = f"draht_driver_{path.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DrahtError("there is no such Python file", where=str(path), hint="--driver takes NAME or FILE.py[:CLASS]")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while it is still being executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise DrahtError(f"the file can't be run: {_last(error)}", where=str(path)) from error
    return module


def _last(error: BaseException) -> str:
    """The error in one line, with the line of the file that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
