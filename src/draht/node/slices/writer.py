"""Carries out a plan against a server, and remembers what came of it.

Owns single writes: names, owner, preconditions, and what each kind of refusal means for the rest of the plan. Writes of
one stage go out side by side, because a pool is incomplete until the last of them is done.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from draht.api.meta import ObjectMeta, OwnerReference
from draht.api.resource import ResourceSlice, ResourceSliceSpec
from draht.driver.slices import name_prefix
from draht.kube import (
    NODES,
    SLICES,
    Client,
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
    StatusError,
)
from draht.node.slices.answers import ServerAnswers
from draht.node.slices.content import plain_paths
from draht.node.slices.errors import PublishError
from draht.node.slices.memory import SliceMemory
from draht.node.slices.plan import Create, Delete, Plan, Replace, Write

__all__ = ["STARTED", "SliceWriter", "Unfinished"]

STARTED: Final = "draht.dev/publisher-started"
"""Annotation of a slice: when the agent that wrote it last was started. Text that sorts by time."""

_SIDE_BY_SIDE: Final = 8


class Unfinished(Exception):  # noqa: N818 - no error: the plan was made from less than is known now
    """The rest of the plan has no point any more; another one can be made at once."""


class SliceWriter:
    """Writes slices of one driver on one node.

    Args:
        client: A connected client.
        driver: Name of the driver.
        node_name: The node that owns the slices.
        memory_of: The memory that is to learn of a write, by its slice.
        answers: Learns what the server makes of it.
        started: Goes into the annotation `STARTED`.
    """

    def __init__(
        self,
        client: Client,
        driver: str,
        node_name: str,
        *,
        memory_of: Callable[[ResourceSliceSpec], SliceMemory],
        answers: ServerAnswers,
        started: str,
    ) -> None:
        self._client = client
        self._driver = driver
        self._node_name = node_name
        self._memory_of = memory_of
        self.answers = answers
        self._started = started
        self.counters: Counter[str] = Counter()
        self.uncertain = False
        """Whether a write may have been done of which nothing is known; ask the server before the next plan."""

    async def carry_out(self, plan: Plan) -> None:
        """Do all writes of a plan.

        Raises:
            Unfinished: Something was learnt that asks for another plan at once.
            PublishError: The node isn't there.
            KubeError: What the server said, or that it said nothing.
        """
        owner: OwnerReference | None = None
        for stage in plan.stages:
            if owner is None and any(isinstance(write, Create) for write in stage):
                owner = await self._owner()
            await self._stage(stage, owner)

    async def probe(self, spec: ResourceSliceSpec) -> tuple[str, ...]:
        """The fields that the server would drop of a slice; nothing is stored.

        Raises:
            InvalidError: It would refuse the slice.
            KubeError: It can't be told.
        """
        probed = self._object(0, spec, await self._owner())
        made = await self._client.create(SLICES, probed, dry_run=True, field_validation="Warn")
        return ServerAnswers().took(spec, made.spec)

    async def changed_its_mind(self) -> bool:
        """Whether the server would now take what it dropped or refused before, or the other way round.

        Raises:
            KubeError: It can't be told.
        """
        for spec, lost in self.answers.doubts():
            try:
                now: tuple[str, ...] | None = await self.probe(spec)
            except InvalidError:
                now = None
            if (now is None) != (lost is None):
                return True
            if now is not None and lost is not None and not set(plain_paths(lost)) <= set(plain_paths(now)):
                return True
        return False

    async def _stage(self, stage: Sequence[Write], owner: OwnerReference | None) -> None:
        free = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def one(write: Write) -> None:
            async with free:
                await self._write(write, owner)

        results = await asyncio.gather(*map(one, stage), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        # What is no answer of a server comes first, then what must wait, then what may go on at once.
        for kind in (BaseException, KubeError, Unfinished):
            for error in errors:
                if isinstance(error, kind) and (
                    kind is not BaseException or not isinstance(error, KubeError | Unfinished)
                ):
                    raise error

    async def _write(self, write: Write, owner: OwnerReference | None) -> None:
        try:
            match write:
                case Create(index, spec):
                    assert owner is not None
                    made = await self._client.create(SLICES, self._object(index, spec, owner), field_validation="Warn")
                    self._learn(spec, made)
                    self.counters["create"] += 1
                case Replace(old, spec):
                    annotations = {**old.metadata.annotations, STARTED: self._started}
                    metadata = msgspec.structs.replace(old.metadata, annotations=annotations)
                    new = msgspec.structs.replace(old, metadata=metadata, spec=spec)
                    self._learn(spec, await self._client.update(SLICES, new, field_validation="Warn"))
                    self.counters["update"] += 1
                case Delete(old):
                    await self._client.delete(SLICES, old.metadata.name, uid=old.metadata.uid)
                    self._memory_of(old.spec).removed(old)
                    self.counters["delete"] += 1
        except KubeError as error:
            self._judge(write, error)

    def _judge(self, write: Write, error: KubeError) -> None:
        """Turn a refusal into what follows from it."""
        match error:
            case NotFoundError() if not isinstance(write, Create):
                self._memory_of(write.old.spec).removed(write.old)
                if isinstance(write, Delete):
                    return
                raise Unfinished from error
            case InvalidError() if not isinstance(write, Delete) and self.answers.refuse(write.spec, error):
                self.counters["failed"] += 1
                raise Unfinished from error
            case ConflictError():
                self.uncertain = True
            case StatusError() if error.code < 500:
                pass
            case _:
                self.uncertain = True
        self.counters["failed"] += 1
        raise error

    def _learn(self, spec: ResourceSliceSpec, made: ResourceSlice) -> None:
        self._memory_of(spec).wrote(made)
        self.answers.took(spec, made.spec)

    def _object(self, index: int, spec: ResourceSliceSpec, owner: OwnerReference) -> ResourceSlice:
        prefix = name_prefix(index, self._driver)
        metadata = ObjectMeta(
            generate_name=f"{prefix}{self._node_name}-",
            annotations={STARTED: self._started},
            owner_references=(owner,),
        )
        return ResourceSlice(metadata=metadata, spec=spec)

    async def _owner(self) -> OwnerReference:
        """The node as it is now: slices of a node that was deleted and made again would be collected as garbage."""
        try:
            node = await self._client.get(NODES, self._node_name)
        except NotFoundError:
            raise PublishError(
                "the server doesn't know the node, which must own the slices",
                where=f"node {self._node_name}",
                hint="wait until the kubelet has registered it, and check the node's name",
            ) from None
        return OwnerReference(
            api_version="v1", kind="Node", name=self._node_name, uid=node.metadata.uid, controller=True
        )
