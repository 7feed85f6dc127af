"""From a checked expression to code.

Owns the compiler: it walks the tree once and makes closures out of those in ``closures_*``, each of which takes the
frame of one evaluation. The frame of an expression without loops is the input itself; else it is a list with the input,
the meter and one slot for each variable. Besides what `draht.cel.folding` knows, calls on constants are computed here
once; those that fail are left to fail when they run.

A program is made twice at most: without a meter, and with one when somebody asks for what an evaluation costs or the
price isn't known to stay below the limit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias, final

from draht.cel import closures_compare, closures_folds, closures_logic, closures_metered, closures_paths
from draht.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from draht.cel.closures_logic import Closure
from draht.cel.closures_paths import Step
from draht.cel.declarations import Environment, Overload
from draht.cel.depth import SHALLOW, run_deep
from draht.cel.dispatch import bound
from draht.cel.errors import EvaluationError
from draht.cel.folds import Shape, shape_of
from draht.cel.mentions import exact_path
from draht.cel.messages import message
from draht.cel.reference import Checked, Reference
from draht.cel.tracking import ATTRIBUTE, LIST_COST, MAP_COST, STRUCT_COST, Meter
from draht.cel.types import Type
from draht.cel.values import MISSING, Optional, is_by_identity
from draht.cel.walk import children, descendants, finish

__all__ = ["Program"]

_PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
"""Upstream makes other code of these where the pattern is known."""
_DEMANDED: Final[dict[tuple[str, int], tuple[type, ...]]] = {
    ("distinct", 0): (tuple, list),
    ("sort", 0): (tuple, list),
    ("@sortByAssociatedKeys", 0): (),
    ("@sortByAssociatedKeys", 1): (tuple, list),
    ("flatten", 1): (int,),
}
"""Function and argument → what it must be (`closures_logic.demanded`)."""
_FIRST_SLOT: Final = 2
"""Behind the input and the meter."""


@dataclass(frozen=True, slots=True)
class _Code:
    """What the compiler knows of one node.

    Args:
        run: The code.
        height: Levels of the tree below and with the node.
        constant: The value, where it is known now.
        early: The value was known before the call that would make it ran, for upstream too.
        root: For a path: code of what it starts from, without its price.
        steps: For a path: its steps.
        price: For a path: what reading it costs on top of root and steps.
        branches: For a choice that begins a path: condition, and both branches with the path's steps so far. Upstream
            follows the steps in the branch, where an optional in the middle isn't opened, not from what was chosen.
    """

    run: Closure
    height: int
    constant: Any = MISSING
    early: bool = True
    root: Closure | None = None
    steps: tuple[Step, ...] = ()
    price: int = 0
    branches: tuple[Closure, _Code, _Code] | None = None


_Visit: TypeAlias = Generator[Expr, _Code, _Code]


@final
class Program:
    """An expression, ready to run; immutable and safe to share between threads.

    Args:
        checked: The expression; its environment declares exactly one variable, the input.
        environment: What it may name.
        constants: What is known of it beforehand (`draht.cel.folding`).
        part: The path ``device.a["b"].c`` that the expression is a function of, if its input isn't to be the device
            but what is found there.
    """

    def __init__(
        self,
        checked: Checked,
        environment: Environment,
        constants: Mapping[int, Any],
        *,
        part: tuple[str, ...] | None = None,
    ) -> None:
        self._checked = checked
        self._environment = environment
        self._constants = constants
        compiler = _Compiler(checked, environment, constants, metered=False, part=part)
        code = finish(checked.expr, compiler.visit)
        self._height = code.height
        self._slots = compiler.slots
        # Not by the number of slots: a loop that is known to come to nothing has none left.
        self._framed = compiler.framed
        self._run = code.run

    @cached_property
    def _metered(self) -> tuple[Closure, int]:
        compiler = _Compiler(self._checked, self._environment, self._constants, metered=True)
        return finish(self._checked.expr, compiler.visit).run, compiler.slots

    @property
    def plain(self) -> Closure | None:
        """The code as a function of the input, where it needs neither frame nor stack."""
        return self._run if not self._framed and self._height <= SHALLOW else None

    def evaluate(self, value: Any) -> Any:
        """The value of the expression for an input, whatever it costs.

        Raises:
            EvaluationError: Evaluation fails.
        """
        frame = [value, None, *[None] * (self._slots - _FIRST_SLOT)] if self._framed else value
        if self._height <= SHALLOW:
            return self._run(frame)
        return run_deep(self._height, lambda: self._run(frame))

    def measure(self, value: Any, limit: int) -> tuple[Any, int]:
        """The value for an input, or the error, and what it cost.

        Args:
            value: The input.
            limit: Units after which evaluation ends with a `draht.cel.errors.LimitError`.
        """
        run, slots = self._metered
        meter = Meter(limit)
        frame = [value, meter, *[None] * (slots - _FIRST_SLOT)]
        try:
            result = run(frame) if self._height <= SHALLOW else run_deep(self._height, lambda: run(frame))
        except EvaluationError as error:
            result = error
        return result, meter.cost


@final
class _Compiler:
    """One walk over one tree."""

    def __init__(
        self,
        checked: Checked,
        environment: Environment,
        constants: Mapping[int, Any],
        *,
        metered: bool,
        part: tuple[str, ...] | None = None,
    ) -> None:
        self._part = part
        self._checked = checked
        self._environment = environment
        self._constants = constants
        self._metered = metered
        self.framed = metered or _has_loops(checked.expr)
        # Values that are keys by identity are made anew by each call there.
        self._keyed = _makes_keys(checked.expr)
        self._scope: dict[str, Closure] = {}
        self.slots = _FIRST_SLOT

    def visit(self, expr: Expr) -> _Visit:
        """Code of one node."""
        if expr.id in self._constants:
            return _constant(self._constants[expr.id])
        if self._part is not None and exact_path(expr) == self._part:
            return _Code(self._read_input(), 1, root=self._read_input())
        match expr:
            case Literal():
                return _constant(expr.value)
            case Identifier():
                return self._identifier(expr)
            case Select():
                operand = yield expr.operand
                return self._path(operand, Step(expr.field, test=expr.test))
            case ListLiteral():
                return (yield from self._list(expr))
            case MapLiteral():
                return (yield from self._map(expr))
            case StructLiteral():
                return (yield from self._struct(expr))
            case Comprehension():
                return (yield from self._fold(expr))
            case Call():
                return (yield from self._call(expr))

    @staticmethod
    def _each(exprs: Iterable[Expr]) -> Generator[Expr, _Code, list[_Code]]:
        codes: list[_Code] = []
        for expr in exprs:
            codes += [(yield expr)]
        return codes

    def _read_input(self) -> Closure:
        return _first_of_frame if self.framed else _whole_frame

    def _charged(self, closure: Closure, units: int) -> Closure:
        return closures_metered.charged(closure, units) if self._metered and units else closure

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    # Names and paths

    def _identifier(self, expr: Identifier) -> _Code:
        read = self._scope.get(expr.name)
        if read is None:
            read = self._read_input()
        return _Code(self._charged(read, ATTRIBUTE), 1, root=read, price=ATTRIBUTE)

    def _path(self, operand: _Code, step: Step, height: int = 0) -> _Code:
        if operand.branches is not None:
            condition, *branches = operand.branches
            then, otherwise = (self._path(branch, step, height) for branch in branches)
            root = closures_logic.conditional(condition, self._free(then), self._free(otherwise))
            height = max(operand.height, height) + 1
            run = self._charged(root, operand.price - step.test)
            return _Code(run, height, root=root, price=operand.price, branches=(condition, then, otherwise))
        root, steps, price = (
            (operand.run, (), ATTRIBUTE) if operand.root is None else (operand.root, operand.steps, operand.price)
        )
        return self._followed(root, (*steps, step), price, max(operand.height, height) + 1)

    def _followed(self, root: Closure, steps: tuple[Step, ...], price: int, height: int) -> _Code:
        run = self._charged(self._unpaid(root, steps), price - steps[-1].test)
        return _Code(run, height, root=root, steps=steps, price=price)

    def _unpaid(self, root: Closure, steps: tuple[Step, ...], *, bare: bool = False) -> Closure:
        if not steps:
            return root
        make = closures_metered.path if self._metered else closures_paths.path
        return make(root, steps, bare=bare)

    def _unobserved(self, code: _Code) -> Closure:
        """Code of a path without the price of reading it."""
        return self._free(code, bare=True)

    def _free(self, code: _Code, *, bare: bool = False) -> Closure:
        if code.branches is not None:
            condition, then, otherwise = code.branches
            return closures_logic.conditional(condition, self._free(then, bare=bare), self._free(otherwise, bare=bare))
        return code.run if code.root is None else self._unpaid(code.root, code.steps, bare=bare)

    def _indexed(self, operand: _Code, key: _Code, *, optional: bool) -> _Code:
        if key.constant is not MISSING and key.early:
            return self._path(operand, Step(key.constant, optional=optional))
        return self._path(operand, Step(MISSING, self._unobserved(key), optional), key.height)

    # Literals

    def _list(self, expr: ListLiteral) -> _Visit:
        elements = yield from self._each(expr.elements)
        made = closures_logic.list_of([element.run for element in elements], expr.optional)
        return _Code(self._charged(made, LIST_COST), _height(elements))

    def _map(self, expr: MapLiteral) -> _Visit:
        entries = []
        parts = []
        for entry in expr.entries:
            key = yield entry.key
            value = yield entry.value
            entries.append((key.run, value.run, entry.optional))
            parts += [key, value]
        return _Code(self._charged(closures_logic.map_of(entries), MAP_COST), _height(parts))

    def _struct(self, expr: StructLiteral) -> _Visit:
        fields = []
        parts = []
        for field in expr.fields:
            value = yield field.value
            parts.append(value)
            fields.append((field.name, value.run, field.optional))
        return _Code(self._charged(message(expr.type_name, fields), STRUCT_COST), _height(parts))

    # Calls

    def _call(self, expr: Call) -> _Visit:
        arguments = yield from self._each(children(expr))
        match expr.function:
            case "_&&_":
                run = closures_logic.conjunction(arguments[0].run, arguments[1].run)
                return _Code(run, _height(arguments))
            case "_||_":
                run = closures_logic.disjunction(arguments[0].run, arguments[1].run)
                return _Code(run, _height(arguments))
            case "_?_:_":
                return self._conditional(arguments)
            case "_[_]":
                return self._indexed(*arguments, optional=False)
            case "_[?_]" | "_?._":
                return self._indexed(*arguments, optional=True)
            case "or" | "orValue" if self._is_optional_or(expr):
                run = closures_logic.otherwise(arguments[0].run, arguments[1].run, unwrap=expr.function == "orValue")
                return _Code(run, _height(arguments))
        return self._function(self._checked.references[expr.id], arguments)

    def _is_optional_or(self, expr: Call) -> bool:
        ids = {overload.id for overload in self._checked.references[expr.id].overloads}
        return bool(ids & {"optional_or_optional", "optional_orValue_value"})

    def _conditional(self, arguments: list[_Code]) -> _Code:
        condition, then, otherwise = arguments
        root = closures_logic.conditional(condition.run, self._unobserved(then), self._unobserved(otherwise))
        return _Code(root, _height(arguments), root=root, branches=(condition.run, then, otherwise))

    def _function(self, reference: Reference, arguments: list[_Code]) -> _Code:
        name = reference.name
        height = _height(arguments)
        constants = [argument.constant for argument in arguments]
        known = all(constant is not MISSING for constant in constants)
        overloads = reference.overloads
        # One overload is called as such; where the checker left several, all of the function's are tried.
        candidates = overloads
        if len(overloads) > 1:
            candidates = self._environment.functions[name].overloads
        call = bound(name, [overload for overload in candidates if len(overload.parameters) == len(arguments)])
        if name in _PATTERN_FUNCTIONS and len(arguments) > 1 and type(arguments[1].constant) is str:
            call = _reading_text(call)
        if len(overloads) == 1:
            arguments = [_demanded(name, position, argument) for position, argument in enumerate(arguments)]
        constant = constants[1] if name == "@in" and arguments[1].early else MISSING
        if constant is not MISSING and len(overloads) == 1 and overloads[0].id == "in_list":
            keys = closures_compare.constant_set(constant)
            if keys is not None:
                return _Code(closures_compare.among(arguments[0].run, keys), height)
        if self._metered:
            return _Code(self._metered_call(call, name, overloads, candidates, arguments), height)
        if known:
            with contextlib.suppress(EvaluationError):
                value = call(*constants)
                if not (self._keyed and is_by_identity(type(value))):
                    return replace(_constant(value), height=height, early=False)
        return _Code(_called(name, call, arguments, stops=_stops(overloads, candidates, len(arguments))), height)

    def _metered_call(
        self,
        call: Callable[..., Any],
        name: str,
        overloads: Sequence[Overload],
        candidates: Sequence[Overload],
        arguments: Sequence[_Code],
    ) -> Closure:
        several = _stops(overloads, candidates, len(arguments)) or (
            name in _PATTERN_FUNCTIONS and len(arguments) == 2 and type(arguments[1].constant) is str
        )
        runs = [argument.run for argument in arguments]
        return closures_metered.call(call, name, overloads, runs, stops=several)

    # Comprehensions

    def _fold(self, expr: Comprehension) -> _Visit:
        over = yield expr.range
        initial = yield expr.initial
        accumulator = self._new_slot()
        read = closures_folds.lazy(accumulator, initial.run)
        shape = shape_of(expr)
        if shape.kind == "bind":
            result = yield from self._within({expr.accumulator: read}, expr.result)
            return _Code(closures_folds.bind(accumulator, result.run), _height([over, initial, result]))
        first = self._new_slot()
        second = self._new_slot() if expr.second is not None else None
        variables = {expr.variable: closures_folds.variable(first)}
        if expr.second is not None and second is not None:
            variables[expr.second] = closures_folds.variable(second)
        slots = (first, second)
        if shape.kind != "other" and not self._metered:
            return (yield from self._shaped(shape, over, slots, {expr.accumulator: read, **variables}))
        inner = {expr.accumulator: read, **variables}
        condition = yield from self._within(inner, expr.condition)
        step = yield from self._within(inner, expr.step)
        result = yield from self._within({expr.accumulator: read}, expr.result)
        run = closures_folds.fold(over.run, slots, accumulator, condition.run, step.run, result.run)
        return _Code(run, _height([over, initial, condition, step, result]))

    def _shaped(self, shape: Shape, over: _Code, slots: closures_folds.Slots, variables: dict[str, Closure]) -> _Visit:
        parts = [over]
        predicate = element = None
        if shape.predicate is not None:
            predicate = yield from self._within(variables, shape.predicate)
            parts.append(predicate)
        if shape.element is not None:
            element = yield from self._within(variables, shape.element)
            parts.append(element)
        # The macros wrap the predicate in two or three more levels, which cost no frames here.
        height = _height(parts) + 2
        if element is not None:
            run = closures_folds.mapped(over.run, slots, predicate.run if predicate is not None else None, element.run)
            return _Code(run, height)
        assert predicate is not None
        make = {"every": closures_folds.every, "some": closures_folds.some, "only_one": closures_folds.only_one}
        return _Code(make[shape.kind](over.run, slots, predicate.run), height)

    def _within(self, variables: dict[str, Closure], expr: Expr) -> _Visit:
        """Code of a part in which these variables are known."""
        outer = self._scope
        self._scope = {**outer, **variables}
        try:
            return (yield expr)
        finally:
            self._scope = outer


def _demanded(name: str, position: int, argument: _Code) -> _Code:
    classes = _DEMANDED.get((name, position))
    if classes is None:
        return argument
    return replace(argument, run=closures_logic.demanded(argument.run, *classes), root=None, steps=(), branches=None)


def _constant(value: Any) -> _Code:
    if isinstance(value, EvaluationError):
        return _Code(closures_logic.failing(value), 1)
    return _Code(closures_logic.constant(value), 1, constant=value)


def _height(parts: Sequence[_Code]) -> int:
    return 1 + max((part.height for part in parts), default=0)


def _whole_frame(frame: Any) -> Any:
    return frame


def _first_of_frame(frame: Any) -> Any:
    return frame[0]


def _reading_text(call: Callable[..., Any]) -> Callable[..., Any]:
    """Upstream's code for a known pattern takes the text out of an optional, and the name of a type for one."""

    def called(text: Any, *rest: Any) -> Any:
        while type(text) is Optional and text.has_value:
            text = text.value
        return call(text.name if type(text) is Type else text, *rest)

    return called


def _stops(overloads: Sequence[Overload], candidates: Sequence[Overload], arguments: int) -> bool:
    """Upstream evaluates all arguments of a unary or binary code, and stops at the first error with any other."""
    return arguments > 2 or (len(overloads) > 1 and len({overload.call for overload in candidates}) > 1)


def _called(name: str, call: Callable[..., Any], arguments: Sequence[_Code], *, stops: bool) -> Closure:
    if len(arguments) == 2 and arguments[1].constant is not MISSING:
        short = closures_compare.with_constant(name, call, arguments[0].run, arguments[1].constant)
        if short is not None:
            return short
    return closures_logic.call(call, [argument.run for argument in arguments], stops=stops)


def _makes_keys(expr: Expr) -> bool:
    """Whether it makes a map of which a key is computed."""
    maps = (node for node in descendants(expr) if isinstance(node, MapLiteral))
    return any(not isinstance(entry.key, Literal) for each in maps for entry in each.entries)


def _has_loops(expr: Expr) -> bool:
    return any(isinstance(node, Comprehension) for node in descendants(expr))
