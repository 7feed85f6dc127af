"""Programs that print credentials (`client.authentication.k8s.io`), as clouds and single sign-on have them.

Owns running one, reading what it prints and keeping it until it expires. It is never given a terminal, so a program
that wants to ask somebody fails with what it says.

Source: "client-go credential plugins" in the Kubernetes documentation.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from draht.kube.credentials import Login
from draht.kube.errors import ConfigError
from draht.kube.kubeconfig import ExecConfig
from draht.kube.tls import ClientCertificate

__all__ = ["VERSIONS", "ExecPlugin"]

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_LARGEST = 1 << 20
_SHOWN = 300


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Credential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass
class ExecPlugin:
    """Credentials from a program.

    Args:
        config: Which program, with what.
        user: Name of the entry in the kubeconfig, for errors.
        directory: Where the kubeconfig lies; a command with a slash is relative to it.
        cluster: What the program is told about the cluster if it asks for it.
        environ: Its environment, before the variables that the configuration adds.
        timeout: Seconds it may take.
        now: Seconds since 1970, to know whether credentials have expired.
    """

    config: ExecConfig
    user: str
    directory: str
    cluster: Mapping[str, Any]
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    timeout: float = 60.0
    now: Callable[[], float] = time.time
    _kept: tuple[Login, float | None] | None = field(default=None, init=False, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _failure: ConfigError | None = field(default=None, init=False, repr=False)

    async def login(self) -> Login:
        """The kept credentials, or fresh ones from the program.

        Raises:
            ConfigError: It isn't there, fails, takes too long or prints something else.
        """
        waited = self._lock.locked()
        async with self._lock:  # one run of the program serves all requests that wait for it
            if self._kept is not None:
                kept, expires = self._kept
                if expires is None or self.now() < expires:
                    return kept
            if waited and self._failure is not None:
                raise self._failure
            self._failure = None
            try:
                self._kept = self._read(await self._run())
            except ConfigError as error:
                self._failure = error
                raise
            return self._kept[0]

    def refused(self, login: Login) -> bool:
        """Ask the program again next time, unless another request has done so already."""
        if self._kept is not None and self._kept[0] is login:
            self._kept = None
        return True

    async def _run(self) -> bytes:
        command = self.config.command
        if "/" in command:
            command = os.path.join(self.directory, command)  # noqa: PTH118 - an absolute command stays as it is
        spec: dict[str, Any] = {"interactive": False}
        if self.config.provide_cluster_info:
            spec["cluster"] = dict(self.cluster)
        info = {"apiVersion": self.config.api_version, "kind": "ExecCredential", "spec": spec}
        added = {variable.name: variable.value for variable in self.config.env}
        try:
            process = await _started(
                asyncio.create_subprocess_exec(
                    command,
                    *self.config.args,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env={**self.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                    start_new_session=True,
                )
            )
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise self._error(f"can't be started: {reason}") from None
        try:
            async with asyncio.timeout(self.timeout):
                printed, said = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
                status = await process.wait()
        except TimeoutError:
            raise self._error(f"printed nothing within {self.timeout:g} s") from None
        finally:
            if process.returncode is None:
                _kill(process.pid)
                await process.wait()
        if status != 0:
            shown = _shown(said)
            raise self._error(f"ended with status {status}" + (f": {shown}" if shown else ""))
        return printed

    def _read(self, printed: bytes) -> tuple[Login, float | None]:
        try:
            credential = msgspec.json.decode(printed, type=_Credential)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._error(f"printed no ExecCredential: {str(error)[:1].lower()}{str(error)[1:]}") from None
        if credential.kind != "ExecCredential" or credential.api_version != self.config.api_version:
            shown = f"{credential.api_version} {credential.kind}".strip() or "something without a kind"
            raise self._error(f"printed {shown} instead of {self.config.api_version} ExecCredential")
        status = credential.status or _Status()
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key):
            raise self._error("printed a client certificate without its key, or a key alone")
        if not status.token and not certificate:
            raise self._error("printed an ExecCredential without token and certificate")
        if not status.token.isprintable():
            raise self._error("printed a token with line breaks or control characters")
        headers = {"Authorization": f"Bearer {status.token}"} if status.token else {}
        shown_by_us = ClientCertificate(certificate.encode(), key.encode()) if certificate else None
        return Login(headers, shown_by_us), self._expiry(status.expiration_timestamp)

    def _expiry(self, text: str) -> float | None:
        if not text:
            return None
        try:
            moment = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise self._error(f'printed "{text[:40]}" as expiration, which is no moment of RFC 3339') from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()

    def _error(self, message: str) -> ConfigError:
        hint = " ".join(self.config.install_hint.split()) or (
            "run it yourself to see why; it must print credentials without asking anybody"
        )
        return ConfigError(
            f"the credential program {self.config.command} {message}", where=f"user {self.user}", hint=hint
        )


async def _started(start: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """The process; cancelled meanwhile, it is killed: asyncio waits for ever where the start itself is cancelled."""
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            process = await starting
            _kill(process.pid)
            await process.wait()
        raise


async def _bounded(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk[: _LARGEST - len(kept)]  # the rest is read and dropped, so that the program can end
    return bytes(kept)


def _kill(pid: int) -> None:
    """End a program and what it started; they share a session of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _shown(said: bytes) -> str:
    text = " ".join(said.decode(errors="replace").split())[-_SHOWN:]
    return "".join(one if one.isprintable() else "·" for one in text)
