from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from typing import Any

import pytest

from draht.api.core import Node
from draht.api.meta import ObjectMeta
from draht.kube import Backoff, Client, Config
from draht.node.node_labels import ANNOTATION, NodeLabels, label_patch
from fake_apiserver import FakeApiServer, Fault, Object
from fake_slice_server import until

A, B, OTHER, GFD = (
    "nvidia.com/gpu.count",
    "nvidia.com/mig.capable",
    "kubernetes.io/hostname",
    "nvidia.com/gfd.timestamp",
)


@pytest.mark.parametrize(
    ("labels", "noted", "wanted", "changed", "note", "taken"),
    [
        pytest.param({}, None, {A: "8"}, {A: "8"}, A, (), id="new"),
        pytest.param({A: "8"}, A, {A: "8"}, None, None, (), id="nothing to do"),
        pytest.param({A: "8"}, A, {A: "4"}, {A: "4"}, None, (), id="another value of ours"),
        pytest.param({A: "8", OTHER: "n"}, A, {}, {A: None}, "", (), id="ours goes, another's stays"),
        pytest.param({A: "8", B: "true"}, f"{A},{B}", {B: "true"}, {A: None}, B, (), id="one of two goes"),
        pytest.param({A: "2"}, None, {A: "8"}, None, None, (A,), id="somebody else's isn't corrected"),
        pytest.param({A: "8"}, None, {A: "8"}, None, None, (), id="somebody else's with our value stays theirs"),
        pytest.param({}, A, {A: "8"}, {A: "8"}, None, (), id="ours that somebody removed"),
        pytest.param({}, A, {}, None, "", (), id="ours that somebody removed and we don't want"),
        pytest.param({A: "8", GFD: "1"}, A, {A: "8"}, None, "", (), id="feature discovery has taken over"),
        pytest.param({A: "2", GFD: "1"}, None, {A: "8"}, None, None, (), id="feature discovery's node"),
        pytest.param({A: "2"}, B, {A: "8", B: "true"}, {B: "true"}, None, (A,), id="taken beside ours"),
    ],
)
def test_only_own_labels_are_changed(
    labels: Mapping[str, str],
    noted: str | None,
    wanted: Mapping[str, str],
    changed: Mapping[str, str | None] | None,
    note: str | None,
    taken: tuple[str, ...],
) -> None:
    """What is written, what is noted of it, and what is left to others."""
    annotations = {} if noted is None else {ANNOTATION: noted}
    patch = label_patch(Node(metadata=ObjectMeta(name="n", labels=labels, annotations=annotations)), wanted)
    metadata = patch.body.get("metadata", {})
    assert metadata.get("labels") == changed
    assert metadata.get("annotations") == (None if note is None else {ANNOTATION: note or None})
    assert patch.taken == taken


def test_labels_are_written_kept_and_taken_away() -> None:
    """On a server: written, repaired after somebody removed one, and gone when they aren't wanted; others stay."""

    async def test() -> None:
        async with FakeApiServer() as server, _client(server) as client:
            server.put("nodes", {"metadata": {"name": "n", "labels": {OTHER: "n"}}})
            wanted = {A: "8"}
            labels = NodeLabels(lambda: wanted, seconds=0.01)
            running = asyncio.create_task(labels.run(client, "n"))
            await until(lambda: _labels(server) == {OTHER: "n", A: "8"})
            server.put("nodes", {"metadata": {**_node(server)["metadata"], "labels": {OTHER: "n"}}})
            await until(lambda: _labels(server) == {OTHER: "n", A: "8"})
            wanted.clear()
            await until(lambda: _labels(server) == {OTHER: "n"})
            assert ANNOTATION not in _node(server)["metadata"]["annotations"]
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    asyncio.run(test())


def test_trouble_is_told_and_waited_out() -> None:
    """A node that isn't there, a refusal, a conflict: a problem meanwhile, none afterwards."""

    async def test() -> None:
        async with FakeApiServer() as server, _client(server) as client:
            labels = NodeLabels(lambda: {A: "8"}, seconds=0.05, backoff=Backoff(initial=0.01, maximum=0.02))
            running = asyncio.create_task(labels.run(client, "n"))
            await until(lambda: labels.problems)
            server.faults += [Fault("status", verb="patch", code=403), Fault("status", verb="patch", code=409)]
            server.put("nodes", {"metadata": {"name": "n"}})
            await until(lambda: _labels(server) == {A: "8"})
            await until(lambda: not labels.problems)
            server.put("nodes", {"metadata": {"name": "n", "labels": {A: "2"}}})
            await until(lambda: labels.problems)
            assert _labels(server) == {A: "2"}
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    asyncio.run(test())


def _client(server: FakeApiServer) -> Client:
    return Client(Config(server.address), source=random.Random(1), backoff=Backoff(initial=0.01, maximum=0.02))


def _node(server: FakeApiServer) -> Object:
    return server.objects["nodes", "", "n"]


def _labels(server: FakeApiServer) -> Any:
    return _node(server)["metadata"].get("labels")
