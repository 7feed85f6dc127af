"""`SliceServer` with what a node asks about besides: who one is, what one may, events, the kubelet's configuration."""

from __future__ import annotations

import json
from typing import Any

from fake_http import Request
from fake_slice_server import SliceServer

__all__ = ["NodeServer"]

REVIEWS = {
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
}


class NodeServer(SliceServer):
    """An API server that one node's agent and doctor can talk to.

    Attributes:
        user: Who everybody is.
        forbidden: Verb and plural, such as ``create resourceslices``, that nobody may.
        closed: Plurals whose requests are refused.
        events: Events of all namespaces.
        kubelet: The kubelet's configuration; None refuses it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.user = "system:serviceaccount:draht-system:draht-node"
        self.forbidden: set[str] = set()
        self.closed: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.kubelet: dict[str, Any] | None = {"featureGates": {}}

    def _respond(self, request: Request) -> tuple[int, bytes]:
        path = request.path
        if path in REVIEWS:
            return 201, json.dumps(self._review(json.loads(request.body))).encode()
        plural = path.rstrip("/").rsplit("/", 1)[-1]
        if plural in self.closed or (path.endswith("/proxy/configz") and self.kubelet is None):
            return _forbidden(plural)
        if path.endswith("/proxy/configz"):
            return 200, json.dumps({"kubeletconfig": self.kubelet}).encode()
        if path == "/api/v1/events":
            return 200, json.dumps(
                {"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": self.events}
            ).encode()
        return super()._respond(request)

    def _review(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["kind"] == "SelfSubjectReview":
            return {**asked, "status": {"userInfo": {"username": self.user}}}
        wanted = asked["spec"]["resourceAttributes"]
        words = f"{wanted['verb']} {wanted['resource']}"
        return {**asked, "status": {"allowed": words not in self.forbidden}}


def _forbidden(plural: str) -> tuple[int, bytes]:
    status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": f"{plural} is forbidden"}
    return 403, json.dumps(status).encode()
