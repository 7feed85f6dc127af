"""Which condition of a request's selectors keeps devices out, and by how much: the closest miss."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from draht.allocator.explain.question import Question
from draht.allocator.pools import Pool, PoolId, PoolStatus
from draht.api.quantity import Quantity
from draht.api.resource import Device as WireDevice
from draht.api.semver import Version
from draht.cel import CELError, CompileError, Device
from draht.cel.conditions import Condition, conditions

__all__ = ["Miss", "Selection", "selection", "unready"]

_PATH: Final = re.compile(r'device\.(?:attributes|capacity)\[(?:"[^"]*"|\'[^\']*\')\]\.')
_UPWARD: Final = frozenset({"_>_", "_>=_"})
_DOWNWARD: Final = frozenset({"_<_", "_<=_"})
_SHOWN: Final = 5
_LOOKED_AT: Final = 32
"""Conditions that are looked at one by one; a selector that a person has written has fewer."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A condition, how many devices meet it, and what they have instead.

    Args:
        text: The condition as it is written.
        holds: Devices that meet it.
        of: Devices it was asked about.
        instead: In words what the devices have; empty where the condition compares nothing.
    """

    text: str
    holds: int
    of: int
    instead: str

    def __str__(self) -> str:
        return f"{self.holds} of {self.of} devices have `{short(self.text)}`" + (
            f"; {self.instead}" if self.instead else ""
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """The selectors of one request over the devices of its class.

    Args:
        texts: The conditions of all selectors of the request, each once.
        of_class: Devices that the class selects.
        matching: Devices that meet all the conditions.
        misses: For each condition, those that most devices fail first; of hundreds the first ones.
        nearest: The most conditions that a device that doesn't match meets.
    """

    texts: tuple[str, ...]
    of_class: int
    matching: int
    misses: tuple[Miss, ...]
    nearest: int


def short(text: str) -> str:
    """The condition without the path to what it names: ``memory.compareTo(…) >= 0``."""
    return _PATH.sub("", text)


def selection(question: Question) -> Selection:
    """Take the selectors of a single exact request apart, over all devices that the nodes of the question reach.

    Every device counts once, however many nodes reach it.
    """
    (claim,) = question.claims
    (request,) = claim.spec.devices.requests
    asked = request.exactly or request.first_available[0]
    found: list[Condition | _Broken] = []
    for selector in asked.selectors:
        if selector.cel is not None:
            found += _conditions(selector.cel.expression)
    found = list({condition.text: condition for condition in found}.values())
    known = question.snapshot.classes.get(asked.device_class_name)
    of_class: list[Condition | _Broken] = []
    for selector in known.spec.selectors if known else ():
        if selector.cel is not None:
            of_class += _conditions(selector.cel.expression)
    devices = [each for each in _devices(question) if all(condition.holds(each) is True for condition in of_class)]
    verdicts = [[condition.holds(device) is True for condition in found] for device in devices]
    met = [sum(verdict) for verdict in verdicts]
    holds = [sum(verdict[number] for verdict in verdicts) for number in range(len(found))]
    misses = []
    for number in sorted(range(len(found)), key=holds.__getitem__)[:_LOOKED_AT]:
        condition = found[number]
        # What those have that fail here alone is the closest miss; where there are none, what all have.
        near = [
            device
            for device, verdict, count in zip(devices, verdicts, met, strict=True)
            if count == len(found) - 1 and not verdict[number]
        ]
        misses.append(Miss(condition.text, holds[number], len(devices), _instead(condition, near or devices)))
    return Selection(
        texts=tuple(condition.text for condition in found),
        of_class=len(devices),
        matching=met.count(len(found)),
        misses=tuple(misses),
        nearest=max((count for count in met if count < len(found)), default=0),
    )


def unready(question: Question) -> tuple[int, tuple[str, ...]]:
    """How many devices of a request's class are in pools whose slices aren't all there, and these pools' names."""
    (claim,) = question.claims
    (request,) = claim.spec.devices.requests
    asked = request.exactly or request.first_available[0]
    known = question.snapshot.classes.get(asked.device_class_name)
    texts = [each.cel.expression for each in (known.spec.selectors if known else ()) if each.cel is not None]
    of_class = [condition for text in texts for condition in _conditions(text)]
    names = {pool.id for node in question.nodes for pool in question.snapshot.row(node).pools if _is_unready(pool)}
    found: Counter[str] = Counter()
    for piece in question.snapshot.slices.values():
        pool = PoolId(piece.spec.driver, piece.spec.pool.name)
        if pool in names:
            devices = _readable(pool.driver, piece.spec.devices)
            found[str(pool)] += sum(all(each.holds(device) is True for each in of_class) for device in devices)
    return found.total(), tuple(name for name, number in found.items() if number)


def _is_unready(pool: Pool) -> bool:
    return pool.status is PoolStatus.INCOMPLETE


def _devices(question: Question) -> Iterator[Device]:
    seen: set[object] = set()
    for node in question.nodes:
        row = question.snapshot.row(node)
        for pool in row.usable:
            if pool not in seen:
                seen.add(pool)
                yield from _readable(pool.id.driver, pool.devices)


def _readable(driver: str, devices: Iterable[WireDevice]) -> Iterator[Device]:
    for device in devices:
        try:
            yield Device.of(driver, device)
        except CELError:
            continue


@dataclass(frozen=True, slots=True)
class _Broken:
    """A selector that doesn't compile. Nobody has met it so far, or the allocator would have said so."""

    text: str
    why: str

    def holds(self, _device: Device) -> bool:
        return False


def _conditions(text: str) -> Iterator[Condition | _Broken]:
    try:
        yield from conditions(text)
    except CompileError as error:
        yield _Broken(" ".join(text.split()), f"it doesn't compile: {error.message}")


def _instead(condition: Condition | _Broken, devices: list[Device]) -> str:
    if isinstance(condition, _Broken):
        return condition.why
    if condition.relation is None or not devices:
        return ""
    values = [value for value in map(condition.value, devices) if value is not None]
    if not values:
        return f"none of them has {short(condition.subject)}"
    if condition.relation in _UPWARD | _DOWNWARD and _ordered(values):
        best = max(values) if condition.relation in _UPWARD else min(values)
        return f"the {'largest' if condition.relation in _UPWARD else 'smallest'} is {best}"
    counted = Counter(_shown(value) for value in values).most_common()
    more = f" and {len(counted) - _SHOWN} others" if len(counted) > _SHOWN else ""
    return "there are " + ", ".join(f"{value} ({number})" for value, number in counted[:_SHOWN]) + more


def _ordered(values: list[Any]) -> bool:
    return all(type(value) is type(values[0]) for value in values) and isinstance(
        values[0], (int, float, str, Quantity, Version)
    )


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
