"""What can go wrong in an allocation, in upstream's three classes.

The tree::

    DrahtError
    └── AllocatorError
        ├── FatalError      the claims, classes or slices are wrong: no node is worth trying; has a `FatalKind`
        ├── NodeError       no solution on this node, and one of its pools is invalid; other nodes may do
        └── BudgetError     steps or time ran out before there was an answer

"Doesn't fit" is no error: it is None.

`Failure` is a fatal error as a value. Upstream meets errors in the order of its search and may never meet one, so they
are kept beside the devices they belong to until the search arrives there. A failure names claim and device by index and
position, because one failure serves every claim with the same content and every node with the same devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from draht.api.errors import DrahtError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draht.allocator.row import Row
    from draht.api.resource import ResourceClaim

__all__ = ["AllocatorError", "BudgetError", "Failure", "FatalError", "FatalKind", "NodeError"]


class FatalKind(StrEnum):
    """Why an allocation was given up as a whole; stable names for programs."""

    ALLOCATION_MODE_UNKNOWN = "allocation-mode-unknown"
    CAPACITY_NEGATIVE = "capacity-negative"
    CAPACITY_UNREPRESENTABLE = "capacity-unrepresentable"
    CLASS_NOT_FOUND = "class-not-found"
    CLASS_NAME_MISSING = "class-name-missing"
    CONSTRAINT_EMPTY = "constraint-empty"
    CONSTRAINT_ALL = "constraint-all"
    DERIVED_COMPILE = "derived-compile"
    DERIVED_RUNTIME = "derived-runtime"
    FEATURE_DISABLED = "feature-disabled"
    NODE_SELECTOR = "node-selector"
    POOL_INCOMPLETE = "pool-incomplete"
    POOL_INVALID = "pool-invalid"
    REQUEST_EMPTY = "request-empty"
    SELECTOR_COMPILE = "selector-compile"
    SELECTOR_UNSUPPORTED = "selector-unsupported"
    SELECTOR_RUNTIME = "selector-runtime"
    TOO_MANY_DEVICES = "too-many-devices"


class AllocatorError(DrahtError):
    """An allocation could not be decided."""


class FatalError(AllocatorError):
    """Something in the cluster's objects is wrong in a way that ends the attempt for all nodes.

    Args:
        kind: Which class of mistake.
        message: One sentence.
        where: Claim and request, slice or node.
        hint: The next step.
        failure: The value it was made from, where there is one.
    """

    def __init__(
        self,
        kind: FatalKind,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.kind = kind
        self.failure = failure


class NodeError(AllocatorError):
    """There is no solution on this node, and devices of an invalid pool were left out; other nodes may do."""

    kind = "pools-invalid-on-node"


class BudgetError(AllocatorError):
    """The search was stopped before it had an answer: too many steps, or no time left."""

    kind = "timeout"


@dataclass(frozen=True, slots=True)
class Failure:
    """A fatal error that waits until the search reaches it.

    Args:
        kind: Which class of mistake.
        message: One sentence without claim, request and device.
        claim: Index of the claim, or None where no claim is involved.
        request: ``request`` or ``request/subrequest``, or None.
        position: Bit number of the device in the row, or None.
        pool: Index of the pool in the row, or None.
        hint: The next step.
        cause: The error of the expression, where one failed.
    """

    kind: FatalKind
    message: str
    claim: int | None = None
    request: str | None = None
    position: int | None = None
    pool: int | None = None
    hint: str | None = None
    cause: Exception | None = None

    def error(self, claims: Sequence[ResourceClaim], row: Row) -> FatalError:
        """The error to raise, with the names of the claim and of the device."""
        where = []
        if self.claim is not None and self.claim < len(claims):
            metadata = claims[self.claim].metadata
            name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            where.append(f"claim {name}")
        if self.request is not None:
            where.append(f"request {self.request}")
        message = self.message
        if self.position is not None:
            message = f"{message} (device {row.id(self.position)})"
        if self.pool is not None:
            message = f"{message} (pool {row.pools[self.pool].id})"
        return FatalError(self.kind, message, where=", ".join(where) or None, hint=self.hint, failure=self)
