"""Pruning rules with one part missing or wrong, each a mistake that is easy to make.

The differential tests must notice every one of them; otherwise they would not notice the same mistake in the rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from draht.allocator.prune import counting, memo, symmetry
from draht.allocator.prune.blocks import BlockStates
from draht.allocator.prune.model import Choice, Model, ModelMemory
from draht.allocator.prune.rules import Rules
from draht.allocator.prune.state import State
from draht.allocator.prune.symmetry import Symmetry

__all__ = ["BROKEN"]


def _tell_apart(change: dict[str, Any]) -> Any:
    """A partition into classes by devices of a changed model."""

    def partition(model: Model) -> Symmetry:
        blind = replace(model, memory=ModelMemory(), **{name: value(model) for name, value in change.items()})
        return symmetry.symmetry(model, lambda _, position: symmetry.signature(blind, position))

    return partition


def _without_errors(model: Model) -> Any:
    return tuple(tuple(replace(choice, errors=0) for choice in slot) for slot in model.slots)


def _without_candidates(model: Model) -> Any:
    return tuple(tuple(replace(choice, candidates=0) for choice in slot) for slot in model.slots)


class _NoAmounts(BlockStates):
    def amounts(self, block: Any, remaining: int) -> tuple[Any, ...]:
        return ()


class _NoValues(BlockStates):
    def values(self, block: Any, allowed: tuple[int, ...]) -> tuple[Any, ...]:
        return ()


class _NoShares(BlockStates):
    def shares(self, block: Any, shared: int) -> tuple[Any, ...]:
        return ()


class _NoTaken(BlockStates):
    def taken(self, block: Any, took: int) -> tuple[Any, ...]:
        return ()


class _NoCommon(BlockStates):
    def common(self, block: Any, claim: int, running: tuple[int | None, ...]) -> tuple[Any, ...]:
        return ()


class _NoGroups(BlockStates):
    def placed(self, groups: tuple[int | None, ...]) -> tuple[Any, ...]:
        return ()


class _NoAdmin(BlockStates):
    def statuses(self, block: Any, free: int, mine: int, used: int) -> tuple[Any, ...]:
        return super().statuses(block, free, 0, 0)


class _NoStatus(BlockStates):
    def statuses(self, block: Any, free: int, mine: int, used: int) -> tuple[Any, ...]:
        return ()


def _no_taken(
    parts: Symmetry, states: BlockStates, place: Any, claim: int, state: State, looked_at: int
) -> tuple[object, ...]:
    return memo.canonical_key(parts, states, (place[0], place[1], 0), claim, state, looked_at)


def _no_alternative(
    parts: Symmetry, states: BlockStates, place: Any, claim: int, state: State, looked_at: int
) -> tuple[object, ...]:
    return memo.canonical_key(parts, states, (place[0], 0, place[2]), claim, state, looked_at)


def _same_kind_is_enough(
    parts: Symmetry, states: BlockStates, position: int, claim: int, state: State, looked_at: int
) -> tuple[int, int]:
    return parts.blocks[parts.block_of[position]].kind, parts.index_of[position]


def _any_status(parts: Symmetry, choice: Choice, state: State, position: int) -> int:
    return parts.class_of[position]


def _shared_once(model: Model, slot: int, current: Choice | None, need: int, ahead: int, state: State) -> bool:
    return counting.infeasible(replace(model, multi=0), slot, current, need, ahead, state)


def _admin_needs_free(model: Model, slot: int, current: Choice | None, need: int, ahead: int, state: State) -> bool:
    slots = tuple(tuple(replace(choice, admin=False) for choice in one) for one in model.slots)
    current = None if current is None else replace(current, admin=False)
    return counting.infeasible(replace(model, slots=slots), slot, current, need, ahead, state)


def _first_alternative(model: Model, slot: int, current: Choice | None, need: int, ahead: int, state: State) -> bool:
    slots = tuple(one[:1] for one in model.slots)
    return counting.infeasible(replace(model, slots=slots), slot, current, need, ahead, state)


def _never(model: Model, slot: int, current: Choice | None, state: State) -> bool:
    return False


ONE = Rules(infeasible=None, blocks=None, key=None)
ONE_B = Rules(infeasible=None, key=None)
TWO = Rules(classes=None, blocks=None, infeasible=None)
THREE = Rules(classes=None, blocks=None, key=None)
"""One rule at a time, so that no other rule covers the mistake by cutting the search before it matters."""


BROKEN: dict[str, Rules] = {
    "rule 1: classes ignore values of constraints": replace(
        ONE, partition=_tell_apart({"rules": lambda model: tuple(() for _ in model.rules)})
    ),
    "rule 1: classes ignore needs": replace(ONE, partition=_tell_apart({"needs": lambda _: ()})),
    "rule 1: classes ignore errors": replace(ONE, partition=_tell_apart({"slots": _without_errors})),
    "rule 1: classes ignore candidates": replace(ONE, partition=_tell_apart({"slots": _without_candidates})),
    "rule 1: classes ignore sharing": replace(ONE, partition=_tell_apart({"multi": lambda _: 0})),
    "rule 1: classes ignore compatibility groups": replace(ONE, partition=_tell_apart({"groups": lambda _: ()})),
    "rule 1: any status of use": replace(ONE, classes=_any_status),
    "rule 1b: same kind is enough": replace(ONE_B, blocks=_same_kind_is_enough),
    "rule 1b: amounts are not compared": replace(ONE_B, states=_NoAmounts),
    "rule 1b: numbers of free devices are not compared": replace(ONE_B, states=_NoStatus),
    "rule 2: devices taken are not in the key": replace(TWO, key=_no_taken),
    "rule 2: the alternative is not in the key": replace(TWO, key=_no_alternative),
    "rule 2: free devices are not in the key": replace(TWO, states=_NoStatus),
    "rule 2: amounts are not in the key": replace(TWO, states=_NoAmounts),
    "rule 2: allowed values are not in the key": replace(TWO, states=_NoValues),
    "rule 2: shares are not in the key": replace(TWO, states=_NoShares),
    "rule 2: shares that the request has are not in the key": replace(TWO, states=_NoTaken),
    "rule 2: common list elements are not in the key": replace(TWO, states=_NoCommon),
    "rule 2: compatibility groups are not in the key": replace(TWO, states=_NoGroups),
    "rule 2: admin marks are not in the key": replace(TWO, states=_NoAdmin),
    "rule 3: shared devices count once": replace(THREE, infeasible=_shared_once),
    "rule 3: admin access needs free devices": replace(THREE, infeasible=_admin_needs_free),
    "rule 3: only the first alternative counts": replace(THREE, infeasible=_first_alternative),
    "rule 3: no error gate": replace(THREE, gate=_never),
}
"""Name of the mistake -> rules with it."""
