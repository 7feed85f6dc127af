"""Every field of the good objects broken on purpose, one at a time and two at a time.

Owns which mistakes there are: missing, null, of another type, empty, too long by one, with characters that the format
doesn't have, out of range, there twice, too many by one, unknown. `validation_objects` has the good objects; what the
right verdict is says whoever judges.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from validation_objects import AMOUNTS, GOOD, NAMES, TEXTS, Json, at, is_amount, places

__all__ = ["Case", "Change", "Good", "doubles", "goods", "sample", "singles", "structural"]

REMOVE: Any = Ellipsis
"""In place of a value: the field isn't there. No JSON value, and one that copies are the same object as."""
LIMITS = (1, 2, 4, 8, 10, 16, 32, 48, 64, 128, 256)
"""The lengths at which some list ends."""
_LONG: Final = ("x" * 32, "x" * 253, "x" * 65, "1.2.3-" + "x" * 59, "é" * 32, " a", "a\n")
_LONG_KEYS: Final = ("x" * 97 + "/" + "y" * 33, "gpu.example.com/" + "y" * 33, "a.b/" + "y" * 32, "x" * 32)
_LONGEST_KEY: Final = 1_000
"""Longer ones can't be written in YAML."""
_NUMBERS: Final = (0, 1, -1, 2, 2**31, 2**63 - 1, -(2**63))
_OTHER_TYPES: dict[type, tuple[Json, ...]] = {
    str: (1, True, ["a"], {"a": "b"}, 1.5),
    # Whole numbers written as 1.0 aren't here: what people write so comes to a server as 1.
    int: ("1", 1.5, True, 2**63, [1]),
    bool: ("true", 1, [True], {}),
    list: ("a", {"a": "b"}, 1, [None], [1], ["a"], [{}]),
    dict: ("a", ["a"], 1, [], True),
}
_MAPS = {"attributes", "capacity", "counters", "labels", "annotations", "nodeAllocatableResources", "requests"}


Change: TypeAlias = tuple[tuple[Any, ...], Json]
"""A path and the value that is put there."""


@dataclass(frozen=True)
class Case:
    """A changed object.

    Attributes:
        good: Which good object it was, with its version.
        changes: Path and new value of each change; REMOVE is written so.
        obj: The object.
    """

    good: str
    changes: tuple[tuple[str, str], ...]
    obj: Json

    def __str__(self) -> str:
        return f"{self.good}: " + ", ".join(f"{path} = {value}" for path, value in self.changes)


def _put(obj: Json, path: Sequence[Any], value: Json) -> None:
    *above, last = path
    parent = at(obj, tuple(above))
    if value is REMOVE:
        del parent[last]
    elif isinstance(parent, list) and last == len(parent):
        parent.append(value)
    else:
        parent[last] = value


@dataclass(frozen=True)
class Good:
    """An object that a server accepts, and what tables call it."""

    name: str
    obj: Json
    fixed: frozenset[tuple[str, ...]] = frozenset()
    """Paths that aren't changed, nor what is below them."""

    def paths(self) -> list[tuple[Any, ...]]:
        """Everything that is changed: not what the object is, nor which namespace the request goes to."""
        roots = {("apiVersion",), ("kind",), ("metadata",), ("spec",), ("status",), ("metadata", "namespace")}
        return [
            path
            for path in places(self.obj)
            if path not in roots and not any(path[: len(fixed)] == fixed for fixed in self.fixed)
        ]

    def changed(self, *changes: Change) -> Case:
        """The object with other values."""
        obj = json.loads(json.dumps(self.obj))
        shown = []
        for path, value in changes:
            _put(obj, path, copy.deepcopy(value))
            text = "REMOVE" if value is REMOVE else repr(value)
            shown.append((".".join(map(str, path)), text if len(text) <= 90 else f"{text[:80]}… ({len(text)})"))
        return Case(self.name, tuple(shown), obj)


def goods(version: str = "v1", *, lists: bool = True) -> list[Good]:
    """The good objects in a version that has their kind.

    Args:
        version: ``v1``, ``v1beta2``, ``v1beta1`` or ``v1alpha3``.
        lists: Whether attributes may be lists, which needs a feature that is off by default.
    """
    found = []
    for name, good in zip(NAMES, GOOD, strict=True):
        # What is shared in them would change in several places.
        obj = json.loads(json.dumps(good))
        if (version, name == "rule") in {("v1beta1", True), ("v1alpha3", False)}:
            continue
        if name == "slice" and not lists:
            attributes = obj["spec"]["devices"][0]["attributes"]
            for attribute in ("links", "ports", "flags", "releases"):
                del attributes[attribute]
        obj["apiVersion"] = f"resource.k8s.io/{version}"
        found.append(Good(f"{version} {name}", _flattened(obj) if version == "v1beta1" else obj))
    return found


