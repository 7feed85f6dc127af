"""What a server says about itself: its version and API groups, which version of a kind to speak, what one may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from draht.kube.errors import AnswerError, NotFoundError, NotServedError
from draht.kube.kinds import Kind
from draht.kube.versions import GROUP, candidates, is_converted

if TYPE_CHECKING:
    from draht.kube.transport import Transport

__all__ = ["NO_SERVER", "Discovery"]

NO_SERVER: Final = "check that the address is the one of an API server"
"""The next step where something answers that is none."""


class Discovery:
    """Asks one server about itself.

    Args:
        transport: The way to it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def version(self) -> str:
        """The server's version, such as ``v1.37.2``."""
        return str((await self._json("/version")).get("gitVersion", ""))

    async def served(self, group: str) -> tuple[str, ...]:
        """The versions of an API group that the server speaks, the preferred one first; none if it has no such."""
        try:
            said = await self._json(f"/apis/{group}" if group else "/api")
        except NotFoundError:
            return ()
        if not group:
            return tuple(str(version) for version in said.get("versions") or ())
        versions = [str(one.get("version")) for one in said.get("versions") or () if isinstance(one, dict)]
        preferred = (said.get("preferredVersion") or {}).get("version")
        return tuple(sorted(versions, key=lambda version: version != preferred))

    async def version_of(self, kind: Kind[Any]) -> str:
        """The version in which to read and write a kind: for those that draht converts, the newest that both know.

        Raises:
            NotServedError: There is none.
        """
        if not is_converted(kind):
            return kind.version
        served = await self.served(GROUP)
        for version in candidates(kind):
            if version in served:
                said = await self._json(f"/apis/{GROUP}/{version}")
                if any(one.get("name") == kind.plural for one in said.get("resources") or () if isinstance(one, dict)):
                    return version
        has = f"only {', '.join(served)} of {GROUP}" if served else f"nothing of {GROUP}"
        raise NotServedError(
            f"the server has no {kind.plural} that draht could read: it serves {has}",
            where=self._transport.server,
            hint="DRA needs Kubernetes 1.34; on 1.32 and 1.33 switch on DynamicResourceAllocation and its API group",
        )

    async def can_i(self, verb: str, kind: Kind[Any], namespace: str, name: str, subresource: str) -> bool:
        """Whether who asks may do something, by a SelfSubjectAccessReview; empty texts mean all."""
        asked = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "verb": verb,
                    "group": kind.group,
                    "resource": kind.plural,
                    "subresource": subresource,
                    "namespace": namespace,
                    "name": name,
                }
            },
        }
        said = await self._json("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", asked)
        return bool((said.get("status") or {}).get("allowed"))

    async def _json(self, path: str, asked: object = None) -> dict[str, Any]:
        from draht.kube.transport import Call  # loads aiohttp

        sent = None if asked is None else msgspec.json.encode(asked)
        body = await self._transport.request(Call("GET" if sent is None else "POST", path, {}, sent, where=path))
        try:
            said = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise AnswerError("the answer is no JSON object", where=f"{self._transport.server}{path}", hint=NO_SERVER)
        return said
