"""How long to wait before trying again.

Delays grow by a factor up to a limit, and each is drawn from a range, so that clients that failed together don't come
back together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds.

    Args:
        initial: The first one, before it is drawn.
        factor: From one to the next.
        maximum: The longest.
        jitter: Which part of a delay is random, 0 to 1: it lies between ``(1 - jitter)`` of it and the whole.
    """

    initial: float = 0.2
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 0.5

    def delay(self, attempt: int, source: random.Random) -> float:
        """The delay after a number of failures in a row, counted from 1."""
        # The exponent is bounded, because failures in a row aren't and floats overflow.
        whole = min(self.maximum, self.initial * self.factor ** min(attempt - 1, 64))
        return whole * (1 - self.jitter * source.random())
