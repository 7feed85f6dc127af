"""Generated device selectors and devices: well-typed expressions over the whole environment, and broken ones.

Owns the choice of what is generated; the rules are `cel_grammar`'s, the literals `cel_texts`'. An expression is a tree
until it is written, so that a difference can be shrunk by replacing parts of it (`cel_shrink`). Everything follows from
the seed of the random generator that is handed in.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from cel_grammar import RULES, Operand, Rule, TypeTerm, parse_type
from cel_texts import KINDS, STRICT, literal, text_literal

__all__ = ["Case", "Node", "case", "core_expression", "device", "nodes", "replaced"]

DRIVER: Final = "gpu.example.com"
DOMAINS: Final = (DRIVER, "dra.example.com", "other.example.com")
MISSING_DOMAIN: Final = "none.example.com"
ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("count", "i2"),
    "bool": ("healthy", "b2"),
    "string": ("model", "s2"),
    "semver": ("version", "v2"),
    "list(int)": ("ids",),
    "list(bool)": ("flags",),
    "list(string)": ("names",),
    "list(semver)": ("versions",),
}
CAPACITIES: Final = ("memory", "cores")
SIMPLE: Final = ("int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration")
OPAQUE: Final = ("quantity", "semver", "ip", "cidr", "url", "format", "type", "null", "dyn")
KEYS: Final = ("string", "int", "bool", "uint")
VARIABLES: Final = ("x", "y", "k", "v", "i", "e", "n", "x")
Scope = tuple[tuple[str, TypeTerm], ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: texts and parts in order, how tightly it binds, and its type."""

    type: TypeTerm
    parts: tuple[str | tuple[Node, int], ...]
    binding: int = 8

    def __str__(self) -> str:
        out = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
            else:
                child, needed = part
                out.append(f"({child})" if child.binding < needed else str(child))
        return "".join(out)


