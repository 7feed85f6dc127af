"""What a person probably meant: suggestions for common mistakes in expressions.

Owns the words of the suggestions and when each applies. It doesn't judge: whatever is here is attached to an error that
lexer, parser, checker or evaluation have found.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

from draht.cel.ast import Call, Expr, Identifier, Literal, Select
from draht.cel.types import Type

__all__ = [
    "DOUBLED",
    "UNREADABLE",
    "after_operand",
    "at_run_time",
    "instead_of_operand",
    "missing_key",
    "no_fields",
    "no_overload",
    "unknown_field",
    "unknown_function",
    "unknown_name",
]

DOUBLED: Final = {
    "=": ("==", "compare with =="),
    "&": ("&&", 'write && for "and"'),
    "|": ("||", 'write || for "or"'),
}
"""A sign that CEL has only doubled → what it was meant to be, and the suggestion."""

UNREADABLE: Final = {
    ";": "one expression is one condition; join several with &&",
    "#": "a comment begins with //",
    "$": "an expression has no placeholders; write the value",
    "@": "an annotation or address is text and stands between double quotes",
    "“": 'write straight quotes: "',
    "”": 'write straight quotes: "',
    "„": 'write straight quotes: "',
    "\u2018": "write straight quotes: '",
    "\u2019": "write straight quotes: '",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write !=",
    "~": "compare with a pattern by text.matches(r'...')",
    "^": "an expression has no such operator",
    "\\": "a backslash stands only in strings",
    "\u00a0": "this is a no-break space; write a plain one",
}
"""A character that no word begins with → the suggestion."""

_WORDS: Final = {"and": "&&", "or": "||", "is": "==", "eq": "==", "like": "matches()", "AND": "&&", "OR": "||"}
_PREFIXES: Final = {"not": "!", "NOT": "!"}


def after_operand(found: str, before: str | None) -> str | None:
    """Where an operator was expected.

    Args:
        found: The word that stands there instead.
        before: The name just before it, if there is one.
    """
    if found in _WORDS:
        return f"write {_WORDS[found]} instead of {found}"
    if found == "not":
        return 'write !(x in list) for "not in"'
    if before in _PREFIXES:
        return f"write {_PREFIXES[before]} instead of {before}"
    if found == "=":
        return DOUBLED["="][1]
    return None


def instead_of_operand(found: str) -> str | None:
    """Where a value was expected."""
    if found in ("in", "true", "false", "null"):
        return f"{found} is a keyword; another name is needed"
    if found in ("==", "=", "&&", "||"):
        return "something to its left or right is missing"
    return None


# Names, fields and functions that the checker doesn't know

_DEVICE_FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_MOST_CODE_POINTS: Final = 64
"""Longer names are never near another; comparing them takes quadratic time."""
_OTHER_NAMES: Final = {
    "len": "size",
    "length": "size",
    "count": "size",
    "regex": "matches",
    "match": "matches",
    "like": "matches",
    "lower": "lowerAscii",
    "tolower": "lowerAscii",
    "upper": "upperAscii",
    "toupper": "upperAscii",
    "version": "semver",
    "any": "exists",
    "some": "exists",
    "every": "all",
    "hasprefix": "startsWith",
    "hassuffix": "endsWith",
    "beginswith": "startsWith",
    "includes": "contains",
    "compare": "compareTo",
    "equals": "==",
    "default": "orValue",
    "get": "[]",
    "str": "string",
    "float": "double",
}
"""What functions are called in other languages, in lower case → here."""


def _near(name: str, known: Collection[str]) -> str | None:
    if len(name) > _MOST_CODE_POINTS:
        return None
    folded = {each.lower(): each for each in known}
    lower = name.lower()
    if lower in folded:
        return folded[lower]
    near = difflib.get_close_matches(lower, folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def unknown_name(name: str, known: Collection[str]) -> str | None:
    """A variable that isn't declared.

    Args:
        name: As it is written.
        known: The variables in scope.
    """
    if "device" in known:
        if name in _DEVICE_FIELDS:
            return f"write device.{name}"
        if name in ("cel", "request", "claim", "node", "self", "object"):
            return "the only variable is device"
    near = _near(name, known)
    if near is not None:
        return f"did you mean {near}?"
    if name[:1].isalpha() and len(name) <= _MOST_CODE_POINTS:
        return f'if it is text, quote it: "{name}"'
    return None


def unknown_field(name: str, fields: Collection[str]) -> str | None:
    """A field that an object type doesn't have.

    Args:
        name: As it is written.
        fields: The fields that it has.
    """
    if "attributes" in fields:
        near = _near(name, fields)
        if near is not None:
            return f"did you mean device.{near}?"
        return f'write device.attributes["<domain>"].{name} or device.capacity["<domain>"].{name}'
    near = _near(name, fields)
    return f"did you mean {near}?" if near is not None else None


def no_fields(kind: Type) -> str | None:
    """A selection on a value that has no fields."""
    if kind.kind == "string":
        return 'an attribute is read once: device.attributes["<domain>"].name'
    return None


def unknown_function(name: str, known: Iterable[str], *, member: bool) -> str | None:
    """A function that isn't declared.

    Args:
        name: As it is written.
        known: The functions that are.
        member: Called on a receiver.
    """
    if name.lower() in _OTHER_NAMES:
        other = _OTHER_NAMES[name.lower()]
        if name.lower() == "len":
            return "did you mean size()?"
        return f"did you mean {other}?" if not other.isalpha() else f"did you mean {other}()?"
    near = _near(name, [each for each in known if each.replace(".", "").replace("_", "").isalnum()])
    if near is not None:
        return f"did you mean {near}()?"
    if member and name == "has":
        return "has() isn't called on a value: write has(value.name)"
    if not member and name == "bind":
        return "write cel.bind(name, value, expression)"
    return None


# Operators and functions on types that they don't take

_COMPARISONS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "_==_": "==", "_!=_": "!="}


def no_overload(function: str, operands: tuple[Expr, ...], types: tuple[Type, ...]) -> str | None:
    """A function that doesn't take operands of these types.

    Args:
        function: Its name, ``_==_`` for an operator.
        operands: The receiver, if there is one, and the arguments.
        types: Their types.
    """
    for operand, kind in zip(operands, types, strict=True):
        if kind.kind == "map" and kind.parameters[1].kind != "map":
            hint = _without_domain(operand)
            if hint is not None:
                return hint
    names = [kind.name for kind in types]
    if function in _COMPARISONS and len(names) == 2:
        for mine, other in ((0, 1), (1, 0)):
            if names[mine] == "kubernetes.Quantity" and names[mine] != names[other]:
                return _compared(function, "quantity", "40Gi", operands[other])
            if names[mine] == "kubernetes.Semver" and names[mine] != names[other]:
                return _compared(function, "semver", "1.2.3", operands[other])
        if names[0] == names[1] == "kubernetes.Quantity":
            return f"compare quantities with a.compareTo(b) {_COMPARISONS[function]} 0"
        if names[0] == names[1] == "kubernetes.Semver":
            return f"compare versions with a.compareTo(b) {_COMPARISONS[function]} 0"
    if function in ("compareTo", "isGreaterThan", "isLessThan", "add", "sub"):
        if names[0] == "kubernetes.Quantity" and names[1:] == ["string"]:
            return f'write {function}(quantity("…"))'
        if names[0] == "kubernetes.Semver" and names[1:] == ["string"]:
            return f'write {function}(semver("…"))'
    if function == "_+_" and "string" in names:
        return "convert the other operand with string()"
    if function in ("_&&_", "_||_", "!_"):
        return "a condition is true or false: compare the value with something"
    if function == "@in" and names[-1:] == ["string"]:
        return "part of a text is found with text.contains(part)"
    return None


def _compared(function: str, maker: str, example: str, other: Expr) -> str:
    value = other.value if isinstance(other, Literal) and isinstance(other.value, str | int) else example
    return f'compare with a.compareTo({maker}("{value}")) {_COMPARISONS[function]} 0'


def _without_domain(operand: Expr) -> str | None:
    """``device.attributes.model`` or ``device.attributes["model"]``: the first key is a domain."""
    match operand:
        case Select(
            operand=Select(operand=Identifier(name="device"), field="attributes" | "capacity" as table), field=name
        ):
            pass
        case Call(
            function="_[_]",
            args=(
                Select(operand=Identifier(name="device"), field="attributes" | "capacity" as table),
                Literal(value=name),
            ),
        ):
            pass
        case _:
            return None
    if not isinstance(name, str):
        return None
    domain, slash, id_ = name.partition("/")
    if slash:
        return f'write device.{table}["{domain}"].{id_}'
    return f'the first key is the domain: device.{table}["<domain>"].{name}'


# Evaluation


def missing_key(table: str, domain: str, name: str, elsewhere: str | None) -> str:
    """An attribute or capacity that a device doesn't have.

    Args:
        table: ``attributes`` or ``capacity``.
        domain: The domain that was asked for.
        name: The name in it.
        elsewhere: Another domain in which the device has something of that name.
    """
    if elsewhere is not None:
        return f'did you mean device.{table}["{elsewhere}"].{name}?'
    return (
        f'not every device has it: ask first with has(device.{table}["{domain}"].{name}) && …, '
        f"or read it with .?{name}.orValue(…)"
    )


def at_run_time(kind: str, message: str) -> str | None:
    """An expression that was compiled and met a value it can't go on with.

    Args:
        kind: `draht.cel.errors.EvaluationError.kind`.
        message: Its message.
    """
    if kind == "no-such-key":
        name = message.rpartition(": ")[2].strip("'\"")
        if not name.isidentifier():
            name = "name"
        return missing_key("attributes", "<domain>", name, None)
    if kind == "no-such-overload":
        if "kubernetes.Semver" in message:
            return 'a version is compared with .compareTo(semver("1.2.3"))'
        if "kubernetes.Quantity" in message:
            return 'an amount is compared with .compareTo(quantity("40Gi"))'
        return "the operands need one type: convert one with string(), int() or double()"
    if kind == "cost-limit":
        return "make lists shorter, patterns simpler, or loops fewer"
    return None
