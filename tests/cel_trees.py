"""Trees of expressions as one line, as the oracle's ``cel.parse`` writes them; and random texts of expressions."""

from __future__ import annotations

import random
import struct

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
from draht.cel.library.bind import BIND_MACROS
from draht.cel.library.comprehensions import COMPREHENSION_MACROS
from draht.cel.library.macros import STANDARD_MACROS
from draht.cel.library.optional_macros import OPTIONAL_MACROS
from draht.cel.numbers import UInt

__all__ = ["ALL_MACROS", "KUBERNETES_MACROS", "random_text", "tree"]

KUBERNETES_MACROS = {
    (macro.name, macro.arguments, macro.member): macro
    for macro in (*STANDARD_MACROS, *OPTIONAL_MACROS, *COMPREHENSION_MACROS)
}
"""The macros of Kubernetes' base environment 1.37; ``cel.bind`` isn't among them."""
ALL_MACROS = KUBERNETES_MACROS | {(macro.name, macro.arguments, macro.member): macro for macro in BIND_MACROS}

_Part = Expr | MapEntry | Field | str


def _value(value: bool | int | UInt | float | str | bytes | None) -> str:
    match value:
        case None:
            return "null_type NULL_VALUE"
        case bool():
            return f"bool {str(value).lower()}"
        case UInt():
            return f"uint {int(value)}"
        case int():
            return f"int {value}"
        case float():
            return f"double {struct.pack('>d', value).hex()}"
        case str():
            return "string" + "".join(f" {ord(each):x}" for each in value)
        case bytes():
            return f"bytes {value.hex()}"


def _written(name: str) -> str:
    return f' "{name}"'


def _pieces(node: Expr | MapEntry | Field) -> list[_Part]:
    """What stands between the parentheses of a node."""
    match node:
        case Literal():
            return ["literal", " " + _value(node.value)]
        case Identifier():
            return ["name", _written(node.name)]
        case Select():
            return ["test" if node.test else "select", node.operand, _written(node.field)]
        case Call():
            target: list[_Part] = [] if node.target is None else [node.target]
            return ["call" if node.target is None else "member", _written(node.function), *target, *node.args]
        case ListLiteral():
            parts: list[_Part] = ["list"]
            for index, element in enumerate(node.elements):
                parts += [" ?", element] if index in node.optional else [element]
            return parts
        case MapLiteral():
            return ["map", *node.entries]
        case MapEntry():
            return ["entry", " ?" if node.optional else "", node.key, node.value]
        case StructLiteral():
            return ["struct", _written(node.type_name), *node.fields]
        case Field():
            return ["field", " ?" if node.optional else "", _written(node.name), node.value]
        case Comprehension():
            names = _written(node.variable) + _written(node.second or "") + _written(node.accumulator)
            return ["fold", node.range, names, node.initial, node.condition, node.step, node.result]


def tree(expr: Expr) -> str:
    """The whole tree as one line; trees of any depth."""
    out: list[str] = []
    todo: list[_Part] = [expr]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        out.append(f" ({part.at} ")
        todo.append(")")
        todo.extend(reversed(_pieces(part)))
    return "".join(out)


