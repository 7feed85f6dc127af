"""Whether a server is reached through a proxy: the one of the kubeconfig, or that of the environment.

Owns the reading of ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` with the meaning that Go's programs give them, so
that draht takes the way that kubectl takes.

Source: `golang.org/x/net/http/httpproxy`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from draht.kube.errors import ConfigError

__all__ = ["proxy_for"]


def proxy_for(server: str, written: str, where: str, environ: Mapping[str, str]) -> str | None:
    """The address of the proxy, or None.

    Args:
        server: Address of the API server.
        written: The kubeconfig's ``proxy-url``, which wins.
        where: Where that stands.
        environ: Environment variables.

    Raises:
        ConfigError: It is no HTTP proxy.
    """
    parts = urlsplit(server)
    if not written:
        where = f"{parts.scheme}_proxy".upper()
        written = environ.get(where) or environ.get(where.lower()) or ""
        excepted = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
        if not written or _direct(parts.hostname or "", parts.port, excepted):
            return None
    address = written if "://" in written else f"http://{written}"
    try:
        proxy = urlsplit(address)
        good = proxy.scheme in {"http", "https"} and bool(proxy.hostname)
    except ValueError:
        good = False
    if not good:
        raise ConfigError("the proxy is no http:// address", where=where, hint="draht knows HTTP proxies only")
    return address


def _direct(host: str, port: int | None, excepted: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in excepted.lower().split(","):
        name = entry.strip()
        if name == "*":
            return True
        if "/" in name:
            try:
                if address is not None and address in ipaddress.ip_network(name, strict=False):
                    return True
            except ValueError:
                pass
            continue
        if _address(name) is None and ":" in name:
            name, _, wanted = name.rpartition(":")
            if wanted != str(port):
                continue
        name = name.removeprefix("*")
        if name and (host == name.strip("[]") or (address is None and host.endswith(f".{name.lstrip('.')}"))):
            return True
    return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
