"""Which server, as whom, and in which namespace: where a client connects to.

Owns the order in which a configuration is looked for, that of kubectl: the file named for this call, the files of
``$KUBECONFIG`` merged, ``~/.kube/config``, and then the service account of the pod this runs in. Connecting is the
transport's; reading and merging files is `draht.kube.kubeconfig`.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from draht.kube import kubeconfig
from draht.kube.credentials import Credentials, Fixed, Login, TokenFile, basic
from draht.kube.errors import ConfigError
from draht.kube.exec_plugin import VERSIONS, ExecPlugin
from draht.kube.kubeconfig import Cluster, Entry, Kubeconfig, User
from draht.kube.proxy import proxy_for
from draht.kube.tls import ClientCertificate, Material, Trust

__all__ = ["IN_CLUSTER", "Config"]

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token, the authority and the namespace of its service account."""

_HINT = "log in to a cluster, set KUBECONFIG, or name a file with --kubeconfig"


@dataclass(frozen=True)
class Config:
    """Everything a client needs to know before it connects.

    Args:
        server: Base address, ``https://host:port`` perhaps with a path; ``http`` is for loopback.
        namespace: Where objects without a namespace of their own are looked for.
        context: Name of the kubeconfig's context; empty inside a cluster.
        source: Where this comes from, for a person.
        trust: How the connection is secured.
        credentials: Who one is.
        headers: Sent with each request: whom to act for.
        proxy: Address of an HTTP proxy.
        compress: Whether large answers may come compressed: less on the wire, more work at both ends.
    """

    server: str
    namespace: str = "default"
    context: str = ""
    source: str = ""
    trust: Trust = field(default_factory=Trust)
    credentials: Credentials = field(default_factory=Fixed, repr=False)
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    proxy: str | None = field(default=None, repr=False)
    compress: bool = True

    @classmethod
    def load(
        cls,
        *,
        kubeconfig: Path | None = None,
        context: str | None = None,
        environ: Mapping[str, str] = os.environ,
        in_cluster_root: Path = IN_CLUSTER,
    ) -> Config:
        """Find the configuration as kubectl does.

        Args:
            kubeconfig: The file named for this call.
            context: Another context than the current one.
            environ: Environment variables.
            in_cluster_root: Where the service account's files are.

        Raises:
            ConfigError: There is none, or it can't be used; says which file and what to do.
        """
        merged = _files(kubeconfig, environ)
        if not merged.empty:
            return _from_context(merged, context, environ)
        if context is not None:
            raise ConfigError(f'there is no context "{context}": no kubeconfig was found', hint=_HINT)
        if environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"):
            return _in_cluster(environ, in_cluster_root)
        looked = ", ".join(map(str, merged.files)) or "no kubeconfig was found"
        raise ConfigError(f"no cluster is configured ({looked})", hint=_HINT)