_NAMES = [
    "a",
    "b",
    "device",
    "x",
    "as",
    "if",
    "_",
    "cel",
    "has",
    "size",
    "in",
    "true",
    "__result__",
    "`a-b`",
    "e5",
    "r",
]
_ATOMS = [
    *("1", "0", "-1", "7u", "0x1F", "0xffu", "1.5", "-2.5e3", ".5", "1e-400", "1e400", "007", "null", "true", "false"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615u"),
    *("18446744073709551616u", "0x8000000000000000", "-0x8000000000000000", "0XAB", "1u1", "1.e5", "3.foo"),
    *(
        '"x"',
        "'y'",
        '"""a"b""c"""',
        "'''q\n'q'''",
        'r"\\d+"',
        "R'''raw\\'''",
        'b"ab"',
        "B'\\xff\\377'",
        'br"\\x"',
        '""',
    ),
    *(
        '"\\n\\t\\x41\\u00e9\\U0001F600\\101\\?\\`"',
        '"\\ud800"',
        '"\\U00110000"',
        'b"\\u0041"',
        '"\\q"',
        '"é😀"',
        "b'é'",
    ),
    *('"a\r\nb"', '"""a\r\nb\rc"""', '"unclosed', '"""unclosed"', "'''''''", '"\\8"', '"\\400"', 'rb"x"', "'\\x4'"),
]
_BINARY = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"]
_MACROS = ["all", "exists", "exists_one", "existsOne", "map", "filter", "optMap", "optFlatMap"]
_MACROS_2 = ["all", "exists", "existsOne", "exists_one", "transformList", "transformMap", "transformMapEntry", "map"]
_SPACES = ["", "", "", " ", " ", "\n", "\t", "//c\n", "\f", " \r\n"]
_SOUP = [
    *_BINARY,
    *_NAMES,
    *"()[]{}.,:?!-&|=@#$^;`'\"\\",
    "?.",
    ".?",
    "[?",
    "//",
    "\x00",
    "\u00a0",
    "\ufffd",
    "é",
    "0x",
]


def _names(rng: random.Random) -> str:
    return rng.choice(_NAMES) if rng.random() < 0.3 else rng.choice(["a", "b", "x", "device"])


def _list(rng: random.Random, depth: int, most: int = 3) -> str:
    return ",".join(_expression(rng, depth - 1) for _ in range(rng.randrange(most + 1)))


def _expression(rng: random.Random, depth: int) -> str:
    """A text that is mostly an expression."""
    space = rng.choice(_SPACES)
    if depth <= 0 or rng.random() < 0.1:
        return space + (rng.choice(_ATOMS) if rng.random() < 0.4 else _names(rng))
    sub = depth - 1

    def one() -> str:
        return _expression(rng, sub)

    question = "?" if rng.random() < 0.3 else ""
    match rng.randrange(17):
        case 0 | 1 | 2:
            return f"{one()}{space}{rng.choice(_BINARY)}{space or ' '}{one()}"
        case 3:
            operator = rng.choice(["&&", "||", "+", "=="])
            return f" {operator} ".join(one() for _ in range(rng.randint(3, 9)))
        case 4:
            return f"{one()}{space}?{space}{one()}{space}:{one()}"
        case 5:
            return f"({one()}{space})"
        case 6:
            return rng.choice(["!", "-", "!!", "--", "---", "- -", "!-", "-!"]) + one()
        case 7:
            return f"{one()}{space}.{question}{_names(rng)}"
        case 8:
            return f"{one()}[{question}{one()}]"
        case 9:
            return f"{rng.choice(['', '', '.'])}{_names(rng)}({_list(rng, depth)})"
        case 10:
            return f"{one()}.{_names(rng)}({_list(rng, depth)})"
        case 11:
            elements = ",".join(rng.choice(["", "", "?"]) + one() for _ in range(rng.randrange(4)))
            return f"[{elements}{rng.choice(['', '', ','])}]"
        case 12:
            entries = ",".join(f"{rng.choice(['', '?'])}{one()}:{one()}" for _ in range(rng.randrange(3)))
            return "{" + entries + rng.choice(["", ","]) + "}"
        case 13:
            fields = ",".join(f"{rng.choice(['', '?'])}{_names(rng)}:{one()}" for _ in range(rng.randrange(3)))
            dots = ".".join(_names(rng) for _ in range(rng.randint(1, 3)))
            return rng.choice(["", "."]) + dots + "{" + fields + rng.choice(["", ","]) + "}"
        case 14:
            return f"{one()}.{rng.choice(_MACROS)}({_names(rng)}, {one()}{rng.choice(['', '', ', ' + one()])})"
        case 15:
            rest = rng.choice(["", ", " + one()])
            return f"{one()}.{rng.choice(_MACROS_2)}({_names(rng)}, {_names(rng)}, {one()}{rest})"
        case _:
            return f"{rng.choice(['has', 'has', 'cel.bind'])}({one()}.{question}{_names(rng)})"


def random_text(rng: random.Random) -> str:
    """A text that is an expression, nearly one, or none at all."""
    kind = rng.random()
    if kind < 0.05:
        return rng.choice(["", " "]).join(rng.choice(_SOUP) for _ in range(rng.randint(0, 12)))
    text = _expression(rng, rng.choice([1, 2, 2, 3, 4]))
    if kind < 0.3:
        for _ in range(rng.randint(1, 2)):
            place = rng.randint(0, len(text))
            text = text[:place] + rng.choice(["", "", *_SOUP]) + text[place + rng.randrange(3) :]
    return text
