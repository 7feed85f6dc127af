"""Text from files and file names as lines that a terminal shows and doesn't obey.

Owns the one rule for what people see. Programs get the text as it is, in JSON or YAML.
"""

from __future__ import annotations

__all__ = ["printable", "printable_lines"]


def printable(line: str) -> str:
    """A line that stays one and can't change a terminal, whatever the names and files in it are called."""
    return line if line.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


def printable_lines(text: str) -> str:
    """A text that may have several lines, each of them made `printable`."""
    return "\n".join(map(printable, text.split("\n")))
