"""How a selector is answered for all devices of a table at once.

Owns the taking apart: ``&&``, ``||`` and ``!`` are computed on sets of rows, and what is left is evaluated once for
each value, or combination of values, of what it reads. Where a column has very many values, a comparison with constants
is a look-up, because all other values of the same type answer alike; anything else that reads only such a column is a
function of the value, without a device around it.

Whether a row is defective doesn't matter here; the table knows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

from draht.api.resource.device import DeviceAttribute
from draht.cel.ast import Call, Comprehension, Expr, Identifier, ListLiteral, Literal
from draht.cel.column import SMALL, Column, Rows
from draht.cel.device import Device
from draht.cel.errors import EvaluationError
from draht.cel.mentions import Mentions, exact_path, mentions_of
from draht.cel.selector import MAX_COST, Selector
from draht.cel.values import MISSING
from draht.cel.walk import descendants, finish

if TYPE_CHECKING:
    from draht.cel.columns import Table

__all__ = ["Plan", "plan_of"]

_KEPT: Final = 256
_PLAIN: Final = frozenset({str, int, bool})
_COMPARISONS: Final = frozenset({"_==_", "_!=_"})
_MISSING_TYPE: Final = type(MISSING)


class Plan:
    """How a part of a selector is answered for all rows at once."""

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        """The rows on which it is true, and those on which it fails."""
        raise NotImplementedError


@final
class _Combined(Plan):
    """``&&`` and ``||``: the side that decides hides the other's errors."""

    def __init__(self, left: Plan, right: Plan, *, both: bool) -> None:
        self._left = left
        self._right = right
        self._both = both

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        left, left_fails = self._left.rows(table)
        right, right_fails = self._right.rows(table)
        if self._both:
            false = table.all & ~((left | left_fails) & (right | right_fails))
            return left & right, (left_fails | right_fails) & ~false
        true = left | right
        return true, (left_fails | right_fails) & ~true


@final
class _Negated(Plan):
    """``!``."""

    def __init__(self, inner: Plan) -> None:
        self._inner = inner

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        true, fails = self._inner.rows(table)
        return table.all & ~true & ~fails, fails


@final
class _Leaf(Plan):
    """A part that is evaluated once for each combination of what it reads."""

    def __init__(self, expr: Expr, program: Callable[[Device], Any], of_value: Callable[[Any], Any] | None) -> None:
        self._program = program
        self._reads = _columns_of(mentions_of(expr))
        self._of_value = of_value
        self._constants = _compared_constants(expr) if of_value is not None else None

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        if not self._reads:
            answer = self._on_device(table, 0)
            return (table.all if answer is True else 0), (table.all if answer is None else 0)
        column = table.column(self._reads[0] if len(self._reads) == 1 else self._reads)
        if self._constants is not None and len(column.firsts) > SMALL:
            return self._looked_up(table, column, self._constants)
        answers = self._answers(table, column)
        matches = column.rows_where({row: answer is True for row, answer in answers.items()})
        if None not in answers.values():
            return matches, 0
        return matches, column.rows_where({row: answer is None for row, answer in answers.items()})

    def _on_device(self, table: Table, row: int) -> bool | None:
        """The answer for this row, None for an error; whether the row is defective doesn't matter here."""
        return _answer(self._program, table.devices[row])

    def _answers(self, table: Table, column: Column) -> dict[int, bool | None]:
        """The answer for each value, by its number."""
        of_value = self._of_value
        if of_value is None:
            return {row: self._on_device(table, row) for row in column.firsts.values()}
        answers: Iterable[Any]
        try:
            answers = list(map(of_value, column.known))
        except EvaluationError:
            answers = [_answer(of_value, value) for value in column.known]
        answered = iter(answers)
        return {
            row: self._on_device(table, row) if value is MISSING else _bool_or_none(next(answered))
            for row, value in zip(column.firsts.values(), column.values, strict=True)
        }

    def _looked_up(self, table: Table, column: Column, constants: Sequence[Any]) -> tuple[Rows, Rows]:
        """A comparison with constants: all values of a type that aren't among them answer alike."""
        special = {column.firsts.get(_wire(constant), -1): type(constant) for constant in constants}
        special.pop(-1, None)
        true: Rows = 0
        failed: Rows = 0
        for type_, (rows, numbers) in column.by_type().items():
            asked = [row for row, of_type in special.items() if of_type is type_]
            ordinary = next((row for row in numbers if row not in special), None)
            if type_ not in _PLAIN and type_ is not _MISSING_TYPE:
                asked = numbers
            elif ordinary is not None:
                others = rows
                for row in asked:
                    others &= ~column.rows_of(row)
                answer = self._on_device(table, ordinary)
                true |= others if answer is True else 0
                failed |= others if answer is None else 0
            for row in asked:
                answer = self._on_device(table, row)
                true |= column.rows_of(row) if answer is True else 0
                failed |= column.rows_of(row) if answer is None else 0
        return true, failed


