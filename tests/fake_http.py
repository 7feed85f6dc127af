"""As much of HTTP/1.1 as a server of the tests needs, by hand, so that it can be broken at any byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Request", "chunk", "encoded", "head", "read", "send", "status"]


@dataclass
class Request:
    """What came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


def encoded(value: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def status(code: int, reason: str, message: str) -> tuple[int, bytes]:
    """Code and body of an answer that is a ``Status``."""
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": code, "reason": reason, "message": message}
    return code, encoded(said | {"status": "Success" if code < 400 else "Failure"})


def head(code: int, headers: Mapping[str, str]) -> bytes:
    """Status line and headers of an answer."""
    lines = [f"HTTP/1.1 {code} Said", *(f"{name}: {value}" for name, value in headers.items())]
    if "Content-Type" not in headers:
        lines.append("Content-Type: application/json")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def send(writer: asyncio.StreamWriter, code: int, body: bytes, headers: Mapping[str, str] = {}) -> None:
    """Send a whole answer."""
    writer.write(head(code, {**headers, "Content-Length": str(len(body))}) + body)
    await writer.drain()


async def chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one chunk of a streamed answer."""
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()


async def read(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None where the connection ended between two."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise
    first, *lines = text.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name:
            headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
