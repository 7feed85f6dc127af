"""A choice: one alternative of a request over the positions of a row, as bit masks.

Made by `draht.allocator.assembly` and read by every kind of search. It holds no usage and no names of devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from draht.allocator.errors import Failure
    from draht.allocator.request import Alternative
    from draht.api.quantity import Quantity

__all__ = ["Choice", "positions"]


def positions(mask: int) -> list[int]:
    """The bit numbers of a mask, ascending."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """An alternative on a row.

    Attributes:
        alternative: What it was made from.
        count: Devices needed; for mode All as many as were collected.
        candidates: Positions that may be chosen, leaving aside what is in use, amounts and constraints. Selectors,
            static capacity, taints, node operations and gates have been tested.
        errors: Positions at which the attempt ends with `failures` when the search reaches them and they aren't in use.
            Disjoint from `candidates`. For mode All these were met before the search (`Problem.failure`), so it is 0.
        failures: By position, for `errors`.
        collected: Mode All: the positions to take, all of them, in order; those that aren't candidates make the request
            unsatisfiable when they are reached. 0 for exact counts.
        selected: Positions that pass selectors and node fields, whatever else is against them; for explanations.
        sources: For each constraint of the claim that is about it, in order: (index in the claim's tables, source).
        late: Positions whose derived attribute for a constraint can't be computed, by index into `sources`. The attempt
            ends there if everything before that constraint is satisfied.
        late_failures: By (index into `sources`, position).
        amounts: For each position what a choice subtracts of capacity fields; () where nothing does.
        amount_guards: For each position the guard bits of its capacity fields; () as above.
        consumed: By position, what a multi-allocation device gives, by capacity name; only those that can.
    """

    alternative: Alternative
    count: int
    candidates: int
    errors: int
    failures: Mapping[int, Failure]
    collected: int
    selected: int
    sources: tuple[tuple[int, int], ...]
    late: tuple[int, ...]
    late_failures: Mapping[tuple[int, int], Failure]
    amounts: tuple[int, ...]
    amount_guards: tuple[int, ...]
    consumed: Mapping[int, Mapping[str, Quantity]]
