"""A table answers for all devices at once what a selector answers for each."""

from __future__ import annotations

import os
import random
from typing import Any

import msgspec
import pytest

import cel_generator
from draht.api.resource.device import Device as WireDevice
from draht.cel import CompileError, Device, EvaluationError, compile_selector
from draht.cel.columns import Table

SEED = os.environ.get("DRAHT_FUZZ_SEED", "1")
CASES = 200
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "20000"))
DEVICES = 12

SPECIAL = [
    # A loop that comes to nothing: what is left has no use for its variable.
    'device.driver == "gpu.example.com" && cel.bind(x, true, true) in []',
    '[1].exists(x, true) in [] || device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].uuid == "u-17"',
    '"u-17" == device.attributes["gpu.example.com"].uuid',
    'device.attributes["gpu.example.com"].uuid != "u-17"',
    'device.attributes["gpu.example.com"].uuid in ["u-3", "u-17", "nobody"]',
    'device.attributes["gpu.example.com"].uuid == 17',
    'device.attributes["gpu.example.com"].uuid == true',
    'device.attributes["gpu.example.com"].uuid.startsWith("u-1")',
    'device.attributes["gpu.example.com"].?uuid.orValue("") == "u-17"',
    'has(device.attributes["gpu.example.com"].uuid) && device.attributes["gpu.example.com"].uuid == "u-17"',
    '!(device.attributes["gpu.example.com"].uuid == "u-17" || device.driver == "other.example.com")',
    '"uuid" in device.attributes["gpu.example.com"]',
    '"gpu.example.com" in device.attributes',
    'device.attributes["a/b"].uuid == "u-17"',
    "device.attributes.exists(domain, domain.startsWith('gpu'))",
    'cel.bind(own, device.attributes["gpu.example.com"], own.uuid == "u-17" && own.even)',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))',
    'device.attributes["gpu.example.com"].even && device.allowMultipleAllocations',
    "dyn(device).size() == 4",
    # Bytes have no hash upstream, which nothing around the error can hide.
    "{bytes(device.driver): 1}.size() == 1 || true",
    "true || {bytes(device.driver): 1}.size() == 1",
    'device.attributes["gpu.example.com"].even || device.attributes["gpu.example.com"].uuid in [1.0, 2.0] || true',
    'device.attributes["gpu.example.com"].even && device.attributes["gpu.example.com"].uuid in ["a", "b"] && false',
    # An optional answers for the whole selector, but is no operand.
    "dyn([true].sortBy(i, 0.0).first())",
    "dyn(optional.of(true))",
    "dyn(optional.none())",
    'dyn(device.attributes["gpu.example.com"].?even)',
    'dyn(device.attributes["gpu.example.com"].?even) && true',
    "true",
    "1 / 0 == 1",
]


def _devices(count: int) -> list[Device]:
    """Devices with an attribute that each has of its own, now and then of another type, missing or unreadable."""
    values: list[dict[str, Any] | None] = []
    for number in range(count):
        odd: dict[int, dict[str, Any] | None] = {
            3: {"int": 17},
            5: {"bool": True},
            7: {"version": "1.2.3"},
            11: None,
            13: {"version": "none"},
        }
        values.append(odd.get(number % 30, {"string": f"u-{number}"}))
    made = []
    for number, value in enumerate(values):
        attributes = {"even": {"bool": number % 2 == 0}}
        if value is not None:
            attributes["uuid" if number % 4 else "gpu.example.com/uuid"] = value
        wire = {
            "name": "d",
            "attributes": attributes,
            "capacity": {"memory": {"value": "80Gi" if number % 3 else "81920Mi"}},
            "allowMultipleAllocations": number % 5 == 0,
        }
        driver = "gpu.example.com" if number % 7 else "other.example.com"
        made.append(Device.of(driver, msgspec.convert(wire, WireDevice)))
    return made


def _agrees(table: Table, text: str) -> None:
    selector = compile_selector(text)
    verdict = table.evaluate(selector)
    for row, device in enumerate(table.devices):
        answer = selector.evaluate(device)
        context = f"{text!r} on row {row}"
        assert bool(verdict.matches >> row & 1) == (answer is True), context
        assert (row in verdict.errors) == isinstance(answer, EvaluationError), context
        if isinstance(answer, EvaluationError):
            assert verdict.errors[row].message == answer.message, context
    assert verdict.matches >> len(table.devices) == 0
    assert len(verdict.errors) == len(list(verdict.errors))


@pytest.mark.parametrize("count", [1, 40, 600])
@pytest.mark.parametrize("text", SPECIAL)
def test_each_way_of_answering_agrees_with_asking_every_device(text: str, count: int) -> None:
    """Look-ups, functions of one value, combinations and whole devices give what single evaluations give."""
    _agrees(Table(_devices(count)), text)


def test_a_table_without_devices_has_an_empty_verdict() -> None:
    """No rows match and none fail."""
    verdict = Table([]).evaluate(compile_selector("true"))
    assert verdict.matches == 0
    assert len(verdict.errors) == 0


def _generated(seed: str, count: int) -> None:
    rng = random.Random(seed)
    table = Table([])
    for number in range(count):
        if number % 50 == 0:
            wires = [cel_generator.device(rng) for _ in range(DEVICES)]
            table = Table(
                [
                    Device.of(wire["driver"], msgspec.convert({"name": "d", **wire}, WireDevice, strict=False))
                    for wire in wires
                ]
            )
        case = cel_generator.case(rng)
        if not case.derived:
            try:
                _agrees(table, case.expression)
            except CompileError:
                continue


def test_generated_selectors_answer_alike_for_tables_and_devices() -> None:
    """The devices are of few kinds, so most rows are answered by another row's evaluation."""
    _generated(f"columns-{SEED}", CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_many_generated_selectors_answer_alike_for_tables_and_devices() -> None:
    """The same for long."""
    _generated(f"columns-{SEED}-long", FUZZ_CASES)
