"""The border to code of vendors: what a driver raises or answers becomes one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from draht import cdi
from draht.api.errors import DrahtError
from draht.api.resource import Device, DeviceAttribute, DeviceTaint
from draht.driver.claims import driver_calls
from draht.driver.errors import DriverFailedError
from draht.driver.framework import ClaimDevices, Driver, Health, Offer, Offered, Pool, Prepared

CLAIM = ClaimDevices(uid="u", namespace="default", name="c", devices=())


class Steered(Driver):
    """A driver whose every method is the one given."""

    name = "steered.example.com"

    def __init__(self, does: Callable[[], Any]) -> None:
        self.does = does

    def discover(self) -> Any:
        """See `Driver`."""
        return self.does()

    def prepare(self, claim: ClaimDevices) -> Any:
        """See `Driver`."""
        return self.does()

    def unprepare(self, claim: ClaimDevices) -> Any:
        """See `Driver`."""
        return self.does()

    def health(self) -> Any:
        """See `Driver`."""
        return self.does()


CALLS: dict[str, Callable[[Driver], object]] = {
    "discover": driver_calls.discover,
    "prepare": lambda driver: driver_calls.prepare(driver, CLAIM),
    "unprepare": lambda driver: driver_calls.unprepare(driver, CLAIM),
    "health": driver_calls.health,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("raises", [lambda: [][0], lambda: sys.exit(3), lambda: sys.exit()])
def test_a_driver_that_fails_is_named_with_what_it_did(call: str, raises: Callable[[], Any]) -> None:
    """Also one that calls sys.exit, as libraries of command lines do."""
    with pytest.raises(DriverFailedError, match=r"driver steered\.example\.com failed to .* \((IndexError|SystemExit)"):
        CALLS[call](Steered(raises))


@pytest.mark.parametrize("call", CALLS)
def test_what_a_driver_explains_itself_stays(call: str) -> None:
    """With its own hint."""
    error = DrahtError("the bus is gone", hint="look at the cable")

    def explain() -> None:
        raise error

    with pytest.raises(DrahtError) as caught:
        CALLS[call](Steered(explain))
    assert caught.value is error


WRONG: list[tuple[str, object, str]] = [
    ("discover", None, "answered NoneType, not Offer"),
    ("discover", [1, 2], "answered list, not Offer"),
    ("discover", Offer.of([Offered(device=Device(name=None))]), "wrong type: expected `str`, got `null`"),  # type: ignore[arg-type]  # on purpose
    ("discover", Offer.of(["gpu-0"]), "wrong type: expected `object`, got `str`"),  # type: ignore[list-item]  # on purpose
    ("discover", Offer.of([Offered(device=Device(name="a", attributes={"b": "c"}))]), "got `str`"),  # type: ignore[dict-item]  # on purpose
    ("discover", Offer.of([Offered(device=Device(name="a"), paths="/dev/a")]), "got `str`"),  # type: ignore[arg-type]  # on purpose
    ("discover", Offer.of([Offered(device=Device(name="\ud800"))]), "surrogates not allowed"),
    ("discover", Offer(pools=(Pool(name=object()),)), "wrong type"),  # type: ignore[arg-type]  # on purpose
    ("health", None, "answered NoneType, not a list of Health"),
    ("health", {"gpu-0": "ill"}, "answered dict, not a list of Health"),
    ("health", ["gpu-0"], "wrong type: expected `object`, got `str`"),
    ("health", [Health(device="gpu-0", state="Sick")], "invalid enum value 'Sick'"),  # type: ignore[arg-type]  # on purpose
    ("health", [Health(device=["gpu-0"])], "wrong type: expected `str`, got `array`"),  # type: ignore[arg-type]  # on purpose
    ("prepare", None, "answered NoneType, not Prepared"),
    ("prepare", Prepared(edits={"x": {"env": []}}), "answered dict, not ContainerEdits"),  # type: ignore[dict-item]  # on purpose
    ("prepare", Prepared(edits={}, common=None), "answered NoneType, not ContainerEdits"),  # type: ignore[arg-type]  # on purpose
    ("prepare", Prepared(edits={"x": cdi.ContainerEdits()}), "speaks of x, which the claim doesn't have"),
]


@pytest.mark.parametrize(("call", "answer", "said"), WRONG)
def test_an_answer_of_a_wrong_type_is_named_where_it_is_wrong(call: str, answer: object, said: str) -> None:
    """Before it reaches the agent's loops, where it would end the other drivers, too."""
    with pytest.raises(DriverFailedError) as caught:
        CALLS[call](Steered(lambda: answer))
    assert said in str(caught.value)


def test_good_answers_are_equal_to_what_was_answered() -> None:
    """Lists do for tuples."""
    device = Device(name="a", attributes={"b": DeviceAttribute(string="c"), "d": DeviceAttribute(bool_=True)})
    offered = Offered(device=device, units=frozenset({"u"}), paths=("/dev/a",))
    offer = Offer(pools=(Pool(groups=((offered,),), name="p", all_nodes=True),))
    assert driver_calls.discover(Steered(lambda: offer)) == offer
    listed = Offer(pools=[Pool(groups=[[offered]], name="p", all_nodes=True)])  # type: ignore[arg-type]  # on purpose
    assert driver_calls.discover(Steered(lambda: listed)) == offer
    ill = Health(device="a", state="Unhealthy", taint=DeviceTaint(key="a/b", effect="NoSchedule"))
    assert driver_calls.health(Steered(lambda: [ill])) == (ill,)
