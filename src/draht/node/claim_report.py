"""What a driver writes to the status of the claims it prepared: ``status.devices``.

Owns the one write. Server-side apply with one field manager per driver keeps other drivers' entries untouched (the
list's keys are driver, device, pool and share). When it is tried again is `draht.node.kubelet.status_reports`.
"""

from __future__ import annotations

import logging

import msgspec

from draht.driver.claims.prepared import PreparedClaim
from draht.kube import CLAIMS, Client, ConflictError, InvalidError, NotFoundError

__all__ = ["report"]

logger = logging.getLogger(__name__)


async def report(client: Client, claim: PreparedClaim) -> None:
    """Write what became of a claim's devices.

    A claim that was deleted, replaced or deallocated meanwhile has nothing to report on; that is no error.

    Raises:
        KubeError: It couldn't be written now.
    """
    try:
        await client.patch(
            CLAIMS,
            claim.name,
            {
                "apiVersion": CLAIMS.api_version,
                "kind": "ResourceClaim",
                "metadata": {"name": claim.name, "namespace": claim.namespace, "uid": claim.uid},
                "status": {"devices": msgspec.to_builtins(claim.status)},
            },
            namespace=claim.namespace,
            subresource="status",
            type="apply",
            field_manager=claim.driver,
            force=True,
        )
    except (NotFoundError, ConflictError, InvalidError) as error:
        about = {"driver": claim.driver, "claim_uid": claim.uid, "claim": f"{claim.namespace}/{claim.name}"}
        logger.info("the claim's status isn't written: %s", error.message, extra=about)
