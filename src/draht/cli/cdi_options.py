"""What the commands of ``draht cdi`` share: which directories are read, and how a refused name is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

from draht import cdi
from draht.api.printable import printable
from draht.api.yaml import MAX_BYTES
from draht.cdi.errors import SpecError
from draht.cdi.files import read_spec

__all__ = ["PATH", "directories_option", "host_root_option", "open_cache", "read_input", "refuse"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

PATH = click.Path(readable=False)
"""A path that click doesn't look at: what is wrong with it is said by the library, and in one way."""


def _without_empty(_: click.Context, __: click.Parameter, directories: tuple[str, ...]) -> tuple[str, ...]:
    """A colon too many in the variable must not mean the current directory."""
    return tuple(directory for directory in directories if directory)


def directories_option(command: _Command) -> _Command:
    """The repeatable ``--dir`` option, passed as ``directories``."""
    return click.option(
        "--dir",
        "directories",
        type=PATH,
        multiple=True,
        envvar="DRAHT_CDI_DIRS",
        callback=_without_empty,
        default=cdi.DEFAULT_DIRECTORIES,
        show_default=True,
        help="A directory with specs; may be repeated, the last one wins. DRAHT_CDI_DIRS: several, with ':' between.",
    )(command)


def host_root_option(command: _Command) -> _Command:
    """The ``--host-root`` option: where device nodes are looked up."""
    return click.option(
        "--host-root",
        type=PATH,
        default="/",
        show_default=True,
        help="Look device nodes up below this directory.",
    )(command)


def open_cache(directories: Sequence[str], host_root: str = "/") -> cdi.Cache:
    """The cache of the directories that a command was given."""
    return cdi.Cache(directories, host=cdi.HostDevices(host_root))


def read_input(path: str) -> tuple[bytes, str]:
    """The bytes of a file or, for ``-``, of standard input, and what to call it in errors.

    Raises:
        SpecError: It can't be read or is too large.
    """
    if path != "-":
        return read_spec(path), path
    if sys.stdin is None:
        raise SpecError("standard input is closed", where="<stdin>", hint="give it a file: draht … < FILE")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SpecError(f"there are more than the {MAX_BYTES} bytes that are read", where="<stdin>", hint="split it")
    return data, "<stdin>"


def refuse(diagnosis: cdi.Diagnosis) -> NoReturn:
    """End the command because of names that can't be injected: error, hint, then all that is known."""
    error = diagnosis.error()
    click.echo(f"error: {error}", err=True)
    if error.hint:
        click.echo(f"hint: {printable(error.hint)}", err=True)
    # The first reason is in the error already.
    said = {f"  {finding.message}" for name in diagnosis.names for finding in name.findings[:1]}
    said |= {f"    next: {error.hint}"}
    for line in diagnosis.lines():
        if line not in said:
            click.echo(line, err=True)
    sys.exit(error.exit_code)
