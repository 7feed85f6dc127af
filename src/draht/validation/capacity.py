"""Capacities that several claims may share: the policy of what may be requested.

Owns ``validateRequestPolicy`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2, with its two ways to
compute: in whole units, and with DRAFractionalCapacityRange in thousandths where an amount has a fraction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from draht.api.quantity import Quantity, QuantityError
from draht.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from draht.api.wire import QuantityValue
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.limits import VALID_VALUES
from draht.validation.lists import check_list, duplicates

__all__ = ["amount", "check_capacity", "check_counter_amount"]

_MAX_INT64: Final = (1 << 63) - 1


def amount(report: Report, value: QuantityValue, path: str) -> Quantity | None:
    """The value of an amount; one that can't be read is refused, which the server does before it judges."""
    try:
        return Quantity.from_wire(value)
    except QuantityError as error:
        report.invalid(path, value, f"must be an amount like 80Gi: {error.message}", hint=error.hint)
        return None


def check_counter_amount(report: Report, value: QuantityValue, path: str) -> None:
    """Judge a counter's value: any amount will do."""
    amount(report, value, path)


def check_capacity(report: Report, capacity: DeviceCapacity, path: str, gates: Gates, *, shared: bool) -> None:
    """Judge a capacity of a device.

    Args:
        report: Takes what is wrong.
        capacity: The capacity.
        path: Its place.
        gates: The features that are on.
        shared: Whether the device allows several allocations.
    """
    total = amount(report, capacity.value, f"{path}.value")
    policy = capacity.request_policy
    if policy is None or total is None:
        return
    path = f"{path}.requestPolicy"
    if not shared:
        report.forbidden(path, "needs allowMultipleAllocations: true")
    elif policy.valid_values and policy.valid_range is not None:
        report.forbidden(path, "must have only one of validValues and validRange")
    else:
        _check_policy(report, policy, total, path, gates)


def _check_policy(report: Report, policy: CapacityRequestPolicy, total: Quantity, path: str, gates: Gates) -> None:
    if not policy.valid_values and policy.valid_range is None:
        return
    if policy.default is None:
        name = "validValues" if policy.valid_values else "validRange"
        report.required(f"{path}.default", f"{name} needs a default")
        return
    default = amount(report, policy.default, f"{path}.default")
    if default is None:
        return
    if policy.valid_values:
        _check_values(report, policy.valid_values, default, total, f"{path}.validValues", gates)
    elif policy.valid_range is not None:
        _Range(report, default, total, f"{path}.validRange").check(policy.valid_range, gates)


def _check_values(
    report: Report, written: tuple[QuantityValue, ...], default: Quantity, total: Quantity, path: str, gates: Gates
) -> None:
    values = [amount(report, each, f"{path}[{index}]") for index, each in enumerate(written)]
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        return
    for index in range(1, len(known)):
        if known[index - 1].compare(known[index]) > 0:
            report.invalid(f"{path}[{index}]", str(known[index]), "must not be less than the value before it")
    found = [False]

    def check(value: Quantity, place: str) -> None:
        if value.compare(total) > 0:
            report.invalid(place, str(value), f"must not be more than the capacity, {total}")
        if value.compare(default) == 0:
            found[0] = True

    if not check_list(report, known, path, check, limit=VALID_VALUES, covered=False):
        found[0] = False
    else:
        key = _as_decimal if gates.fractional_capacity_range else Quantity.value
        for index, _ in duplicates(known, key):
            report.duplicate(f"{path}[{index}]", str(known[index]))
    if not found[0]:
        report.invalid(path, str(default), "is the default and must be one of them")


def _as_decimal(value: Quantity) -> tuple[int, int]:
    """What tells amounts apart as upstream's decimals do when written: ``1.0`` isn't ``1``, but ``1k`` is ``1000``."""
    mantissa, exponent = value.mantissa, value.exponent
    if exponent < 0 or mantissa == 0:
        return mantissa, min(exponent, 0)
    zeros = len(str(mantissa)) - len(str(mantissa).rstrip("0"))
    return mantissa // 10**zeros, exponent + zeros


