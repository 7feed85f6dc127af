"""What a server says about itself: its version and API groups, which version of a kind to speak, what one may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from draht.kube.errors import AnswerError, NotFoundError, NotServedError
from draht.kube.kinds import Kind
from draht.kube.versions import GROUP, candidates, is_converted

if TYPE_CHECKING:
    from draht.kube.transport import Transport

__all__ = ["NO_SERVER", "Discovery"]

NO_SERVER: Final = "check that the address is the one of an API server"
"""The next step where something answers that is none."""
_T = TypeVar("_T")


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _GroupVersion(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    versions: list[_GroupVersion] | None = None
    preferred_version: _GroupVersion | None = None


class _CoreVersions(msgspec.Struct):
    versions: list[str] | None = None


class _Resource(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


class _Verdict(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Verdict | None = None


class Discovery:
    """Asks one server about itself.

    Args:
        transport: The way to it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def version(self) -> str:
        """The server's version, such as ``v1.37.2``."""
        return (await self._read("/version", _Version)).git_version

    async def served(self, group: str) -> tuple[str, ...]:
        """The versions of an API group that the server speaks, the preferred one first; none if it has no such."""
        try:
            if not group:
                return tuple((await self._read("/api", _CoreVersions)).versions or ())
            said = await self._read(f"/apis/{group}", _Group)
        except NotFoundError:
            return ()
        preferred = said.preferred_version.version if said.preferred_version is not None else ""
        return tuple(sorted((one.version for one in said.versions or ()), key=lambda version: version != preferred))

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
                said = await self._read(f"/apis/{GROUP}/{version}", _Resources)
                if any(one.name == kind.plural for one in said.resources or ()):
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
        said = await self._read("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _Review, asked)
        return said.status is not None and said.status.allowed

    async def _read(self, path: str, form: type[_T], asked: object = None) -> _T:
        from draht.kube.transport import Call  # loads aiohttp

        sent = None if asked is None else msgspec.json.encode(asked)
        body = await self._transport.request(Call("GET" if sent is None else "POST", path, {}, sent, where=path))
        try:
            said = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise AnswerError("the answer is no JSON object", where=f"{self._transport.server}{path}", hint=NO_SERVER)
        try:
            return msgspec.convert(said, form)
        except msgspec.ValidationError as error:
            reason = str(error)
            raise AnswerError(
                f"the answer can't be read: {reason[:1].lower()}{reason[1:200]}",
                where=f"{self._transport.server}{path}",
                hint=NO_SERVER,
            ) from None
