"""The manifests in ``deploy/`` on a real API server, and what the identities that they make may do and may not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import yaml

from cluster.cluster import Cluster
from cluster.pods import pod
from draht.api.core import Namespace, Node, Pod
from draht.api.meta import LabelSelector, ObjectMeta, OwnerReference
from draht.api.reader import read_text
from draht.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from draht.driver.vendors.classes import device_classes
from draht.kube import (
    CLAIMS,
    CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    Client,
    Config,
    ForbiddenError,
    InvalidError,
    KubeError,
    StatusError,
)
from draht.node.node_labels import label_patch
from draht.node.slices.publisher import Publisher
from fake_slice_server import AT_ONCE, many, offer, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAYS = ("base", "overlays/simulated", "overlays/nvidia", "controller")
DRIVER = "gpu.nvidia.com"
MINE, OTHER = "mine", "other"


@pytest.fixture(scope="module")
def plane(cluster_needs: None) -> Iterator[Cluster]:
    """A control plane with two Node objects, on which the simulated overlay and the controller are deployed."""
    running = Cluster.up(f"d{os.getpid()}", nodes=0)
    try:
        for directory in ("overlays/simulated", "controller"):
            running.kubectl("apply", "--kustomize", str(DEPLOY / directory))
        for name in (MINE, OTHER):
            running.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        _wait_for_policies(running)
        yield running
    finally:
        running.down()


def _wait_for_policies(cluster: Cluster) -> None:
    """The server takes a moment until it enforces a policy."""

    async def wait(client: Client) -> None:
        async with asyncio.timeout(60):
            for attempt in (lambda: _slice(client, OTHER, dry_run=True), lambda: _label(client, OTHER, dry_run=True)):
                while True:
                    try:
                        await attempt()
                    except InvalidError:
                        break
                    await asyncio.sleep(0.1)

    _as_agent(cluster, wait)


def _run(kubeconfig: Path, test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client(Config.load(kubeconfig=kubeconfig)) as client:
            await test(client)

    asyncio.run(main())


def _as_agent(cluster: Cluster, test: Callable[[Client], Awaitable[None]], node: str | None = MINE) -> None:
    """With a token of the agent's account that is bound to a node as that of its pod is."""
    token = cluster.service_account_token("draht-system", "draht-node", node=node)
    _run(cluster.kubeconfig_for(token=token), test)


def _as_controller(cluster: Cluster, test: Callable[[Client], Awaitable[None]]) -> None:
    token = cluster.service_account_token("draht-system", "draht-controller")
    _run(cluster.kubeconfig_for(token=token), test)


async def _slice(
    client: Client,
    node: str | None,
    *,
    owner: str = "",
    driver: str = DRIVER,
    dry_run: bool = False,
    name: str = "00000-test-",
) -> ResourceSlice:
    """Create a slice for a node, or for all."""
    owners: tuple[OwnerReference, ...] = ()
    if owner:
        uid = (await client.get(NODES, owner)).metadata.uid
        owners = (OwnerReference(api_version="v1", kind="Node", name=owner, uid=uid, controller=True),)
    spec = ResourceSliceSpec(
        driver=driver,
        pool=ResourcePool(name=node or "shared", resource_slice_count=1),
        node_name=node,
        all_nodes=None if node else True,
        devices=(Device(name="gpu-0"),),
    )
    made = ResourceSlice(metadata=ObjectMeta(generate_name=name, owner_references=owners), spec=spec)
    return await client.create(SLICES, made, dry_run=dry_run)


async def _label(client: Client, node: str, key: str = "nvidia.com/gpu.count", *, dry_run: bool = False) -> Node:
    return await client.patch(NODES, node, {"metadata": {"labels": {key: "8"}}}, dry_run=dry_run)


async def _refused(attempt: Awaitable[Any], words: str) -> None:
    """The server says no, and why."""
    with pytest.raises(StatusError, match=words) as caught:
        await attempt
    assert caught.value.code in {403, 422}


def _claim(name: str) -> ResourceClaim:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu.nvidia.com"))
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def _allocation(node: str) -> dict[str, Any]:
    result = DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool=node, device="gpu-0")
    allocation = msgspec.to_builtins(AllocationResult(devices=DeviceAllocationResult(results=(result,))))
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
    allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    return {"status": {"allocation": allocation}}