class _Range:
    """Judges one range."""

    def __init__(self, report: Report, default: Quantity, total: Quantity, path: str) -> None:
        self._report = report
        self._default = default
        self._total = total
        self._path = path

    def _refuse(self, name: str, value: Quantity, message: str) -> None:
        self._report.invalid(f"{self._path}.{name}", str(value), message)

    def check(self, valid: CapacityRequestPolicyRange, gates: Gates) -> None:
        if valid.min is None:
            self._report.required(f"{self._path}.min")
            return
        least = amount(self._report, valid.min, f"{self._path}.min")
        most = amount(self._report, valid.max, f"{self._path}.max") if valid.max is not None else None
        step = amount(self._report, valid.step, f"{self._path}.step") if valid.step is not None else None
        if least is None or (most is None) != (valid.max is None) or (step is None) != (valid.step is None):
            return
        self._check_bounds(least, most)
        amounts: Mapping[str, Quantity | None] = {"default": self._default, "min": least, "max": most, "step": step}
        present = {name: value for name, value in amounts.items() if value is not None}
        fractional = gates.fractional_capacity_range and not all(map(_is_whole, present.values()))
        if fractional:
            unsafe = [name for name, value in present.items() if not _has_thousandths(value)]
            for name in unsafe:
                self._refuse(name, present[name], "must be a number of thousandths that has 64 bits")
            if unsafe:
                return
        if step is not None:
            self._check_step(present, step, fractional=fractional)

    def _check_bounds(self, least: Quantity, most: Quantity | None) -> None:
        if least.compare(self._total) > 0:
            self._refuse("min", least, f"must not be more than the capacity, {self._total}")
        if self._default.compare(least) < 0:
            self._refuse("default", self._default, f"must not be less than min, {least}")
        if most is not None:
            if least.compare(most) > 0:
                self._refuse("max", most, f"must not be less than min, {least}")
            if most.compare(self._total) > 0:
                self._refuse("max", most, f"must not be more than the capacity, {self._total}")
            if self._default.compare(most) > 0:
                self._refuse("default", self._default, f"must not be more than max, {most}")

    def _check_step(self, present: Mapping[str, Quantity], step: Quantity, *, fractional: bool) -> None:
        if step.sign() <= 0:
            self._refuse("step", step, "must be greater than zero")
            return
        least = present["min"]
        try:
            too_far = (least + step).compare(self._total) > 0
        except QuantityError:
            # Only amounts that differ by thousands of digits can't be added, and then one is beyond the capacity.
            too_far = True
        if too_far:
            self._refuse("step", step, f"must not lead from min beyond the capacity, {self._total}")
        if not fractional:
            unsafe = [name for name, value in present.items() if value.sign() < 0 or not _is_small(value)]
            for name in unsafe:
                negative = present[name].sign() < 0
                message = "must not be negative" if negative else f"must not be more than {_MAX_INT64}"
                self._refuse(name, present[name], message)
            if unsafe:
                return
        unit = Quantity.milli_value if fractional else Quantity.value
        for name in ("default", "max"):
            value = present.get(name)
            if value is not None and _remainder(unit(value) - unit(least), unit(step)):
                self._refuse("step", value, f"must be min, {least}, and a number of steps, {step}")


def _remainder(value: int, step: int) -> int:
    return value % step


def _is_small(value: Quantity) -> bool:
    return value.compare(Quantity.of(_MAX_INT64)) <= 0


def _is_whole(value: Quantity) -> bool:
    """Whether an amount has no fraction."""
    return value.exponent >= 0 or _divides(value.mantissa, -value.exponent)


def _divides(mantissa: int, places: int) -> bool:
    if mantissa == 0:
        return True
    # An amount has few digits; a number of places beyond them leaves a fraction.
    remainder: int = mantissa % 10 ** min(places, len(str(abs(mantissa))) + 1)
    return remainder == 0


def _has_thousandths(value: Quantity) -> bool:
    """Whether an amount is a whole number of thousandths that fits into 64 bits."""
    exponent = value.exponent + 3
    if exponent < 0:
        return _divides(value.mantissa, -exponent) and _fits(value.mantissa, exponent)
    return _fits(value.mantissa, exponent)


def _fits(mantissa: int, exponent: int) -> bool:
    if mantissa == 0:
        return True
    if len(str(abs(mantissa))) + exponent > 20:
        return False
    power: int = 10 ** abs(exponent)
    scaled = mantissa * power if exponent >= 0 else mantissa // power
    return -_MAX_INT64 - 1 <= scaled <= _MAX_INT64
