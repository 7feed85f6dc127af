"""What of an expression is known before it runs, and what can't be because its constants make no sense.

Upstream computes conversions of constants, and lists and maps of constants, when it makes a program of an expression; a
conversion that fails makes the expression invalid, even where it would never run. Owns that, and the other reasons for
which upstream can't plan a typed expression: a constant pattern that is none, a constant index of a type that nothing
is indexed with. Source: cel-go v0.29.2 ``interpreter/decorators.go``, ``interpreter/attributes.go``.

It doesn't know what a program looks like; the compiler asks it which nodes are constants, and constants cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from draht.cel.ast import Call, Expr, Identifier, ListLiteral, Literal, MapLiteral
from draht.cel.dispatch import call_overloads
from draht.cel.errors import CompileError, EvaluationError, Issue
from draht.cel.library.standard_conversions import CONVERSION_NAMES
from draht.cel.numbers import UInt
from draht.cel.patterns import compiled
from draht.cel.reference import Checked
from draht.cel.source import Source
from draht.cel.values import Map, type_name
from draht.cel.walk import children

__all__ = ["fold"]

_PATTERNS: Final = frozenset({"matches", "find", "findAll"})
_INDICES: Final = frozenset({"_[_]", "_[?_]"})
_INDEX_CLASSES: Final = (str, int, UInt, float, bool)


def fold(checked: Checked, source: Source) -> Mapping[int, Any]:
    """The values of the nodes that are known now, by the nodes' ids.

    A value can be an `EvaluationError`: reading the constant fails with it (``[?1]``, which no optional stands in).

    Raises:
        CompileError: A constant makes the expression invalid.
    """
    folding = _Folding(checked, source)
    # Children first, without Python's stack; an expression may nest too deep for it.
    waiting: list[tuple[Expr, bool]] = [(checked.expr, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            folding.visit(node)
        else:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(children(node)))
    if folding.issues:
        raise CompileError(source.text, tuple(sorted(folding.issues, key=lambda issue: (issue.line, issue.column))))
    return folding.values


class _Folding:
    def __init__(self, checked: Checked, source: Source) -> None:
        self.values: dict[int, Any] = {}
        self.issues: list[Issue] = []
        self._checked = checked
        self._source = source

    def _refuse(self, node: Expr, message: str, hint: str | None = None) -> None:
        line, column = self._source.place(node.at)
        self.issues.append(Issue(message, line, column, hint))

    def visit(self, node: Expr) -> None:
        match node:
            case Literal():
                self.values[node.id] = node.value
            case Identifier():
                reference = self._checked.references[node.id]
                if reference.constant:
                    self.values[node.id] = reference.value
            case ListLiteral():
                self._list(node)
            case MapLiteral():
                self._map(node)
            case Call():
                self._call(node)
            case _:
                pass

    def _known(self, nodes: tuple[Expr, ...]) -> list[Any] | None:
        if all(node.id in self.values for node in nodes):
            return [self.values[node.id] for node in nodes]
        return None

    def _list(self, node: ListLiteral) -> None:
        values = self._known(node.elements)
        if values is None:
            return
        failed = next((value for value in values if isinstance(value, EvaluationError)), None)
        if failed is None and node.optional:
            # No constant is an optional.
            failed = _not_optional(values[min(node.optional)])
        self.values[node.id] = failed if failed is not None else tuple(values)

    def _map(self, node: MapLiteral) -> None:
        keys = self._known(tuple([entry.key for entry in node.entries]))
        values = self._known(tuple([entry.value for entry in node.entries]))
        if keys is None or values is None:
            return
        for entry, key, value in zip(node.entries, keys, values, strict=True):
            for part in (key, value):
                if isinstance(part, EvaluationError):
                    self.values[node.id] = part
                    return
            if entry.optional:
                self.values[node.id] = _not_optional(value)
                return
        try:
            self.values[node.id] = Map.of(zip(keys, values, strict=True))
        except EvaluationError as error:
            self._refuse(node, error.message, error.hint)

    def _call(self, node: Call) -> None:
        operands = node.args if node.target is None else (node.target, *node.args)
        if node.function in CONVERSION_NAMES and len(operands) == 1:
            self._conversion(node, operands[0])
        elif node.function == "@in":
            overloads = self._checked.references[node.id].overloads
            if len(overloads) == 1 and overloads[0].id == "in_list" and self.values.get(operands[1].id) == ():
                self.values[node.id] = False
        elif node.function in _PATTERNS and len(operands) >= 2:
            pattern = self.values.get(operands[1].id)
            if isinstance(pattern, str):
                try:
                    compiled(pattern)
                except EvaluationError as error:
                    self._refuse(operands[1], error.message, error.hint)
        elif node.function in _INDICES and operands[1].id in self.values:
            index = self.values[operands[1].id]
            if not isinstance(index, _INDEX_CLASSES) and not isinstance(index, EvaluationError):
                self._refuse(operands[1], f"nothing can be indexed with a {type_name(index)}")

    def _conversion(self, node: Call, operand: Expr) -> None:
        if operand.id not in self.values:
            return
        value = self.values[operand.id]
        try:
            if isinstance(value, EvaluationError):
                raise value
            self.values[node.id] = call_overloads(node.function, self._checked.references[node.id].overloads, (value,))
        except EvaluationError as error:
            self._refuse(node, error.message, error.hint)


def _not_optional(value: Any) -> EvaluationError:
    return EvaluationError(
        f"a {type_name(value)} is no optional, so ? can't stand before it",
        hint="leave the question mark out",
    )