def _status(node: str) -> dict[str, Any]:
    device = AllocatedDeviceStatus(driver=DRIVER, pool=node, device="gpu-0", data={"index": 0})
    return {"status": {"devices": [msgspec.to_builtins(device)]}}


async def _patch_status(client: Client, name: str, change: dict[str, Any]) -> ResourceClaim:
    return await client.patch(CLAIMS, name, change, namespace="default", subresource="status")


@pytest.mark.parametrize("directory", OVERLAYS)
def test_every_directory_is_accepted_by_the_server(plane: Cluster, directory: str) -> None:
    """All objects of it, checked strictly by the server; those that draht models are read strictly, too."""
    plane.kubectl(
        "apply",
        "--kustomize",
        str(DEPLOY / directory),
        "--dry-run=server",
        "--validate=strict",
    )
    text = plane.kubectl("kustomize", str(DEPLOY / directory))
    read = read_text(text)
    assert not read.errors
    names = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in yaml.safe_load_all(text)
    ]
    assert len(set(names)) == len(names)
    assert {namespace for _, namespace, _ in names} <= {None, "draht-system"}


def test_the_classes_on_the_server_are_those_of_the_program(plane: Cluster) -> None:
    """A claim means the same with and without a cluster."""

    async def test(client: Client) -> None:
        found = {each.metadata.name: each.spec for each in (await client.list(CLASSES)).items}
        assert found == {each.metadata.name: each.spec for each in device_classes()}

    _run(plane.kubeconfig, test)


def test_the_agents_identity_publishes_for_its_own_node(plane: Cluster) -> None:
    """All that the publisher does: create, change, repair, remove; and the labels of the node."""

    async def test(client: Client) -> None:
        publisher = Publisher(client, DRIVER, MINE, delays=AT_ONCE)
        running = asyncio.create_task(publisher.run())
        for count in (8, 200, 3):
            publisher.set(offer(*many(count)))
            await until(lambda: publisher.synced or publisher.problems)
            assert publisher.problems == ()
        publisher.set(offer())
        await until(lambda: publisher.synced or publisher.problems)
        assert publisher.problems == ()
        assert publisher.counters["delete"] > 0
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for each in (await client.list(SLICES, field_selector=f"spec.nodeName={MINE}")).items:
            await client.delete(SLICES, each.metadata.name)
        for wanted in ({"nvidia.com/gpu.count": "8", "draht.dev/simulated": "true"}, {}):
            patch = label_patch(await client.get(NODES, MINE), wanted)
            await client.patch(NODES, MINE, patch.body)

    _as_agent(plane, test)


def test_the_agent_may_not_write_slices_of_another_node(plane: Cluster) -> None:
    """Not create, not change, not delete."""

    async def prepare(client: Client) -> None:
        await client.create(SLICES, _named("others-slice", OTHER))

    async def test(client: Client) -> None:
        await _refused(_slice(client, OTHER), "may not write slices of node other")
        (found,) = (await client.list(SLICES, field_selector=f"spec.nodeName={OTHER}")).items
        changed = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, devices=()))
        await _refused(client.update(SLICES, changed), "may not write slices of node other")
        await _refused(client.delete(SLICES, found.metadata.name), "may not write slices of node other")

    _run(plane.kubeconfig, prepare)
    _as_agent(plane, test)


def test_the_agent_may_not_hide_the_pool_of_another_node(plane: Cluster) -> None:
    """A pool is known by driver and name: a slice of one's own with a higher generation would make it another's."""

    async def test(client: Client) -> None:
        await _refused(client.create(SLICES, _named("hiding", MINE, pool=OTHER)), "isn't named after the node")
        made = await client.create(SLICES, _named("below", MINE, pool=f"{MINE}/below"))
        await client.delete(SLICES, made.metadata.name)

    _as_agent(plane, test)


