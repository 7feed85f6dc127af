"""The oracle's frame: whatever a library does to the Go program, the test that asked learns its input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import oracle_client
from oracle_client import Oracle, OracleFailure, OracleTimeout


@pytest.fixture
def fresh(oracle: Oracle) -> Iterator[Oracle]:
    """An oracle of its own, so that the shared one isn't killed by these tests."""
    own = Oracle(oracle_client.build())
    yield own
    own.close()


@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 10**30, "", "<a> & ü \x00 \U0001f600", [1, {"a": []}], {"b": 1.5}]
)
def test_values_come_back_as_they_were_sent(oracle: Oracle, value: object) -> None:
    """A value of JSON goes through the oracle unchanged."""
    assert oracle.call("ping", echo=value) == value


def test_bytes_travel_as_base64(oracle: Oracle) -> None:
    """Bytes that are no text reach the oracle in the form that Go decodes into a []byte."""
    assert oracle.call("ping", echo=b"\xff\x00") == "/wA="


def test_many_calls_are_answered_in_order(oracle: Oracle) -> None:
    """More requests than fit into the pipes are sent and answered without a deadlock, in order."""
    values = [f"{number}-{'x' * 1000}" for number in range(2000)]
    assert oracle.call_many("ping", [{"echo": value} for value in values]) == values


def test_a_large_value_is_one_line(oracle: Oracle) -> None:
    """A request of many megabytes is a question like any other."""
    large = "y" * (12 << 20)
    assert oracle.call("ping", deadline=60, echo=large) == large


def test_no_calls_have_no_answers(oracle: Oracle) -> None:
    """An empty list of requests returns at once."""
    assert oracle.call_many("ping", []) == []


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        ("error", "asked to fail"),
        ("panic", "panic: asked to panic"),
        ("die", "died with status 3 saying 'asked to die'"),
        ("overflow", "stack overflow"),
        ("memory", "out of memory"),
    ],
)
def test_a_failure_shows_its_input_and_the_next_call_works(fresh: Oracle, behave: str, said: str) -> None:
    """A library that fails in any way is an error with the input in it, and doesn't stop the run."""
    with pytest.raises(OracleFailure) as failure:
        fresh.call_many("ping", [{"echo": 1}, {"behave": behave, "echo": "the culprit"}, {"echo": 3}], deadline=60)
    assert said in str(failure.value)
    assert "the culprit" in str(failure.value)
    assert not isinstance(failure.value, OracleTimeout)
    assert fresh.call("ping", echo="again") == "again"


def test_a_hang_shows_its_input_and_the_next_call_works(fresh: Oracle) -> None:
    """A library that hangs is stopped at the deadline; the request that hangs is named, not one behind it."""
    behind = [{"echo": "z" * 100}] * 5000
    requests = [{"echo": "before"}, {"behave": "hang", "echo": "the culprit"}, *behind]
    with pytest.raises(OracleTimeout) as failure:
        fresh.call_many("ping", requests, deadline=1)
    assert "the culprit" in str(failure.value)
    assert fresh.call("ping", echo="again") == "again"


def test_an_unknown_verb_is_a_failure(fresh: Oracle) -> None:
    """A verb that isn't registered is a mistake of the test and says so."""
    with pytest.raises(OracleFailure, match=r"verb is not known: quantity\.guess"):
        fresh.call("quantity.guess")


def test_a_killed_oracle_is_started_again(fresh: Oracle) -> None:
    """An oracle that ended between two calls is replaced without an error."""
    assert fresh.call("ping", echo=1) == 1
    process = fresh._process
    assert process is not None
    process.kill()
    process.wait()
    assert fresh.call("ping", echo=2) == 2
