"""Compares what draht and upstream say about device selectors: verdict, estimated cost, value or error, actual cost.

Owns the questions, the exact form in which values are compared, and what counts as a difference. Where upstream's
answer depends on the order in which Go walks a map, any of the answers it gave is right. It doesn't know where
expressions come from.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cel_kinds import kind_of_upstream
from draht.api.quantity import Quantity
from draht.api.resource.device import Device as WireDevice
from draht.api.semver import Version
from draht.cel.device import Device, Features
from draht.cel.errors import CompileError, EvaluationError
from draht.cel.library.named_formats import NamedFormat
from draht.cel.numbers import UInt
from draht.cel.selector import compile_derived, compile_selector
from draht.cel.types import Type
from draht.cel.values import Duration, Map, Optional, Timestamp
from oracle_client import Oracle

__all__ = ["SETTINGS", "Difference", "Setting", "ask", "differences", "sorted_typed", "typed"]

RUNS: Final = 24
RUNS_WHEN_IN_DOUBT: Final = 3_000


@dataclass(frozen=True, slots=True)
class Setting:
    """The environment that expressions are compiled in."""

    list_attributes: bool = True
    consumable_capacity: bool = True
    environment: str = "stored"

    def features(self) -> Features:
        """The same for draht."""
        return Features(self.list_attributes, self.consumable_capacity, stored=self.environment == "stored")

    def params(self) -> dict[str, object]:
        """The same for the oracle."""
        gates = {"listAttributes": self.list_attributes, "consumableCapacity": self.consumable_capacity}
        return {"features": gates, "environment": self.environment}


SETTINGS: Final = tuple(Setting(a, c, e) for e in ("stored", "new") for a in (True, False) for c in (True, False))


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the two disagree."""

    what: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.what}: draht {self.ours!r}, upstream {self.theirs!r}"


def ask(
    oracle: Oracle,
    setting: Setting,
    expressions: Sequence[str],
    devices: Sequence[Mapping[str, Any]],
    *,
    derived: bool,
    runs: int = RUNS,
) -> list[dict[str, Any]]:
    """Upstream's verdicts, one for each expression."""
    question = {"derived": derived, "expressions": list(expressions), "devices": list(devices), "runs": runs}
    answer = oracle.call("cel.evaluate", deadline=300, **setting.params(), **question)
    assert isinstance(answer, list)
    return answer


def differences(
    oracle: Oracle,
    setting: Setting,
    expression: str,
    devices: Sequence[Mapping[str, Any]],
    verdict: Mapping[str, Any],
    *,
    derived: bool,
) -> list[Difference]:
    """In what draht's verdict differs from upstream's."""
    compiling = compile_derived if derived else compile_selector
    try:
        compiled = compiling(expression, setting.features())
    except CompileError as refused:
        if verdict["accepted"]:
            return [Difference("accepted", f"no: {refused}", "yes")]
        return []
    if verdict.get("panic"):
        return []  # what upstream would have said, nobody knows
    if not verdict["accepted"]:
        return [Difference("accepted", "yes", f"no: {verdict['error']}")]
    found = []
    if compiled.cost.most != verdict["cost"]:
        found.append(Difference("estimated cost", compiled.cost.most, verdict["cost"]))
    again: Callable[[], list[Any]] = lambda: ask(  # noqa: E731 - asked only in doubt
        oracle, setting, [expression], devices, derived=derived, runs=RUNS_WHEN_IN_DOUBT
    )[0]["outcomes"]
    for index, (device, theirs) in enumerate(zip(devices, verdict["outcomes"], strict=True)):
        ours = _outcome(compiled, device, derived=derived)
        if not _among(ours, theirs) and (len(theirs) == 1 or not _likely(ours, theirs, again()[index])):
            found.append(Difference(f"outcome for device {index}", ours, theirs[0] if len(theirs) == 1 else theirs))
    return found


