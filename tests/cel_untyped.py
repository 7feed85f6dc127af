"""Makes expressions without regard for types: most are refused, and for a reason that a person wouldn't think of.

Owns a generator over every function, macro and literal of the environment. A generator that follows the types shows
whether good expressions are accepted; this one shows whether bad ones are refused, and whether what is accepted by
accident has the right type.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from draht.cel.declarations import Environment

__all__ = ["Maker"]

_ATOMS: Final = [
    "1",
    "0",
    "-1",
    "2u",
    "1.5",
    "'a'",
    "'b'",
    "b'a'",
    "true",
    "false",
    "null",
    "[]",
    "{}",
    "int",
    "string",
    "list",
    "type",
    "net.IP",
    "optional_type",
    "google.protobuf.Timestamp",
    "duration('1s')",
    "timestamp('2020-01-01T00:00:00Z')",
    "quantity('1')",
    "semver('1.0.0')",
    "ip('1.2.3.4')",
    "cidr('1.0.0.0/8')",
    "url('http://a')",
    "format.dns1123Label()",
    "optional.none()",
    "optional.of(1)",
    "device",
    "device.driver",
    "device.attributes",
    "device.attributes['a']",
    "device.attributes['a'].b",
    "device.capacity['a'].b",
    "device.allowMultipleAllocations",
    "google.protobuf.Int64Value{value: 1}",
    "kubernetes.DRADevice{}",
]
_BINARY: Final = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]
_FIELDS: Final = ["a", "b", "driver", "attributes", "capacity", "value"]
_LOOPS: Final = ["all", "exists", "exists_one", "existsOne", "map", "filter"]
_LOOPS_OF_TWO: Final = [
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "transformList",
    "transformMap",
    "transformMapEntry",
]


class Maker:
    """Makes expressions.

    Args:
        rng: Where chance comes from.
        environment: What they may call.
    """

    def __init__(self, rng: random.Random, environment: Environment) -> None:
        self._rng = rng
        self._calls = [
            (function.name, overload.member, len(overload.parameters))
            for function in environment.functions.values()
            for overload in function.overloads
            if function.name[0].isalpha() and "@" not in function.name
        ]
        self._variables: list[str] = []
        self._forms: list[Callable[[int], str]] = [
            self._atom,
            self._dyn,
            self._binary,
            self._binary,
            self._binary,
            self._unary,
            self._choice,
            self._index,
            self._select,
            self._call,
            self._call,
            self._call,
            self._call,
            self._list,
            self._list,
            self._map,
            self._loop,
            self._loop,
            self._loop_of_two,
            self._bind,
            self._optional,
            self._message,
        ]

    def expression(self, depth: int) -> str:
        """An expression of at most so many levels."""
        if depth <= 0:
            return self._atom(0)
        return self._rng.choice(self._forms)(depth - 1)

    def _atom(self, _depth: int) -> str:
        if self._variables and self._rng.random() < 0.6:
            return self._rng.choice(self._variables)
        return self._rng.choice(_ATOMS)

    def _dyn(self, depth: int) -> str:
        return f"dyn({self.expression(depth)})"

    def _binary(self, depth: int) -> str:
        left = self.expression(depth)
        right = left if self._rng.random() < 0.3 else self.expression(depth)
        return f"({left} {self._rng.choice(_BINARY)} {right})"

    def _unary(self, depth: int) -> str:
        return f"{self._rng.choice('!-')}({self.expression(depth)})"

    def _choice(self, depth: int) -> str:
        condition = self._rng.choice(["true", self.expression(depth)])
        return f"({condition} ? {self.expression(depth)} : {self.expression(depth)})"

    def _index(self, depth: int) -> str:
        mark = "?" if self._rng.random() < 0.3 else ""
        return f"{self.expression(depth)}[{mark}{self.expression(depth)}]"

    def _select(self, depth: int) -> str:
        selected = f"{self.expression(depth)}.{self._rng.choice(['', '', '?'])}{self._rng.choice(_FIELDS)}"
        return f"has({selected})" if self._rng.random() < 0.3 else selected

    def _call(self, depth: int) -> str:
        name, member, count = self._rng.choice(self._calls)
        arguments = [self.expression(depth) for _ in range(count)]
        if member:
            return f"{arguments[0]}.{name}({', '.join(arguments[1:])})"
        return f"{name}({', '.join(arguments)})"

    def _list(self, depth: int) -> str:
        first = self.expression(depth)
        elements = [
            first if self._rng.random() < 0.5 else self.expression(depth) for _ in range(self._rng.randrange(3))
        ]
        return f"[{', '.join(self._rng.choice(['', '', '', '?']) + element for element in [first, *elements])}]"

    def _map(self, depth: int) -> str:
        value = self.expression(depth)
        entries = [f"{self._rng.choice(['1', chr(39) + 'a' + chr(39), self.expression(depth)])}: {value}"]
        if self._rng.random() < 0.5:
            entries.append(f"{self._rng.choice(['', '?'])}{self.expression(depth)}: {self.expression(depth)}")
        return f"{{{', '.join(entries)}}}"

    def _within(self, depth: int, *names: str) -> str:
        self._variables.extend(names)
        body = self.expression(depth)
        del self._variables[-len(names) :]
        return body

    def _loop(self, depth: int) -> str:
        name = self._rng.choice("xyz")
        macro = self._rng.choice(_LOOPS)
        filtered = f"{self._within(depth, name)}, " if macro == "map" and self._rng.random() < 0.3 else ""
        return f"{self.expression(depth)}.{macro}({name}, {filtered}{self._within(depth, name)})"

    def _loop_of_two(self, depth: int) -> str:
        first, second = self._rng.sample("xyz", 2)
        body = self._within(depth, first, second)
        return f"{self.expression(depth)}.{self._rng.choice(_LOOPS_OF_TWO)}({first}, {second}, {body})"

    def _bind(self, depth: int) -> str:
        name = self._rng.choice(["x", "y", "device", "int"])
        return f"cel.bind({name}, {self.expression(depth)}, {self._within(depth, name, '.' + name)})"

    def _optional(self, depth: int) -> str:
        macro = self._rng.choice(["optMap", "optFlatMap"])
        return f"{self.expression(depth)}.{macro}(x, {self._within(depth, 'x')})"

    def _message(self, depth: int) -> str:
        name = self._rng.choice(
            [
                "google.protobuf.Int64Value",
                "google.protobuf.Struct",
                "google.protobuf.Value",
                "kubernetes.DRADevice",
                "int",
            ]
        )
        field = self._rng.choice(["value", "fields", "number_value", "driver", "a"])
        return f"{name}{{{field}: {self.expression(depth)}}}"
