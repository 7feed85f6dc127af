"""Asking the API server, each question by itself: one that is forbidden or never answered hides none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from draht.api.errors import DrahtError
from draht.kube import CLAIMS, EVENTS, NODES, PODS, SLICES, Client, Kind, NotFoundError, NotServedError
from draht.node.doctor.scene import Permission, Remote, Unseen

__all__ = ["FAILED", "NEEDED", "ask_server"]

T = TypeVar("T")

GROUP: Final = "resource.k8s.io"
FAILED: Final = "FailedPrepareDynamicResources"
"""Reason of the kubelet's event about a pod whose claims can't be prepared (``pkg/kubelet/events`` at v1.37)."""

NEEDED: Final[Sequence[tuple[str, Kind[Any], str]]] = (
    *((verb, SLICES, "") for verb in ("list", "watch", "create", "update", "delete")),
    ("get", CLAIMS, ""),
    ("list", CLAIMS, ""),
    ("patch", CLAIMS, "status"),
    ("get", NODES, ""),
    ("patch", NODES, ""),
)
"""What the agent does, as ``deploy/agent/permissions.yaml`` allows it: verb, kind, subresource."""
_BOUND: Final = ("associated-node:patch", CLAIMS, "driver")
"""Needed for ``status.devices`` since 1.36."""

_DICT = cast("type[dict[str, Any]]", dict)
_REVIEW: Final = Kind("authentication.k8s.io/v1", "selfsubjectreviews", False, _DICT)


class _Questions:
    """Asks with patience and notes what had no answer."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.unseen: list[Unseen] = []

    async def ask(self, what: str, question: Coroutine[Any, Any, T]) -> T | None:
        try:
            async with asyncio.timeout(self._patience):
                return await question
        except TimeoutError:
            self.unseen.append(Unseen(what, f"no answer within {self._patience:.0f} s"))
        except (DrahtError, OSError) as error:
            message = error.message if isinstance(error, DrahtError) else str(error)
            self.unseen.append(Unseen(what, message))
        return None


async def ask_server(client: Client, node_name: str, *, patience: float) -> Remote:
    """Everything that the API server knows about a node.

    Args:
        client: The identity of the agent, or of who asks.
        node_name: The node.
        patience: Seconds for each question; most are asked side by side.
    """
    questions = _Questions(patience)
    # One question first: to a server that isn't there, the others would only repeat it.
    version = await questions.ask("the API server", client.version())
    if version is None:
        return Remote(unseen=questions.unseen)
    missing: list[str] = []

    async def node() -> Any:
        try:
            return await client.get(NODES, node_name)
        except NotFoundError:
            missing.append(node_name)
            return None

    async def listed(kind: Kind[T], selector: str = "") -> Sequence[T]:
        try:
            return (await client.list(kind, field_selector=selector)).items
        except NotServedError:
            return ()

    ask = questions.ask
    here = f"spec.nodeName={node_name}"
    async with asyncio.TaskGroup() as group:
        found = {
            "served": group.create_task(ask("the API versions", client.served(GROUP))),
            "user": group.create_task(ask("who asks", _user(client))),
            "node": group.create_task(ask(f"node {node_name}", node())),
            "kubelet_config": group.create_task(ask("the kubelet's configuration", _configuration(client, node_name))),
            "slices": group.create_task(ask("ResourceSlices", listed(SLICES, here))),
            "claims": group.create_task(ask("ResourceClaims", listed(CLAIMS))),
            "pods": group.create_task(ask("pods of the node", listed(PODS, here))),
            "events": group.create_task(ask("events", listed(EVENTS, f"reason={FAILED}"))),
            "permissions": group.create_task(ask("permissions", _permissions(client, version))),
        }
    answers: dict[str, Any] = {name: task.result() for name, task in found.items()}
    # A server may ignore the selector of a field that it doesn't know.
    for name in ("slices", "pods"):
        if answers[name] is not None:
            answers[name] = [each for each in answers[name] if each.spec.node_name == node_name]
    answers["user"] = answers["user"] or ""
    answers["permissions"] = answers["permissions"] or ()
    return Remote(reached=True, version=version, node_missing=bool(missing), unseen=questions.unseen, **answers)


async def _user(client: Client) -> str:
    asked = {"apiVersion": _REVIEW.api_version, "kind": "SelfSubjectReview"}
    said = await client.create(_REVIEW, asked)
    return str(((said.get("status") or {}).get("userInfo") or {}).get("username", ""))


async def _configuration(client: Client, node_name: str) -> Mapping[str, Any]:
    """The kubelet's ``/configz`` through the API server, which needs ``nodes/proxy`` or ``nodes/configz``."""
    kind = Kind("v1", f"nodes/{node_name}/proxy", False, _DICT)
    said = await client.get(kind, "configz")
    return cast("Mapping[str, Any]", said.get("kubeletconfig") or {})


async def _permissions(client: Client, version: str) -> Sequence[Permission]:
    major, _, rest = version.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    bound = major.isdecimal() and minor.isdecimal() and (int(major), int(minor)) >= (1, 36)
    needed = [*NEEDED, _BOUND] if bound else list(NEEDED)
    answers = await asyncio.gather(
        *(client.can_i(verb, kind, subresource=subresource) for verb, kind, subresource in needed)
    )
    return tuple(
        Permission(f"{verb} {kind.plural}{'/' + subresource if subresource else ''}", allowed)
        for (verb, kind, subresource), allowed in zip(needed, answers, strict=True)
    )
