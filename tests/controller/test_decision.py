"""Writing a decision: the order of the writes, and what is left when one of them fails."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from draht.api.core import Node, Pod
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from draht.controller import FINALIZER, GATE, Decision, DecisionError, Writer, hindrance
from draht.kube import CLAIMS, PODS, Backoff, Client, Config
from fake_apiserver import FakeApiServer, Object
from fake_http import Request

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)


class ClaimServer(FakeApiServer):
    """A server that carries out JSON patches, and refuses the patches that it is told to.

    Attributes:
        refuse: Which patches are refused: called with the number of the patch, from 0, and the request.
        before: What somebody else does just before a patch, by its number.
        patches: Path and body of every patch that was tried.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refuse: Callable[[int, Request], tuple[int, str] | None] = lambda _number, _request: None
        self.before: dict[int, Callable[[], object]] = {}
        self.patches: list[tuple[str, Any]] = []

    def _respond(self, request: Request) -> tuple[int, bytes]:
        if request.method == "PATCH":
            number = len(self.patches)
            self.patches.append((request.path.partition("/namespaces/")[2], json.loads(request.body)))
            self.before.pop(number, lambda: None)()
            refused = self.refuse(number, request)
            if refused is not None:
                return _status(*refused)
        return super()._respond(request)

    def _change(self, place: Any, found: Object, request: Any) -> tuple[int, bytes]:
        change = json.loads(request.body)
        if not isinstance(change, list):
            if change.get("metadata", {}).get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
                return _status(409, "Conflict")
            return super()._change(place, found, request)
        new = copy.deepcopy(found)
        for step in change:
            *path, last = [word.replace("~1", "/") for word in step["path"].split("/")[1:]]
            target: Any = new
            for word in path:
                target = target[int(word)] if isinstance(target, list) else target[word]
            key: Any = int(last) if isinstance(target, list) else last
            match step["op"]:
                case "test":
                    there = key < len(target) if isinstance(target, list) else key in target
                    if not there or target[key] != step["value"]:
                        return _status(422, "Invalid")
                case "remove":
                    del target[key]
                case _:
                    target[key] = step["value"]
        return 200, json.dumps(self._whole(place, self.put(place.plural, new))).encode()


def _status(code: int, reason: str) -> tuple[int, bytes]:
    return code, json.dumps({"kind": "Status", "code": code, "reason": reason, "message": f"it is {reason}"}).encode()


def decided(claim: ResourceClaim, device: str = "gpu-0") -> ResourceClaim:
    """The claim with the allocation that is to be written."""
    result = DeviceRequestAllocationResult(request="gpu", driver="gpu.example.com", pool="node-1", device=device)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation))