def _files(named: Path | None, environ: Mapping[str, str]) -> Kubeconfig:
    if named is not None:
        return kubeconfig.load([named], must_exist=True)
    paths = [Path(text) for text in environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    if not paths:
        home = environ.get("HOME")
        paths = [Path(home) / ".kube" / "config"] if home else []
    return kubeconfig.load(paths)


def _in_cluster(environ: Mapping[str, str], root: Path) -> Config:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    token = root / "token"
    if not token.exists():
        raise ConfigError(
            "this pod has no service account token",
            where=str(token),
            hint="set automountServiceAccountToken: true, or mount one there",
        )
    try:
        namespace = (root / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        namespace = ""  # a token mounted by hand often comes without it
    authority = root / "ca.crt"
    return Config(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace or "default",
        source="the service account of this pod",
        trust=Trust(authority if authority.exists() else None),
        credentials=TokenFile(token),
    )


def _from_context(merged: Kubeconfig, wanted: str | None, environ: Mapping[str, str]) -> Config:
    files = ", ".join(map(str, merged.files))
    name = wanted or merged.current_context
    if not name:
        raise ConfigError(
            "no current context is set",
            where=files,
            hint=f"choose one with `kubectl config use-context`: {_names(merged.contexts)}",
        )
    entry = merged.contexts.get(name)
    if entry is None:
        raise ConfigError(f'there is no context "{name}"', where=files, hint=f"there is: {_names(merged.contexts)}")
    chosen = entry.value
    cluster = merged.clusters.get(chosen.cluster)
    if cluster is None:
        raise ConfigError(
            f'context "{name}" names the cluster "{chosen.cluster}", which isn\'t there',
            where=str(entry.source),
            hint=f"there is: {_names(merged.clusters)}",
        )
    user = merged.users.get(chosen.user) if chosen.user else Entry(User(), entry.source)
    if user is None:
        raise ConfigError(
            f'context "{name}" names the user "{chosen.user}", who isn\'t there',
            where=str(entry.source),
            hint=f"there is: {_names(merged.users)}",
        )
    server = _server(cluster, chosen.cluster)
    trust = _trust(cluster, chosen.cluster)
    return Config(
        server=server,
        namespace=chosen.namespace or "default",
        context=name,
        source=str(entry.source),
        trust=trust,
        credentials=_credentials(user, chosen.user, cluster, trust, environ),
        headers=_acting_for(user, chosen.user),
        proxy=proxy_for(server, cluster.value.proxy_url, f"{cluster.source}: cluster {chosen.cluster}", environ),
        compress=not cluster.value.disable_compression,
    )


def _names(entries: Mapping[str, object]) -> str:
    shown = list(entries)[:10]
    more = len(entries) - len(shown)
    return (", ".join(shown) + (f" and {more} more" if more else "")) or "none"


def _server(cluster: Entry[Cluster], name: str) -> str:
    written = cluster.value.server.strip()
    where = f"{cluster.source}: cluster {name}"
    if not written:
        raise ConfigError("the cluster has no server", where=where, hint="set server: https://host:port")
    try:
        # kubectl takes an address without scheme for http.
        parts = urlsplit(written if "://" in written else f"http://{written}")
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f'server "{written[:200]}" is no address', where=where, hint="write https://host:port")
    return parts.geturl().rstrip("/")


def _trust(cluster: Entry[Cluster], name: str) -> Trust:
    value = cluster.value
    where = f"{cluster.source}: cluster {name}"
    authority = _material(
        cluster, value.certificate_authority, value.certificate_authority_data, "certificate-authority", where
    )
    if value.insecure_skip_tls_verify and authority is not None:
        raise ConfigError(
            "a certificate authority is given, and insecure-skip-tls-verify says not to look at it",
            where=where,
            hint="remove one of them",
        )
    return Trust(authority, not value.insecure_skip_tls_verify, value.tls_server_name or None)


def _material(entry: Entry[Any], path: str, data: str, field_name: str, where: str) -> Material | None:
    """Bytes win over a path, as in kubectl."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"{field_name}-data is no base64", where=where) from None
    return entry.path(path) if path else None


def _credentials(
    user: Entry[User], name: str, cluster: Entry[Cluster], trust: Trust, environ: Mapping[str, str]
) -> Credentials:
    value = user.value
    where = f"{user.source}: user {name}"
    if value.auth_provider is not None:
        raise ConfigError(
            "auth-provider ended with Kubernetes 1.26", where=where, hint="use exec with your provider's program"
        )
    certificate = _material(user, value.client_certificate, value.client_certificate_data, "client-certificate", where)
    key = _material(user, value.client_key, value.client_key_data, "client-key", where)
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise ConfigError(f"{missing} is missing: certificate and key come together", where=where)
    shown = ClientCertificate(certificate, key) if certificate is not None and key is not None else None
    if value.exec is not None:
        if value.exec.api_version not in VERSIONS:
            raise ConfigError(
                f'exec has apiVersion "{value.exec.api_version}"', where=where, hint=f"known are {', '.join(VERSIONS)}"
            )
        if not value.exec.command:
            raise ConfigError("exec names no command", where=where)
        if value.exec.interactive_mode == "Always":
            raise ConfigError(
                f"the credential program {value.exec.command} wants a terminal (interactiveMode: Always)",
                where=where,
                hint="draht gives it none; use a program or mode that works without",
            )
        told = _told(cluster.value, trust)
        return ExecPlugin(value.exec, name, str(user.source.parent), told, environ)
    if value.token_file:
        return TokenFile(user.path(value.token_file), shown)
    if value.token:
        if not value.token.strip().isprintable():
            raise ConfigError("the token has line breaks or control characters", where=where)
        return Fixed(Login({"Authorization": f"Bearer {value.token.strip()}"}, shown))
    if value.username:
        return Fixed(Login(basic(value.username, value.password), shown))
    return Fixed(Login({}, shown))


def _told(cluster: Cluster, trust: Trust) -> Mapping[str, Any]:
    """What a credential program learns about the cluster, as ``spec.cluster`` of an ExecCredential."""
    told: dict[str, Any] = {"server": cluster.server}
    if cluster.tls_server_name:
        told["tls-server-name"] = cluster.tls_server_name
    if not trust.verify:
        told["insecure-skip-tls-verify"] = True
    if isinstance(trust.authority, bytes):
        told["certificate-authority-data"] = base64.b64encode(trust.authority).decode("ascii")
    if isinstance(trust.authority, Path) and trust.authority.is_file():
        told["certificate-authority-data"] = base64.b64encode(trust.authority.read_bytes()).decode("ascii")
    if cluster.proxy_url:
        told["proxy-url"] = cluster.proxy_url
    return told


def _acting_for(user: Entry[User], name: str) -> Mapping[str, str | tuple[str, ...]]:
    value = user.value
    headers: dict[str, str | tuple[str, ...]] = {}
    if value.as_:
        headers["Impersonate-User"] = value.as_
    if value.as_uid:
        headers["Impersonate-Uid"] = value.as_uid
    if value.as_groups:
        headers["Impersonate-Group"] = value.as_groups
    for key, values in value.as_user_extra.items():
        headers[f"Impersonate-Extra-{key}"] = values
    if headers and not value.as_:
        raise ConfigError("as-groups, as-uid and as-user-extra need as", where=f"{user.source}: user {name}")
    return headers
