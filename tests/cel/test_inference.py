"""Which types may stand for which, and what type parameters become."""

from __future__ import annotations

import pytest

from draht.cel.inference import Substitutions, TooComplex, bounded, most_general
from draht.cel.types import (
    ANY,
    BOOL,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    nullable,
    object_type,
    opaque,
    optional_of,
    parameter,
    type_of,
)

A, B = parameter("A"), parameter("B")
QUANTITY = object_type("kubernetes.Quantity")
IP = opaque("net.IP")

ASSIGNABLE = [
    (INT, INT, True),
    (INT, UINT, False),
    (INT, DYN, True),
    (DYN, INT, True),
    (ANY, list_of(INT), True),
    (ERROR, QUANTITY, True),
    (NULL, INT, False),
    (NULL, nullable(INT), True),
    (nullable(INT), INT, True),
    (INT, nullable(INT), True),
    (nullable(INT), NULL, True),
    (NULL, list_of(INT), False),
    (NULL, QUANTITY, True),
    (TIMESTAMP, NULL, True),
    (NULL, DURATION, True),
    (NULL, optional_of(INT), True),
    (NULL, IP, True),
    (NULL, NULL, True),
    (NULL, type_of(INT), False),
    (QUANTITY, object_type("kubernetes.Semver"), False),
    (list_of(INT), list_of(INT), True),
    (list_of(INT), list_of(DYN), True),
    (list_of(INT), list_of(STRING), False),
    (list_of(INT), map_of(INT, INT), False),
    (map_of(STRING, INT), map_of(STRING, DYN), True),
    (map_of(STRING, INT), map_of(INT, INT), False),
    (optional_of(INT), optional_of(STRING), False),
    (optional_of(INT), IP, False),
    (type_of(INT), type_of(STRING), True),
    (type_of(INT), INT, False),
]


@pytest.mark.parametrize(("given", "wanted", "fits"), ASSIGNABLE, ids=str)
def test_a_type_may_stand_for_another(given: Type, wanted: Type, fits: bool) -> None:
    """Dyn and errors fit everywhere, null fits where a message, a time or a wrapper is; all else has to agree."""
    assert Substitutions().assignable((given,), (wanted,)) is fits


def test_parameters_become_what_they_meet_and_more_general_when_they_meet_more() -> None:
    """A parameter stands for the first type it meets; a second one has to fit, and dyn wins."""
    types = Substitutions()
    assert types.assignable((list_of(INT), INT), (list_of(A), A))
    assert types.applied(map_of(A, B)) == map_of(INT, B)
    assert types.applied(map_of(A, B), free_as_dyn=True) == map_of(INT, DYN)
    assert not types.assignable((STRING,), (A,))
    assert types.assignable((DYN,), (A,))
    assert types.applied(A) == DYN


def test_what_does_not_fit_leaves_no_trace() -> None:
    """Parameters that were bound before the mismatch are free again."""
    types = Substitutions()
    assert not types.assignable((INT, INT, STRING), (A, B, A))
    assert types.applied(A) == A
    assert types.applied(B) == B


def test_a_parameter_can_not_hold_itself() -> None:
    """Nothing becomes a list of itself, not even behind another parameter."""
    types = Substitutions()
    assert types.assignable((list_of(B),), (A,))
    assert not types.assignable((A,), (B,))
    assert types.applied(A) == list_of(B)


def test_the_more_general_of_two_types_is_the_one_with_dyn() -> None:
    """What is dyn or a parameter somewhere is more general than what isn't."""
    assert most_general(list_of(INT), list_of(DYN)) == list_of(DYN)
    assert most_general(map_of(A, INT), map_of(STRING, INT)) == map_of(A, INT)
    assert most_general(INT, STRING) == STRING


def test_types_that_double_are_refused() -> None:
    """A type that holds another twice at each level isn't written out."""
    kind = INT
    for _ in range(20):
        kind = map_of(kind, kind)
    with pytest.raises(TooComplex):
        bounded(kind)
    types = Substitutions()
    for level in range(20):
        low, high = parameter(f"P{level}"), parameter(f"P{level + 1}")
        assert types.assignable((low,), (map_of(high, high),))
    with pytest.raises(TooComplex):
        types.applied(parameter("P0"))


def test_deep_types_are_compared_without_the_stack() -> None:
    """Ten thousand levels are equal, hashed, assigned and written."""
    one, other = INT, INT
    for _ in range(10_000):
        one, other = list_of(one), list_of(other)
    assert one == other
    assert hash(one) == hash(other)
    assert one != list_of(one)
    assert Substitutions().assignable((one,), (other,))
    assert str(one) == "list(…)"


def test_types_are_written_as_upstream_and_for_people() -> None:
    """Full names of messages upstream, short ones for people; a wrapper says so."""
    kind = map_of(STRING, optional_of(list_of(TIMESTAMP)))
    assert str(kind) == "map(string, optional_type(list(google.protobuf.Timestamp)))"
    assert kind.for_people() == "map(string, optional_type(list(timestamp)))"
    assert str(nullable(BOOL)) == "wrapper(bool)"
    assert str(A) == "<A>"
    assert nullable(BOOL) == BOOL
