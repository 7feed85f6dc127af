"""Values at run time: equality, order, keys and the choice of overloads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from draht.api.quantity import Quantity
from draht.api.semver import Version
from draht.cel.declarations import Overload
from draht.cel.dispatch import bound, call_overloads
from draht.cel.errors import AbortError, EvaluationError
from draht.cel.numbers import UInt
from draht.cel.types import BOOL, DYN, INT, STRING, Type, list_of, map_of
from draht.cel.values import (
    MISSING,
    NONE,
    Duration,
    Map,
    Optional,
    Timestamp,
    compare,
    contains,
    equal,
    key_of,
    not_equal,
    type_name,
)

BIG = 2**53 + 1

EQUAL: list[tuple[Any, Any]] = [
    (1, UInt(1)),
    (1, 1.0),
    (UInt(1), 1.0),
    (BIG, float(BIG - 1)),  # upstream compares as doubles
    (2**63 - 1, 2.0**63),
    (0.0, -0.0),
    ("a", "a"),
    (b"a", b"a"),
    (None, None),
    ([1, [2]], (UInt(1), (2.0,))),
    (Map.of([(1, "a")]), Map.of([(UInt(1), "a")])),
    (Timestamp(5, 0, 3600), Timestamp(5)),
    (Duration(5), Duration(5)),
    (Optional(1), Optional(1.0)),
    (NONE, NONE),
    (list_of(INT), list_of(STRING)),  # by name
    (Quantity("80Gi"), Quantity("81920Mi")),
    (Version("1.2.3+a"), Version("1.2.3+b")),
]
UNEQUAL: list[tuple[Any, Any]] = [
    (1, True),
    (0, False),
    (1.0, True),
    (1, "1"),
    (1, 2),
    (UInt(2**64 - 1), -1),
    (math.nan, math.nan),
    (None, 0),
    (None, False),
    (None, []),
    ([1], [1, 2]),
    ([1], Map.of([(0, 1)])),
    (Map.of([("a", 1)]), Map.of([("b", 1)])),
    (Map.of([(1, 1)]), Map.of([(1.0, 1)])),
    (NONE, Optional(None)),
    (INT, STRING),
    ("1.2.3", Version("1.2.3")),
]


@pytest.mark.parametrize(("a", "b"), [*EQUAL, *((b, a) for a, b in EQUAL)])
def test_values_are_equal(a: Any, b: Any) -> None:
    """In either order."""
    assert equal(a, b)
    assert not not_equal(a, b)


@pytest.mark.parametrize(("a", "b"), UNEQUAL)
def test_values_are_unequal(a: Any, b: Any) -> None:
    """A bool is no number, and NaN isn't even itself."""
    assert not equal(a, b)
    assert not_equal(a, b)


@pytest.mark.parametrize(("a", "b"), [(Version("1.2.3"), "1.2.3"), (Quantity("1"), 1), (Optional(Quantity("1")), 1)])
def test_a_type_of_kubernetes_compared_with_another_is_an_error(a: Any, b: Any) -> None:
    """Not so the other way round, nor for inequality; inside a list it counts as equal, in a search as not."""
    if type(a) is not Optional:
        with pytest.raises(EvaluationError):
            equal(a, b)
        assert equal([a], [b])
    assert not equal(b, a)
    assert not_equal(a, b)
    assert not contains(a, [b])


def test_order_goes_across_numbers() -> None:
    """Numbers of all three types have one order; NaN has none."""
    ordered = [-math.inf, -(2**63), -1.5, 0, UInt(1), 1.5, UInt(2), 3, 2**63 - 1025, UInt(2**64 - 1), math.inf]
    for (i, a), (j, b) in itertools.product(enumerate(ordered), repeat=2):
        assert compare(a, b) == (i > j) - (i < j), (a, b)
    for other in (1, UInt(1), 1.0):
        with pytest.raises(EvaluationError):
            compare(math.nan, other)
        with pytest.raises(EvaluationError):
            compare(other, math.nan)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("Z", "a"),
        ("a", "ab"),
        (b"a", b"b"),
        (False, True),
        (Duration(-1), Duration(0)),
        (Timestamp(1, 5), Timestamp(2)),
    ],
)
def test_order_within_a_type(less: Any, more: Any) -> None:
    """Texts by code points, bytes by bytes, false before true."""
    assert (compare(less, more), compare(more, less), compare(less, less)) == (-1, 1, 0)


@pytest.mark.parametrize(("a", "b"), [(1, "a"), ([], []), (None, None), (Map({}), Map({})), (True, 1), (INT, INT)])
def test_other_types_have_no_order(a: Any, b: Any) -> None:
    """Comparing them is an error."""
    with pytest.raises(EvaluationError):
        compare(a, b)


def test_a_number_finds_an_equal_key() -> None:
    """Keys of different types are different, but int, uint and double find each other where there is no exact one."""
    numbers = Map.of([(1, "int"), (UInt(1), "uint"), (UInt(2), "two"), (True, "bool"), (1.5, "double"), ("1", "text")])
    assert len(numbers) == 6
    looked_up = [numbers.find(key) for key in (1, UInt(1), 1.0, 2, 2.0, True, 1.5, "1", False, 3, -1, 1e30, math.nan)]
    assert looked_up == ["int", "uint", "int", "two", "two", "bool", "double", "text", *[MISSING] * 5]
    assert [type_name(key) for key in numbers.keys()] == ["int", "uint", "uint", "bool", "double", "string"]  # noqa: SIM118 - not a dict


def test_what_has_no_hash_cannot_be_a_key() -> None:
    """Upstream panics, so the error can't be hidden."""
    for value in (b"a", Version("1.0.0")):
        with pytest.raises(AbortError):
            key_of(value)


def test_lists_are_keys_by_identity() -> None:
    """As upstream's pointers are."""
    one = [1]
    assert Map.of([(one, "x")]).find(one) == "x"
    assert Map.of([(one, "x")]).find([1]) is MISSING


def _overload(id_: str, *parameters: Type) -> Overload:
    return Overload(id_, parameters, DYN, lambda *arguments: (id_, *arguments))


OVERLOADS = (
    _overload("of_int", INT),
    _overload("of_ints", list_of(INT)),
    _overload("of_strings", list_of(STRING)),
    _overload("of_map", map_of(STRING, INT)),
    _overload("of_two", INT, BOOL),
)


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ((1,), "of_int"),
        (([1],), "of_ints"),
        (([],), "of_ints"),
        ((["a", 1],), "of_strings"),
        ((Map.of([("a", 1)]),), "of_map"),
        ((1, True), "of_two"),
    ],
)
def test_the_first_overload_that_fits_is_called(arguments: tuple[Any, ...], chosen: str) -> None:
    """Of lists and maps, the first element decides."""
    assert call_overloads("f", OVERLOADS, arguments)[0] == chosen
    fitting = [overload for overload in OVERLOADS if len(overload.parameters) == len(arguments)]
    assert bound("f", fitting)(*arguments)[0] == chosen


@pytest.mark.parametrize("arguments", [(True,), (UInt(1),), (["a"], 1), (Map.of([(1, 1)]),), (1, 1)])
def test_arguments_that_fit_nothing_are_an_error(arguments: tuple[Any, ...]) -> None:
    """The error names the function and the types."""
    with pytest.raises(EvaluationError, match=r"no such overload: f\("):
        call_overloads("f", OVERLOADS, arguments)
