"""The arithmetic of estimates, and what a metered evaluation pays."""

from __future__ import annotations

from typing import Any

import pytest

from draht.api.resource.device import DeviceAttribute
from draht.cel.checker import check
from draht.cel.cost import estimate
from draht.cel.device import Device, Features, device_environment, input_size
from draht.cel.errors import EvaluationError, LimitError
from draht.cel.numbers import MAX_UINT64
from draht.cel.parser import parse
from draht.cel.reference import Checked
from draht.cel.selector import compile_selector
from draht.cel.sizes import UNKNOWN_SIZE, Cost, Size, wrapped
from draht.cel.source import Source
from draht.cel.tracking import Meter, actual_size, call_price
from draht.cel.values import NONE, Map, Optional

FEATURES = Features()
ENVIRONMENT = device_environment(FEATURES)


def _checked(text: str) -> Checked:
    return check(parse(text, ENVIRONMENT.macros), ENVIRONMENT, Source(text))


def test_sizes_and_costs_stay_at_the_largest() -> None:
    """Sums, products and prices end at 2^64-1 instead of wrapping around."""
    most = Cost.fixed(MAX_UINT64)
    assert Cost.fixed(1) + most == most
    assert Cost.fixed(2) * most == most
    assert most.scaled(2.0) == most
    assert UNKNOWN_SIZE.scaled(0.1) == Cost(0, 1844674407370955264)
    assert UNKNOWN_SIZE.times(Cost.fixed(3)) == Cost(0, MAX_UINT64)
    assert Size.fixed(0) * UNKNOWN_SIZE == Size(0, 0)


def test_prices_are_rounded_up() -> None:
    """A tenth of a unit is a unit."""
    assert Size(0, 1).scaled(0.1) == Cost(0, 1)
    assert Size(10, 11).scaled(0.1) == Cost(1, 2)
    assert Cost(1, 41).scaled(0.25) == Cost(1, 11)


def test_a_union_holds_both_ranges() -> None:
    """The least of the least, the most of the most."""
    assert Size(3, 5).union(Size(1, 4)) == Size(1, 5)
    assert Cost(3, 5).union(Cost(4, 9)) == Cost(3, 9)


def test_what_wraps_upstream_wraps() -> None:
    """A few formulas overflow upstream: a size below zero is a huge one."""
    assert wrapped(-1) == MAX_UINT64
    assert wrapped(MAX_UINT64 + 3) == 2


def test_a_loop_is_paid_as_often_as_its_range_can_be_long() -> None:
    """64 elements of an attribute, each at the price of condition and step; a loop within multiplies."""
    single = estimate(_checked("device.attributes['a'].b.all(x, true)"), input_size(FEATURES))
    assert single == Cost(5, 5 + 64 * 3)
    nested = "device.attributes['a'].b.all(x, device.attributes['a'].b.all(y, true))"
    assert estimate(_checked(nested), input_size(FEATURES)) == Cost(5, 5 + 64 * (3 + single.most))


def test_a_meter_stops_above_its_limit() -> None:
    """As much as the limit may be paid; one unit more is an error that nothing absorbs."""
    meter = Meter(10)
    meter.add(10)
    with pytest.raises(LimitError):
        meter.add(1)


SIZES: list[tuple[Any, int]] = [
    ("äöü", 3),
    (b"\xc3\xa4", 2),
    ((1, 2), 2),
    (Map.of([(1, 2)]), 1),
    (1, 1),
    (None, 1),
    (Optional("abc"), 3),
    (NONE, 1),
    (EvaluationError("x"), 1),
]


@pytest.mark.parametrize(("value", "size"), SIZES)
def test_a_value_has_a_size(value: Any, size: int) -> None:
    """Code points, bytes, elements, entries; an optional has that of its value; anything else 1."""
    assert actual_size(value) == size


PRICES: list[tuple[str, str, tuple[Any, ...], int]] = [
    ("_==_", "equals", ("a" * 25, "b" * 11), 2),
    ("_!=_", "not_equals", ("a" * 25, ""), 0),
    ("_<_", "less_string", ("a" * 25, "b" * 21), 3),
    ("_+_", "add_string", ("a" * 5, "b" * 6), 2),
    ("_+_", "add_list", ((1,) * 50, (1,) * 50), 1),
    ("@in", "in_list", (1, (1, 2, 3)), 3),
    ("@in", "in_map", (1, Map.of([(1, 2)])), 1),
    ("startsWith", "starts_with_string", ("a" * 50, "a" * 11), 2),
    ("contains", "contains_string", ("a" * 50, "a" * 11), 10),
    ("matches", "matches_string", ("a" * 50, "a" * 9), 18),
    ("matches", "matches", ("", "a"), 1),
    ("size", "size_string", ("a" * 50,), 1),
    ("bytes", "string_to_bytes", ("a" * 50,), 5),
]


@pytest.mark.parametrize(("function", "overload", "arguments", "price"), PRICES)
def test_a_call_is_paid_by_the_sizes_of_its_arguments(
    function: str, overload: str, arguments: tuple[Any, ...], price: int
) -> None:
    """Going through a text costs a tenth of a unit per code point, rounded up; most other calls cost one."""
    chosen = [known for known in ENVIRONMENT.functions[function].overloads if known.id == overload]
    assert call_price(function, chosen, arguments, None) == price


def test_a_call_that_may_mean_several_overloads_costs_a_unit() -> None:
    """Where the checker left several, the language charges by the function alone."""
    overloads = ENVIRONMENT.functions["_+_"].overloads
    assert call_price("_+_", overloads, ("a" * 1000, "b" * 1000), None) == 1
    assert call_price("sort", ENVIRONMENT.functions["sort"].overloads, ((1,) * 100,), None) == 1


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "device.driver == 'd'",
        "device.driver.startsWith('d') || device.driver.contains('x')",
        "has(device.attributes['d'].a) && device.attributes['d'].a > 1",
        "[1, 2, 3].map(x, x * 2).exists(x, x == 6)",
        "cel.bind(x, device.attributes['d'], x.?a.orValue(1) == 1)",
    ],
)
def test_an_evaluation_costs_no_more_than_estimated(text: str) -> None:
    """The most holds; the least doesn't, because constants and bindings that nothing reads are free."""
    selector = compile_selector(text, FEATURES)
    _, cost = selector.measure(Device("d", {"a": DeviceAttribute(int_=1)}, {}))
    assert cost <= selector.cost.most
