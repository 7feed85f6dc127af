"""How commands print: aligned tables for people, JSON and YAML for programs.

Plain text without a table library: output is read by people, `grep` and tests alike, and start-up stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
import msgspec

from draht.api import yaml

__all__ = ["emit", "output_option", "table"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def output_option(*formats: str) -> Callable[[_Command], _Command]:
    """The ``-o`` option; the first format is the default and is passed as ``output``."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns separated by three spaces, without trailing blanks; an empty cell shows as ``-``."""
    cells = [[*header], *([str(cell) if cell not in (None, "") else "-" for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join(lines)


def emit(value: object, output: str) -> None:
    """Print a value as ``json`` or ``yaml``; structs are turned into builtin values first."""
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        click.echo(yaml.dump(msgspec.to_builtins(value)), nl=False)
