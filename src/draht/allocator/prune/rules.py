"""The pruning rules as exchangeable parts.

Owns: `Rules`, what a pruned search asks before it goes on. The default is every rule with its safety condition.

Why it exists: a rule is only as good as its proof. Tests switch rules off one by one and exchange parts for broken
ones, and see the differential tests notice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from draht.allocator.prune.blocks import BlockStates, alike_blocks
from draht.allocator.prune.counting import error_gate, infeasible
from draht.allocator.prune.memo import canonical_key
from draht.allocator.prune.model import Choice, Model
from draht.allocator.prune.state import State
from draht.allocator.prune.symmetry import Symmetry, alike, symmetry

__all__ = ["DEFAULT", "Rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """Which rules a pruned search uses; None switches one off.

    `partition` makes blocks and classes, `states` names the states of blocks; rules 1, 1b and 2 need both. `classes` is
    rule 1, `blocks` rule 1b, `key` rule 2 (without it, rule 0 if `exact`), `infeasible` rule 3, and `gate` says
    where rule 3 must be off.
    """

    partition: Callable[[Model], Symmetry] = symmetry
    states: Callable[[Model], BlockStates] = BlockStates
    classes: Callable[[Symmetry, Choice, State, int], Hashable] | None = alike
    blocks: Callable[[Symmetry, BlockStates, int, int, State, int], Hashable] | None = alike_blocks
    key: Callable[[Symmetry, BlockStates, tuple[int, int, int], int, State, int], tuple[object, ...]] | None = (
        canonical_key
    )
    exact: bool = True
    infeasible: Callable[[Model, int, Choice | None, int, int, State], bool] | None = infeasible
    gate: Callable[[Model, int, Choice | None, State], bool] = error_gate


DEFAULT = Rules()
