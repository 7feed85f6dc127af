"""How a selector is answered for all devices of a table at once.

Owns the taking apart: ``&&``, ``||`` and ``!`` are computed on sets of rows, and what is left is evaluated once for
each value, or combination of values, of what it reads. Where a column has very many values, a comparison with constants
is a look-up, because all other values of the same type answer alike; anything else that reads only such a column is a
function of the value, without a device around it.

Whether a row is defective doesn't matter here; the table knows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

from draht.api.resource.device import DeviceAttribute
from draht.cel.ast import Call, Comprehension, Expr, Identifier, ListLiteral, Literal
from draht.cel.column import SMALL, Column, Rows
from draht.cel.device import Device
from draht.cel.errors import AbortError, EvaluationError
from draht.cel.mentions import Mentions, exact_path, mentions_of
from draht.cel.selector import MAX_COST, Selector, unwrapped
from draht.cel.types import BOOL
from draht.cel.values import MISSING
from draht.cel.walk import descendants, finish

if TYPE_CHECKING:
    from draht.cel.columns import Table

__all__ = ["Answers", "Plan", "plan_of"]

_KEPT: Final = 256
_PLAIN: Final = frozenset({str, int, bool})
_COMPARISONS: Final = frozenset({"_==_", "_!=_"})
_MISSING_TYPE: Final = type(MISSING)


class Answers(NamedTuple):
    """What is known of every row: it is true, it fails, or else it is false."""

    true: Rows
    failed: Rows
    aborted: Rows = 0
    """Those of the failed ones that nothing around them can hide."""


class Plan:
    """How a part of a selector is answered for all rows at once."""

    def answers(self, table: Table) -> Answers:
        """The answers for the rows of a table that has some."""
        raise NotImplementedError


@final
class _Combined(Plan):
    """``&&`` and ``||``: the side that decides hides the other's errors."""

    def __init__(self, left: Plan, right: Plan, *, both: bool) -> None:
        self._left = left
        self._right = right
        self._both = both

    def answers(self, table: Table) -> Answers:
        left = self._left.answers(table)
        right = self._right.answers(table)
        decided = [
            table.all & ~side.true & ~side.failed if self._both else side.true & ~side.failed for side in (left, right)
        ]
        # The right side isn't asked where the left one decides.
        aborted = left.aborted | (right.aborted & ~decided[0])
        failed = ((left.failed | right.failed) & ~(decided[0] | decided[1])) | aborted
        true = left.true & right.true if self._both else left.true | right.true
        return Answers(true & ~failed, failed, aborted)


@final
class _Negated(Plan):
    """``!``."""

    def __init__(self, inner: Plan) -> None:
        self._inner = inner

    def answers(self, table: Table) -> Answers:
        inner = self._inner.answers(table)
        return Answers(table.all & ~inner.true & ~inner.failed, inner.failed, inner.aborted)


@final
class _Leaf(Plan):
    """A part that is evaluated once for each combination of what it reads."""

    def __init__(self, expr: Expr, program: Callable[[Device], Any], of_value: Callable[[Any], Any] | None) -> None:
        self._program = program
        self._reads = _columns_of(mentions_of(expr))
        self._of_value = of_value
        self._constants = _compared_constants(expr) if of_value is not None else None

    def answers(self, table: Table) -> Answers:
        if not self._reads:
            return _collected([(table.all, self._on_device(table, 0))])
        column = table.column(self._reads[0] if len(self._reads) == 1 else self._reads)
        if self._constants is not None and len(column.firsts) > SMALL:
            return _collected(self._looked_up(table, column, self._constants))
        answers = self._answers(table, column)
        states = set(answers.values())
        return _collected(
            (column.rows_where({row: answer is state for row, answer in answers.items()}), state)
            for state in states - {False}
        )

    def _on_device(self, table: Table, row: int) -> _Answer:
        """The answer for this row; whether the row is defective doesn't matter here."""
        return _answer(self._program, table.devices[row])

    def _answers(self, table: Table, column: Column) -> dict[int, _Answer]:
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
            row: self._on_device(table, row) if value is MISSING else _settled(next(answered))
            for row, value in zip(column.firsts.values(), column.values, strict=True)
        }

    def _looked_up(self, table: Table, column: Column, constants: Sequence[Any]) -> Iterator[tuple[Rows, _Answer]]:
        """A comparison with constants: all values of a type that aren't among them answer alike."""
        special = {column.firsts.get(_wire(constant), -1): type(constant) for constant in constants}
        special.pop(-1, None)
        for type_, (rows, numbers) in column.by_type().items():
            asked = [row for row, of_type in special.items() if of_type is type_]
            ordinary = next((row for row in numbers if row not in special), None)
            if type_ not in _PLAIN and type_ is not _MISSING_TYPE:
                asked = numbers
            elif ordinary is not None:
                others = rows
                for row in asked:
                    others &= ~column.rows_of(row)
                yield others, self._on_device(table, ordinary)
            for row in asked:
                yield column.rows_of(row), self._on_device(table, row)


class _State(Enum):
    FAILED = "failed"
    ABORTED = "aborted"


_Answer: TypeAlias = bool | _State


def _answer(function: Callable[[Any], Any], value: Any) -> _Answer:
    try:
        answer = function(value)
    except AbortError:
        return _State.ABORTED
    except EvaluationError:
        return _State.FAILED
    return _settled(answer)


def _settled(answer: Any) -> _Answer:
    """What isn't bool is an error, wherever it stands."""
    return answer if answer is True or answer is False or type(answer) is _State else _State.FAILED


def _collected(parts: Iterable[tuple[Rows, _Answer]]) -> Answers:
    true = failed = aborted = 0
    for rows, answer in parts:
        if answer is True:
            true |= rows
        elif answer is not False:
            failed |= rows
            aborted |= rows if answer is _State.ABORTED else 0
    return Answers(true, failed, aborted)


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
        return _Leaf(expr, _whole(selector.computed), None)
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
    program = selector.part(expr).evaluate
    if expr is selector.checked.expr and selector.checked.output != BOOL:
        return _Leaf(expr, _whole(program), None if of_value is None else _whole(of_value))
    return _Leaf(expr, program, of_value)


def _whole(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The answer of the whole selector may come in an optional; that of an operand may not."""
    return lambda value: unwrapped(function(value))


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