def _named(name: str, node: str, *, pool: str = "") -> ResourceSlice:
    spec = ResourceSliceSpec(
        driver=DRIVER,
        pool=ResourcePool(name=pool or node, resource_slice_count=1),
        node_name=node,
        devices=(Device(name="gpu-0"),),
    )
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def test_slices_without_a_node_are_for_drivers_that_are_named(plane: Cluster) -> None:
    """By default for none; for a named driver only with the agent's own node as owner."""

    async def refused(client: Client) -> None:
        await _refused(_slice(client, None, owner=MINE), "aren't allowed for driver gpu.nvidia.com")

    async def allowed(client: Client) -> None:
        async with asyncio.timeout(30):
            while True:
                try:
                    made = await _slice(client, None, owner=MINE, driver="fabric.example.com")
                    break
                except InvalidError:
                    await asyncio.sleep(0.1)  # until the server has seen the ConfigMap
        await _refused(_slice(client, None, owner=OTHER, driver="fabric.example.com"), "must be owned by the node")
        await _refused(_slice(client, None, driver="fabric.example.com"), "must be owned by the node")
        await client.delete(SLICES, made.metadata.name)

    _as_agent(plane, refused)
    change = '{"data": {"sharedPoolDrivers": "dra.net fabric.example.com"}}'
    plane.kubectl("patch", "configmap", "draht-slice-policy", "--namespace=draht-system", "--patch", change)
    _as_agent(plane, allowed)


def test_a_token_without_a_node_may_write_no_slices(plane: Cluster) -> None:
    """A token that was made by hand, or an old one from a secret."""

    async def test(client: Client) -> None:
        await _refused(_slice(client, MINE), "isn't bound to a pod or node")

    _as_agent(plane, test, node=None)


def test_the_agent_changes_its_own_node_and_there_only_what_is_about_devices(plane: Cluster) -> None:
    """Another node, a label of others, a taint and another's annotation are refused."""

    async def test(client: Client) -> None:
        await _refused(_label(client, OTHER), "may not change node other")
        await _refused(_label(client, MINE, "node-role.kubernetes.io/control-plane"), "labels of nvidia.com")
        taint = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
        await _refused(client.patch(NODES, MINE, taint), "spec of a node")
        annotation = {"metadata": {"annotations": {"a.example/b": "c"}}}
        await _refused(client.patch(NODES, MINE, annotation), "annotations of draht.dev")
        await _refused(client.patch(NODES, MINE, {"metadata": {"finalizers": ["a.example/b"]}}), "finalizers or owners")

    _as_agent(plane, test)


def test_the_agent_reports_on_claims_of_its_own_node_only(plane: Cluster) -> None:
    """status.devices where the claim is allocated here; not of another node's claim; never an allocation."""

    async def prepare(client: Client) -> None:
        for node in (MINE, OTHER):
            await client.create(CLAIMS, _claim(f"on-{node}"))
            await _patch_status(client, f"on-{node}", _allocation(node))
        await client.create(CLAIMS, _claim("waiting"))

    async def test(client: Client) -> None:
        written = await _patch_status(client, f"on-{MINE}", _status(MINE))
        assert written.status.devices[0].device == "gpu-0"
        await _refused(
            _patch_status(client, f"on-{OTHER}", _status(OTHER)), "resourceclaims/driver|forbidden|not permitted"
        )
        await _refused(_patch_status(client, "waiting", _allocation(MINE)), "resourceclaims/binding|forbidden")

    _run(plane.kubeconfig, prepare)
    _as_agent(plane, test)


def test_the_policy_alone_keeps_allocations_from_the_agent(plane: Cluster) -> None:
    """As on servers before 1.36, which don't ask for a permission for each part of a status."""
    resource = "--resource=resourceclaims.resource.k8s.io/binding"
    plane.kubectl("create", "clusterrole", "older-server", "--verb=update,patch", resource)
    plane.kubectl(
        "create",
        "clusterrolebinding",
        "older-server",
        "--clusterrole=older-server",
        "--serviceaccount=draht-system:draht-node",
    )

    async def prepare(client: Client) -> None:
        await client.create(CLAIMS, _claim("unallocated"))

    async def test(client: Client) -> None:
        await _refused(_patch_status(client, "unallocated", _allocation(MINE)), "may not change the allocation")

    _run(plane.kubeconfig, prepare)
    _as_agent(plane, test)
    plane.kubectl("delete", "clusterrolebinding/older-server", "clusterrole/older-server")


def test_the_agent_may_do_nothing_else(plane: Cluster) -> None:
    """No pods, no secrets, no classes, no claims of its own."""

    async def test(client: Client) -> None:
        for kind, verb in ((CLAIMS, "create"), (CLAIMS, "delete"), (CLASSES, "create"), (NODES, "delete")):
            assert not await client.can_i(verb, kind), (kind.plural, verb)
        with pytest.raises(ForbiddenError):
            await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="mine")))

    _as_agent(plane, test)


