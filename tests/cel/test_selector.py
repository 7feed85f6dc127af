"""Selectors and derived attributes about one device: what they answer, what they read, what they keep."""

from __future__ import annotations

import inspect
import sys
import threading
from typing import Any

import msgspec
import pytest

from draht.api.resource.device import Device as WireDevice
from draht.api.resource.device import DeviceAttribute
from draht.api.semver import Version
from draht.cel import (
    CompileError,
    Device,
    EvaluationError,
    Features,
    Key,
    LimitError,
    compile_derived,
    compile_selector,
)

DOMAIN = "gpu.example.com"
OWN = f'device.attributes["{DOMAIN}"]'


def device(attributes: dict[str, Any] | None = None, **rest: Any) -> Device:
    """A device of the driver of these tests."""
    wire = {"name": "d", "attributes": attributes or {}, **rest}
    return Device.of(DOMAIN, msgspec.convert(wire, WireDevice))


GPU = device(
    {
        "model": {"string": "H100"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "570.86.15"},
        "tags": {"strings": ["a", "b"]},
        "pci.example.com/root": {"string": "0000:17"},
    },
    capacity={"memory": {"value": "80Gi"}},
    allowMultipleAllocations=True,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f'device.driver == "{DOMAIN}"', True),
        (f'{OWN}.model == "H100"', True),
        (f"{OWN}.healthy", True),
        (f"{OWN}.index > 2.5", True),
        (f"{OWN}.index == 3u", True),
        (f'{OWN}.driverVersion.isGreaterThan(semver("550.0.0"))', True),
        (f'device.capacity["{DOMAIN}"].memory.compareTo(quantity("80Gi")) == 0', True),
        ('device.attributes["pci.example.com"].root == "0000:17"', True),
        ("device.allowMultipleAllocations", True),
        # A domain that isn't there is found empty, but isn't there.
        ('size(device.attributes["nowhere"]) == 0', True),
        ("has(device.attributes.nowhere)", True),
        ('"nowhere" in device.attributes', False),
        ('device.attributes.exists(domain, domain == "nowhere")', False),
        ("device.attributes.size() == 2", True),
        ('device.attributes["nowhere"].?x.hasValue()', False),
        (f"has({OWN}.missing)", False),
        (f'{OWN}.?missing.orValue("x") == "x"', True),
        # Lists.
        (f'"b" in {OWN}.tags', True),
        (f'{OWN}.tags.includes("c")', False),
        (f'{OWN}.model.includes("H100")', True),
        (f'{OWN}.tags.exists_one(tag, tag == "b")', True),
        (f"cel.bind(own, {OWN}, own.index + 1 == 4 && own.healthy)", True),
        # Errors are hidden from either side.
        (f"{OWN}.missing == 1 || true", True),
        (f"false && {OWN}.missing == 1", False),
        (f"{OWN}.missing == 1 && false", False),
        (f"[1, 2].all(x, x == 1 && {OWN}.missing == 1)", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("cel.bind(unused, 1 / 0, true)", True),
        # Equality of a version with something else fails, inequality doesn't.
        (f'{OWN}.driverVersion != "570.86.15"', True),
        (f'"570.86.15" == {OWN}.driverVersion', False),
    ],
)
def test_a_selector_answers(text: str, answer: bool) -> None:
    """The value of the expression for one device."""
    assert compile_selector(text).evaluate(GPU) is answer


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"{OWN}.missing == 1", "no-such-key", "no such key: missing"),
        ('device.attributes["nowhere"].x == 1', "no-such-key", "no such key: x"),
        (f'device.capacity["{DOMAIN}"].cores.isInteger()', "no-such-key", "no such key: cores"),
        (f"{OWN}.index", "not-bool", "CEL result of type int could not be converted to bool"),
        (f"{OWN}.index / 0 == 1", "division", "division by zero"),
        (f"{OWN}.index + 9223372036854775807 > 0", "overflow", "integer overflow"),
        (f"{OWN}.tags[2] == 'c'", "index", "index out of bounds: 2"),
        (f"{OWN}.model < 3", "no-such-overload", "no such overload"),
        (f"{OWN}.model[dyn(url('https://example.com'))] == 1", "other", "invalid key"),
        (f'{OWN}.driverVersion == "570.86.15"', "no-such-overload", "no such overload"),
        (f"{OWN}.healthy ? {OWN}.missing : true", "no-such-key", "no such key: missing"),
        (f"{OWN}.model.map(x, x) == []", "no-such-overload", ""),
    ],
)
def test_what_cannot_be_answered_is_an_error_and_not_false(text: str, kind: str, message: str) -> None:
    """The error is the answer, with its kind; ``matches`` raises it."""
    selector = compile_selector(text)
    error = selector.evaluate(GPU)
    assert isinstance(error, EvaluationError)
    assert error.kind == kind
    assert error.message.startswith(message)
    with pytest.raises(EvaluationError):
        selector.matches(GPU)


