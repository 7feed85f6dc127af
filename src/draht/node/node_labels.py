"""Labels of the node that say what GPUs it has.

Owns which labels of the node are draht's. An annotation on the node lists them, so that a later run, or another
version, removes those it doesn't write any more; what anybody else has written is never touched, not even to correct it.
labels the node, it is left to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from draht.api.core import Node
from draht.api.errors import DrahtError
from draht.kube import NODES, Client

__all__ = ["ANNOTATION", "NodeLabels", "patch"]

logger = logging.getLogger(__name__)

ANNOTATION: Final = "draht.dev/node-labels"
"""The keys of the labels that draht wrote, with commas between them."""
DISCOVERY: Final = "nvidia.com/gfd.timestamp"
"""A label that NVIDIA's feature discovery renews, and draht doesn't write."""


class NodeLabels:
    """Keeps a node's labels as the machine is.

    Args:
        labels: What the labels should be now; blocking is fine.
        seconds: Between two looks.
    """

    def __init__(self, labels: Callable[[], Mapping[str, str]], *, seconds: float = 60.0) -> None:
        self._labels = labels
        self._seconds = seconds

    async def run(self, client: Client, node_name: str) -> None:
        """Look and write until cancelled; what the server refuses is tried again with the next look."""
        told: str | None = None
        while True:
            try:
                wanted = await asyncio.to_thread(self._labels)
                change = patch(await client.get(NODES, node_name), wanted)
                if change is not None:
                    await client.patch(NODES, node_name, change)
                    logger.info("the node's labels are written", extra={"node": node_name})
                told = None
            except (DrahtError, OSError) as error:
                if str(error) != told:
                    logger.warning("the node can't be labelled: %s", error, extra={"node": node_name})
                told = str(error)
            await asyncio.sleep(self._seconds)


def patch(node: Node, wanted: Mapping[str, str]) -> Mapping[str, object] | None:
    """The merge patch that gives a node its labels; None if it has them.

    Args:
        node: As the server has it.
        wanted: All labels that draht should have written.
    """
    present = node.metadata.labels
    if DISCOVERY in present:
        wanted = {}
    text = node.metadata.annotations.get(ANNOTATION, "")
    own = {key for key in text.split(",") if key}
    labels: dict[str, str | None] = {key: value for key, value in wanted.items() if present.get(key) != value}
    labels |= {key: None for key in own - wanted.keys() if key in present and DISCOVERY not in present}
    recorded = ",".join(sorted(wanted))
    if not labels and recorded == text:
        return None
    return {"metadata": {"labels": labels, "annotations": {ANNOTATION: recorded or None}}}
