"""A live cluster on the command line: ``--cluster``, ``--context``, ``--kubeconfig``, and what is read from it.

Shared by the commands that decide from files or from a cluster. What the identity in use may not list is told and
doesn't hide the rest. Reading only: writing decisions is `draht.controller`'s.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from draht.api.errors import DrahtError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from draht.api.meta import Object
    from draht.kube import Client, Config

__all__ = ["PLUGIN", "Connection", "Live", "connection_options", "extra", "read_live"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

PLUGIN = "DRAHT_KUBECTL"
"""Set while draht runs as ``kubectl draht``."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Which cluster a command reads.

    Attributes:
        cluster: A cluster was asked for, not only files.
        kubeconfig: The file to use instead of ``$KUBECONFIG`` and ``~/.kube/config``.
        context: The context to use instead of the current one.
    """

    cluster: bool = False
    kubeconfig: str | None = None
    context: str | None = None

    @property
    def wanted(self) -> bool:
        """Whether any option named a cluster, or draht runs as a plugin of kubectl."""
        named = self.cluster or self.kubeconfig is not None or self.context is not None
        return named or PLUGIN in os.environ

    def configured(self) -> bool:
        """Whether there is a cluster that could be read."""
        try:
            self.config()
        except DrahtError:
            return False
        return True

    def config(self) -> Config:
        """Where the API server is and who asks.

        Raises:
            KubeError: There is no configuration, or it can't be used.
        """
        with extra("cluster"):
            from draht.kube import Config

        return Config.load(kubeconfig=Path(self.kubeconfig) if self.kubeconfig else None, context=self.context)


@dataclass(frozen=True, slots=True)
class Live:
    """What a cluster holds that decides about devices.

    Attributes:
        objects: Slices, classes, claims, templates, taint rules, pods and nodes of all namespaces.
        namespace: The namespace of the context.
        missing: What couldn't be listed or read, as sentences.
    """

    objects: Sequence[Object]
    namespace: str
    missing: Sequence[str]


def connection_options(command: _Command) -> _Command:
    """``--cluster``, ``--context`` and ``--kubeconfig``; the command gets one argument ``connection``."""

    def collect(ctx: click.Context, parameter: click.Parameter, value: object) -> object:
        known = ctx.params.setdefault("connection", Connection())
        assert parameter.name is not None
        if value not in {None, False}:
            values = {"cluster": known.cluster, "kubeconfig": known.kubeconfig, "context": known.context}
            ctx.params["connection"] = Connection(**{**values, parameter.name: value})
        return value

    for option in (
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(),
            expose_value=False,
            callback=collect,
            help="Read the cluster that this file names.",
        ),
        click.option(
            "--context",
            metavar="NAME",
            expose_value=False,
            callback=collect,
            help="Read the cluster of this context of the kubeconfig.",
        ),
        click.option(
            "--cluster",
            is_flag=True,
            expose_value=False,
            callback=collect,
            help="Read the live cluster: the current context of the kubeconfig, or the cluster this runs in.",
        ),
    ):
        command = option(command)
    return command


def read_live(connection: Connection) -> Live:
    """Everything that decides about devices, of all namespaces.

    Raises:
        KubeError: The cluster can't be reached, or doesn't serve `resource.k8s.io`.
    """
    config = connection.config()
    return asyncio.run(_read(config))


async def _read(config: Config) -> Live:
    from draht.kube import (
        CLAIM_TEMPLATES,
        CLAIMS,
        CLASSES,
        NODES,
        PODS,
        SLICES,
        TAINT_RULES,
        Client,
        ForbiddenError,
        Kind,
        NotServedError,
    )

    missing: list[str] = []

    async def objects(client: Client, kind: Kind[Any], *, optional: bool) -> Sequence[Object]:
        try:
            listed = await client.list(kind)
        except ForbiddenError as error:
            missing.append(f"{kind.plural} can't be listed and play no part: {error.message}")
            return ()
        except NotServedError:
            if optional:
                return ()
            raise
        # A claim that can't be read may hold devices: whoever decides must know.
        missing.extend(
            f"{kind.plural} {'/'.join(filter(None, each.key))} can't be read: {each.problem}"
            for each in listed.unreadable
        )
        return listed.items

    # Slices, classes and claims are the question itself: without them every answer would be a guess.
    kinds: list[tuple[Kind[Any], bool]] = [
        (SLICES, False),
        (CLASSES, False),
        (CLAIMS, False),
        (CLAIM_TEMPLATES, False),
        (TAINT_RULES, True),
        (PODS, False),
        (NODES, False),
    ]
    async with Client(config) as client:
        lists = await asyncio.gather(*(objects(client, kind, optional=optional) for kind, optional in kinds))
    return Live([each for one in lists for each in one], config.namespace, missing)


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Say which extra of draht brings a package, where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("draht"):
            raise
        raise DrahtError(
            f"this needs the Python package {error.name}, which isn't installed",
            hint=f"pip install 'draht[{name}]'",
        ) from None