def test_the_controller_opens_its_gate_and_changes_nothing_else_of_pods(plane: Cluster) -> None:
    """Patching pods would otherwise be exchanging the image of any pod, that of a privileged one too."""
    for name, gates in (("gated", ["draht.dev/placement", "others.example/gate"]), ("free", [])):
        made = pod(name, "true")
        made["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
        plane.apply(made)

    async def test(client: Client) -> None:
        async def change(name: str, body: Any, form: Literal["merge", "json"] = "merge") -> Pod:
            return await client.patch(PODS, name, body, namespace="default", type=form)

        image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil.example/root"}]
        async with asyncio.timeout(60):
            while True:  # until the server has seen the policy
                try:
                    await client.patch(PODS, "free", image, namespace="default", type="json", dry_run=True)
                except InvalidError:
                    break
                await asyncio.sleep(0.1)
        await _refused(change("free", image, "json"), "only change pods that wait at the gate")
        await _refused(change("free", {"metadata": {"labels": {"a": "b"}}}), "only change pods that wait at the gate")
        open_gate = {"op": "remove", "path": "/spec/schedulingGates/0"}
        await _refused(change("gated", [*image, open_gate], "json"), "node selector and the gate")
        toleration = {"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}
        await _refused(change("gated", [toleration, open_gate], "json"), "node selector and the gate")
        label = {"op": "add", "path": "/metadata/labels", "value": {"app": "other"}}
        await _refused(change("gated", [label, open_gate], "json"), "labels, annotations")
        both = [open_gate, open_gate]
        await _refused(change("gated", both, "json"), "only remove the gate draht.dev/placement")
        await _refused(change("gated", {"spec": {"activeDeadlineSeconds": 1}}), "node selector|only remove the gate")
        pin = {"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": MINE}}
        opened = await change("gated", [open_gate, pin], "json")
        assert [gate.name for gate in opened.spec.scheduling_gates] == ["others.example/gate"]
        assert opened.spec.node_selector == {"kubernetes.io/hostname": MINE}

    _as_controller(plane, test)


def test_the_controller_allocates_and_doesnt_without_the_permission(plane: Cluster) -> None:
    """status.allocation needs resourceclaims/binding; without that rule the same write is refused."""

    async def prepare(client: Client) -> None:
        for name in ("allowed", "denied"):
            await client.create(CLAIMS, _claim(name))

    async def allowed(client: Client) -> None:
        written = await _patch_status(client, "allowed", _allocation(MINE))
        assert written.status.allocation is not None
        await _refused(_patch_status(client, "allowed", _status(MINE)), "resourceclaims/driver|forbidden|not permitted")

    async def denied(client: Client) -> None:
        async with asyncio.timeout(30):
            while True:
                try:
                    await client.patch(
                        CLAIMS, "denied", _allocation(MINE), namespace="default", subresource="status", dry_run=True
                    )
                except KubeError:
                    break
                await asyncio.sleep(0.1)  # until the server has seen the role without the rule
        await _refused(_patch_status(client, "denied", _allocation(MINE)), "resourceclaims/binding|forbidden")

    _run(plane.kubeconfig, prepare)
    _as_controller(plane, allowed)
    role = yaml.safe_load(plane.kubectl("get", "clusterrole", "draht-controller", "--output=yaml"))
    rules = [rule for rule in role["rules"] if "resourceclaims/binding" not in rule["resources"]]
    assert len(rules) < len(role["rules"])
    plane.apply({**role, "rules": rules})
    try:
        _as_controller(plane, denied)
    finally:
        plane.kubectl("apply", "--kustomize", str(DEPLOY / "controller"))


def test_the_agents_pods_would_be_admitted(plane: Cluster) -> None:
    """The DaemonSet's pods pass the admission of their namespace: directories of the host and all."""
    daemon_set = yaml.safe_load(
        plane.kubectl("get", "daemonset", "draht-node", "--namespace=draht-system", "-o", "yaml")
    )
    selector = msgspec.convert(daemon_set["spec"]["selector"], LabelSelector)
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert selector.match_labels.items() <= labels.items()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "draht-system", "labels": labels},
        "spec": daemon_set["spec"]["template"]["spec"],
    }
    path = plane.directory / "probe.yaml"
    path.write_text(yaml.safe_dump(pod), encoding="utf-8")
    plane.kubectl("create", "--filename", str(path), "--dry-run=server")
