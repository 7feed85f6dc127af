"""Objects that are made to be expensive: judging them stays bounded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cel_hostile import HOSTILE
from draht.api.kinds import KINDS
from draht.api.meta import Object
from draht.api.reader import read_object
from draht.validation import ALL, validate


def _object(kind: str, spec: dict[str, Any], **metadata: Any) -> Object:
    value: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "a", **metadata},
        "spec": spec,
    }
    return read_object(json.dumps(value).encode("utf-8", "surrogatepass"), KINDS[value["apiVersion"], kind])


def _slice(devices: list[dict[str, Any]]) -> Object:
    pool = {"name": "p", "resourceSliceCount": 1}
    return _object("ResourceSlice", {"driver": "d", "nodeName": "n", "pool": pool, "devices": devices})


def _claim(requests: list[dict[str, Any]], **devices: Any) -> Object:
    return _object("ResourceClaim", {"devices": {"requests": requests, **devices}})


def _selector(expression: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": expression}}]}


REQUEST = {"name": "r", "exactly": {"deviceClassName": "c"}}
LONG = "x" * 1_000_000
ODD = "\u202e\x00é😀" * 1_000

HOSTILE_OBJECTS: dict[str, Callable[[], Object]] = {
    "a thousand requests": lambda: _claim([REQUEST] * 1_000),
    "a thousand constraints": lambda: _claim([REQUEST], constraints=[{"matchAttribute": "a/b"}] * 1_000),
    "a thousand alternatives": lambda: _claim(
        [{"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": "c"}] * 1_000}]
    ),
    "a full claim": lambda: _claim(
        [
            {
                "name": f"r{n}",
                "firstAvailable": [
                    {"name": f"s{m}", "deviceClassName": "c", **_selector("device.driver == 'x'")} for m in range(8)
                ],
            }
            for n in range(32)
        ]
    ),
    "a full slice": lambda: _slice(
        [{"name": f"d{n}", "attributes": {f"a{m}": {"string": "x" * 64} for m in range(32)}} for n in range(128)]
    ),
    "a million devices of a kind": lambda: _slice([{"name": "d"}] * 100_000),
    "many attributes": lambda: _slice([{"name": "d", "attributes": {f"a{n}": {"int": n} for n in range(50_000)}}]),
    "long names": lambda: _object(
        "ResourceSlice",
        {"driver": LONG, "nodeName": LONG, "pool": {"name": "/".join(["a-"] * 100_000), "resourceSliceCount": 1}},
        name=LONG,
        labels={LONG: LONG},
        annotations={LONG: LONG},
        finalizers=[LONG] * 3,
    ),
    "odd names": lambda: _object(
        "ResourceSlice",
        {"driver": ODD, "nodeName": ODD, "pool": {"name": ODD, "resourceSliceCount": 1}},
        name=ODD,
        labels={ODD: ODD},
    ),
    "hyphens": lambda: _object("DeviceClass", {}, name="-" * 100_000 + "a" + "-" * 100_000),
    "dots": lambda: _object("DeviceClass", {}, name="a." * 200_000),
    "long versions": lambda: _slice([{"name": "d", "attributes": {"a": {"version": "1.2.3-" + "0a." * 100_000}}}]),
    "huge amounts": lambda: _slice(
        [
            {
                "name": "d",
                "allowMultipleAllocations": True,
                "capacity": {
                    "c": {
                        "value": "1e999999999",
                        "requestPolicy": {
                            "default": "9" * 4_000,
                            "validRange": {"min": "1e-999999999", "max": "9e999999999", "step": "1e999999998"},
                        },
                    }
                },
            }
        ]
    ),
    "many amounts": lambda: _slice(
        [
            {
                "name": "d",
                "allowMultipleAllocations": True,
                "capacity": {"c": {"value": "1", "requestPolicy": {"default": "1", "validValues": ["1"] * 100_000}}},
            }
        ]
    ),
    "deep parameters": lambda: _claim(
        [REQUEST], config=[{"opaque": {"driver": "d", "parameters": json.loads('{"a":' * 200 + "1" + "}" * 200)}}]
    ),
    "a matching regular expression": lambda: _claim(
        [{"name": "r", "exactly": {"deviceClassName": "c", **_selector(f"device.driver.matches('{'(a*)*' * 500}b')")}}]
    ),
    "a large repetition": lambda: _claim(
        [
            {
                "name": "r",
                "exactly": {"deviceClassName": "c", **_selector("device.driver.matches('((a{1000}){1000}){9}')")},
            }
        ]
    ),
}


@pytest.mark.parametrize("name", HOSTILE_OBJECTS)
def test_a_hostile_object_is_judged(name: str) -> None:
    """The verdict comes, with few errors, and each can be shown."""
    errors = validate(HOSTILE_OBJECTS[name](), gates=ALL)
    assert len(errors) < 2_000
    assert all(len(str(error)) < 2_000_000 for error in errors)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_expression_is_judged(name: str) -> None:
    """Every hostile expression gets a verdict as a selector, whatever stands in it."""
    errors = validate(_object("DeviceClass", _selector(HOSTILE[name].encode("utf-8", "replace").decode())), gates=ALL)
    assert len(errors) <= 1
    assert all(error.path == "spec.selectors[0].cel.expression" for error in errors)


def test_a_full_claim_of_costly_expressions_is_judged() -> None:
    """32 requests with 32 different long expressions are compiled and priced."""
    padding = " && device.driver != 'x'" * 100
    requests = [
        {
            "name": f"r{n}",
            "exactly": {
                "deviceClassName": "c",
                "selectors": [{"cel": {"expression": f"device.driver == '{n}'{padding}"}}],
            },
        }
        for n in range(32)
    ]
    assert validate(_claim(requests)) == ()


def test_judging_needs_little_stack() -> None:
    """Deep expressions inside objects don't need a deep stack either."""
    assert sys.getrecursionlimit() <= 10_000
    deep = "!" + "(" * 200 + "true" + ")" * 200
    assert validate(_object("DeviceClass", _selector(deep))) == ()
