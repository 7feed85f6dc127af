"""How the devices of several requests are spread over the values of an attribute: the evidence of a constraint."""

from __future__ import annotations

from collections import Counter
from typing import Final

from draht.allocator.explain.question import Question
from draht.allocator.explain.tally import tally
from draht.api.resource import Device, DeviceAttribute, DeviceConstraint

__all__ = ["value_of", "values"]

_SHOWN: Final = 4


def value_of(driver: str, device: Device, name: str) -> str | None:
    """The value of an attribute as text, looked up as constraints do; None if the device hasn't got it."""
    attribute = device.attributes.get(name)
    domain, _, bare = name.partition("/")
    if attribute is None and domain == driver:
        attribute = device.attributes.get(bare)
    return None if attribute is None else _text(attribute)


def values(question: Question, claim: int, constraint: DeviceConstraint) -> tuple[str, ...]:
    """For the nodes that have most: how many devices each request could have of each value."""
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    requests = question.claims[claim].spec.devices.requests
    concerned = {each.partition("/")[0] for each in constraint.requests}
    spread: dict[str, dict[str, Counter[str]]] = {}
    for number, request in enumerate(requests):
        if concerned and request.name not in concerned:
            continue
        alternative = 0 if request.first_available else None
        for group in tally(question.only(claim, number, alternative)).groups:
            devices: dict[tuple[str, ...], Device] = {
                (pool.id.driver, pool.id.name, each.name): each for pool in group.row.usable for each in pool.devices
            }
            counts = Counter(value_of(each[0], devices[tuple(each)], name) or "no value" for each in group.usable)
            spread.setdefault(group.name, {})[request.name] = counts
    lines = []
    for node, by_request in list(spread.items())[:_SHOWN]:
        found = dict.fromkeys(value for counts in by_request.values() for value in counts)
        parts = [
            f"{value}: " + ", ".join(f"{counts[value]} for {request}" for request, counts in by_request.items())
            for value in list(found)[:_SHOWN]
        ]
        more = f"; and {len(found) - _SHOWN} more values" if len(found) > _SHOWN else ""
        lines.append(f"on node {node}, devices by {name}: " + "; ".join(parts) + more)
    return tuple(lines)


def _text(attribute: DeviceAttribute) -> str:
    for value in (attribute.string, attribute.version, attribute.int_, attribute.bool_):
        if value is not None:
            return str(value)
    found = attribute.ints or attribute.strings or attribute.versions or attribute.bools
    return ", ".join(map(str, found))
