"""What an expression says about the devices of every node, for attributes that are unique to a device.

Nodes are grouped by the columns that a plan mentions. A UUID would make each node a group of its own, with a problem
and a search of its own, although all that a problem keeps of it is whether a device was accepted. So for expressions
that mention such an attribute the verdicts take the place of the column, computed for all devices in one go.

Owns the table of all devices for that (`draht.cel.columns`), made with the snapshot's index or when first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from draht.cel.columns import Table
from draht.cel.device import Device as CELDevice
from draht.cel.mentions import Key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from draht.allocator.expressions import Expression
    from draht.allocator.row import Row

__all__ = ["Judge", "verdict_of"]


def verdict_of(row: Row, expression: Expression) -> Hashable:
    """The positions that an expression accepts; a row where it fails on a device is like no other."""
    accepted = 0
    position = 0
    for pool in row.usable:
        for device in pool.devices:
            verdict = expression.test(pool.id.driver, device)
            if verdict is True:
                accepted |= 1 << position
            elif verdict is not False:
                # The error has its own words for each device.
                return row
            position += 1
    return accepted


@final
class Judge:
    """Evaluates expressions on all devices of some rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._table = Table(
            [CELDevice.of(pool.id.driver, device) for row in rows for pool in row.usable for device in pool.devices]
        )

    def prepare(self, names: Iterable[str]) -> None:
        """Read attributes of these fully qualified names now, rather than when an expression first asks."""
        for name in names:
            domain, _, id_ = name.partition("/")
            _ = self._table.column(Key("attributes", domain, id_)).values

    def verdicts(self, expression: Expression) -> list[Hashable]:
        """For each row what `verdict_of` says."""
        selector = expression.selector
        if selector is None:
            return [verdict_of(row, expression) for row in self._rows]
        verdict = self._table.evaluate(selector)
        failed = verdict.errors.rows
        sizes = {row.size for row in self._rows}
        if sizes == {8}:
            # A byte a row.
            matches: list[Hashable] = list(verdict.matches.to_bytes(len(self._rows), "little"))
        else:
            matches = _pieces(verdict.matches, self._rows)
        if failed:
            matches = [
                match if error == 0 else row
                for row, match, error in zip(self._rows, matches, _pieces(failed, self._rows), strict=True)
            ]
        return matches


def _pieces(bits: int, rows: Sequence[Row]) -> list[Hashable]:
    """A long bit set in pieces as long as the rows."""
    size = sum(row.size for row in rows)
    # Digits are cut in no time; shifting the long number for each row would copy it each time.
    digits = f"{bits:0{size}b}" if size else ""
    found: list[Hashable] = []
    end = size
    for row in rows:
        start = end - row.size
        found.append(int(digits[start:end], 2) if row.size else 0)
        end = start
    return found
