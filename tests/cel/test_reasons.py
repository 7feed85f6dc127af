"""Why a selector doesn't hold for a device: the condition that decides, what it read, and what to write instead."""

from __future__ import annotations

import pytest

from draht.api.resource import Device as WireDevice
from draht.api.resource import DeviceAttribute, DeviceCapacity
from draht.cel import Device, EvaluationError, compile_selector
from draht.cel.reasons import Reason, why_not

DEVICE = Device.of(
    "gpu.example.com",
    WireDevice(
        name="gpu-0",
        attributes={
            "model": DeviceAttribute(string="A100"),
            "slots": DeviceAttribute(int_=7),
            "driver": DeviceAttribute(version="570.1.0"),
            "resource.example.com/rack": DeviceAttribute(string="r1"),
        },
        capacity={"memory": DeviceCapacity(value="40Gi")},
    ),
)
GPU = 'device.attributes["gpu.example.com"]'


def _why(text: str) -> Reason:
    reason = why_not(compile_selector(text), DEVICE)
    assert reason is not None
    return reason


def test_a_selector_that_holds_has_no_reason() -> None:
    """There is nothing to explain about a match."""
    assert why_not(compile_selector(f'{GPU}.model == "A100"'), DEVICE) is None


@pytest.mark.parametrize(
    ("text", "condition", "readings"),
    [
        (f'{GPU}.slots == 7 && {GPU}.model == "H100"', f'{GPU}.model == "H100"', ['model is "A100"']),
        (f'({GPU}.slots == 8 && true) && {GPU}.model == "H100"', f"{GPU}.slots == 8", ["slots is 7"]),
        (f"{GPU}.slots == 7  &&\n  {GPU}.slots  ==  8", f"{GPU}.slots == 8", ["slots is 7"]),
        (
            f"{GPU}.slots == 8 || {GPU}.slots == 9",
            f"{GPU}.slots == 8 || {GPU}.slots == 9",
            ["slots is 7"],
        ),
        (
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0',
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0',
            ['memory is quantity("40Gi")'],
        ),
        (
            f'cel.bind(g, {GPU}, g.slots == 7 && g.driver.isGreaterThan(semver("575.0.0")))',
            'g.driver.isGreaterThan(semver("575.0.0"))',
            ['driver is semver("570.1.0")'],
        ),
        (
            'device.attributes["resource.example.com"].rack == "r2"',
            'device.attributes["resource.example.com"].rack == "r2"',
            ['resource.example.com/rack is "r1"'],
        ),
        ('device.driver == "other"', 'device.driver == "other"', ['driver is "gpu.example.com"']),
        (f"has({GPU}.modell)", f"has({GPU}.modell)", ["modell is missing, but there is model"]),
        # False wins over an error, whatever comes first.
        (f'{GPU}.nothing == 1 && {GPU}.model == "H100"', f'{GPU}.model == "H100"', ['model is "A100"']),
    ],
)
def test_the_condition_that_decides_is_named(text: str, condition: str, readings: list[str]) -> None:
    """Of a chain, the first part that is false is told in its own words, with what it read."""
    reason = _why(text)
    assert (reason.condition, [str(reading) for reading in reason.readings]) == (condition, readings)
    assert reason.error is None


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        (f'{GPU}.slots == 7 && {GPU}.modell == "A100"', "no-such-key", "did you mean model?"),
        (f"{GPU}.rack == 'r1'", "no-such-key", "did you mean resource.example.com/rack?"),
        (f"{GPU}.zzz == 1", "no-such-key", 'has(device.attributes["gpu.example.com"].zzz)'),
        (f"{GPU}.model", "not-bool", None),
        ("lists.range(900000).distinct().size() > 0", "cost-limit", None),
    ],
)
def test_an_error_says_what_to_write_instead(text: str, kind: str, hint: str | None) -> None:
    """Where nothing is false, the first part that fails is the reason, and the hint knows the device."""
    error = _why(text).error
    assert isinstance(error, EvaluationError)
    assert error.kind == kind
    if hint is not None:
        assert hint in str(error.hint)


def test_a_device_that_can_not_be_read_says_so() -> None:
    """A defect of the device is the reason, not a condition."""
    device = Device.of("d", WireDevice(name="x", attributes={"a": DeviceAttribute(version="1.x")}))
    reason = why_not(compile_selector("true"), device)
    assert reason is not None
    assert reason.error is device.defect
