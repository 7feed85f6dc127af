"""Reporters: every device that was not taken has a cause."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allocator_answers import snapshot_of
from allocator_generator import case
from allocator_scenarios import case_of
from draht.allocator import AllocatorError, Cause, Limits, Rejection, allocate
from draht.api.resource import ResourceClaim

SETS = {"node": "node-1", "name": "sets", "count": 2, "counters": {"gpu": {"memory": 20}}}
HALF = {"consumes": {"gpu": {"memory": 20}}}


class _Listener:
    def __init__(self) -> None:
        self.heard: list[Rejection] = []

    def rejected(self, rejection: Rejection) -> None:
        self.heard.append(rejection)


def _causes(scenario: dict[str, Any]) -> list[tuple[str | None, Cause]]:
    found = case_of(scenario)
    listener = _Listener()
    claims = msgspec.convert(found["claims"], tuple[ResourceClaim, ...])
    assert allocate(snapshot_of(found), claims, found["on"][0], reporter=listener) is None
    return [(r.device[2] if r.device is not None else None, r.cause) for r in listener.heard]


def _on(*devices: Any, **rest: Any) -> dict[str, Any]:
    return {"slices": [{"node": "node-1", "devices": list(devices), **rest}]}


@pytest.mark.parametrize(
    ("scenario", "device", "cause"),
    [
        (_on("d1") | {"held": ["node-1/d1"]}, "d1", Cause.IN_USE),
        (_on("d1") | {"claims": [{"requests": {"r": 1, "s": 1}}]}, "d1", Cause.CHOSEN),
        (
            _on({"name": "d1", "binding": ["ready"]}) | {"without": ["DeviceBindingAndStatus"]},
            "d1",
            Cause.BINDING_CONDITIONS,
        ),
        (_on("d1") | {"claims": [{"requests": {"r": {"where": ["false"]}}}]}, "d1", Cause.SELECTOR),
        (
            {
                "slices": [
                    {"each": True, "devices": [{"name": "d1", "node": "node-2"}, {"name": "d2", "node": "node-1"}]}
                ]
            }
            | {"held": ["pool/d2"]},
            "d1",
            Cause.NODE,
        ),
        (_on("d1") | {"claims": [{"requests": {"r": {"amounts": {"memory": 1}}}}]}, "d1", Cause.CAPACITY),
        (
            _on({"name": "d1", "multi": True, "capacity": {"memory": 2}})
            | {"held": [{"device": "node-1/d1", "share": "s", "consumed": {"memory": 2}}]},
            "d1",
            Cause.CAPACITY_IN_USE,
        ),
        (_on("d1", skip=["*"]), "d1", Cause.NODE_OPERATIONS),
        (_on({"name": "d1"} | HALF) | {"without": ["PartitionableDevices"]}, "d1", Cause.PARTITIONS),
        (
            {
                "slices": [
                    SETS,
                    {"node": "node-1", "count": 2, "devices": [{"name": "d1"} | HALF, {"name": "d2"} | HALF]},
                ]
            }
            | {"held": ["node-1/d1"]},
            "d2",
            Cause.COUNTERS,
        ),
        (
            {
                "slices": [
                    SETS,
                    {"node": "node-1", "count": 2, "devices": [{"name": "d1"} | HALF, {"name": "d2"} | HALF]},
                ]
            }
            | {"claims": [{"requests": {"r": 1, "s": 1}}]},
            "d2",
            Cause.COUNTERS,
        ),
        (
            {
                "slices": [
                    SETS | {"counters": {"gpu": {"memory": 90}}},
                    {
                        "node": "node-1",
                        "count": 2,
                        "devices": [{"name": "d1"} | HALF, {"name": "d2", "groups": ["a"]} | HALF],
                    },
                ],
                "held": ["node-1/d1"],
            },
            "d2",
            Cause.COMPATIBILITY,
        ),
        (_on({"name": "d1", "taints": ["a=b:NoSchedule"]}), "d1", Cause.TAINT),
        (
            _on({"name": "d1", "model": "A"}, {"name": "d2", "model": "B"})
            | {"claims": [{"requests": {"r": 2}, "match": "model"}]},
            "d2",
            Cause.CONSTRAINT,
        ),
        (_on("d1") | {"claims": [{"requests": {"r": 1}, "match": "model"}]}, "d1", Cause.ATTRIBUTE_MISSING),
        (
            _on("d1") | {"claims": [{"requests": {"r": {"all": True, "where": ["false"]}}}]},
            None,
            Cause.NO_DEVICES,
        ),
        (
            _on("d1")
            | {"claims": [{"requests": {"r": {"first": {"one": 1, "two": 2}}, "s": {"first": {"m": 32, "n": 31}}}}]},
            None,
            Cause.RESULT_LIMIT,
        ),
    ],
)
def test_a_device_that_is_not_taken_has_its_cause(scenario: dict[str, Any], device: str | None, cause: Cause) -> None:
    """Each test of the search has its own cause, told by name."""
    assert (device, cause) in _causes(scenario)


def test_a_rejection_is_told_once() -> None:
    """However often a search comes back to a device, the reporter hears about it once."""
    scenario = _on("d1", "d2", "d3") | {"claims": [{"requests": {"r": 1, "s": 1, "t": 1, "u": 1}}]}
    heard = _causes(scenario)
    assert len([c for c in heard if c[0] == "d1"]) <= 4


@pytest.mark.parametrize("seed", range(40))
def test_listening_changes_nothing(seed: int) -> None:
    """With a reporter the answer is the same, and where there is none, every device was rejected or tried."""
    found = case(99, seed)
    snapshot = snapshot_of(found)
    claims = msgspec.convert(found["claims"], tuple[ResourceClaim, ...])

    def answer(listener: _Listener | None) -> object:
        try:
            return allocate(snapshot, claims, "node-0", reporter=listener, limits=Limits(steps=20_000))
        except AllocatorError as error:
            return type(error), getattr(error, "kind", None)

    listener = _Listener()
    loud = answer(listener)
    quiet = answer(None)
    if "timeout" not in str(loud):
        assert loud == quiet
    assert len(set(listener.heard)) == len(listener.heard)
