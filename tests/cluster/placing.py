"""What tests of placement share: pods with claims, and waiting for what the cluster says of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cluster.cluster import Cluster
from cluster.pods import pod
from cluster.reader import Reader

__all__ = ["claiming_pod", "get", "template", "until"]


def template(name: str, *, count: int = 1, selector: str | None = None, **exactly: Any) -> dict[str, Any]:
    """A claim template with one request ``gpu`` for GPUs."""
    exactly |= {"deviceClassName": "gpu.nvidia.com", "count": count}
    if selector is not None:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def claiming_pod(name: str, template_name: str, script: str = "sleep 3600", **more: Any) -> dict[str, Any]:
    """A pod whose container uses a claim made from a template."""
    container = {"resources": {"claims": [{"name": "gpu"}]}} | more.pop("container", {})
    entry = {"name": "gpu", "resourceClaimTemplateName": template_name}
    return pod(name, script, container=container, resourceClaims=[entry], restartPolicy="Never", **more)


def get(cluster: Cluster, namespace: str, kind: str, name: str = "") -> dict[str, Any]:
    """An object, or a list of all of a kind: pods and events, or kinds of ``resource.k8s.io``."""
    api = "/api/v1" if kind in {"pods", "events"} else "/apis/resource.k8s.io/v1"
    return Reader(cluster.kubeconfig)(f"{api}/namespaces/{namespace}/{kind}{f'/{name}' if name else ''}")


def until(look: Callable[[], Any], what: Callable[[], str] | str, *, patience: float = 60.0) -> Any:
    """What ``look`` gives as soon as it gives something."""
    end = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < end, what if isinstance(what, str) else what()
        time.sleep(0.2)
    return found
