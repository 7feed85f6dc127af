"""HTTP to one API server: requests with bounds and retries, and streams of lines.

Owns the aiohttp session, what is sent with each request, what is tried again, and what becomes of a failure. It knows
no kinds. This is the only module that imports aiohttp, and `draht.kube.client` imports it when it connects: aiohttp
takes longer to load than a command that needs no cluster may take to start.

What is tried again, at most `ATTEMPTS` times with growing delays: reads after a lost connection and after 5xx; every
request that the server told to come back later (429, or ``Retry-After`` of a 503), or that was never sent because no
connection came about. A write whose connection was lost after it was sent isn't, because it may have been done.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from draht.kube.backoff import Backoff
from draht.kube.config import Config
from draht.kube.credentials import Login
from draht.kube.errors import AnswerError, ConfigError, KubeError, StatusError, UnreachableError, status_error

__all__ = ["ATTEMPTS", "MAX_BODY", "MAX_LINE", "Call", "Transport"]

ATTEMPTS: Final = 4
"""How often one request is sent at most."""
MAX_BODY: Final = 256 << 20
"""Bytes of the largest answer; a page of 500 objects of the largest size that etcd takes is about three times this."""
MAX_LINE: Final = 32 << 20
"""Bytes of the largest event of a watch; an object is at most a few MiB."""
_MAX_ERROR: Final = 64 << 10
_CONNECT: Final = 10.0
_SILENCE: Final = 30.0
_LONGEST_WAIT: Final = 30.0
"""Seconds of ``Retry-After`` that are waited for; a longer one is the caller's to wait."""

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Args:
        method: HTTP's.
        path: Below the server's address, quoted.
        query: Its parameters; empty values are left out.
        body: JSON.
        content_type: Of the body.
        where: The object it is about, for errors.
    """

    method: str
    path: str
    query: Query
    body: bytes | None = None
    content_type: str = "application/json"
    where: str | None = None


class _NotSentError(Exception):
    """Carries a failure that came before anything was sent."""

    def __init__(self, error: UnreachableError) -> None:
        super().__init__()
        self.error = error


class Transport:
    """A session with one server.

    Args:
        config: Where and as whom.
        user_agent: How it names itself to the server.
        timeout: Seconds that one attempt of a request may take.
        backoff: Delays between attempts.
        sleep: Waits.
        source: Of the random part of delays.
    """

    def __init__(
        self,
        config: Config,
        *,
        user_agent: str,
        timeout: float,
        backoff: Backoff,
        sleep: Callable[[float], Awaitable[None]],
        source: random.Random,
    ) -> None:
        self._config = config
        self.server = config.server
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT, sock_read=min(_SILENCE, timeout))
        self._backoff = backoff
        self._sleep = sleep
        self._random = source
        headers: CIMultiDict[str] = CIMultiDict()
        for name, value in config.headers.items():
            for each in (value,) if isinstance(value, str) else value:
                headers.add(name, each)
        headers["User-Agent"] = user_agent
        headers["Accept"] = "application/json"
        headers["Accept-Encoding"] = "gzip" if config.compress else "identity"
        self._session = aiohttp.ClientSession(
            headers=headers,
            # Each watch holds a connection for as long as it lives.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            raise_for_status=False,
            auto_decompress=True,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def request(self, call: Call) -> bytes:
        """Send a request, again where that is safe, and return the body of its answer.

        Raises:
            StatusError: The server refused it.
            UnreachableError: No answer came.
            AnswerError: The answer is too large or not HTTP.
            ConfigError: There are no credentials.
        """
        attempt = 1
        while True:
            try:
                return await self._once(call)
            except _NotSentError as failure:
                error: KubeError = failure.error
                again = True
                wait = None
            except UnreachableError as failure:
                error, again, wait = failure, call.method == "GET", None
            except StatusError as failure:
                error, wait = failure, failure.retry_after
                again = failure.code == 429 or (failure.code == 503 and wait is not None)
                again = again or (call.method == "GET" and failure.code in {500, 502, 503, 504})
            if not again or attempt >= ATTEMPTS or (wait or 0) > _LONGEST_WAIT:
                raise error
            delay = self._backoff.delay(attempt, self._random)
            await self._sleep(max(delay, wait or 0.0))
            attempt += 1

    async def _once(self, call: Call) -> bytes:
        async with self._answer(call, self._timeout) as answer:
            return await _body(answer, MAX_BODY)

    @asynccontextmanager
    async def lines(self, call: Call, *, silence: float, longest: float) -> AsyncIterator[AsyncGenerator[bytes, None]]:
        """The lines of a streamed answer, as they come; nothing is tried again.

        Args:
            call: The request.
            silence: Seconds without a byte after which the connection is taken for dead.
            longest: Seconds after which it is given up in any case.

        Raises:
            KubeError: As `request`, from the iterator as well.
        """
        bounds = aiohttp.ClientTimeout(total=longest, sock_connect=_CONNECT, sock_read=silence)
        try:
            async with self._answer(call, bounds) as answer:
                yield _lines(answer, self.server)
        except _NotSentError as failure:
            raise failure.error from None

    @asynccontextmanager
    async def _answer(self, call: Call, bounds: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is a success; with fresh credentials if the kept ones were refused."""
        for last in (False, True):
            login = await self._config.credentials.login()
            response = await self._send(call, bounds, login)
            try:
                if response.status < 300:
                    try:
                        yield response
                    except (aiohttp.ClientError, OSError) as error:
                        raise _unreachable(error, self.server) from None
                    return
                failure = await self._refusal(call, response)
            finally:
                # What wasn't read to its end closes the connection.
                response.release()
            if last or failure.code != 401 or not self._config.credentials.refused(login):
                raise failure

    async def _send(self, call: Call, bounds: aiohttp.ClientTimeout, login: Login) -> aiohttp.ClientResponse:
        secure: ssl.SSLContext | bool = True
        if self.server.startswith("https:"):
            secure = self._config.trust.context(login.certificate)
        query = {name: value for name, value in call.query.items() if value}
        headers = dict(login.headers)
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        try:
            return await self._session.request(
                call.method,
                URL(self.server + call.path, encoded=True).with_query(query),
                data=call.body,
                headers=headers,
                timeout=bounds,
                ssl=secure,
                server_hostname=self._config.trust.server_name,
                proxy=self._config.proxy,
                allow_redirects=False,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise _NotSentError(_unreachable(error, self.server)) from None
        except aiohttp.ClientResponseError as error:
            reason = " ".join(error.message.split())[:200]
            raise AnswerError(f"the answer isn't HTTP as it should be: {reason}", where=self.server) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(error, self.server) from None
        except ValueError as error:
            raise ConfigError(f"the request can't be formed: {error}", where=call.where) from None

    async def _refusal(self, call: Call, response: aiohttp.ClientResponse) -> StatusError:
        try:
            body = await _body(response, _MAX_ERROR, cut=True)
        except (aiohttp.ClientError, OSError):
            body = b""  # the status alone says enough
        return status_error(
            response.status,
            body,
            where=call.where,
            retry_after=_seconds(response.headers.get("Retry-After")),
            content_type=response.headers.get("Content-Type", ""),
        )


async def _body(response: aiohttp.ClientResponse, most: int, *, cut: bool = False) -> bytes:
    """The whole body, or its beginning; bounded, where ``response.read`` is not."""
    parts = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        parts.append(chunk)
        if size > most:
            if cut:
                break
            response.close()
            raise AnswerError(f"the answer has more than {most >> 20} MiB", hint="ask for fewer objects at a time")
    return b"".join(parts)


async def _lines(response: aiohttp.ClientResponse, server: str) -> AsyncGenerator[bytes, None]:
    rest: list[bytes] = []
    size = 0
    try:
        async for chunk in response.content.iter_any():
            first, *others = chunk.split(b"\n")
            size += len(first)
            rest.append(first)
            if size > MAX_LINE:
                response.close()
                raise AnswerError(f"an event has more than {MAX_LINE >> 20} MiB", where=server)
            if not others:
                continue
            line = b"".join(rest)
            rest = [others.pop()]
            size = len(rest[0])
            for whole in (line, *others):
                if whole.strip():
                    yield whole
    except (aiohttp.ClientError, OSError) as error:
        raise _unreachable(error, server) from None
    if last := b"".join(rest).strip():
        yield last


def _seconds(text: str | None) -> float | None:
    """The seconds of a ``Retry-After``; API servers never send its form with a date."""
    return float(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else None


def _unreachable(error: Exception, server: str) -> UnreachableError:
    """One sentence for what sockets, TLS and HTTP raise."""
    hint = "check the address, and that the server runs: `kubectl version`"
    match error:
        case aiohttp.ClientConnectorCertificateError():
            said = error.certificate_error
            reason = getattr(said, "verify_message", "") or getattr(said, "reason", "") or str(said)
            message = f"the server's certificate isn't trusted: {reason}"
            hint = (
                "check certificate-authority-data and the clock; a server renews its certificate, a proxy shows its own"
            )
        case aiohttp.ClientSSLError():
            reason = str(getattr(error.os_error, "reason", "") or error.os_error)
            message = f"no secure connection comes about: {reason.replace('_', ' ').lower()}"
            hint = "check that the address is the one of the API server, and that the client certificate is valid"
        case aiohttp.ClientConnectorDNSError():
            message = f"the name {error.host} isn't known"
            hint = "check the address in the kubeconfig and the network"
        case aiohttp.ClientProxyConnectionError():
            message = "the proxy can't be reached"
            hint = "check proxy-url in the kubeconfig, HTTPS_PROXY and NO_PROXY"
        case aiohttp.ClientConnectorError():
            message = f"no connection: {(error.os_error.strerror or str(error.os_error)).lower()}"
        case TimeoutError():
            message = "no answer in time"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | ConnectionResetError():
            message = "the connection was lost"
        case _:
            message = f"the connection failed: {str(error)[:200] or type(error).__name__}"
    return UnreachableError(message, where=server, hint=hint)
