"""Plans that were made already: claims of one template are compiled once.

Owns what makes two lists of claims ask the same. It doesn't make plans.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draht.allocator.plan import Plan
    from draht.api.resource import ResourceClaim

__all__ = ["PlanCache"]

_CACHED_PLANS: Final = 512


@final
class PlanCache:
    """Plans by the content of claims, for one set of classes; least recently used ones go first."""

    __slots__ = ("_by_content", "_by_identity")

    def __init__(self) -> None:
        self._by_content: OrderedDict[bytes, Plan] = OrderedDict()
        # Claims are frozen, so the same objects mean the same plan; the tuple keeps them alive and their ids valid.
        self._by_identity: OrderedDict[tuple[int, ...], tuple[tuple[ResourceClaim, ...], Plan]] = OrderedDict()

    def get(self, claims: Sequence[ResourceClaim], make: Callable[[], Plan]) -> Plan:
        """The plan of claims, made if none with the same content is here."""
        identity = tuple(map(id, claims))
        known = self._by_identity.get(identity)
        if known is not None:
            return known[1]
        content = msgspec.msgpack.encode([(c.spec.devices.requests, c.spec.devices.constraints) for c in claims])
        plan = self._by_content.get(content)
        if plan is None:
            plan = self._by_content[content] = make()
            if len(self._by_content) > _CACHED_PLANS:
                self._by_content.popitem(last=False)
        else:
            self._by_content.move_to_end(content)
        self._by_identity[identity] = (tuple(claims), plan)
        if len(self._by_identity) > _CACHED_PLANS:
            self._by_identity.popitem(last=False)
        return plan