@pytest.mark.parametrize("attribute", [{}, {"version": "none"}, {"versions": ["1.0.0", "x"]}])
def test_an_attribute_that_cannot_be_read_fails_every_selector(attribute: dict[str, Any]) -> None:
    """Upstream reads all attributes before it evaluates anything."""
    error = compile_selector("true").evaluate(device({"odd": attribute}))
    assert isinstance(error, EvaluationError)
    assert error.message.startswith("attribute odd: ")


def test_of_two_attributes_of_one_name_the_qualified_one_counts() -> None:
    """A bare name is the driver's; upstream lets chance decide between the two."""
    for order in ("bare", f"{DOMAIN}/bare"), (f"{DOMAIN}/bare", "bare"):
        twins = device({name: {"string": name} for name in order})
        assert compile_selector(f'{OWN}.bare == "{DOMAIN}/bare"').evaluate(twins) is True


@pytest.mark.parametrize(
    ("text", "features", "accepted"),
    [
        ("device.allowMultipleAllocations", Features(consumable_capacity=False, stored=False), False),
        ("device.allowMultipleAllocations", Features(consumable_capacity=False, stored=True), True),
        (f"{OWN}.tags.includes('a')", Features(list_attributes=False, stored=False), False),
        (f"{OWN}.tags.includes('a')", Features(list_attributes=False, stored=True), True),
        (f"{OWN}.tags.exists(x, true)", Features(list_attributes=False, stored=False), False),
        (f"{OWN}.tags.exists(x, true)", Features(list_attributes=True, stored=False), True),
        (f"{OWN}.model", Features(list_attributes=False, stored=False), True),
        ("device.driver", Features(), False),
        ("1", Features(), False),
        ("dyn(true)", Features(), True),
        ('int("x") == 1 || true', Features(), False),
    ],
)
def test_gates_and_types_decide_what_is_accepted(text: str, features: Features, accepted: bool) -> None:
    """A new object is judged by the gates, a stored one by all that any version knows."""
    if accepted:
        compile_selector(text, features)
    else:
        with pytest.raises(CompileError):
            compile_selector(text, features)


@pytest.mark.parametrize(
    ("text", "value", "attribute"),
    [
        (f"{OWN}.model", "H100", DeviceAttribute(string="H100")),
        (f"{OWN}.index + 1", 4, DeviceAttribute(int_=4)),
        ("true", True, DeviceAttribute(bool_=True)),
        (f"{OWN}.driverVersion", Version("570.86.15"), DeviceAttribute(version="570.86.15")),
        (f"{OWN}.tags", ("a", "b"), DeviceAttribute(strings=("a", "b"))),
        ("[1, 2]", (1, 2), DeviceAttribute(ints=(1, 2))),
        ("[true]", (True,), DeviceAttribute(bools=(True,))),
        ('[semver("1.2.3")]', (Version("1.2.3"),), DeviceAttribute(versions=("1.2.3",))),
        ("[1].filter(x, false)", (), DeviceAttribute()),
    ],
)
def test_a_derived_attribute_has_a_value(text: str, value: object, attribute: DeviceAttribute) -> None:
    """Scalars and lists of them become attributes."""
    derived = compile_derived(text)
    assert derived.evaluate(GPU) == value
    assert derived.attribute(GPU) == attribute


@pytest.mark.parametrize("text", ["dyn(1.5)", "dyn(null)", "dyn([1] + dyn(['a']))", "dyn([[1]])", f"{OWN}.missing"])
def test_a_derived_attribute_of_another_type_is_an_error(text: str) -> None:
    """What can't be an attribute is known when it is evaluated."""
    assert isinstance(compile_derived(text).attribute(GPU), EvaluationError)


def _key(id_: str, *, whole: bool = False, of: str = "attributes", domain: str = DOMAIN) -> Key:
    return Key(of, domain, id_, whole=whole)


