"""Finding out the type of every part of an expression, and which function every call means.

Owns the rules of cel-go v0.29.2 ``checker/checker.go`` with the options of the Kubernetes environment: numbers of
different types may be compared, optional types exist, the container is empty. Everything that is wrong is found in one
go; a part that is wrong has the type `ERROR`, about which nothing further is said.

It doesn't look at values: durations, timestamps and patterns written as literals are judged by `validators`, as are
literals of lists and maps that mix types, and conversions of constants by `folding`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from draht.cel import hints
from draht.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Field,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
)
from draht.cel.declarations import Environment, Function, Overload
from draht.cel.errors import CompileError, Issue
from draht.cel.inference import (
    Substitutions,
    TooComplex,
    apart,
    bounded,
    is_dynamic,
    is_dynamic_or_error,
    most_general,
    unwrapped_optional,
)
from draht.cel.numbers import UInt
from draht.cel.reference import Checked, Reference
from draht.cel.scope import Named, Scope, spelled
from draht.cel.signatures import Signatures, misfit
from draht.cel.source import Source
from draht.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    object_type,
    optional_of,
)
from draht.cel.walk import descendants, finish

__all__ = ["check"]

_Visit: TypeAlias = Generator[Expr, Expr, Expr]

_LITERALS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_LOGICAL: Final = frozenset({"_&&_", "_||_"})
_RANGES: Final = frozenset({"dyn", "error", "parameter"})

_WELL_KNOWN: Final = {
    "any": "google.protobuf.Any",
    "bool": "google.protobuf.BoolValue",
    "bytes": "google.protobuf.BytesValue",
    "double": "google.protobuf.DoubleValue",
    "duration": "google.protobuf.Duration",
    "dyn": "google.protobuf.Value",
    "int": "google.protobuf.Int64Value",
    "list": "google.protobuf.ListValue",
    "map": "google.protobuf.Struct",
    "null": "google.protobuf.NullValue",
    "string": "google.protobuf.StringValue",
    "timestamp": "google.protobuf.Timestamp",
    "uint": "google.protobuf.UInt64Value",
}


def check(expr: Expr, environment: Environment, source: Source) -> Checked:
    """The expression with the type of every node and what every name and call refers to.

    Args:
        expr: The parsed expression.
        environment: Everything it may name.
        source: Its text, for the places of errors.

    Raises:
        CompileError: With everything that is wrong, in the order of the text.
    """
    checker = _Checker(environment, source)
    try:
        checked = finish(expr, checker.visit)
        settled = checker.substitutions.all_applied(checker.types.values())
        types = dict(zip(checker.types, settled, strict=True))
    except TooComplex:
        checker.refuse(expr, "the types of this expression are too complex")
        types = {}
    if not checker.issues:
        checker.settle_types(checked, types)
    if checker.issues:
        raise CompileError(source.text, tuple(sorted(checker.issues, key=lambda issue: (issue.line, issue.column))))
    return Checked(checked, types, checker.references)


class _Checker:
    def __init__(self, environment: Environment, source: Source) -> None:
        self.environment = environment
        self.source = source
        self.issues: list[Issue] = []
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}
        self.substitutions = Substitutions()
        self._scope = Scope(environment)
        self._signatures = Signatures()

    def refuse(self, node: Expr | Field, message: str, hint: str | None = None) -> None:
        line, column = self.source.place(node.at)
        self.issues.append(Issue(message, line, column, hint))

    def settle_types(self, expr: Expr, types: Mapping[int, Type]) -> None:
        """Let every name whose value is a type stand for the type that has this name.

        Upstream plans such a name so even if it is a variable of the expression, and refuses it if no type has the
        name: a type can't be bound to a variable.
        """
        refused: set[str] = set()
        for node in descendants(expr):
            if not isinstance(node, Identifier) or types[node.id].kind != "type":
                continue
            # A name with a leading dot stands here where a variable hides the type; upstream doesn't find it then.
            name = node.name
            kind = self.environment.types.get(name)
            if kind is None:
                if name in refused:
                    continue
                refused.add(name)
                self.refuse(node, f"{_shown(name)} stands for a type, which no variable can")
            else:
                self.references[node.id] = Reference(name, constant=True, value=kind)

    def visit(self, expr: Expr) -> _Visit:
        match expr:
            case Literal():
                self.types[expr.id] = _LITERALS[type(expr.value)]
                return expr
            case Identifier():
                return self._identifier(expr)
            case Select():
                return (yield from self._select(expr))
            case Call():
                return (yield from self._call(expr))
            case ListLiteral():
                return (yield from self._list(expr))
            case MapLiteral():
                return (yield from self._map(expr))
            case StructLiteral():
                return (yield from self._struct(expr))
            case Comprehension():
                return (yield from self._comprehension(expr))

    # Names

    def _identifier(self, expr: Identifier) -> Expr:
        found = self._scope.simple(expr.name)
        if found is None:
            hint = hints.unknown_name(expr.name, self._scope.variables())
            self.refuse(expr, f"{_shown(expr.name)} is not declared", hint)
            self.types[expr.id] = ERROR
            return expr
        return self._named(expr, found)

    def _named(self, expr: Expr, found: Named) -> Identifier:
        self.types[expr.id] = found.type
        self.references[expr.id] = found.reference
        return Identifier(expr.id, expr.at, found.name)

    # Selections

    def _select(self, expr: Select) -> _Visit:
        found = self._scope.qualified(expr)
        if found is not None:
            return self._named(expr, found)
        operand = yield expr.operand
        kind = self._field(expr, operand, expr.field, optional=False)
        self.types[expr.id] = self.substitutions.applied(BOOL if expr.test else kind)
        return expr if operand is expr.operand else replace(expr, operand=operand)

    def _optional_select(self, expr: Call) -> _Visit:
        operand, field = expr.args
        if not isinstance(field, Literal) or not isinstance(field.value, str):
            self.refuse(field, "an optional selection needs the name of a field")
            self.types[expr.id] = ERROR
            return expr
        checked = yield operand
        self.types[field.id] = STRING
        kind = self._field(expr, checked, field.value, optional=True)
        self.types[expr.id] = self.substitutions.applied(kind)
        function = self.environment.functions.get(expr.function)
        self.references[expr.id] = Reference(expr.function, function.overloads if function is not None else ())
        return expr if checked is operand else replace(expr, args=(checked, field))

    def _field(self, expr: Expr, operand: Expr, name: str, *, optional: bool) -> Type:
        target, was_optional = unwrapped_optional(self.substitutions.applied(self.types[operand.id]))
        result = DYN
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "object":
            result = self._declared_field(expr, target.name, name)
        elif target.kind == "parameter":
            self.substitutions.assignable((DYN,), (target,))
        elif not is_dynamic_or_error(target):
            self.refuse(expr, f"{target.for_people()} has no fields", hints.no_fields(target))
        return optional_of(result) if optional or was_optional else result

    def _declared_field(self, node: Expr | Field, kind: str, name: str) -> Type:
        fields = self.environment.fields.get(kind)
        if fields is None:
            self.refuse(node, f"{kind} has no fields")
            return ERROR
        found = fields.get(name)
        if found is None:
            self.refuse(node, f"{kind} has no field {_shown(name)}", hints.unknown_field(name, fields))
            return ERROR
        return found

    # Calls

    def _call(self, expr: Call) -> _Visit:
        if expr.function == "_?._" and expr.target is None and len(expr.args) == 2:
            return (yield from self._optional_select(expr))
        args: list[Expr] = []
        for arg in expr.args:
            checked = yield arg
            args.append(checked)
        if expr.target is None:
            function = self.environment.functions.get(expr.function.removeprefix("."))
            if function is None:
                return self._unknown_function(replace(expr, args=tuple(args)))
            return self._resolved(replace(expr, function=function.name, args=tuple(args)), function)
        prefix = spelled(expr.target)
        if prefix is not None:
            function = self.environment.functions.get(f"{prefix}.{expr.function}".removeprefix("."))
            if function is not None:
                # The function's own name has a namespace, so there is no receiver.
                return self._resolved(Call(expr.id, expr.at, function.name, None, tuple(args)), function)
        target = yield expr.target
        rebuilt = replace(expr, target=target, args=tuple(args))
        function = self.environment.functions.get(expr.function)
        if function is None:
            return self._unknown_function(rebuilt)
        return self._resolved(rebuilt, function)

    def _unknown_function(self, expr: Call) -> Expr:
        hint = hints.unknown_function(expr.function, self.environment.functions, member=expr.target is not None)
        self.refuse(expr, f"function {_shown(expr.function)} is not declared", hint)
        self.types[expr.id] = ERROR
        return expr

    def _resolved(self, expr: Call, function: Function) -> Expr:
        operands = expr.args if expr.target is None else (expr.target, *expr.args)
        given = tuple([self.types[operand.id] for operand in operands])
        if function.name in _LOGICAL:
            return self._logical(expr, function, given)
        result: Type | None = None
        chosen: list[Overload] = []
        for overload in function.overloads:
            if overload.member != (expr.target is not None) or len(overload.parameters) != len(given):
                continue
            if any(map(apart, given, overload.parameters)):
                continue
            wanted, returned = self._signatures.of(overload)
            if not self.substitutions.assignable(given, wanted):
                continue
            chosen.append(overload)
            kind = self.substitutions.applied(returned)
            if result is None:
                result = kind
            elif not is_dynamic(result) and kind != result:
                result = DYN
        if result is None:
            self._no_overload(expr, function, given)
            self.types[expr.id] = ERROR
            return expr
        self.types[expr.id] = result
        self.references[expr.id] = Reference(function.name, tuple(chosen))
        return expr

    def _logical(self, expr: Call, function: Function, given: tuple[Type, ...]) -> Expr:
        right = True
        for arg, kind in zip(expr.args, given, strict=True):
            if not self.substitutions.assignable((kind,), (BOOL,)):
                self._mismatch(arg, BOOL, kind)
                right = False
        self.types[expr.id] = BOOL if right else ERROR
        if right:
            self.references[expr.id] = Reference(function.name, function.overloads[:1])
        return expr

    def _no_overload(self, expr: Call, function: Function, given: Iterable[Type]) -> None:
        kinds = tuple([self.substitutions.applied(kind, free_as_dyn=True) for kind in given])
        operands = expr.args if expr.target is None else (expr.target, *expr.args)
        hint = hints.no_overload(function.name, operands, kinds)
        self.refuse(expr, misfit(function.name, kinds, member=expr.target is not None), hint)

    def _mismatch(self, node: Expr, wanted: Type, given: Type) -> None:
        wanted = self.substitutions.applied(wanted, free_as_dyn=True)
        given = self.substitutions.applied(given, free_as_dyn=True)
        self.refuse(node, f"{wanted.for_people()} is needed here, not {given.for_people()}")

    # Literals of lists, maps and messages

    def _joined(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.substitutions.assignable((previous,), (current,)):
            return most_general(previous, current)
        # A mixture has elements of any type; whether it may be mixed is the validators' question.
        return DYN

    def _held(self, node: Expr, *, optional: bool) -> Type:
        """The type that an element adds to the literal: what an optional one holds, if it is written with ``?``."""
        kind = self.types[node.id]
        if not optional:
            return kind
        held, is_optional = unwrapped_optional(kind)
        if not is_optional and not is_dynamic(held):
            self._mismatch(node, optional_of(held), held)
        return held

    def _list(self, expr: ListLiteral) -> _Visit:
        elements: list[Expr] = []
        joined: Type | None = None
        for index, element in enumerate(expr.elements):
            checked = yield element
            elements.append(checked)
            joined = self._joined(joined, self._held(checked, optional=index in expr.optional))
        self.types[expr.id] = bounded(list_of(joined if joined is not None else self._signatures.fresh()))
        return replace(expr, elements=tuple(elements))

    def _map(self, expr: MapLiteral) -> _Visit:
        entries: list[MapEntry] = []
        key_type: Type | None = None
        value_type: Type | None = None
        for entry in expr.entries:
            key = yield entry.key
            key_type = self._joined(key_type, self.types[key.id])
            value = yield entry.value
            value_type = self._joined(value_type, self._held(value, optional=entry.optional))
            entries.append(replace(entry, key=key, value=value))
        if key_type is None or value_type is None:
            key_type, value_type = self._signatures.fresh(), self._signatures.fresh()
        self.types[expr.id] = bounded(map_of(key_type, value_type))
        return replace(expr, entries=tuple(entries))

    def _struct(self, expr: StructLiteral) -> _Visit:
        name = expr.type_name.removeprefix(".")
        result = self._message(expr, name)
        self.types[expr.id] = result or ERROR
        if result is None:
            return expr
        if result.kind == "object":
            name = result.name
        elif result.kind != "error":
            name = _WELL_KNOWN[result.kind]
        fields: list[Field] = []
        for field in expr.fields:
            value = yield field.value
            wanted = self._declared_field(field, name, field.name) if result.kind != "error" else ERROR
            given = self._held(value, optional=field.optional)
            if not self.substitutions.assignable((wanted,), (given,)):
                self.refuse(field, f"field {_shown(field.name)} takes {wanted.for_people()}, not {given.for_people()}")
            fields.append(replace(field, value=value))
        self.references[expr.id] = Reference(name)
        return replace(expr, type_name=expr.type_name.removeprefix("."), fields=tuple(fields))

    def _message(self, expr: StructLiteral, name: str) -> Type | None:
        """The type that a literal of a message makes; None and an issue if there is no such message."""
        kind = self.environment.types.get(name) or self.environment.messages.get(name)
        if kind is None:
            if name in self.environment.fields:
                return object_type(name)
            self.refuse(expr, f"{_shown(expr.type_name)} is not declared")
            return None
        if kind.kind == "object" or kind.nullable or kind.kind in {"any", "timestamp", "duration", "dyn", "null"}:
            return kind
        if kind.kind == "list" and kind.parameters[0].kind in {"dyn", "parameter"}:
            return list_of(DYN)
        if kind.kind == "map" and kind.parameters[0] == STRING and kind.parameters[1] == DYN:
            return kind
        self.refuse(expr, f"{_shown(name)} is no message")
        return ERROR

    # Comprehensions

    def _comprehension(self, expr: Comprehension) -> _Visit:
        over = yield expr.range
        initial = yield expr.initial
        accumulated = self.types[initial.id]
        first, second = self._variables(over, two=expr.second is not None)
        bound = {expr.variable: first}
        if expr.second is not None and second is not None:
            bound.setdefault(expr.second, second)
        self._scope.enter({expr.accumulator: accumulated})
        self._scope.enter(bound)
        condition = yield expr.condition
        self._assert(condition, BOOL)
        step = yield expr.step
        self._assert(step, accumulated)
        self._scope.leave(bound)
        result = yield expr.result
        self._scope.leave({expr.accumulator: accumulated})
        self.types[expr.id] = self.substitutions.applied(self.types[result.id])
        return replace(expr, range=over, initial=initial, condition=condition, step=step, result=result)

    def _variables(self, over: Expr, *, two: bool) -> tuple[Type, Type | None]:
        kind = self.substitutions.applied(self.types[over.id])
        if kind.kind == "list":
            element = kind.parameters[0]
            return (INT, element) if two else (element, None)
        if kind.kind == "map":
            return kind.parameters[0], kind.parameters[1] if two else None
        if kind.kind in _RANGES:
            # Keeps a free parameter from becoming something more special later.
            self.substitutions.assignable((DYN,), (kind,))
            return DYN, DYN if two else None
        self.refuse(over, f"only a list or a map can be gone through, not {kind.for_people()}")
        return ERROR, ERROR if two else None

    def _assert(self, node: Expr, wanted: Type) -> None:
        given = self.types[node.id]
        if not self.substitutions.assignable((wanted,), (given,)):
            self._mismatch(node, wanted, given)


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:59] + "…")
