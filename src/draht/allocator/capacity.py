"""Consumable capacity: how much of a device a request takes, by the device's request policies.

Follows upstream's ``consumable_capacity.go`` (v0.37.2), its integer arithmetic included: steps are computed on 64-bit
values rounded up, or on thousandths where `Features.fractional_capacity_range` is on and they hold the range exactly.

It doesn't know what is already in use.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from draht.allocator.errors import FatalKind
from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from draht.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity

__all__ = ["CapacityFault", "Shortage", "consumption"]

_MAX_INT64: Final = 2**63 - 1


class CapacityFault(Exception):  # noqa: N818 - a value on its way to a Failure, never shown
    """A request or a device has an amount that upstream refuses to calculate with; ends the whole attempt."""

    def __init__(self, kind: FatalKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Shortage(Enum):
    """Why a device can't serve a request, whatever else is in use."""

    NO_CAPACITY = "the device doesn't have the capacity"
    POLICY = "the amount violates the device's request policy"
    TOO_SMALL = "the device is too small"


def consumption(
    requests: Mapping[str, Quantity] | None, capacity: Mapping[str, DeviceCapacity], *, fractional: bool
) -> dict[str, Quantity] | Shortage:
    """What a request takes of every capacity of a device that nobody uses yet, or why it can't.

    Raises:
        CapacityFault: An amount is negative, or can't be rounded in 64 bits.
    """
    if requests and not all(name in capacity for name in requests):
        return Shortage.NO_CAPACITY
    taken: dict[str, Quantity] = {}
    for name, entry in capacity.items():
        amount = _taken(None if requests is None else requests.get(name), entry, fractional)
        if amount.sign() < 0:
            raise CapacityFault(FatalKind.CAPACITY_NEGATIVE, f"capacity {name} would be consumed by {amount}")
        taken[name] = amount
    shortage: Shortage | None = None
    for name, entry in capacity.items():
        if entry.request_policy is not None and _violates(taken[name], entry.request_policy, fractional):
            return Shortage.POLICY
        if taken[name] > Quantity.from_wire(entry.value):
            shortage = Shortage.TOO_SMALL
    return shortage or taken


def _taken(requested: Quantity | None, entry: DeviceCapacity, fractional: bool) -> Quantity:
    policy = entry.request_policy
    if requested is None:
        if policy is not None and policy.default is not None:
            return Quantity.from_wire(policy.default)
        return Quantity.from_wire(entry.value)
    if policy is None:
        return requested
    if policy.valid_range is not None:
        return _in_range(requested, policy.valid_range, fractional)
    for text in policy.valid_values:
        value = Quantity.from_wire(text)
        if requested <= value:
            return value
    return requested


def _in_range(requested: Quantity, valid: CapacityRequestPolicyRange, fractional: bool) -> Quantity:
    least = Quantity.from_wire(valid.min or 0)
    if requested < least:
        return least
    if valid.step is None:
        return requested
    step = Quantity.from_wire(valid.step)
    milli = _exact_milli(requested)
    if _uses_milli(valid, fractional):
        if milli is None:
            raise _unrepresentable(f"{requested} has no whole number of thousandths")
        start, unit = least.milli_value(), step.milli_value()
        steps = _steps(milli - start, unit)
        if steps > (_MAX_INT64 - start) // unit:
            raise _unrepresentable(f"{requested} rounded up to the next step has more than 64 bits")
        value = start + unit * steps
        if value % 1000 == 0:
            return Quantity.of(value // 1000, step.format)
        return Quantity.of(value, step.format, scale=-3)
    if requested > Quantity.of(_MAX_INT64):
        raise _unrepresentable(f"{requested} has more than 64 bits")
    start, unit = least.value(), step.value()
    if unit == 0:
        raise _unrepresentable("the step of the device's range is zero")
    steps = _steps(requested.value() - start, unit)
    if start >= 0 and steps > (_MAX_INT64 - start) // unit:
        raise _unrepresentable(f"{requested} rounded up to the next step has more than 64 bits")
    return Quantity.of(_wrapped(start + unit * steps), step.format)


def _steps(distance: int, unit: int) -> int:
    # Go divides towards zero.
    whole = abs(distance) // abs(unit)
    if (distance < 0) != (unit < 0):
        whole = -whole
    return whole + (1 if distance - whole * unit else 0)


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _unrepresentable(message: str) -> CapacityFault:
    return CapacityFault(FatalKind.CAPACITY_UNREPRESENTABLE, message)


def _violates(amount: Quantity, policy: CapacityRequestPolicy, fractional: bool) -> bool:
    if policy.default is not None and amount.is_identical(Quantity.from_wire(policy.default)):
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and all(amount != Quantity.from_wire(text) for text in policy.valid_values)
    if valid.max is not None and amount > Quantity.from_wire(valid.max):
        return True
    if valid.step is None:
        return False
    least, step = Quantity.from_wire(valid.min or 0), Quantity.from_wire(valid.step)
    if _uses_milli(valid, fractional):
        milli = _exact_milli(amount)
        return milli is None or (milli - least.milli_value()) % step.milli_value() != 0
    unit = step.value()
    return unit == 0 or (amount.value() - least.value()) % unit != 0


def _uses_milli(valid: CapacityRequestPolicyRange, fractional: bool) -> bool:
    if not fractional:
        return False
    for text in (valid.min, valid.max, valid.step):
        if text is not None and _exact_milli(Quantity.from_wire(text)) is None:
            return False
    return valid.step is None or Quantity.from_wire(valid.step).milli_value() >= 1


def _exact_milli(amount: Quantity) -> int | None:
    milli = amount.milli_value()
    return milli if Quantity.of(milli, amount.format, scale=-3) == amount else None
