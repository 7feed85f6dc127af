"""Kubeconfig files: reading them, and merging several as kubectl does.

Owns the files' shapes and the rule of merging: for every name, and for the current context, the first file that has it
wins; paths are relative to the file they stand in. What a context means for a connection is `draht.kube.config`. Files
are read leniently, because every tool adds fields of its own; a file that can't be read isn't skipped, because the next
one might lead to another cluster.

Source: the kubectl documentation ("Organizing Cluster Access Using kubeconfig Files") and the types of
`client.config.k8s.io` v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from draht.api import yaml
from draht.api.reader.strict import BAD, Walker
from draht.kube.errors import ConfigError

__all__ = ["Cluster", "Context", "Entry", "ExecConfig", "Kubeconfig", "User", "load"]

_T = TypeVar("_T")


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """Where a server is and whom to trust for it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False


class Variable(msgspec.Struct, frozen=True):
    """One variable for a credential program."""

    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class User(msgspec.Struct, frozen=True, rename="kebab"):
    """How one shows who one is."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: Mapping[str, Any] | None = None
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: Mapping[str, tuple[str, ...]] = {}


class Context(msgspec.Struct, frozen=True, rename="kebab"):
    """Which user talks to which cluster, and in which namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Entry(Generic[_T]):
    """A named entry and the file it stands in."""

    value: _T
    source: Path

    def path(self, written: str) -> Path:
        """A path of the entry, from where the file lies."""
        return self.source.parent / written


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User = User()


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context = Context()


class _File(msgspec.Struct, frozen=True):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = msgspec.field(default="", name="current-context")


@dataclass(slots=True)
class Kubeconfig:
    """What the files say together.

    Attributes:
        files: Those that exist, in their order.
    """

    files: list[Path] = field(default_factory=list)
    clusters: dict[str, Entry[Cluster]] = field(default_factory=dict)
    users: dict[str, Entry[User]] = field(default_factory=dict)
    contexts: dict[str, Entry[Context]] = field(default_factory=dict)
    current_context: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to connect to; kubectl then looks for a cluster around it."""
        return not self.clusters and not self.contexts


def load(paths: Iterable[Path], *, must_exist: bool = False) -> Kubeconfig:
    """Read files and merge them; those that don't exist are passed over.

    Args:
        paths: In the order of precedence.
        must_exist: The files were named for this call, so a missing one is a mistake.

    Raises:
        ConfigError: A file can't be read or isn't a kubeconfig.
    """
    merged = Kubeconfig()
    for path in paths:
        # Absolute, so that relative paths inside keep their meaning when the working directory changes.
        source = path.expanduser().absolute()
        found = _read(source)
        if found is None:
            if must_exist:
                raise ConfigError("there is no such kubeconfig", where=str(path), hint="check --kubeconfig")
            continue
        merged.files.append(source)
        for cluster in found.clusters:
            merged.clusters.setdefault(cluster.name, Entry(cluster.cluster, source))
        for user in found.users:
            merged.users.setdefault(user.name, Entry(user.user, source))
        for context in found.contexts:
            merged.contexts.setdefault(context.name, Entry(context.context, source))
        merged.current_context = merged.current_context or found.current_context
    return merged


def _read(path: Path) -> _File | None:
    try:
        with path.open("rb") as file:
            data = file.read(yaml.MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"the kubeconfig can't be read: {(error.strerror or str(error)).lower()}", where=str(path)
        ) from None
    return _parse(data, path)


def _parse(data: bytes, path: Path) -> _File:
    try:
        root = next(yaml.documents(data, source=str(path)), None)
    except yaml.YamlError as error:
        raise ConfigError(error.message, where=error.where, hint="a kubeconfig is YAML; mend or move it") from None
    if root is None:
        return _File()
    walker = Walker(str(path))
    value = walker.untyped(root, "")
    if value is BAD:
        problem = walker.problems[0]
        raise ConfigError(problem.message, where=problem.where, hint=problem.hint)
    try:
        return msgspec.convert(_without_null(value), _File)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        where = place.rstrip("`").lstrip(".")
        raise ConfigError(
            f"{text[:1].lower()}{text[1:]}" + (f" in {where}" if where else ""),
            where=str(path),
            hint="compare it with `kubectl config view --raw`",
        ) from None


def _without_null(value: Any) -> Any:
    """What Go's reader makes of it: null is the same as nothing."""
    if isinstance(value, dict):
        return {name: _without_null(below) for name, below in value.items() if below is not None}
    if isinstance(value, list):
        return [_without_null(below) for below in value]
    return value