@pytest.mark.parametrize(
    ("text", "keys", "driver", "everything"),
    [
        ("true", set(), False, False),
        (f'device.driver == "x" && {OWN}.model == "y"', {_key("model")}, True, False),
        (f'{OWN}["model"] == "y" || has({OWN}.index)', {_key("model"), _key("index")}, False, False),
        (f'{OWN}.?model.orValue("") == "x"', {_key("model")}, False, False),
        (f'"model" in {OWN}', {_key("model")}, False, False),
        (f'"{DOMAIN}" in device.attributes', {_key("", whole=True)}, False, False),
        (f"cel.bind(own, {OWN}, own.model == own.index)", {_key("model"), _key("index")}, False, False),
        (f"cel.bind(model, {OWN}.model, model == 'x')", {_key("model")}, False, False),
        (f"{OWN}[device.driver] == 1", {_key("", whole=True)}, True, False),
        ("device.attributes[device.driver].x == 1", {_key("", whole=True, domain="")}, True, False),
        ("device.capacity.size() == 1", {_key("", whole=True, of="capacity", domain="")}, False, False),
        (f"{OWN}.all(id, id != 'x')", {_key("", whole=True)}, False, False),
        ("dyn(device).size() == 4", set(), False, True),
        (f"[1].all(device, device == 1) && {OWN}.healthy", {_key("healthy")}, False, False),
    ],
)
def test_a_selector_says_what_it_reads(text: str, keys: set[Key], driver: bool, everything: bool) -> None:
    """Keys where they are known, whole maps where they aren't."""
    mentions = compile_selector(text).mentions
    assert mentions.keys == keys
    assert mentions.driver == driver
    assert mentions.everything == everything


def test_an_expensive_evaluation_ends_at_the_limit() -> None:
    """Where the estimate doesn't promise a cost below the limit, the evaluation is metered."""
    ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    deep = "true"
    for level in range(6):
        deep = f"{ten}.all(x{level}, {deep})"
    selector = compile_selector(deep)
    assert selector.cost.most > 1_000_000
    assert isinstance(selector.evaluate(GPU), LimitError)
    hidden = compile_selector(f"true || {deep}")
    assert hidden.evaluate(GPU) is True
    assert isinstance(compile_selector(f"({deep}) || true").evaluate(GPU), LimitError)


def test_lists_that_double_are_bounded() -> None:
    """Concatenation costs one unit, so nothing else would stop them from filling the memory."""
    text = "x40.size() > 0"
    for level in range(40, 0, -1):
        text = f"cel.bind(x{level}, x{level - 1} + x{level - 1}, {text})"
    assert isinstance(compile_selector(f"cel.bind(x0, [1], {text})").evaluate(GPU), LimitError)


@pytest.mark.parametrize(
    "text",
    [
        "!" * 249 + "true",
        "(" * 100 + "true" + ")" * 100,
        "true" + " == true" * 200,
        f"{OWN}.index" + " + 1" * 240 + " > 0",
        "[" * 200 + "]" * 200 + " == " + "[" * 200 + "]" * 200,
        "!(" * 120 + f"{OWN}.healthy" + ")" * 120,
        "[1].all(x," * 60 + "true" + ")" * 60,
    ],
)
def test_deep_expressions_are_evaluated_without_pythons_stack(text: str) -> None:
    """The limit of recursion is raised for as long as it is needed, and then what it was."""
    selector = compile_selector(text)
    limit = sys.getrecursionlimit()
    assert isinstance(selector.evaluate(GPU), bool)
    assert isinstance(selector.measure(GPU)[0], bool)
    assert sys.getrecursionlimit() == limit


def test_a_selector_is_evaluated_by_a_caller_deep_in_its_own_stack() -> None:
    """Even where almost nothing of Python's stack is left."""
    selector = compile_selector(f"!!!!!!!!!!{OWN}.healthy")

    def down(levels: int) -> object:
        return down(levels - 1) if levels else selector.evaluate(GPU)

    answers = []
    for spare in range(5, 60, 5):
        used = len(inspect.stack(0))
        answers.append(down(sys.getrecursionlimit() - used - spare - 40))
    assert set(answers) == {True}


def test_one_selector_serves_several_threads() -> None:
    """An evaluation keeps its variables to itself."""
    selector = compile_selector("[1, 2, 3, 4].map(x, x * device.attributes['gpu.example.com'].index).exists(y, y == 8)")
    devices = [device({"index": {"int": number}}) for number in range(4)]
    wrong: list[object] = []

    def ask(number: int) -> None:
        answers = {selector.evaluate(devices[number]) for _ in range(500)}
        if answers != {number in {2, 4}}:
            wrong.append(answers)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_compiled_selectors_are_kept() -> None:
    """The same text with the same gates is compiled once."""
    assert compile_selector("true") is compile_selector("true")
    assert compile_selector("true") is not compile_selector("true", Features(stored=False))
