"""Everything that is wrong with the text of one spec file, each problem with line, column and field.

Owns the join of decoding and validation for people who write specs. Decoding stops at the first mistake: here the value
in question is left out and the rest is decoded again, until nothing is wrong with its form; what is left out isn't
validated. A rule that a decoded spec breaks is about a field: here the line is found that the field is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from draht.api.yaml import YamlError
from draht.cdi.decode import decode, decode_tree
from draht.cdi.errors import CDIError, SpecError, ValidationError
from draht.cdi.nodes import Node, compose
from draht.cdi.spec import Spec
from draht.cdi.validate import problems

__all__ = ["Problem", "check"]

_STEP = re.compile(r"([A-Za-z0-9]+)|\[(\d+)\]")
_MAX_MISTAKES = 50
_MAX_BYTES_DECODED = 5_000_000
"""How much text may be decoded again for the sake of further mistakes."""

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
        return None, tuple(_undecodable(data, source, error))
    found = list(problems(spec))
    root = compose(data, source=source) if found else None
    return spec, tuple(_invalid(problem, source, root) for problem in found)


class _Place(NamedTuple):
    """A node of a tree: the field it belongs to, and what to take out of which list of children to be rid of it."""

    field: str
    siblings: list[Node]
    taken: tuple[Node, ...]

    def remove(self) -> bool:
        """Take it out; false if that has been done."""
        before = len(self.siblings)
        self.siblings[:] = [node for node in self.siblings if not any(node is each for each in self.taken)]
        return len(self.siblings) < before


def _undecodable(data: bytes, source: str, error: SpecError) -> Iterator[Problem]:
    """The mistakes of form, found by decoding again without the value that is wrong."""
    try:
        root = compose(data, source=source)
    except (CDIError, YamlError):
        root = None
    places: dict[tuple[int, int], list[_Place]] = {}
    if root is not None:
        _collect_places(root, "", places)
    left = max(1, min(_MAX_MISTAKES, _MAX_BYTES_DECODED // (len(data) + 1)))
    mistake: SpecError | None = error
    while mistake is not None and left > 0:
        left -= 1
        line, column = _line_and_column(mistake)
        field, following = None, None
        for place in places.get((line, column), ()) if line is not None and column is not None else ():
            if not place.remove():
                continue
            field, following = place.field, _next_mistake(root, source)
            if following is None or str(following) != str(mistake):
                break
            # The same again: it wasn't about the key, but about what begins with it.
        yield Problem(message=mistake.message, file=source, line=line, column=column, field=field, hint=mistake.hint)
        mistake = following if following is not None and str(following) != str(mistake) else None


def _next_mistake(root: Node | None, source: str) -> SpecError | None:
    try:
        decode_tree(root, source=source)
    except SpecError as error:
        return error
    return None


def _collect_places(node: Node, field: str, places: dict[tuple[int, int], list[_Place]]) -> None:
    """Where each node is, innermost first: a mapping begins where its first key does."""
    siblings = node.children
    members: list[tuple[str, tuple[Node, ...]]]
    if node.kind == "sequence":
        members = [(f"{field}[{index}]", (child,)) for index, child in enumerate(siblings)]
    else:
        pairs = zip(siblings[::2], siblings[1::2], strict=False)
        members = [(f"{field}.{key.text}".lstrip("."), (key, value)) for key, value in pairs]
    for inner, taken in members:
        for child in taken:
            _collect_places(child, inner, places)
        for child in taken:
            places.setdefault((child.line, child.column), []).append(_Place(inner, siblings, taken))


def _line_and_column(error: SpecError) -> tuple[int, int] | tuple[None, None]:
    place = _PLACE.fullmatch(error.where or "")
    return (int(place["line"]), int(place["column"])) if place else (None, None)


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
