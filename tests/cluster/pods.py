"""Pods for tests: objects with one container of a busybox image."""

from __future__ import annotations

from typing import Any

from cluster.images import BUSYBOX

__all__ = ["pod"]


def pod(name: str, script: str, *, node: str | None = None, image: str = BUSYBOX, **spec: Any) -> dict[str, Any]:
    """A pod whose container ``main`` runs a shell script.

    Args:
        name: Its name.
        script: For ``sh -c``.
        node: Where it runs, if the scheduler isn't to choose.
        image: One of `cluster.images`.
        spec: Further fields of its spec, as the API names them.
    """
    if node is not None:
        spec["nodeName"] = node
    container = {"name": "main", "image": image, "command": ["sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container | spec.pop("container", {})], **spec},
    }
