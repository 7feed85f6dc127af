"""Structured allocation: which devices a claim gets, exactly as Kubernetes' allocator would decide, and why not.

A pure function of a snapshot. It doesn't read files or talk to servers, doesn't write allocations anywhere, and doesn't
decide which pod comes first.

Errors are drawn in `draht.allocator.errors`.
"""

from draht.allocator.allocation import allocate
from draht.allocator.errors import AllocatorError, BudgetError, FatalError, FatalKind, NodeError
from draht.allocator.features import Features
from draht.allocator.fit import Fit, find
from draht.allocator.policies import BestFit, Scored, Spread, TopologyCompact
from draht.allocator.policy import Policy, View
from draht.allocator.reporter import Cause, Rejection, Reporter
from draht.allocator.search import Limits
from draht.allocator.session import Placement, Session
from draht.allocator.snapshot import Snapshot

__all__ = [
    "AllocatorError",
    "BestFit",
    "BudgetError",
    "Cause",
    "FatalError",
    "FatalKind",
    "Features",
    "Fit",
    "Limits",
    "NodeError",
    "Placement",
    "Policy",
    "Rejection",
    "Reporter",
    "Scored",
    "Session",
    "Snapshot",
    "Spread",
    "TopologyCompact",
    "View",
    "allocate",
    "find",
]
