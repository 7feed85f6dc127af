"""The policies that come with draht, by name.

``first-fit`` is upstream's and no policy object at all. The others change which devices are chosen, and in a session on
which node; never whether claims fit.
"""

from __future__ import annotations

from typing import Final

from draht.allocator.errors import AllocatorError
from draht.allocator.policies.best_fit import BestFit
from draht.allocator.policies.scored import Scored
from draht.allocator.policies.spread import Spread
from draht.allocator.policies.topology_compact import TopologyCompact
from draht.allocator.policy import Policy

__all__ = ["NAMES", "BestFit", "Scored", "Spread", "TopologyCompact", "named"]

FIRST_FIT: Final = "first-fit"

_POLICIES: Final[dict[str, type[BestFit] | type[Spread] | type[TopologyCompact]]] = {
    "best-fit": BestFit,
    "spread": Spread,
    "topology-compact": TopologyCompact,
}

NAMES: Final = (FIRST_FIT, *_POLICIES)
"""All names, the default first."""


def named(name: str | None) -> Policy | None:
    """The policy of a name; None stands for first fit, upstream's order.

    Raises:
        AllocatorError: There is no policy of that name.
    """
    if name is None or name == FIRST_FIT:
        return None
    policy = _POLICIES.get(name)
    if policy is None:
        raise AllocatorError(f"there is no policy {name[:40]!r}", hint=f"use one of {', '.join(NAMES)}")
    return policy()
