"""What a person is told to do about a mistake that many make."""

from __future__ import annotations

import textwrap

import pytest

from draht.api.resource import Device as WireDevice
from draht.api.resource import DeviceAttribute, DeviceCapacity
from draht.cel.device import Device, Features
from draht.cel.errors import CompileError, EvaluationError
from draht.cel.selector import compile_selector

DEVICE = Device.of(
    "gpu.example.com",
    WireDevice(
        name="gpu-0",
        attributes={"model": DeviceAttribute(string="A100"), "driver": DeviceAttribute(version="1.2.3")},
        capacity={"memory": DeviceCapacity(value="40Gi")},
    ),
)

COMPILE_HINTS = [
    ('device.attributes.model == "A100"', 'the first key is the domain: device.attributes["<domain>"].model'),
    ('device.attributes["model"] == "A100"', 'the first key is the domain: device.attributes["<domain>"].model'),
    ('device.attributes["gpu.example.com/model"] == "A100"', 'write device.attributes["gpu.example.com"].model'),
    ('device.capacity["d"].memory == "40Gi"', 'compare with a.compareTo(quantity("40Gi")) == 0'),
    ('device.capacity["d"].memory >= 40', 'compare with a.compareTo(quantity("40")) >= 0'),
    ('"40Gi" < device.capacity["d"].memory', 'compare with a.compareTo(quantity("40Gi")) < 0'),
    ('device.capacity["d"].memory > quantity("40Gi")', "compare quantities with a.compareTo(b) > 0"),
    ('device.capacity["d"].memory.compareTo("40Gi") > 0', 'write compareTo(quantity("…"))'),
    ('semver("1.2.3") > "1.2.0"', 'compare with a.compareTo(semver("1.2.0")) > 0'),
    ('semver("1.2.3") > semver("1.2.0")', "compare versions with a.compareTo(b) > 0"),
    ("device.memory > 3", 'write device.attributes["<domain>"].memory or device.capacity["<domain>"].memory'),
    ("device.atributes == 1", "did you mean device.attributes?"),
    ("device.allowMultipleAllocation", "did you mean device.allowMultipleAllocations?"),
    ('device.driver.model == "x"', 'an attribute is read once: device.attributes["<domain>"].name'),
    ('driver == "x"', "write device.driver"),
    ('devices.driver == "x"', "did you mean device?"),
    ("device.driver == A100", 'if it is text, quote it: "A100"'),
    ("node.name == 'x'", "the only variable is device"),
    ('device.driver.startswith("gpu")', "did you mean startsWith()?"),
    ("device.driver.len() > 3", "did you mean size()?"),
    ("len(device.driver) > 3", "did you mean size()?"),
    ('Quantity("1Gi").isInteger()', "did you mean quantity()?"),
    ('device.driver.regex("gpu")', "did you mean matches()?"),
    ("device.driver.has(x)", "has() isn't called on a value: write has(value.name)"),
    ('device.driver = "x"', "compare with =="),
    ('device.driver == "x" & true', 'write && for "and"'),
    ('device.driver == "x" | true', 'write || for "or"'),
    ('device.driver == "x" and true', "write && instead of and"),
    ('device.driver == "x" or true', "write || instead of or"),
    ("not true", "write ! instead of not"),
    ("device.driver == “x”", 'write straight quotes: "'),
    ('device.driver in "abc"', "part of a text is found with text.contains(part)"),
    ('device.driver + 1 == "x1"', "convert the other operand with string()"),
    ('device.driver == "x";', "one expression is one condition; join several with &&"),
]


@pytest.mark.parametrize(("text", "hint"), COMPILE_HINTS)
def test_a_common_mistake_has_its_hint(text: str, hint: str) -> None:
    """The first issue of the expression carries the hint."""
    with pytest.raises(CompileError) as caught:
        compile_selector(text, Features(stored=False))
    assert caught.value.issues[0].hint == hint


PICTURES = {
    'device.attributes["gpu.example.com"].model == "A100" &&\n  device.memory >= 40': """
        2:9: kubernetes.DRADevice has no field 'memory'
          |   device.memory >= 40
          |         ^
          hint: write device.attributes["<domain>"].memory or device.capacity["<domain>"].memory
        """,
    'device.capacity["gpu.example.com"].memory >= quantity("40Gi") and driver == "x"': """
        1:63: an operator was expected, not and
          | device.capacity["gpu.example.com"].memory >= quantity("40Gi") and driver == "x"
          |                                                               ^
          hint: write && instead of and
        """,
    'attributes["x"].model == "A100" && device.driver.startswith("gpu")': """
        1:1: 'attributes' is not declared
          | attributes["x"].model == "A100" && device.driver.startswith("gpu")
          | ^
          hint: write device.attributes
        1:60: function 'startswith' is not declared
          | attributes["x"].model == "A100" && device.driver.startswith("gpu")
          |                                                            ^
          hint: did you mean startsWith()?
        """,
}


@pytest.mark.parametrize("text", PICTURES)
def test_every_mistake_is_shown_with_its_hint(text: str) -> None:
    """The picture has each issue with its line, a caret and the hint."""
    with pytest.raises(CompileError) as caught:
        compile_selector(text, Features(stored=False))
    assert caught.value.picture() == textwrap.dedent(PICTURES[text]).strip()


EVALUATION_HINTS = [
    ('device.attributes["gpu.example.com"].mode == "x"', ".?mode.orValue("),
    ('device.capacity["gpu.example.com"].mem.isInteger()', 'has(device.capacity["gpu.example.com"].mem)'),
    ('device.attributes["gpu.exmaple.com"].model == "x"', 'did you mean device.attributes["gpu.example.com"].model?'),
    ('device.attributes["gpu.example.com"].driver >= "1.2.0"', '.compareTo(semver("1.2.3"))'),
    ('device.attributes["gpu.example.com"].driver == "1.2.3"', '.compareTo(semver("1.2.3"))'),
    ('device.attributes["gpu.example.com"].model > 3', "convert one with string()"),
]


@pytest.mark.parametrize(("text", "hint"), EVALUATION_HINTS)
def test_an_error_at_run_time_has_its_hint(text: str, hint: str) -> None:
    """What a device lacks, or has with another type, is explained where the expression meets it."""
    error = compile_selector(text).evaluate(DEVICE)
    assert isinstance(error, EvaluationError)
    assert hint in (error.hint or "")


def test_long_names_are_not_compared() -> None:
    """Looking for a near name takes no time that grows with the square of a hostile name."""
    with pytest.raises(CompileError) as caught:
        compile_selector("a" * 10_000 + " && " + "device." + "b" * 5_000 + "." + "c" * 5_000 + "()")
    assert caught.value.issues
