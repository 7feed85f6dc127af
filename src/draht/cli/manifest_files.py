"""Manifests on the command line: ``-f``, ``--profile``, and the cluster they make, perhaps beside a live one.

Shared by the commands that decide. Problems of files are told and don't hide what could be read; the exit status says
that there were some.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from draht.api.errors import DrahtError
from draht.api.printable import printable_lines
from draht.cli.live import Connection, connection_options, read_live

if TYPE_CHECKING:
    from draht.allocator import Snapshot
    from draht.api.meta import Object
    from draht.api.reader import Located, ReadResult
    from draht.driver.slices import Published
    from draht.manifests import ManifestError, Manifests

__all__ = [
    "BAD_INPUT",
    "STEPS",
    "Cluster",
    "bad_input",
    "manifest_options",
    "manifests_of",
    "read_cluster",
    "read_manifests",
    "tell_problems",
]

BAD_INPUT = 2
"""Exit status when something couldn't be read."""
STEPS = 200_000
"""Search steps of one attempt, some seconds and up to 400 MB: a claim can be made so that no search ends."""
_SUFFIXES = {".yaml", ".yml", ".json"}

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the files, the profile and the live cluster make together.

    Args:
        manifests: The objects; for files alone with the classes that the shipped drivers bring.
        snapshot: Slices, nodes and allocated claims.
        published: What the profile offers, if one was named.
        broken: Something couldn't be read in part; the problems have been told.
        live: A cluster was read.
        namespace: The namespace to look in where none is named.
        settled: Namespace and name of each pod of a live cluster that waits for no decision, with the reason.
    """

    manifests: Manifests
    snapshot: Snapshot
    published: Published | None
    broken: bool
    live: bool = False
    namespace: str = "default"
    settled: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def queue(self) -> Manifests:
        """With the pods that wait for a decision only; a live cluster's in the order of the scheduler's queue."""
        if not self.live:
            return self.manifests
        waiting = [item for item in self.manifests.pods.items() if item[0] not in self.settled]
        waiting.sort(key=lambda item: (-(item[1].spec.priority or 0), item[1].metadata.creation_timestamp or ""))
        return replace(self.manifests, pods=dict(waiting))

    def check_node(self, name: str | None) -> None:
        """See that there is a node of this name, if one is named.

        Raises:
            DrahtError: There is none.
        """
        if name is not None and name not in self.snapshot.nodes:
            known = ", ".join(list(self.snapshot.nodes)[:8])
            raise DrahtError(
                f"there is no node `{name}`",
                hint=f"there are {known}" if known else "give slices that name a node, or Nodes",
            )


def manifest_options(command: _Command) -> _Command:
    """What is decided about (``-f``, ``--profile``, ``--cluster`` and their details), and how."""
    for option in (
        click.option(
            "--steps",
            type=click.IntRange(min=1),
            default=STEPS,
            show_default=True,
            help="Search steps that one node may take before it is given up.",
        ),
        click.option("--node", metavar="NODE", help="Try this node only."),
        click.option(
            "--kubernetes",
            metavar="1.NN",
            help="Decide as this release does, with its default features.  [default: all features]",
        ),
        click.option("--shares", is_flag=True, help="The profile's GPUs may be shared, each claim with its memory."),
        click.option("--partitions", is_flag=True, help="The profile's GPUs may be cut into MIG partitions."),
        click.option("--profile", metavar="NAME|FILE", help="Add the machine of this profile as a node."),
        click.option(
            "-f",
            "--file",
            "files",
            multiple=True,
            metavar="FILE|DIR",
            help="Manifests: slices, classes, claims, pods, nodes; `-` is standard input; repeatable.",
        ),
    ):
        command = option(command)
    return connection_options(command)


@contextmanager
def bad_input() -> Iterator[None]:
    """Within it an error is about options or files, so its exit status is `BAD_INPUT` and not that of an answer."""
    try:
        yield
    except DrahtError as error:
        error.exit_code = BAD_INPUT
        raise


def _expand(files: Sequence[str]) -> Iterator[str]:
    """Each file, and the YAML and JSON files of each directory in the order of their names."""
    for file in files:
        if file != "-" and os.path.isdir(file):  # noqa: PTH112 — Path.is_dir raises if it may not look
            try:
                found = sorted(path for path in Path(file).iterdir() if path.suffix in _SUFFIXES)
            except OSError as error:
                raise DrahtError(f"the directory can't be listed: {str(error.strerror).lower()}", where=file) from None
            if not found:
                raise DrahtError("there is no .yaml, .yml or .json file in the directory", where=file)
            yield from map(str, found)
        else:
            yield file


def read_manifests(files: Sequence[str]) -> ReadResult:
    """Read files, directories and, for ``-``, standard input.

    Raises:
        DrahtError: A directory can't be listed, or has no manifests.
    """
    from draht.api.reader import read_files

    # A process may have been started with standard input closed.
    return read_files(_expand(files), stdin=None if sys.stdin is None else sys.stdin.buffer)


def tell_problems(read: ReadResult) -> None:
    """Print what is wrong with files, on stderr."""
    for problem in read.problems:
        path = f"{problem.path}: " if problem.path else ""
        what = "warning" if problem.warning else "error"
        _tell(f"{problem.where}: {path}{problem.message}", problem.hint, what=what)


def manifests_of(
    found: Iterable[Located],
    *,
    tell: Callable[[ManifestError], None] | None = None,
    beside: Sequence[Object] = (),
) -> Manifests:
    """The objects of files, with those of a live cluster or else the classes that the shipped drivers bring.

    Args:
        found: The objects.
        tell: Gets the error, with its place, of each object that is left out; without it the first one is raised.
        beside: A cluster's objects; those of files take their place.

    Raises:
        ManifestError: Two objects have one kind and name, or a name is missing.
    """
    from draht.driver.vendors.classes import device_classes
    from draht.manifests import Manifests

    places = {id(each.object): each for each in found}
    given = {_identity(each.object) for each in places.values()}
    others = [each for each in beside if _identity(each) not in given]

    def refused(obj: Object, error: ManifestError) -> None:
        if id(obj) in places:
            error.where = error.where or places[id(obj)].where("metadata.name")
        if tell is None:
            raise error
        tell(error)

    named: list[Object] = []
    objects = [*(each.object for each in places.values()), *others]
    made = Manifests.of(objects, classes=() if beside else device_classes(), refused=refused, named=named.append)
    if named:
        first = named[0]
        more = f", and {len(named) - 1} more are numbered likewise" if len(named) > 1 else ""
        _tell(
            f"{first.kind} with generateName {first.metadata.generate_name} is called {first.metadata.name}{more}",
            None,
            what="note",
        )
    return made


def _tell_unserved(manifests: Manifests) -> None:
    """Say which extended resources play no part, because nobody offers them as devices."""
    from draht.manifests import unserved_resources

    for resource, pods in unserved_resources(manifests).items():
        who = f"Pod {pods[0]} asks" if len(pods) == 1 else f"{len(pods)} pods ask"
        hint = f"a DeviceClass with extendedResourceName: {resource} makes claims of it"
        _tell(f"{who} for {resource}, for which no class stands; it isn't looked at", hint, what="note")


def _identity(obj: Object) -> tuple[str, str, str]:
    return obj.kind, obj.metadata.namespace or "default", obj.metadata.name


def read_cluster(
    files: Sequence[str],
    *,
    connection: Connection | None = None,
    profile: str | None = None,
    partitions: bool = False,
    shares: bool = False,
    kubernetes: str | None = None,
    managed: Callable[[Manifests], bool] = lambda _manifests: False,
) -> Cluster:
    """Read manifests and, if one is named or there are none, a live cluster; problems are printed on stderr.

    Args:
        files: Files and directories; an object of theirs takes the place of the cluster's of that name.
        connection: The cluster; None, and no files, is that of the kubeconfig.
        profile: A machine to add as a node.
        partitions: See `draht.driver.slices.publish`.
        shares: See `draht.driver.slices.publish`.
        kubernetes: The release whose features count.
        managed: Whether to decide as draht does where it gives out the devices: the taint that keeps others off them
            doesn't count.

    Raises:
        DrahtError: A directory can't be listed, the profile or the release isn't known, the cluster can't be read.
    """
    from draht.allocator import Features, Snapshot
    from draht.api.core import Node
    from draht.api.meta import ObjectMeta
    from draht.controller import MANAGED, hindrance
    from draht.driver.slices import publish
    from draht.hardware.simulated import from_profile

    connection = connection or Connection()
    if not files and not connection.wanted and not connection.configured():
        raise click.UsageError("say with -f which manifests to read; no cluster is configured")
    live = read_live(connection) if connection.wanted or not files else None
    read = read_manifests(files)
    tell_problems(read)
    refused: list[ManifestError] = []
    manifests = manifests_of(read.objects, tell=refused.append, beside=() if live is None else live.objects)
    for error in refused:
        _tell(str(error), error.hint)
    _tell_unserved(manifests)
    settled: dict[tuple[str, str], str] = {}
    if live is not None:
        for sentence in live.missing:
            _tell(sentence, None, what="warning")
        settled = {key: reason for key, pod in manifests.pods.items() if (reason := hindrance(pod)) is not None}
    published = None
    slices = list(manifests.slices.values())
    if profile is not None:
        inventory = from_profile(profile)
        published = publish(inventory, node_name=inventory.machine, partitions=partitions, shares=shares)
        slices += published.slices
        click.echo(f"simulated: {inventory.machine} is a machine profile, its GPUs compute nothing", err=True)
    names = dict.fromkeys([*manifests.nodes, *(each.spec.node_name for each in slices if each.spec.node_name)])
    features = Features.of_kubernetes(kubernetes) if kubernetes else None
    own = managed(manifests)
    rules = [rule for rule in manifests.taint_rules.values() if not (own and rule.spec.taint.key == MANAGED)]
    snapshot = Snapshot.of(
        slices=slices,
        classes=manifests.classes.values(),
        claims=manifests.claims.values(),
        nodes=[manifests.nodes.get(name) or Node(metadata=ObjectMeta(name=name)) for name in names],
        taint_rules=rules,
        **({} if features is None else {"features": features}),
    )
    return Cluster(
        manifests,
        snapshot,
        published,
        bool(read.errors or refused or (live is not None and live.missing)),
        live=live is not None,
        namespace="default" if live is None else live.namespace,
        settled=settled,
    )


def _tell(text: str, hint: str | None, *, what: str = "error") -> None:
    click.echo(printable_lines(f"{what}: {text}"), err=True)
    if hint:
        click.echo(printable_lines(f"hint: {hint}"), err=True)