class Bench:
    """Two claims and a pod that waits at the gate."""

    def __init__(self, server: ClaimServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.writer = Writer(client, now=lambda: NOW)
        self.node = Node(metadata=ObjectMeta(name="node-1", labels={"kubernetes.io/hostname": "host-1"}))
        for name in ("a", "b"):
            requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
            server.put("resourceclaims", {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})
        self.put_pod()

    def put_pod(self, *gates: str, **spec: Any) -> None:
        """The pod, with other gates."""
        made = {"containers": [{"name": "main"}], "schedulingGates": [{"name": name} for name in gates or (GATE,)]}
        self.server.put("pods", {"metadata": {"name": "train"}, "spec": {**made, **spec}})

    def claim(self, name: str) -> Any:
        """A claim as the server has it."""
        return self.server.objects["resourceclaims", "default", name]

    @property
    def pod(self) -> Any:
        """The pod as the server has it."""
        return self.server.objects["pods", "default", "train"]

    def allocated(self) -> list[str]:
        """Names of the claims that have an allocation."""
        return [name for name in ("a", "b") if self.claim(name).get("status", {}).get("allocation")]

    def touch(self, name: str) -> Callable[[], object]:
        """Somebody else changes a claim."""
        return lambda: self.server.put(
            "resourceclaims", {**self.claim(name), "metadata": {**self.claim(name)["metadata"], "labels": {"x": "y"}}}
        )

    async def decision(self, *names: str, pod: bool = True) -> Decision:
        """A decision about what is read now."""
        claims = [await self.client.get(CLAIMS, name) for name in names or ("a", "b")]
        made = tuple(decided(claim, f"gpu-{number}") for number, claim in enumerate(claims))
        if not pod:
            return Decision(None, made, None)
        train = await self.client.get(PODS, "train")
        return Decision(train, made, self.node)

    async def write(self, decision: Decision) -> None:
        """Write it at a fixed time."""
        await self.writer.write(decision)

    async def fails(self, decision: Decision) -> DecisionError:
        """Write it in vain."""
        with pytest.raises(DecisionError) as refused:
            await self.write(decision)
        return refused.value


def on_server(test: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Run a test beside a server; nothing is tried again."""

    async def main() -> None:
        server = ClaimServer()
        quick = Backoff(initial=0.001, maximum=0.002)
        async with server, Client(Config(server.address), backoff=quick) as client:
            await test(Bench(server, client))

    asyncio.run(main())


def test_each_claim_is_protected_then_allocated_and_the_pod_comes_last() -> None:
    """Every state on the way is one that Kubernetes knows."""

    async def test(bench: Bench) -> None:
        await bench.write(await bench.decision())
        assert [path for path, _ in bench.server.patches] == [
            "default/resourceclaims/a",
            "default/resourceclaims/a/status",
            "default/resourceclaims/b",
            "default/resourceclaims/b/status",
            "default/pods/train",
        ]
        assert bench.allocated() == ["a", "b"]
        for name in ("a", "b"):
            assert bench.claim(name)["metadata"]["finalizers"] == [FINALIZER]
            assert bench.claim(name)["status"]["allocation"]["allocationTimestamp"] == "2026-11-30T10:00:00Z"

    on_server(test)


def others(bench: Bench, pool: str = "node-1", **result: Any) -> Callable[[], object]:
    """Somebody else gives devices to another claim."""
    given = {"request": "gpu", "driver": "gpu.example.com", "pool": pool, "device": "gpu-0", **result}
    status = {"allocation": {"devices": {"results": [given]}}}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    return lambda: bench.server.put("resourceclaims", {"metadata": {"name": "other"}, "spec": spec, "status": status})


def test_devices_that_somebody_else_gave_away_meanwhile_are_left_to_them() -> None:
    """Of two runs at once one takes its decision back; the server itself compares no two claims."""

    async def test(bench: Bench) -> None:
        bench.server.before[3] = others(bench, device="gpu-7")  # it may be a partition of one of ours
        error = await bench.fails(await bench.decision())
        assert error.message == (
            "the decision couldn't be written: devices of pool node-1 were given to claim default/other meanwhile"
        )
        assert error.hint == "decide again"
        assert bench.allocated() == []
        assert bench.pod["spec"]["schedulingGates"] == [{"name": GATE}]

    on_server(test)


@pytest.mark.parametrize("result", [{"pool": "node-2"}, {"driver": "nic.example.com"}, {"adminAccess": True}])
def test_devices_elsewhere_and_those_of_administrators_are_no_conflict(result: dict[str, Any]) -> None:
    """They take nothing away."""

    async def test(bench: Bench) -> None:
        bench.server.before[3] = others(bench, **result)
        await bench.write(await bench.decision())
        assert bench.allocated() == ["a", "b"]

    on_server(test)


def test_what_was_known_and_what_was_written_before_is_no_conflict() -> None:
    """Decisions of one run were made in the knowledge of each other."""

    async def test(bench: Bench) -> None:
        others(bench)()
        writer = Writer(bench.client, known=[bench.claim("other")["metadata"]["uid"]])
        for name in ("a", "b"):
            await writer.write(await bench.decision(name, pod=False))
        assert bench.allocated() == ["a", "b"]

    on_server(test)


def test_the_pod_loses_its_gate_and_is_pinned_in_one_patch() -> None:
    """By the host's label, beside the selectors that it has."""

    async def test(bench: Bench) -> None:
        bench.put_pod(nodeSelector={"tier": "gpu"})
        await bench.write(await bench.decision())
        assert bench.pod["spec"]["schedulingGates"] == []
        assert bench.pod["spec"]["nodeSelector"] == {"tier": "gpu", "kubernetes.io/hostname": "host-1"}

    on_server(test)


def test_a_claim_that_has_the_finalizer_needs_one_write() -> None:
    """And keeps the finalizers of others."""

    async def test(bench: Bench) -> None:
        meta = {**bench.claim("a")["metadata"], "finalizers": ["example.com/keep", FINALIZER]}
        bench.server.put("resourceclaims", {**bench.claim("a"), "metadata": meta})
        await bench.write(await bench.decision("a"))
        assert [path for path, _ in bench.server.patches] == ["default/resourceclaims/a/status", "default/pods/train"]
        meta = {**bench.claim("b")["metadata"], "finalizers": ["example.com/keep"]}
        bench.server.put("resourceclaims", {**bench.claim("b"), "metadata": meta})
        await bench.write(await bench.decision("b", pod=False))
        assert bench.claim("b")["metadata"]["finalizers"] == ["example.com/keep", FINALIZER]

    on_server(test)


def test_without_the_gate_or_without_a_pod_only_claims_are_written() -> None:
    """The scheduler sees the claims change."""

    async def test(bench: Bench) -> None:
        bench.put_pod("example.com/other")
        await bench.write(await bench.decision("a"))
        await bench.write(await bench.decision("b", pod=False))
        assert not [path for path, _ in bench.server.patches if "pods" in path]
        assert bench.allocated() == ["a", "b"]

    on_server(test)


def test_other_gates_of_the_pod_stay() -> None:
    """Only draht's own is draht's to remove, wherever it stands."""

    async def test(bench: Bench) -> None:
        bench.put_pod("example.com/first", GATE, "example.com/last")
        await bench.write(await bench.decision("a"))
        assert [gate["name"] for gate in bench.pod["spec"]["schedulingGates"]] == [
            "example.com/first",
            "example.com/last",
        ]

    on_server(test)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_whoever_is_faster_wins_and_all_is_taken_back(number: int) -> None:
    """A claim that changed since it was read: nothing of the decision stays but finalizers, and the gate is there."""

    async def test(bench: Bench) -> None:
        decision = await bench.decision()
        bench.server.before[number] = bench.touch("a" if number < 2 else "b")
        error = await bench.fails(decision)
        assert bench.allocated() == []
        assert bench.pod["spec"]["schedulingGates"] == [{"name": GATE}]
        assert "nodeSelector" not in bench.pod["spec"]
        assert error.message.startswith("the decision couldn't be written: ")
        assert "still allocated" not in error.message
        assert error.where == f"resourceclaims default/{'a' if number < 2 else 'b'}"
        assert error.hint
        await bench.write(await bench.decision())
        assert bench.allocated() == ["a", "b"]

    on_server(test)


def test_the_finalizer_stays_when_a_decision_is_taken_back() -> None:
    """It is what an allocated claim needs next time; a claim that nobody uses loses it by the claim controller."""

    async def test(bench: Bench) -> None:
        bench.server.refuse = lambda number, _request: (422, "Invalid") if number == 4 else None
        await bench.fails(await bench.decision())
        assert bench.allocated() == []
        assert bench.claim("a")["metadata"]["finalizers"] == [FINALIZER]

    on_server(test)


def test_a_pod_that_is_gone_frees_its_claims_in_reverse() -> None:
    """The last one that was allocated is freed first."""

    async def test(bench: Bench) -> None:
        decision = await bench.decision()
        bench.server.before[4] = lambda: bench.server.remove("pods", "train", "default")
        error = await bench.fails(decision)
        assert error.where == "pods default/train"
        assert bench.allocated() == []
        freed = [(path, body["status"]) for path, body in bench.server.patches[5:]]
        assert freed == [
            ("default/resourceclaims/b/status", {"allocation": None}),
            ("default/resourceclaims/a/status", {"allocation": None}),
        ]

    on_server(test)


def test_a_pod_of_the_same_name_isnt_the_one_that_was_meant() -> None:
    """It was deleted and made again meanwhile."""

    async def test(bench: Bench) -> None:
        decision = await bench.decision()

        def again() -> None:
            bench.server.remove("pods", "train", "default")
            bench.put_pod()

        bench.server.before[4] = again
        await bench.fails(decision)
        assert bench.allocated() == []
        assert bench.pod["spec"]["schedulingGates"] == [{"name": GATE}]

    on_server(test)


def test_a_claim_that_is_gone_needs_no_freeing() -> None:
    """With the pod, as when both are deleted."""

    async def test(bench: Bench) -> None:
        decision = await bench.decision()

        def gone() -> None:
            bench.server.remove("pods", "train", "default")
            bench.server.remove("resourceclaims", "a", "default")

        bench.server.before[4] = gone
        error = await bench.fails(decision)
        assert "still allocated" not in error.message
        assert not bench.claim("b").get("status", {}).get("allocation")

    on_server(test)


def test_a_claim_that_cant_be_freed_is_named() -> None:
    """Somebody took it meanwhile, as the scheduler does when it reserves: it isn't taken from them."""

    async def test(bench: Bench) -> None:
        decision = await bench.decision()
        bench.server.before[3] = lambda: bench.server.remove("pods", "train", "default")
        bench.server.before[4] = bench.touch("a")
        error = await bench.fails(decision)
        assert error.message.endswith("still allocated, and to be freed by hand: default/a")
        assert bench.allocated() == ["a"]

    on_server(test)


def test_who_may_not_write_an_allocation_is_told_by_the_server() -> None:
    """With the object, and nothing was changed but the finalizer."""

    async def test(bench: Bench) -> None:
        bench.server.refuse = lambda number, _request: (403, "Forbidden") if number == 1 else None
        error = await bench.fails(await bench.decision())
        assert error.message == "the decision couldn't be written: it is Forbidden"
        assert error.where == "resourceclaims default/a"
        assert bench.allocated() == []

    on_server(test)


def _pods() -> Iterator[tuple[dict[str, Any], str | None]]:
    yield {}, None
    yield {"gates": [GATE]}, None
    yield {"gates": [GATE, "example.com/quota"]}, "it waits for the gate example.com/quota"
    yield {"gates": ["a.example.com/x", "b.example.com/y"]}, "it waits for the gate a.example.com/x, b.example.com/y"
    yield {"node": "node-1", "phase": "Running"}, "it is on node node-1"
    yield {"phase": "Succeeded"}, "it is succeeded"
    yield {"deleted": "2026-01-01T00:00:00Z", "gates": [GATE]}, "it is being deleted"
    yield {"phase": "Pending"}, None


@pytest.mark.parametrize(("facts", "reason"), list(_pods()))
def test_pods_that_wait_for_no_decision_say_why(facts: dict[str, Any], reason: str | None) -> None:
    """Devices aren't held for a pod that can't start, or that has started."""
    metadata = {"name": "train", "namespace": "default"}
    if "deleted" in facts:
        metadata["deletionTimestamp"] = facts["deleted"]
    gates = [{"name": name} for name in facts.get("gates", ())]
    spec = {"containers": [{"name": "main"}], "nodeName": facts.get("node", ""), "schedulingGates": gates}
    pod = msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": facts.get("phase", "")}}, Pod)
    assert hindrance(pod) == reason