def nodes(tree: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every part of a tree with the way to it, the tree itself first."""
    yield path, tree
    for index, part in enumerate(tree.parts):
        if not isinstance(part, str):
            yield from nodes(part[0], (*path, index))


def replaced(tree: Node, path: tuple[int, ...], new: Node) -> Node:
    """The tree with another part at the end of the way."""
    if not path:
        return new
    part = tree.parts[path[0]]
    assert not isinstance(part, str)
    child = replaced(part[0], path[1:], new)
    return replace(tree, parts=(*tree.parts[: path[0]], (child, part[1]), *tree.parts[path[0] + 1 :]))


@dataclass(frozen=True, slots=True)
class Case:
    """One generated expression; ``tree`` is what it was written from, None where the text was broken afterwards."""

    expression: str
    derived: bool
    tree: Node | None


def case(rng: random.Random) -> Case:
    """A selector, or an expression of any type as a derived attribute; one in ten is broken on purpose."""
    maker = _Maker(rng)
    size = rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 14, 20])
    if rng.random() < 0.55:
        tree = maker.make(parse_type("bool" if rng.random() < 0.93 else "dyn"), size)
        derived = False
    else:
        tree, derived = maker.derived(size), True
    fate = rng.random()
    if fate < 0.05:
        path, old = rng.choice(list(nodes(tree)))
        tree = replaced(tree, path, maker.make(maker.any_type(), 2, _variables_of(old)))
    text = str(tree)
    if rng.random() < 0.02:
        text = text.replace(" ", rng.choice(["\n", "  ", " // note\n", "\t", "\r\n", ""]))
    if fate > 0.95:
        return Case(_mangled(rng, text), derived, None)
    return Case(text, derived, tree)


def core_expression(rng: random.Random) -> str:
    """A well-typed expression of any type in the language itself, without variables and libraries."""
    maker = _Maker(rng, core=True)
    return str(maker.make(maker.any_type(), rng.choice([1, 2, 3, 4, 5, 6, 8, 10])))


def _variables_of(node: Node) -> Scope:
    return tuple((str(part), ("dyn", ())) for _, part in nodes(node) if str(part) in VARIABLES)


def _mangled(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + text[at + 1 :]
            case 1:
                text = text[:at] + rng.choice("()[]{}.,:?!&|=<>+-*/%\"'\\ \n0a_@#$;`é\x00\t'\"") + text[at:]
            case 2:
                end = min(len(text), at + rng.randrange(1, 8))
                text = text[:at] + text[end:]
            case 3:
                end = min(len(text), at + rng.randrange(1, 12))
                text = text[:end] + text[at:end] + text[end:]
            case _:
                word = rng.choice(
                    [" in ", "null", "true", " && ", "as", "for", "1u", "0x", "b'", 'r"', "//", "has(", ".?", "?"]
                )
                text = text[:at] + word + text[at:]
    return text


CORE: Final = frozenset(
    {"size", "int", "uint", "double", "bool", "string", "bytes", "type", "timestamp", "duration", "in"}
    | {"startsWith", "endsWith", "contains", "matches", "all", "exists", "exists_one", "map", "filter"}
)


def _walks_map(rule: Rule) -> bool:
    """Whether the order of a map's entries can show in the value."""
    return isinstance(rule.parts[0], Operand) and rule.parts[0].type[0] == "map" and "$x" in rule.parts


def _is_core(rule: Rule) -> bool:
    words = re.findall(
        r"[A-Za-z]\w*", " ".join(part for part in rule.parts if isinstance(part, str) and part[0] != "$")
    )
    types = {part.type[0] for part in rule.parts if isinstance(part, Operand)}
    return (
        all(word in CORE or word.startswith("get") for word in words)
        and not _walks_map(rule)
        and not types & {"quantity", "semver", "ip", "cidr", "url", "format", "optional"}
        and not any(isinstance(part, str) and "?" in part and " ? " not in part for part in rule.parts)
    )


@lru_cache(maxsize=4096)
def _rules_for(
    wanted: TypeTerm, core: bool = False
) -> tuple[tuple[Rule, ...], tuple[float, ...], tuple[Mapping[str, TypeTerm], ...]]:
    found = []
    for rule in RULES:
        if core and not _is_core(rule):
            continue
        bound: dict[str, TypeTerm] = {}
        if _unify(rule.result, wanted, bound):
            found.append((rule, rule.weight, bound))
    return tuple(f[0] for f in found), tuple(f[1] for f in found), tuple(f[2] for f in found)


def _is_variable(term: TypeTerm) -> bool:
    return len(term[0]) == 1 and term[0].isupper()


def _unify(pattern: TypeTerm, actual: TypeTerm, bound: dict[str, TypeTerm]) -> bool:
    if _is_variable(pattern):
        if pattern[0] == "K" and actual[0] not in KEYS:
            return False
        return bound.setdefault(pattern[0], actual) == actual
    return (
        pattern[0] == actual[0]
        and len(pattern[1]) == len(actual[1])
        and all(_unify(p, a, bound) for p, a in zip(pattern[1], actual[1], strict=True))
    )


def _spelled(term: TypeTerm) -> str:
    return f"{term[0]}({', '.join(map(_spelled, term[1]))})" if term[1] else term[0]


class _Maker:
    def __init__(self, rng: random.Random, *, core: bool = False) -> None:
        self.rng = rng
        self.core = core
        self.literal_depth = 0
        """How many list and map literals are open: what is dynamic inside would be refused for its type."""

    def derived(self, size: int) -> Node:
        roll = self.rng.random()
        if roll < 0.3:
            scalar = self.rng.choice(
                ["int", "string", "bool", "semver", "dyn", "list(int)", "list(string)", "list(dyn)"]
            )
            return self.make(parse_type(scalar), size)
        made = self.make(self.any_type(), size)
        if roll < 0.75:
            return Node(("dyn", ()), ("dyn(", (made, 1), ")"))
        if roll < 0.9:
            return Node(("list", (("dyn", ()),)), ("[dyn(", (made, 1), ")]"))
        other = self.make(self.any_type(), size // 2)
        return Node(("list", (("dyn", ()),)), ("[dyn(", (made, 1), "), dyn(", (other, 1), ")]"))

    def any_type(self, depth: int = 0) -> TypeTerm:
        roll = self.rng.random() * (0.62 if self.core and depth else 0.95 if self.core else 1.0)
        if roll < 0.62 or depth > 1:
            return (self.rng.choice(SIMPLE), ())
        if roll < 0.74:
            return (self.rng.choice(OPAQUE if not self.core else ("bool",)), ())
        if roll < 0.88:
            return ("list", (self.any_type(depth + 1),))
        if roll < 0.95:
            return ("map", ((self.rng.choice(KEYS), ()), self.any_type(depth + 1)))
        return ("optional", (self.any_type(depth + 1),))

    def make(self, wanted: TypeTerm, size: int, scope: Scope = (), kind: str | None = None) -> Node:
        rng = self.rng
        if kind == "small":
            return Node(wanted, (rng.choice(["0", "1", "2", "3", "5", "9", "17", "40", "-1"]),))
        if kind and rng.random() < (0.97 if kind in STRICT else 0.8):
            return Node(wanted, (text_literal(rng, kind),))
        if size <= 0 or rng.random() < 0.12:
            return self.leaf(wanted, scope)
        if wanted[0] in {"list", "map"} and rng.random() < 0.3:
            return self.aggregate(wanted, size, scope)
        if wanted == ("dyn", ()) and rng.random() < 0.6:
            return self.dynamic(size, scope)
        if rng.random() < 0.12 and not self.literal_depth and not self.core:
            return self.attribute(wanted, scope)
        if wanted == ("bool", ()) and rng.random() < 0.06 and not self.core:
            return self.presence()
        rules, weights, bindings = _rules_for(wanted, self.core)
        if not rules:
            return self.leaf(wanted, scope)
        chosen = rng.choices(range(len(rules)), weights)[0]
        return self.apply(rules[chosen], dict(bindings[chosen]), wanted, size - 1, scope)

    def apply(self, rule: Rule, bound: dict[str, TypeTerm], wanted: TypeTerm, size: int, scope: Scope) -> Node:
        rng = self.rng
        names = {"$x": rng.choice(VARIABLES), "$y": rng.choice(VARIABLES)}
        if names["$x"] == names["$y"] and rng.random() < 0.95:
            names["$y"] = names["$x"] + "2"
        operands = [part for part in rule.parts if isinstance(part, Operand)]
        sizes = [rng.random() for _ in operands]
        total = sum(sizes) or 1.0
        parts: list[str | tuple[Node, int]] = []
        for part in rule.parts:
            if isinstance(part, str):
                parts.append(names.get(part, part) if part.startswith("$") else part)
                continue
            inner = tuple((names["$" + name], self.concrete(term, bound)) for name, term in part.declares)
            share = int(size * sizes[len([p for p in parts if not isinstance(p, str)])] / total)
            term = self.concrete(part.type, bound)
            if not self.core and not self.literal_depth and part.kind is None and rng.random() < 0.04:
                term = ("dyn", ())  # a type that only shows when it runs
            child = self.make(term, share, (*inner, *scope), part.kind)
            needed = part.binding if rng.random() > 0.01 else 9
            parts.append((child, needed))
        return Node(wanted, tuple(parts), rule.binding)

    def concrete(self, term: TypeTerm, bound: dict[str, TypeTerm]) -> TypeTerm:
        if _is_variable(term):
            if term[0] not in bound:
                bound[term[0]] = (self.rng.choice(KEYS), ()) if term[0] in "KL" else self.any_type(1)
            return bound[term[0]]
        return (term[0], tuple(self.concrete(parameter, bound) for parameter in term[1]))

    def aggregate(self, wanted: TypeTerm, size: int, scope: Scope) -> Node:
        rng = self.rng
        count = rng.choice([0, 1, 1, 2, 2, 3, 4])
        is_map = wanted[0] == "map"
        parts: list[str | tuple[Node, int]] = ["{" if is_map else "["]
        for index in range(count):
            if index:
                parts.append(", ")
            for position, term in enumerate(wanted[1]):
                parts.extend([": "] if position else [])
                parts.append((self.element(term, (size - 1) // max(count, 1), scope), 1))
        if count and rng.random() < 0.03:
            parts.append(",")
        parts.append("}" if is_map else "]")
        return Node(wanted, tuple(parts))

    def element(self, wanted: TypeTerm, size: int, scope: Scope) -> Node:
        exact = self.rng.random() < 0.95
        if wanted == ("dyn", ()) and exact:
            return Node(wanted, ("dyn(", (self.make(self.any_type(), size, scope), 1), ")"))
        self.literal_depth += exact
        made = self.make(wanted, size, scope)
        self.literal_depth -= exact
        return made

    def dynamic(self, size: int, scope: Scope) -> Node:
        rng = self.rng
        roll = rng.random()
        if roll < 0.55:
            return self.attribute(parse_type(rng.choice(list(ATTRIBUTES))), scope)
        if roll < 0.75:
            return Node(("dyn", ()), ("dyn(", (self.make(self.any_type(), size - 1, scope), 1), ")"))
        return self.make(self.any_type(), size - 1, scope)

    def leaf(self, wanted: TypeTerm, scope: Scope) -> Node:
        rng = self.rng
        same = [name for name, term in scope if term == wanted or wanted == ("dyn", ())]
        if same and rng.random() < 0.7:
            return Node(wanted, (rng.choice(same),))
        name = wanted[0]
        if (
            not self.core
            and rng.random() < 0.3
            and (name == "quantity" or (_spelled(wanted) in ATTRIBUTES and not self.literal_depth))
        ):
            return self.attribute(wanted, scope)
        match name:
            case "int" | "uint" | "double" | "bool" | "bytes" | "null":
                text = literal(rng, name)
                return Node(wanted, (text,), 7 if text.startswith("-") else 8)
            case "string":
                if rng.random() < 0.05 and not self.core:
                    return Node(wanted, ("device.driver",))
                return Node(wanted, (text_literal(rng, rng.choice(["word"] * 6 + list(KINDS))),))
            case "list" | "map":
                return self.aggregate(wanted, 0, scope)
            case "dyn":
                return self.dynamic(0, scope)
            case "optional":
                return Node(wanted, ("optional.none()",))
            case _:
                rules, weights, bindings = _rules_for(wanted, self.core)
                short = [i for i, rule in enumerate(rules) if all(isinstance(p, str) or p.kind for p in rule.parts)]
                chosen = rng.choices(short, [weights[i] for i in short])[0]
                return self.apply(rules[chosen], dict(bindings[chosen]), wanted, 0, scope)

    def domain(self) -> str:
        rng = self.rng
        name = MISSING_DOMAIN if rng.random() < 0.06 else rng.choice((DRIVER, DRIVER, *DOMAINS))
        return "device.driver" if rng.random() < 0.04 else f'"{name}"'

    def attribute(self, wanted: TypeTerm, scope: Scope) -> Node:
        """What a device may have: usually of the type that is wanted."""
        rng = self.rng
        if wanted == ("bool", ()) and rng.random() < 0.1:
            return Node(wanted, ("device.allowMultipleAllocations",))
        if wanted[0] == "map" and rng.random() < 0.5:
            texts = [
                f"device.attributes[{self.domain()}]",
                f"device.capacity[{self.domain()}]",
                "device.attributes",
                "device",
            ]
            return Node(wanted, (rng.choice(texts),))
        field = "capacity" if wanted[0] == "quantity" or rng.random() < 0.02 else "attributes"
        optional = wanted[0] == "optional"
        spelled = _spelled(wanted[1][0] if optional else wanted)
        if spelled == "dyn" or rng.random() < 0.04:
            spelled = rng.choice(list(ATTRIBUTES))
        if spelled not in ATTRIBUTES and field == "attributes":
            return (
                self.make(wanted, 0, scope)
                if optional
                else self.leaf(wanted, scope)
                if wanted[0] != "dyn"
                else self.dynamic(0, ())
            )
        ids = CAPACITIES if field == "capacity" else ATTRIBUTES[spelled]
        name = rng.choice(ids) if rng.random() < 0.97 else "missing"
        root = "device" if rng.random() < 0.99 else ".device"
        base = f"{root}.{field}[{self.domain()}]"
        access = (
            rng.choice([f".?{name}", f'[?"{name}"]'])
            if optional
            else rng.choice([f".{name}", f".{name}", f'["{name}"]'])
        )
        if rng.random() < 0.02:
            access = rng.choice([f".?{name}", f".{name}.{name}", f'[?"{name}"]', f".{name}[0]", ".`" + name + "`"])
        return Node(wanted, (base + access,))

    def presence(self) -> Node:
        rng = self.rng
        field = rng.choice(["attributes", "attributes", "capacity"])
        name = rng.choice(CAPACITIES if field == "capacity" else [i for ids in ATTRIBUTES.values() for i in ids])
        texts = [
            f"has(device.{field}[{self.domain()}].{name})",
            f'"{name}" in device.{field}[{self.domain()}]',
            f"{self.domain()} in device.{field}",
            f"device.{field}[{self.domain()}].?{name}.hasValue()",
            f"has(device.{field})",
            f"has(device.{rng.choice(['driver', 'allowMultipleAllocations', 'nothing'])})",
        ]
        text = rng.choice(texts)
        return Node(("bool", ()), (text,), 4 if " in " in text else 8)


def device(rng: random.Random) -> dict[str, Any]:
    """A device as JSON: most attributes there and of the type that their names promise."""
    attributes: dict[str, Any] = {}
    for domain in DOMAINS:
        if rng.random() < 0.25:
            continue
        for spelled, ids in ATTRIBUTES.items():
            for name in ids:
                if rng.random() < 0.75:
                    bare = domain == DRIVER and rng.random() < 0.6
                    kind = spelled if rng.random() < 0.94 else rng.choice(list(ATTRIBUTES))
                    attributes[name if bare else f"{domain}/{name}"] = _attribute(rng, kind)
    if rng.random() < 0.03:
        attributes["model"], attributes[f"{DRIVER}/model"] = {"string": "bare"}, {"string": "qualified"}
    if rng.random() < 0.02:
        attributes["s2"] = rng.choice([{}, {"version": "1.0"}])
    capacity = {}
    for domain in DOMAINS[:2]:
        for name in CAPACITIES:
            if rng.random() < 0.8:
                qualified = domain != DRIVER or rng.random() < 0.5
                capacity[f"{domain}/{name}" if qualified else name] = {"value": _amount(rng)}
    made: dict[str, Any] = {"driver": DRIVER, "attributes": attributes, "capacity": capacity}
    if rng.random() < 0.5:
        made["allowMultipleAllocations"] = rng.random() < 0.5
    return made


VALID_VERSIONS: Final = ("1.0.0", "0.0.1", "1.2.3", "2.0.0", "1.0.0-rc.1", "570.86.15", "1.0.0+build", "1.0.0-alpha.1")


def _attribute(rng: random.Random, kind: str) -> dict[str, Any]:
    def one(name: str) -> Any:
        match name:
            case "int":
                return int(literal(rng, "int"), 0) % (1 << 63)
            case "bool":
                return rng.random() < 0.6
            case "string":
                return rng.choice(KINDS[rng.choice(["word"] * 5 + list(KINDS))])
            case _:
                return rng.choice(VALID_VERSIONS)

    wire = {"semver": "version"}
    if kind.startswith("list("):
        name = kind[5:-1]
        return {wire.get(name, name) + "s": [one(name) for _ in range(rng.choice([1, 1, 2, 3, 5]))]}
    return {wire.get(kind, kind): one(kind)}


def _amount(rng: random.Random) -> str:
    return rng.choice(
        ["1", "80Gi", "1e3", "0.5", "1Mi", "1000m", "12E", "-1", "1.5Gi", "0", "100000000000000000000", "1Ki", "10k"]
    )