def _outcome(compiled: Any, wire: Mapping[str, Any], *, derived: bool) -> dict[str, Any]:
    device = Device.of(str(wire["driver"]), msgspec.convert({"name": "d", **wire}, WireDevice, strict=False))
    value, cost = compiled.measure(device)
    outcome = _shown(value) | {"cost": cost}
    unmetered = _unmetered(compiled, device, derived=derived)
    if {**unmetered, "message": ""} != {**_shown(value), "message": ""}:
        outcome["but without a meter"] = unmetered
    if derived and "value" in outcome:
        attribute = compiled.attribute(device)
        failed = isinstance(attribute, EvaluationError)
        outcome["attribute"] = None if failed else msgspec.json.decode(msgspec.json.encode(attribute))
    return outcome


def _unmetered(compiled: Any, device: Device, *, derived: bool) -> dict[str, Any]:
    """What the program says that doesn't count costs; it is other code."""
    try:
        return _shown(compiled.value(device) if derived else compiled.evaluate(device))
    except EvaluationError as error:
        return _shown(error)


def _shown(value: Any) -> dict[str, Any]:
    if isinstance(value, EvaluationError):
        return {"error": value.kind, "message": str(value)}
    return {"value": sorted_typed(typed(value))}


def _likely(ours: Mapping[str, Any], theirs: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an answer may be one of those that upstream gives in turn.

    A list that is made from a map has the map's order, which is another one each time: eight entries have more orders
    than anybody asks for, so answers that are alike but for the order of lists are one answer.
    """
    if _among(ours, more):
        return True
    alike = {json.dumps(_unordered(one), sort_keys=True) for one in (*theirs, *more)}
    return alike == {json.dumps(_unordered(ours), sort_keys=True)}


def _unordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _unordered(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _among(ours: Mapping[str, Any], theirs: Sequence[Mapping[str, Any]]) -> bool:
    if "but without a meter" in ours:
        return False
    for one in theirs:
        if "error" in one:
            if "error" in ours and ours["error"] == kind_of_upstream(one["error"]):
                return True
        elif "value" in ours and ours["value"] == sorted_typed(one["value"]) and ours["cost"] == one["cost"]:
            theirs_attribute = one.get("attribute") or {}
            if "attribute" not in ours or ours["attribute"] == (
                None if "error" in theirs_attribute else theirs_attribute
            ):
                return True
    return False


def _text(text: str) -> object:
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"base64": base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()}
    return text


def typed(value: Any) -> list[Any]:
    """A value with its type, in the form in which the oracle gives it (``celTyped`` in tests/oracle/cel.go)."""
    match value:
        case None:
            return ["null", None]
        case bool():
            return ["bool", value]
        case UInt():
            return ["uint", str(int(value))]
        case int():
            return ["int", str(value)]
        case float():
            bits = struct.unpack("<Q", struct.pack("<d", value))[0]
            return ["double", "NaN" if math.isnan(value) else f"{bits:x}"]
        case str():
            return ["string", _text(value)]
        case bytes():
            return ["bytes", base64.b64encode(value).decode()]
        case Timestamp():
            return ["timestamp", f"{value.seconds}.{value.nanoseconds:09d}"]
        case Duration():
            return ["duration", str(value.nanoseconds)]
        case Type():
            return ["type", value.name]
        case Optional():
            return ["optional", typed(value.value) if value.has_value else None]
        case Quantity():
            return ["quantity", str(value)]
        case Version():
            return ["semver", str(value)]
        case list() | tuple():
            return ["list", [typed(item) for item in value]]
        case Map():
            return ["map", [[typed(key), typed(item)] for key, item in value.items()]]
        case NamedFormat():
            return ["format", value.name]
        case _:
            names = {"net.IP": "ip", "net.CIDR": "cidr", "kubernetes.URL": "url"}
            return [names[value.cel_type.name], _text(str(value))]


def sorted_typed(value: Any) -> Any:
    """The typed value with the entries of maps in an order of its own."""
    if not isinstance(value, list):
        return value
    if len(value) == 2 and value[0] == "map":
        return ["map", sorted(([sorted_typed(key), sorted_typed(item)] for key, item in value[1]), key=json.dumps)]
    return [sorted_typed(item) for item in value]
