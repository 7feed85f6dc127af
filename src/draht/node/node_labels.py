"""The labels of a Node that draht writes, as GPU feature discovery does.

Owns which labels of the node are draht's. An annotation on the node lists them, so that a later run or another version
removes those it doesn't write any more; what anybody else has written is never touched, not even to correct it. Where
NVIDIA's feature discovery labels the node, all is left to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from draht.api.core import Node
from draht.api.errors import DrahtError
from draht.kube import NODES, Backoff, Client, ConflictError
from draht.node.kubelet.claim_work import in_thread

__all__ = ["ANNOTATION", "LabelPatch", "LabelTakenError", "NodeLabels", "label_patch"]

logger = logging.getLogger(__name__)

ANNOTATION: Final = "draht.dev/node-labels"
"""The keys of the labels that draht wrote, sorted, with commas between them."""
DISCOVERY: Final = "nvidia.com/gfd.timestamp"
"""A label that NVIDIA's feature discovery renews, and draht doesn't write."""


class LabelTakenError(DrahtError):
    """Somebody else has written a label of that key with another value."""


@dataclass(frozen=True, slots=True)
class LabelPatch:
    """What is to be written.

    Attributes:
        body: A merge patch; empty if nothing is to be done.
        taken: Labels that somebody else has written with another value; they stay.
    """

    body: Mapping[str, Any]
    taken: tuple[str, ...]


def label_patch(node: Node, wanted: Mapping[str, str]) -> LabelPatch:
    """The change that makes draht's labels of a node what is wanted.

    Args:
        node: As the server has it.
        wanted: All labels that draht is to write.
    """
    labels = node.metadata.labels
    noted = node.metadata.annotations.get(ANNOTATION, "")
    own = {key for key in noted.split(",") if key}
    if DISCOVERY in labels:
        # It has taken over: what was draht's is its own now and must not vanish until it looks again.
        return LabelPatch({"metadata": {"annotations": {ANNOTATION: None}}} if noted else {}, ())
    taken = tuple(sorted(key for key in wanted if key not in own and labels.get(key, wanted[key]) != wanted[key]))
    # A label that was there with the right value before draht came stays whose it is, and outlives draht.
    ours = {key for key in wanted if key in own or key not in labels}
    changes: dict[str, str | None] = {key: wanted[key] for key in ours if labels.get(key) != wanted[key]}
    changes |= {key: None for key in own - ours if key in labels}
    body: dict[str, Any] = {"labels": changes} if changes else {}
    note = ",".join(sorted(ours))
    if note != noted:
        body["annotations"] = {ANNOTATION: note or None}
    return LabelPatch({"metadata": body} if body else {}, taken)


class NodeLabels:
    """Keeps draht's labels of a node as they should be.

    Args:
        labels: What the labels should be now; called in a thread before every look, so blocking is fine.
        seconds: Between two looks: somebody may have changed a label, or the node was registered anew.
        backoff: Delays after failures.
    """

    def __init__(
        self,
        labels: Callable[[], Mapping[str, str]],
        *,
        seconds: float = 60.0,
        backoff: Backoff = Backoff(initial=1.0, maximum=60.0),  # noqa: B008 - an immutable value
    ) -> None:
        self._labels = labels
        self._seconds = seconds
        self._backoff = backoff
        self.problems: tuple[DrahtError, ...] = ()

    def wanted(self) -> Mapping[str, str]:
        """What the labels should be now; may block."""
        return self._labels()

    async def run(self, client: Client, node_name: str) -> None:
        """Work until cancelled; trouble is a problem, logged once, and tried again."""
        failures = 0
        while True:
            try:
                self._tell(await self._write(client, node_name), node_name)
                failures, delay = 0, self._seconds
            except (DrahtError, OSError) as error:
                failures += 1
                delay = self._backoff.delay(failures, client.random)
                # Kubelets write their nodes every few minutes, so a conflict now and then means nothing.
                if not isinstance(error, ConflictError) or failures > 1:
                    problem = error if isinstance(error, DrahtError) else DrahtError(str(error))
                    self._tell((problem,), node_name)
            await asyncio.sleep(delay)

    async def _write(self, client: Client, node_name: str) -> tuple[DrahtError, ...]:
        wanted = await in_thread(self.wanted)
        node = await client.get(NODES, node_name)
        patch = label_patch(node, wanted)
        if patch.body:
            await client.patch(NODES, node_name, patch.body, resource_version=node.metadata.resource_version)
            logger.info("the node's labels are written", extra={"node": node_name})
        return tuple(
            LabelTakenError(
                f"the label {key} has another value, which somebody else has written",
                where=f"node {node_name}",
                hint="remove it with `kubectl label`, or stop the program that writes it",
            )
            for key in patch.taken
        )

    def _tell(self, problems: tuple[DrahtError, ...], node_name: str) -> None:
        known = {str(problem) for problem in self.problems}
        for problem in problems:
            if str(problem) not in known:
                logger.warning("the node can't be labelled: %s", problem, extra={"node": node_name})
        self.problems = problems
