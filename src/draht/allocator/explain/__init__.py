"""Why claims don't fit: one dominant cause, the numbers behind it, and what would help.

A cause is found by taking it away and asking the allocator again, so it is true: without it the claims fit, or the next
cause appears. The order in which causes are tried is that of their remedies, from a mistake in the claim to waiting.

It doesn't change what the allocator answers and isn't part of its fast path.
"""

from __future__ import annotations

from draht.allocator.explain.causes import explain
from draht.allocator.explain.explanation import Dominant, Explanation, NodeGroup

__all__ = ["Dominant", "Explanation", "NodeGroup", "explain"]