def _answer(function: Callable[[Any], Any], value: Any) -> bool | None:
    try:
        answer = function(value)
    except EvaluationError:
        return None
    return _bool_or_none(answer)


def _bool_or_none(answer: Any) -> bool | None:
    return answer if answer is True or answer is False else None


def _wire(constant: Any) -> DeviceAttribute:
    match constant:
        case bool():
            return DeviceAttribute(bool_=constant)
        case int():
            return DeviceAttribute(int_=constant)
        case _:
            return DeviceAttribute(string=constant)


def _columns_of(mentions: Mentions) -> tuple[Any, ...]:
    if mentions.everything:
        return ("everything",)
    scalars = ("driver",) * mentions.driver + ("allow_multiple",) * mentions.allow_multiple
    return (*scalars, *sorted(mentions.keys))


@lru_cache(maxsize=_KEPT)
def plan_of(selector: Selector) -> Plan:
    """How the selector is answered for a table."""
    expr = selector.checked.expr
    if selector.cost.most > MAX_COST:
        # Its parts together must stay below the limit, so it isn't taken apart.
        return _Leaf(expr, selector.computed, None)
    return finish(expr, lambda node: _planned(node, selector))


def _planned(expr: Expr, selector: Selector) -> Generator[Expr, Plan, Plan]:
    if isinstance(expr, Call) and expr.function in {"_&&_", "_||_"}:
        left = yield expr.args[0]
        right = yield expr.args[1]
        return _Combined(left, right, both=expr.function == "_&&_")
    if isinstance(expr, Call) and expr.function == "!_":
        inner = yield expr.args[0]
        return _Negated(inner)
    path = _single_path(expr)
    of_value = None
    if path is not None:
        part = selector.part(expr, path)
        of_value = part.plain or part.evaluate
    return _Leaf(expr, selector.part(expr).evaluate, of_value)


def _single_path(expr: Expr) -> tuple[str, ...] | None:
    """The one attribute that the expression reads, if it is a function of its value alone."""
    inputs = 0
    paths = []
    for node in descendants(expr):
        if isinstance(node, Comprehension) and "device" in {node.variable, node.second, node.accumulator}:
            return None
        inputs += isinstance(node, Identifier) and node.name.removeprefix(".") == "device"
        path = exact_path(node)
        if path is not None and len(path) == 3 and path[0] == "attributes":
            paths.append(path)
    return paths[0] if paths and len(paths) == inputs and len(set(paths)) == 1 else None


def _compared_constants(expr: Expr) -> tuple[Any, ...] | None:
    """What a comparison of an attribute for equality compares it with."""
    if not isinstance(expr, Call):
        return None
    if expr.function in _COMPARISONS:
        others = [argument for argument in expr.args if isinstance(argument, Literal)]
        values = [other.value for other in others if type(other.value) in _PLAIN]
        return tuple(values) if len(values) == 1 and any(map(exact_path, expr.args)) else None
    if expr.function == "@in" and exact_path(expr.args[0]) and isinstance(expr.args[1], ListLiteral):
        values = [one.value for one in expr.args[1].elements if isinstance(one, Literal) and type(one.value) in _PLAIN]
        return tuple(values) if len(values) == len(expr.args[1].elements) else None
    return None
