"""Free ports of the loopback interface."""

from __future__ import annotations

import random
import socket

from cluster.errors import ClusterError

__all__ = ["free"]

RANGE = range(20000, 30000)
"""Below the range from which Linux takes ports for outgoing connections, so that none of those takes one away."""


def free(count: int, address: str = "127.0.0.1") -> list[int]:
    """Ports that nobody listens on right now.

    Raises:
        ClusterError: There aren't as many.
    """
    found: list[int] = []
    for port in random.sample(RANGE, len(RANGE)):
        with socket.socket() as probe:
            # Without it, a connection that ended a minute ago would count as somebody who listens.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise ClusterError(f"there are no {count} free ports between {RANGE.start} and {RANGE.stop}")
