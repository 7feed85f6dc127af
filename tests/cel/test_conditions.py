from __future__ import annotations

import pytest

from draht.api.resource import Device as WireDevice
from draht.api.resource import DeviceAttribute, DeviceCapacity
from draht.cel import CompileError, Device
from draht.cel.conditions import conditions

DEVICE = Device.of(
    "gpu.example.com",
    WireDevice(
        name="a",
        attributes={"model": DeviceAttribute(string="H100"), "driver": DeviceAttribute(version="550.1.0")},
        capacity={"memory": DeviceCapacity(value="80Gi")},
    ),
)
MEMORY = 'device.capacity["gpu.example.com"].memory'
MODEL = 'device.attributes["gpu.example.com"].model'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{MODEL} == "H100"', [(f'{MODEL} == "H100"', "_==_", MODEL, "H100")]),
        (f'{MEMORY}.compareTo(quantity("100Gi")) >= 0', [(None, "_>=_", MEMORY, "80Gi")]),
        (f'quantity("1Gi").isLessThan({MEMORY})', [(None, "_>_", MEMORY, "80Gi")]),
        (f'{MODEL}.startsWith("H")', [(None, None, "", "None")]),
        (f'{MODEL} == "a" || {MODEL} == "b"', [(None, None, "", "None")]),
        (
            f'device.driver == "x" &&\n  ({MODEL} == "H100" &&\n {MEMORY}.isGreaterThan(quantity("1Gi")))',
            [
                ('device.driver == "x"', "_==_", "device.driver", "gpu.example.com"),
                (f'{MODEL} == "H100"', "_==_", MODEL, "H100"),
                (f'{MEMORY}.isGreaterThan(quantity("1Gi"))', "_>_", MEMORY, "80Gi"),
            ],
        ),
        ('device.attributes["gpu.example.com"].missing == 1', [(None, "_==_", None, "None")]),
    ],
)
def test_a_selector_is_taken_apart(text: str, expected: list[tuple[str | None, str | None, str | None, str]]) -> None:
    """Each condition as written, how it compares, what of the device it looks at, and what the device has there."""
    found = conditions(text)
    assert len(found) == len(expected)
    for each, (words, relation, subject, value) in zip(found, expected, strict=True):
        assert each.text == (words or text)
        assert each.relation == relation
        assert subject is None or each.subject == subject
        assert str(each.value(DEVICE)) == value


def test_the_conditions_together_are_the_selector() -> None:
    """A device matches exactly if every condition holds."""
    text = f'{MODEL} == "H100" && {MEMORY}.compareTo(quantity("100Gi")) >= 0'
    assert [each.holds(DEVICE) for each in conditions(text)] == [True, False]


def test_what_is_no_selector_is_refused() -> None:
    """As compiling it would be."""
    with pytest.raises(CompileError):
        conditions("device.nothing && true")
