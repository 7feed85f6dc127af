"""Why a selector doesn't hold for a device, in its own words and with what the device says.

Owns the search for the condition that decides: of a chain ``a && b && c`` the first that is false, for false wins over
an error; otherwise the first that fails. Also what that condition read of the device. ``cel.bind`` around a chain is
looked through. It doesn't know other devices, claims or how a reason is printed; what the conditions of a selector
compare, for explanations of many devices at once, is `draht.cel.conditions`'.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from draht.api.quantity import Quantity
from draht.api.semver import Version
from draht.cel.ast import Expr
from draht.cel.conjuncts import conjuncts
from draht.cel.device import Device, device_environment
from draht.cel.errors import EvaluationError
from draht.cel.hints import at_run_time
from draht.cel.mentions import Key, mentions_of
from draht.cel.parser import Parsed, parse_text
from draht.cel.program import Program
from draht.cel.selector import Selector
from draht.cel.values import MISSING, Map, type_name

__all__ = ["Reading", "Reason", "why_not"]

_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Reading:
    """Something that a condition reads of a device.

    Args:
        name: ``architecture``; with its domain where that isn't the driver's.
        value: The value as an expression would write it, or None where the device doesn't have it.
        domain: The domain of an attribute or capacity.
        near: A name that the device has instead and that is spelt almost the same.
    """

    name: str
    value: str | None
    domain: str = ""
    near: str | None = None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.name} is {self.value}"
        return f"{self.name} is missing" + (f", but there is {self.near}" if self.near else "")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a selector doesn't hold for a device.

    Args:
        condition: The text of the deciding part.
        readings: What that part reads of the device.
        error: What went wrong, where it can't be answered.
    """

    condition: str
    readings: tuple[Reading, ...]
    error: EvaluationError | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return self.error.message
        return f"{self.condition} is false" + (f": {'; '.join(map(str, self.readings))}" if self.readings else "")


def why_not(selector: Selector, device: Device) -> Reason | None:
    """Why the selector doesn't hold for the device; None where it does."""
    answer = selector.evaluate(device)
    if answer is True:
        return None
    error = answer if isinstance(answer, EvaluationError) else None
    if device.defect is not None or (error is not None and error.kind == "cost-limit"):
        return Reason(selector.text.strip(), (), error)
    for text, expr, program in _parts(selector):
        part = _answer(program, device)
        if (error is None and part is False) or (error is not None and isinstance(part, EvaluationError)):
            readings = tuple(_readings(expr, device))
            return Reason(text, readings, _explained(part, readings) if isinstance(part, EvaluationError) else None)
    return Reason(selector.text.strip(), (), error)


def _explained(error: EvaluationError, readings: tuple[Reading, ...]) -> EvaluationError:
    """The error with a hint that knows what the device has."""
    hint = error.hint or at_run_time(error.kind, error.message)
    missing = next((reading for reading in readings if reading.value is None), None)
    if error.kind == "no-such-key" and missing is not None:
        if missing.near is not None:
            hint = f"did you mean {missing.near}?"
        elif hint is not None:
            hint = hint.replace("<domain>", missing.domain)
    return EvaluationError(error.message, kind=error.kind, where=error.where, hint=hint)


def _answer(program: Program, device: Device) -> bool | EvaluationError:
    try:
        value = program.evaluate(device)
    except EvaluationError as error:
        return error
    if value is True or value is False:
        return value
    return EvaluationError(
        f"a condition must be true or false, not a value of type {type_name(value)}",
        kind="not-bool",
        hint="compare the value with something, such as == true",
    )


@lru_cache(maxsize=256)
def _parts(selector: Selector) -> tuple[tuple[str, Expr, Program], ...]:
    parsed = parse_text(selector.text, device_environment(selector.features).macros)
    return tuple((text, expr, selector.part(expr)) for text, expr in _conjuncts(selector.checked.expr, parsed))


def _conjuncts(expr: Expr, parsed: Parsed) -> Iterator[tuple[str, Expr]]:
    for node, binds in conjuncts(expr, through_binds=True):
        text = parsed.text_of(node) or parsed.source.text
        whole = node
        for outer in reversed(binds):
            whole = replace(outer, result=whole)
        yield " ".join(text.split()), whole


def _readings(expr: Expr, device: Device) -> Iterator[Reading]:
    read = mentions_of(expr)
    if read.driver:
        yield Reading("driver", _shown(device.driver))
    if read.allow_multiple:
        yield Reading("allowMultipleAllocations", _shown(device.allow_multiple))
    for key in sorted(read.keys):
        yield from _reading(key, device)


def _reading(key: Key, device: Device) -> Iterator[Reading]:
    values = device.entries[key.map]
    if key.whole:
        # What was read of the map isn't known; its names are enough to see what is missing.
        if key.domain:
            names = ", ".join(sorted(map(str, values.find(key.domain).keys()))) or "nothing"
            yield Reading(f'{key.map}["{key.domain}"]', f"a map with {names}"[:_SHOWN], key.domain)
        return
    domain = values.find(key.domain)
    value = domain.find(key.id) if isinstance(domain, Map) else MISSING
    name = key.id if key.domain == device.driver else f"{key.domain}/{key.id}"
    if value is not MISSING:
        yield Reading(name, _shown(value), key.domain)
        return
    known = {f"{each}/{id_}": id_ for each, inner in values.items() for id_ in inner.entries}
    same = [full for full, id_ in known.items() if id_ == key.id]
    near = difflib.get_close_matches(
        key.id, [id_ for full, id_ in known.items() if full.startswith(f"{key.domain}/")], 1
    )
    found = same[0] if same else near[0] if near else None
    yield Reading(name, None, key.domain, found)


def _shown(value: Any) -> str:
    match value:
        case bool():
            text = str(value).lower()
        case str():
            text = f'"{value}"'
        case Quantity():
            text = f'quantity("{value}")'
        case Version():
            text = f'semver("{value}")'
        case tuple() | list():
            text = f"[{', '.join(map(_shown, value))}]"
        case _:
            text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
