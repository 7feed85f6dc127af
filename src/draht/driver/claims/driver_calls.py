"""Calling a driver: whatever it raises or answers, nobody meets more than one sentence about a mistake in the driver.

Owns the border to code of vendors. What comes back is checked for its types before anybody works with it, since a wrong
one would fail much later and far away, in the agent's own loops. Whether the values can be published is
`draht.driver.pool_check`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from draht import cdi
from draht.api.errors import DrahtError
from draht.driver.errors import DriverFailedError
from draht.driver.framework import ClaimDevices, Driver, Health, Offer, Prepared

__all__ = ["discover", "health", "prepare", "unprepare"]

_HINT: Final = "this is a mistake in the driver"
_T = TypeVar("_T")


def discover(driver: Driver) -> Offer:
    """What it offers now.

    Raises:
        DrahtError: What the driver explains itself.
        DriverFailedError: It failed otherwise, or answered something else.
    """
    offer = _call(driver, "discover its devices", driver.discover)
    if not isinstance(offer, Offer):
        raise _wrong(driver, offer, "Offer")
    return _typed(driver, offer, Offer)


def health(driver: Driver) -> tuple[Health, ...]:
    """How its devices are.

    Raises:
        DrahtError: What the driver explains itself.
        DriverFailedError: It failed otherwise, or answered something else.
    """
    found = _call(driver, "tell the health of its devices", driver.health)
    if not isinstance(found, list | tuple):
        raise _wrong(driver, found, "a list of Health")
    return _typed(driver, tuple(found), tuple[Health, ...])


def prepare(driver: Driver, claim: ClaimDevices) -> Prepared:
    """Let it prepare the devices.

    Raises:
        DrahtError: What the driver explains itself.
        DriverFailedError: It failed otherwise, or answered something else.
    """
    prepared = _call(driver, "prepare the claim", lambda: driver.prepare(claim))
    if not isinstance(prepared, Prepared):
        raise _wrong(driver, prepared, "Prepared")
    for edits in (*prepared.edits.values(), prepared.common):
        if not isinstance(edits, cdi.ContainerEdits):
            raise _wrong(driver, edits, "ContainerEdits")
    known = {device.key for device in claim.devices}
    for field in (prepared.edits, prepared.data, prepared.network):
        if not field.keys() <= known:
            raise DriverFailedError(
                f"driver {driver.name} speaks of {', '.join(sorted(field.keys() - known))}, which the claim doesn't "
                "have",
                hint=_HINT,
            )
    try:
        msgspec.json.encode((prepared.data, prepared.network))
    except (TypeError, ValueError) as error:
        raise DriverFailedError(
            f"driver {driver.name} has data about a device that isn't JSON: {error}", hint=_HINT
        ) from None
    return prepared


def unprepare(driver: Driver, claim: ClaimDevices) -> None:
    """Let it undo its work.

    Raises:
        DrahtError: What the driver explains itself.
        DriverFailedError: It failed otherwise.
    """
    _call(driver, "unprepare the claim", lambda: driver.unprepare(claim))


def _call(driver: Driver, what: str, call: Callable[[], _T]) -> _T:
    try:
        return call()
    except DrahtError:
        raise
    except (Exception, SystemExit) as error:
        # A library that exits must not take the agent, and so all other drivers, with it.
        reason = " ".join(str(error).split()) or "no message"
        raise DriverFailedError(
            f"driver {driver.name} failed to {what} ({type(error).__name__}: {reason[:500]})", hint=_HINT
        ) from error


def _typed(driver: Driver, answer: object, kind: type[_T]) -> _T:
    """The answer with every field of the type that it is declared with; lists become tuples."""
    try:
        return msgspec.json.decode(msgspec.json.encode(answer), type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        reason = str(error)
        raise DriverFailedError(
            f"driver {driver.name} answered something of a wrong type: {reason[:1].lower()}{reason[1:500]}", hint=_HINT
        ) from None


def _wrong(driver: Driver, answer: Any, wanted: str) -> DriverFailedError:
    return DriverFailedError(f"driver {driver.name} answered {type(answer).__name__}, not {wanted}", hint=_HINT)
