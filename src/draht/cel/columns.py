"""One selector over many devices.

A cluster has tens of thousands of devices and few kinds of them. Owns a table of devices in which each thing that
selectors mention is a column (`draht.cel.column`), made when it is first mentioned, and the verdicts that were given
(`draht.cel.plan` finds them). What an error says is found out when somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from draht.api.errors import DrahtError
from draht.cel.column import Column, Rows
from draht.cel.device import Device, attribute_value
from draht.cel.errors import EvaluationError
from draht.cel.mentions import Key
from draht.cel.plan import Answers, plan_of
from draht.cel.selector import Selector

__all__ = ["Errors", "Table", "Verdict"]

_KEPT: Final = 256
"""Selectors whose verdict is kept."""


@final
class Errors(Mapping[int, EvaluationError]):
    """Rows on which a selector fails, and how; found out when asked."""

    def __init__(self, selector: Selector, devices: Sequence[Device], rows: Rows) -> None:
        self._selector = selector
        self._devices = devices
        self.rows = rows

    def __getitem__(self, row: int) -> EvaluationError:
        if row < 0 or not self.rows >> row & 1:
            raise KeyError(row)
        answer = self._selector.evaluate(self._devices[row])
        assert isinstance(answer, EvaluationError)
        return answer

    def __iter__(self) -> Iterator[int]:
        rows = self.rows
        while rows:
            lowest = rows & -rows
            yield lowest.bit_length() - 1
            rows ^= lowest

    def __len__(self) -> int:
        return self.rows.bit_count()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a selector says about the rows of a table.

    Args:
        matches: The rows that it matches, bit i for row i.
        errors: The rows on which it fails.
    """

    matches: Rows
    errors: Errors


@final
class Table:
    """Devices, one a row, that many selectors are asked about. Filled as it is asked; not for several threads at once.

    Args:
        devices: The rows.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = devices
        self.all: Rows = (1 << len(devices)) - 1
        """Every row."""
        self.defective: Rows = sum(1 << row for row, device in enumerate(devices) if not _is_readable(device))
        """Rows on which every selector fails."""
        self._attributes = [device.attributes for device in devices]
        self._capacity = [device.capacity for device in devices]
        self._drivers = {device.driver for device in devices}
        self._columns: dict[Any, Column] = {}
        self._verdicts: dict[Selector, Verdict] = {}

    def evaluate(self, selector: Selector) -> Verdict:
        """What the selector says about every row."""
        verdict = self._verdicts.get(selector)
        if verdict is None:
            answers = plan_of(selector).answers(self) if self.devices else Answers(0, 0)
            failed = answers.failed | self.defective
            verdict = Verdict(answers.true & ~failed, Errors(selector, self.devices, failed))
            if len(self._verdicts) >= _KEPT:
                del self._verdicts[next(iter(self._verdicts))]
            self._verdicts[selector] = verdict
        return verdict

    def column(self, what: Any) -> Column:
        """The column of a `Key`, of ``driver`` or of ``allow_multiple``, or of several together (a tuple of these)."""
        column = self._columns.get(what)
        if column is None:
            if isinstance(what, tuple):
                column = Column(list(zip(*(self.column(part).numbers for part in what), strict=True)))
            else:
                column = Column(self._values(what))
            self._columns[what] = column
        return column

    def _values(self, what: Any) -> Sequence[Any]:
        devices = self.devices
        if what == "driver":
            return [device.driver for device in devices]
        if what == "allow_multiple":
            return [device.allow_multiple for device in devices]
        if what == "everything":
            return [
                (device.driver, device.allow_multiple, *device.attributes.items(), *_amounts(device))
                for device in devices
            ]
        assert isinstance(what, Key)
        if what.whole:
            if what.map == "attributes":
                return [(device.driver, *device.attributes.items()) for device in devices]
            return [(device.driver, *_amounts(device)) for device in devices]
        name = f"{what.domain}/{what.id}"
        if "/" in what.domain:
            return [None] * len(devices)
        found = self._named(what, name)
        return found if what.map == "attributes" else [None if one is None else one.value for one in found]

    def _named(self, key: Key, name: str) -> list[Any]:
        maps: list[Mapping[str, Any]] = self._attributes if key.map == "attributes" else self._capacity
        found = [map_.get(name) for map_ in maps]
        domain, id_ = key.domain, key.id
        if domain not in self._drivers or all(found):
            return found
        # What has no domain has the driver's; what has one counts first.
        if len(self._drivers) == 1 and not any(found):
            return [map_.get(id_) for map_ in maps]
        return [
            one if one is not None else (map_.get(id_) if device.driver == domain else None)
            for one, map_, device in zip(found, maps, self.devices, strict=True)
        ]


def _amounts(device: Device) -> Iterator[tuple[str, Any]]:
    return ((name, amount.value) for name, amount in device.capacity.items())


def _is_readable(device: Device) -> bool:
    for attribute in device.attributes.values():
        if attribute.versions or (attribute.string is None and attribute.int_ is None and attribute.bool_ is None):
            try:
                attribute_value(attribute)
            except DrahtError:
                return False
    # Quantities have been read already by whoever decoded the device strictly; one that wasn't is found here.
    return True
