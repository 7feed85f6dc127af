"""Who gets which node and devices, in which order.

Only the simplest order so far: one pod after the other, as given (`draht.scheduler.sequence`). It works on a snapshot,
writes nothing anywhere, and binds nothing.
"""

from __future__ import annotations

from draht.scheduler.sequence import Placement, Sequence

__all__ = ["Placement", "Sequence"]
