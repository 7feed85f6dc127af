"""Everything that is wrong with the text of one spec file, each problem with line, column and field.

Owns the join of decoding and validation for people who write specs: a rule that a decoded spec breaks is about a field,
and this module finds the line that the field is in. Engines stop at the first problem, and so do `draht.cdi.decode`
(which says the line already) and `draht.cdi.validate`.
"""

from __future__ import annotations

import re

import msgspec

from draht.cdi.decode import decode
from draht.cdi.errors import SpecError, ValidationError
from draht.cdi.nodes import Node, compose
from draht.cdi.spec import Spec
from draht.cdi.validate import problems

__all__ = ["Problem", "check"]

_STEP = re.compile(r"([A-Za-z0-9]+)|\[(\d+)\]")
_PLACE = re.compile(r"(?P<source>.*):(?P<line>\d+):(?P<column>\d+)", re.DOTALL)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong.

    Attributes:
        message: What, as one sentence without a full stop.
        file: The file.
        line: Counted from 1; None where the whole file is meant.
        column: Counted from 1.
        field: The path of the field, as ``devices[0].containerEdits.env[1]``.
        hint: What to do.
    """

    message: str
    file: str
    line: int | None = None
    column: int | None = None
    field: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line is not None else self.file
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


def check(data: bytes, *, source: str = "<spec>") -> tuple[Spec | None, tuple[Problem, ...]]:
    """The spec in a text, or None if it can't be decoded, and all problems it has.

    Args:
        data: The file's bytes.
        source: What to call it in problems.
    """
    try:
        spec = decode(data, source=source)
    except SpecError as error:
        return None, (_undecodable(error, source),)
    found = list(problems(spec))
    root = compose(data, source=source) if found else None
    return spec, tuple(_invalid(problem, source, root) for problem in found)


def _undecodable(error: SpecError, source: str) -> Problem:
    place = _PLACE.fullmatch(error.where or "")
    if place is None:
        return Problem(message=error.message, file=source, hint=error.hint)
    return Problem(
        message=error.message, file=source, line=int(place["line"]), column=int(place["column"]), hint=error.hint
    )


def _invalid(error: ValidationError, source: str, root: Node | None) -> Problem:
    node = _nearest(root, error.path) if root is not None else None
    return Problem(
        message=error.message,
        file=source,
        line=node.line if node else None,
        column=node.column if node else None,
        field=error.path or None,
        hint=error.hint,
    )


def _nearest(root: Node, path: str) -> Node:
    """The node of a field, or of the innermost thing around it that is there (the field may be missing)."""
    node = root
    for key, index in _STEP.findall(path):
        inner = node.resolved()
        if index:
            below = inner.children[int(index)] if int(index) < len(inner.children) else None
        else:
            pairs = zip(inner.children[::2], inner.children[1::2], strict=False)
            below = next((value for name, value in pairs if name.resolved().text == key), None)
        if below is None:
            break
        node = below
    return node
