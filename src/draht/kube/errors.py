"""What can go wrong between here and an API server, in the order in which a person would look for it.

Owns the classes and the way from a server's ``Status`` to one of them. The tree is drawn in the package's docstring.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from draht.api.errors import DrahtError
from draht.api.meta import Status

__all__ = [
    "AlreadyExistsError",
    "AnswerError",
    "Cause",
    "ConfigError",
    "ConflictError",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "KubeError",
    "NotFoundError",
    "NotServedError",
    "StatusError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnreachableError",
    "status_error",
]

_MOST_SHOWN = 300
"""Characters of an answer without a ``Status`` that a person is shown."""


class KubeError(DrahtError):
    """Something about a cluster's API server or the way to it."""


class ConfigError(KubeError):
    """There is no usable configuration: no file, no such context, unreadable credentials."""


class UnreachableError(KubeError):
    """No answer: name resolution, connection, TLS or a time-out."""


class AnswerError(KubeError):
    """An answer that an API server wouldn't give: no JSON, cut off, larger than the bound."""


class NotServedError(KubeError):
    """The server has no such kind in any version that draht speaks."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of a refused request.

    Attributes:
        field: Path of the field it is about; empty where it is about the whole.
        reason: One of Kubernetes' words: ``FieldValueInvalid``, ``FieldValueRequired``, …
        message: A sentence of the server.
    """

    field: str
    reason: str
    message: str


class StatusError(KubeError):
    """The server refused a request, or couldn't do it.

    Attributes:
        code: HTTP status.
        reason: Kubernetes' word for it (``NotFound``, ``Conflict``, …); empty where the answer had none.
        causes: Reasons by field.
        retry_after: Seconds the server asks to wait for; None where it doesn't.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.code = code
        self.reason = reason
        self.causes = causes
        self.retry_after = retry_after


class UnauthorizedError(StatusError):
    """The server doesn't know who asks (401)."""


class ForbiddenError(StatusError):
    """Who asks may not do this (403)."""


class NotFoundError(StatusError):
    """There is no such object (404)."""


class AlreadyExistsError(StatusError):
    """An object of that name is there already (409)."""


class ConflictError(StatusError):
    """The object isn't the one that was read: somebody else changed or replaced it (409)."""


class GoneError(StatusError):
    """The version or the page asked for is too old to be continued from (410)."""


class InvalidError(StatusError):
    """The object breaks rules; each is one of the causes (422, and 400 under strict field validation)."""


class TooManyRequestsError(StatusError):
    """The server, or a disruption budget, asks to come again later (429)."""


_CLASSES: dict[int, type[StatusError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}

_HINTS: dict[type[StatusError], str] = {
    UnauthorizedError: "the token or client certificate may have expired: log in again, and try `kubectl auth whoami`",
    ForbiddenError: "ask an administrator for this permission, and check it with `kubectl auth can-i`",
    ConflictError: "somebody else has changed it: read it again and decide again",
    GoneError: "list again",
    TooManyRequestsError: "try again later",
}

_OWNED = "these fields belong to another manager: leave them out, or take them over with force"

# Some refusals quote the whole object; what is wrong with it stands behind.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.){200,}"', re.DOTALL)


def status_error(
    code: int, body: bytes, *, where: str | None = None, retry_after: float | None = None, content_type: str = ""
) -> StatusError:
    """The error for an answer, whatever its body is: a ``Status``, another JSON, a proxy's page or nothing.

    Args:
        code: HTTP status.
        body: What came with it, as far as it was read.
        where: The object the request was about.
        retry_after: Seconds of a ``Retry-After`` header.
        content_type: Of the body.
    """
    try:
        status = msgspec.json.decode(body, type=Status) if body else Status()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        status = Status()
    details = status.details
    causes = tuple(Cause(one.field, one.reason, one.message) for one in (details.causes if details else ()))
    if retry_after is None and details is not None and details.retry_after_seconds > 0:
        retry_after = float(details.retry_after_seconds)
    message = _QUOTED.sub('"…"', status.message.strip()) or _without_status(code, body, content_type)
    error = _class_of(code, status.reason)
    owned = any(cause.reason == "FieldManagerConflict" for cause in causes)
    return error(
        message,
        code=code,
        reason=status.reason,
        causes=causes,
        retry_after=retry_after,
        where=where,
        hint=_OWNED if owned else _HINTS.get(error),
    )


def _class_of(code: int, reason: str) -> type[StatusError]:
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExistsError
    if code == 400 and reason == "Invalid":
        return InvalidError
    return _CLASSES.get(code, StatusError)


def _without_status(code: int, body: bytes, content_type: str) -> str:
    """One sentence about an answer that isn't a ``Status``; pages of proxies aren't shown, their kind is."""
    kind = content_type.partition(";")[0].strip()
    if kind == "text/html" or body[:1] == b"<":
        return f"the answer is HTTP {code} with a web page, which no API server sends: something is in between"
    text = " ".join(body[: 4 * _MOST_SHOWN].decode(errors="replace").split())
    shown = "".join(one if one.isprintable() else "·" for one in text[:_MOST_SHOWN])
    return f"the answer is HTTP {code}" + (f": {shown}" if shown else " without a word")
