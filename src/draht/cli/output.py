"""How commands print: aligned tables for people, JSON and YAML for programs.

Plain text without a table library: output is read by people, `grep` and tests alike, and start-up stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
import msgspec

from draht.api import yaml
from draht.api.printable import printable

__all__ = ["emit", "output_option", "table"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def output_option(*formats: str) -> Callable[[_Command], _Command]:
    """The ``-o`` option; the first format is the default and is passed as ``output``."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns separated by three spaces, without trailing blanks; an empty cell shows as ``-``."""
    cells = [[*header], *([printable(str(cell)) if cell not in (None, "") else "-" for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join(lines)


def emit(value: object, output: str) -> None:
    """Print a value as ``json`` or ``yaml``; structs are turned into builtin values first."""
    builtins = _text_only(msgspec.to_builtins(value))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(builtins), indent=2).decode())
    else:
        click.echo(yaml.dump(builtins), nl=False)


def _text_only(value: Any) -> Any:
    """The value with bytes of file names that are no text escaped: neither JSON nor YAML can hold them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_text_only(key): _text_only(each) for key, each in value.items()}
    return [_text_only(each) for each in value] if isinstance(value, list | tuple) else value