def _flattened(obj: Json) -> Json:
    """A v1 object as v1beta1 writes it."""
    spec = obj["spec"]
    if obj["kind"] == "ResourceSlice":
        spec["devices"] = [
            {"name": device["name"], "basic": {key: value for key, value in device.items() if key != "name"}}
            for device in spec.get("devices", ())
        ]
        if not spec["devices"]:
            del spec["devices"]
    for claim in (spec, spec.get("spec", {})):
        for request in claim.get("devices", {}).get("requests", ()) if obj["kind"] != "ResourceSlice" else ():
            request |= request.pop("exactly", {})
    return obj


def _values(path: tuple[Any, ...], value: Json) -> Iterator[Json]:
    """What a field is set to in place of its value, the type kept."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from _NUMBERS
    elif isinstance(value, str):
        yield from AMOUNTS if is_amount(path) else TEXTS
        if not is_amount(path):
            yield from _LONG
    elif isinstance(value, list):
        yield from _lists(value)
    elif isinstance(value, dict):
        yield from _mappings(path, value)


def _lists(value: list[Json]) -> Iterator[Json]:
    yield []
    if not value:
        return
    yield value[:-1]
    yield value[::-1]
    yield [*value, copy.deepcopy(value[0])]
    for limit in LIMITS:
        for count in (limit, limit + 1):
            yield [_numbered(value[number % len(value)], number) for number in range(count)]


def _numbered(item: Json, number: int) -> Json:
    """A copy with a name or text of its own, as far as it has one."""
    item = copy.deepcopy(item)
    if isinstance(item, str):
        return f"{item}{number}" if not item[:1].isdigit() else str(number + 1)
    if isinstance(item, dict):
        for key in ("name", "uid", "type", "counterSet"):
            if isinstance(item.get(key), str):
                item[key] = f"{item[key]}-{number}" if key != "type" else f"{item[key]}{number}"
                break
    return item


def _mappings(path: tuple[Any, ...], value: dict[str, Json]) -> Iterator[Json]:
    yield {}
    if not value:
        return
    first = next(iter(value.values()))
    if path[-1] in _MAPS:
        for key in (*(text for text in TEXTS if len(text) < _LONGEST_KEY), *_LONG_KEYS):
            yield {**value, key: first}
        for limit in (8, 24, 32, 48):
            for count in (limit - len(value), limit, limit + 1):
                yield {f"k{number}": first for number in range(max(0, count))}


def singles(good: Good) -> Iterator[Change]:
    """Each field set to something else of its type."""
    for path in good.paths():
        for value in _values(path, at(good.obj, path)):
            yield path, value


def structural(good: Good) -> Iterator[Change]:
    """Each field missing, null, of another type, and an unknown field beside it."""
    for path in good.paths():
        value = at(good.obj, path)
        yield path, REMOVE
        yield path, None
        for other in _OTHER_TYPES.get(type(value), ()):
            yield path, other
        if isinstance(value, dict):
            yield (*path, "nonesuch"), 1


def doubles(good: Good, rng: random.Random, count: int) -> Iterator[Case]:
    """Two fields at once, neither within the other."""
    paths = good.paths()
    made = 0
    while made < count:
        first, second = rng.sample(paths, 2)
        if first[: len(second)] == second or second[: len(first)] == first:
            continue
        changes = []
        for path in (first, second):
            choices = [*_values(path, at(good.obj, path)), REMOVE]
            changes.append((path, rng.choice(choices)))
        # Removing a member of a list moves the others; the later one goes first.
        changes.sort(key=lambda change: tuple(map(str, change[0])), reverse=True)
        try:
            yield good.changed(*changes)
        except (IndexError, KeyError):
            continue
        made += 1


def sample(rng: random.Random, good: Good, changes: Iterable[Change], count: int) -> list[Case]:
    """That many of the changes, or all, each made alone."""
    known = list(changes)
    return [good.changed(change) for change in (known if len(known) <= count else rng.sample(known, count))]
