"""Every finding of ``draht doctor --node``, on nodes made for it: one thing is spoilt, exactly that is found.

Length: the table of all findings is in one place, so that it can be compared with the page as a whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as replaced

from doctor_bench import (
    DEVICE_PLUGINS,
    DRIVER,
    NODE,
    OFFER,
    PLUGINS,
    REGISTRY,
    ROOT,
    Bench,
    claim_of,
    gpu,
    healthy,
    plugin,
    row,
    slices_of,
)
from draht import cdi
from draht.api.core import Event
from draht.api.core.event import ObjectReference
from draht.api.core.node import NodeCondition, NodeSpec
from draht.api.meta import Condition, ObjectMeta
from draht.api.resource import (
    AllocatedDeviceStatus,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceSlice,
)
from draht.driver.claims.prepared import PreparedClaim
from draht.driver.framework import Offer, Offered
from draht.node.doctor.runtimes import cdi_support
from draht.node.doctor.scene import Permission, Unseen
from draht.node.kubelet.registered import RegisteredPlugin
from draht.node.node_labels import DISCOVERY

PAGE = Path(__file__).resolve().parents[2] / "docs/doctor.md"
SOURCES = Path(__file__).resolve().parents[2] / "src/draht"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A node on which nothing is wrong."""
    return healthy(tmp_path)


def _spec(bench: Bench, name: str, **changes: Any) -> None:
    edits = {"deviceNodes": [{"path": "/dev/nvidia0"}]}
    spec = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0", "containerEdits": edits}]}
    (bench.root / name).write_bytes(msgspec.json.encode({**spec, **changes}))
    bench.local["cache"] = cdi.Cache([bench.root])


def _pools(bench: Bench, *offers: Offer, **options: Any) -> None:
    bench.offers = {}
    bench.slices(offers[0], **options)


def _two_slices(bench: Bench) -> None:
    """The same device in a second slice."""
    bench.offers = {}
    (one,) = bench.slices()
    spec = replaced(one.spec, pool=replaced(one.spec.pool, resource_slice_count=2))
    name = ObjectMeta(name="00001-x", owner_references=one.metadata.owner_references)
    bench.remote["slices"] = [replaced(one, spec=spec), ResourceSlice(metadata=name, spec=spec)]


def _loose_partition(bench: Bench, **fields: Any) -> None:
    parts = {"type": DeviceAttribute(string="mig"), "parentUUID": DeviceAttribute(string="GPU-gpu-0")}
    bench.offer(gpu("gpu-0"), gpu("gpu-1"), Device(name="gpu-0-mig-1g", attributes=parts, **fields))


def _answer(reason: str) -> PreparedClaim:
    status = AllocatedDeviceStatus(
        driver=DRIVER,
        pool=NODE,
        device="gpu-0",
        conditions=(Condition(type="Ready", status="False", message=reason),),
    )
    return PreparedClaim(uid="c1", namespace="default", name="gpus", driver=DRIVER, devices=(), status=(status,))


def _full(bench: Bench) -> None:
    (one,) = bench.remote["claims"]
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=f"p{number}", uid=f"uid-of-{number or 'train'}")
        for number in range(256)
    )
    bench.remote["claims"] = [replaced(one, status=replaced(one.status, reserved_for=users))]


def _node(bench: Bench, **fields: Any) -> None:
    bench.remote["node"] = replaced(bench.remote["node"], **fields)


def _labelled(bench: Bench, labels: dict[str, str]) -> None:
    bench.labels = {"nvidia.com/gpu.count": "2"}
    _node(bench, metadata=ObjectMeta(name=NODE, uid="node-uid", labels=labels))


def _local(**changes: Any) -> Callable[[Bench], None]:
    return lambda bench: bench.local.update(changes)


def _remote(**changes: Any) -> Callable[[Bench], None]:
    return lambda bench: bench.remote.update(changes)


def _each(*steps: Callable[[Bench], object]) -> Callable[[Bench], None]:
    def spoil(bench: Bench) -> None:
        for step in steps:
            step(bench)

    return spoil


def _another_plugin(bench: Bench, more: RegisteredPlugin) -> None:
    bench.local["plugins"].append(more)
    bench.socket(more.socket)
    bench.socket(more.endpoint)


def _without_driver(bench: Bench) -> None:
    """The pod runs with a driver that has gone and that isn't draht's."""
    bench.offers = {}
    bench.local.update(plugins=[], claims=[])
    for path in (plugin().socket, plugin().endpoint):
        del bench.local["sockets"][path]


def _gpus_by_number(bench: Bench) -> None:
    status = replaced(bench.remote["node"].status, allocatable={"nvidia.com/gpu": "8"})
    _node(bench, status=status)


CASES: dict[str, tuple[Callable[[Bench], object], str, str]] = {
    # the machine
    "api-server-unseen": (
        lambda bench: setattr(bench, "remote", {"unseen": (Unseen("the API server", "no route to host"),)}),
        "warning",
        "--kubeconfig",
    ),
    "not-looked-at": (_remote(unseen=(Unseen("events", "events is forbidden"),)), "note", "as root"),
    "offer-unknown": (lambda bench: setattr(bench, "problems", ("no GPU",)), "note", "--profile"),
    "kubelet-directory-missing": (lambda bench: bench.conditions.update({REGISTRY: "missing"}), "broken", "mount it"),
    "kubelet-directory-not-writable": (
        lambda bench: bench.conditions.update({PLUGINS: "readable"}),
        "warning",
        "as root",
    ),
    "kubelet-not-running": (
        lambda bench: bench.local["sockets"].update(
            {DEVICE_PLUGINS / "kubelet.sock": False, ROOT / "pod-resources/kubelet.sock": False}
        ),
        "broken",
        "systemctl status kubelet",
    ),
    "plugin-socket-dead": (
        lambda bench: bench.socket(REGISTRY / "old.example.com-reg.sock", served=False),
        "warning",
        "start the plugin again",
    ),
    "plugin-silent": (lambda bench: bench.socket(REGISTRY / "mute-reg.sock"), "warning", "ss -xlp"),
    "driver-endpoint-dead": (
        lambda bench: bench.local["sockets"].pop(plugin().endpoint),
        "broken",
        "start that plugin again",
    ),
    "driver-in-handover": (
        lambda bench: _another_plugin(bench, plugin(instance="b")),
        "note",
        "DaemonSet",
    ),
    "driver-registered-twice": (
        lambda bench: _another_plugin(bench, plugin(instance="b", draht="")),
        "broken",
        "taking over",
    ),
    "driver-foreign": (_local(plugins=[plugin(draht="")]), "warning", "drain the node"),
    "gpu-offered-twice": (
        lambda bench: bench.socket(DEVICE_PLUGINS / "nvidia-gpu.sock"),
        "broken",
        "--device-plugin",
    ),
    # the cluster
    "node-unknown": (_remote(node=None, node_missing=True), "broken", "--node-name"),
    "node-not-ready": (
        lambda bench: _node(
            bench,
            status=replaced(
                bench.remote["node"].status, conditions=(NodeCondition(type="Ready", status="False", message="disk"),)
            ),
        ),
        "broken",
        "kubectl describe node",
    ),
    "node-cordoned": (lambda bench: _node(bench, spec=NodeSpec(unschedulable=True)), "note", "kubectl uncordon node-1"),
    "another-boot": (lambda bench: bench.node(boot_id="other"), "warning", "--node-name"),
    "kubelet-too-old": (lambda bench: bench.node(kubelet_version="v1.31.0"), "broken", "1.34"),
    "kubelet-older": (lambda bench: bench.node(kubelet_version="v1.33.4"), "note", "1.34"),
    "kubelet-gate-off": (
        _remote(kubelet_config={"featureGates": {"DynamicResourceAllocation": False}}),
        "broken",
        "restart it",
    ),
    "runtime-without-cdi": (
        lambda bench: bench.node(container_runtime_version="containerd://1.6.36"),
        "broken",
        "containerd 2.0",
    ),
    "runtime-cdi-opt-in": (
        lambda bench: bench.node(container_runtime_version="containerd://1.7.27"),
        "warning",
        "enable_cdi = true",
    ),
    "runtime-unknown": (lambda bench: bench.node(container_runtime_version="mine://1.0"), "note", "documentation"),
    "dra-not-served": (_remote(served=()), "broken", "1.34"),
    "api-older": (_remote(served=("v1beta1",)), "note", "docs/deploy.md"),
    "permission-missing": (
        _remote(permissions=(Permission("create resourceslices", allowed=False),)),
        "broken",
        "kubectl apply -k deploy/base",
    ),
    "labels-by-feature-discovery": (lambda bench: _labelled(bench, {DISCOVERY: "1"}), "note", "--no-labels"),
    "label-taken": (lambda bench: _labelled(bench, {"nvidia.com/gpu.count": "7"}), "warning", "kubectl label node"),
    "gpu-counted-and-claimed": (_gpus_by_number, "warning", "--device-plugin"),
    # slices
    "device-left-out": (
        lambda bench: setattr(
            bench, "offers", {DRIVER: Offer.of([*_offered(), Offered(device=Device(name="no name"))])}
        ),
        "warning",
        "correct what the driver offers",
    ),
    "slices-missing": (_remote(slices=[]), "broken", "/readyz"),
    "slice-fields-missing": (
        lambda bench: setattr(
            bench,
            "offers",
            {DRIVER: Offer.of([Offered(device=gpu("gpu-0", binds_to_node=True)), Offered(device=gpu("gpu-1"))])},
        ),
        "warning",
        "feature gate",
    ),
    "slices-differ": (
        lambda bench: setattr(bench, "offers", {DRIVER: Offer.of([Offered(device=gpu("gpu-7"))])}),
        "warning",
        "/readyz",
    ),
    "slices-without-plugin": (_without_driver, "broken", "start the driver"),
    "plugin-without-slices": (
        _each(lambda bench: setattr(bench, "offers", {}), _remote(slices=[])),
        "warning",
        "/readyz",
    ),
    "pool-incomplete": (
        _each(_two_slices, lambda bench: bench.remote["slices"].pop()),
        "broken",
        "publish the rest",
    ),
    "slices-of-old-generation": (
        _each(
            lambda bench: _pools(bench, OFFER, generation=2),
            lambda bench: bench.remote["slices"].extend(slices_of(OFFER, generation=1, name="00001-x")),
        ),
        "note",
        "publishes next",
    ),
    "device-named-twice": (_two_slices, "broken", "log of the driver"),
    "partitions-without-counters": (_loose_partition, "broken", "DRAPartitionableDevices"),
    "slice-owner-other": (lambda bench: bench.slices(owner_references=()), "warning", "kubectl delete resourceslice"),
    "slice-invalid": (
        _each(
            lambda bench: setattr(bench, "offers", {}),
            lambda bench: bench.slices(Offer.of([*_offered(), Offered(device=Device(name="NO"))])),
        ),
        "warning",
        "update its driver",
    ),
    "device-tainted": (
        lambda bench: bench.offer(
            gpu("gpu-0", taints=(DeviceTaint(key="gpu.nvidia.com/xid", value="79", effect="NoSchedule"),)), gpu("gpu-1")
        ),
        "warning",
        "NVIDIA's driver when it restarts",
    ),
    "no-pcie-root": (
        lambda bench: bench.offer(
            gpu("gpu-0"), Device(name="gpu-1", attributes={"type": DeviceAttribute(string="gpu")})
        ),
        "note",
        "numaNode",
    ),
    # claims
    "database-unreadable": (
        _local(database=("unreadable", "it is damaged", ""), claims=None),
        "broken",
        "start draht node again",
    ),
    "cdi-directory-missing": (lambda bench: bench.conditions.update({bench.root: "missing"}), "broken", "--cdi-dir"),
    "cdi-file-broken": (lambda bench: _spec(bench, "bad.json", kind="nonsense"), "warning", ""),
    "cdi-node-missing": (lambda bench: _spec(bench, "nvidia.json"), "warning", "nvidia-ctk cdi generate"),
    "claim-of-earlier-boot": (_local(claims=[row(boot_id="before")]), "broken", "start draht node"),
    "claim-files-missing": (
        _local(claims=[row(files={"/var/run/cdi/k8s.gone-claim_c1.json": "digest"})]),
        "broken",
        "writes it anew",
    ),
    "claim-half-way": (
        _local(claims=[row(state="unpreparing", since=1.0)]),
        "warning",
        "claim_uid",
    ),
    "claim-not-ready": (_local(claims=[row(answer=_answer("the GPU has gone"))]), "warning", "delete the pod"),
    "claim-adopted": (_local(claims=[row(adopted=True)]), "note", ""),
    "claim-spec-stale": (
        lambda bench: _spec(
            bench,
            f"k8s.{DRIVER}-claim_c9.json",
            kind=f"k8s.{DRIVER}/claim",
            devices=[{"name": "0", "containerEdits": {"env": ["A=b"]}}],
        ),
        "warning",
        "takes the claim over or removes",
    ),
    "claim-gone": (_remote(claims=[]), "warning", "restart the kubelet"),
    "claim-without-pod": (_remote(pods=[]), "warning", "within a minute"),
    "claim-not-prepared": (lambda bench: bench.wait(), "broken", "claim_uid c1"),
    "claim-not-allocated": (
        _each(
            Bench.wait, lambda bench: bench.remote.update(claims=[replaced(claim_of(), status=ResourceClaimStatus())])
        ),
        "broken",
        "instead of nodeName",
    ),
    "device-not-offered": (
        lambda bench: bench.remote.update(claims=[claim_of(gpu="gpu-9")]),
        "broken",
        "allocated anew",
    ),
    "device-allocated-twice": (
        lambda bench: bench.remote["claims"].append(claim_of("c2", name="more")),
        "broken",
        "one claim only",
    ),
    "claim-full": (_full, "warning", "another claim"),
}
"""Finding → what brings it about, how bad it is, and a part of the fix."""


def _offered() -> list[Offered]:
    return [Offered(device=gpu("gpu-0")), Offered(device=gpu("gpu-1"))]


def test_a_healthy_node_has_no_findings(bench: Bench) -> None:
    """So each of the cases below is the only thing wrong."""
    assert bench.find() == []


@pytest.mark.parametrize("kind", CASES)
def test_each_finding_is_found_alone_with_its_fix(bench: Bench, kind: str) -> None:
    """One thing is spoilt; exactly that is found, with its severity and the next step."""
    spoil, severity, fix = CASES[kind]
    spoil(bench)
    assert bench.kinds() == [(kind, severity)]
    (finding,) = bench.find()
    assert fix in finding.fix
    assert finding.fix or severity == "note"
    assert not finding.message[0].isupper() or finding.message.startswith("NVIDIA")
    assert not finding.message.endswith(".")


def test_a_driver_that_nobody_serves_is_told_with_all_that_follows(bench: Bench) -> None:
    """A driver of draht's own has gone: its slices are still there, and a pod waits."""
    _without_driver(bench)
    bench.offers = {DRIVER: OFFER}
    bench.wait()
    assert bench.kinds() == [
        ("driver-not-served", "broken"),
        ("slices-without-plugin", "broken"),
        ("driver-not-registered", "broken"),
    ]
    assert "pod default/train waits: the driver gpu.nvidia.com of its claim default/gpus" in bench.find()[-1].message


def test_what_the_kubelet_said_last_stands_beside_a_claim_that_isnt_prepared(bench: Bench) -> None:
    """The newest of the pod's events; those of other pods play no part."""
    bench.wait()
    about = ObjectReference(kind="Pod", name="train", uid="uid-of-train")
    bench.remote["events"] = [
        Event(
            metadata=ObjectMeta(name="b"), involved_object=about, message="late", last_timestamp="2026-01-02T00:00:00Z"
        ),
        Event(
            metadata=ObjectMeta(name="a"), involved_object=about, message="early", last_timestamp="2026-01-01T00:00:00Z"
        ),
        Event(metadata=ObjectMeta(name="c"), involved_object=ObjectReference(uid="x"), message="other"),
    ]
    assert bench.find()[0].message.endswith("hasn't prepared: late")


def test_a_pod_that_has_just_come_isnt_waiting_yet(bench: Bench) -> None:
    """Unless the kubelet has complained already; the moment of the look is 1000 s after the epoch."""
    bench.wait()
    (one,) = bench.remote["pods"]
    started = replaced(one.status, start_time="1970-01-01T00:16:35Z")
    bench.remote["pods"] = [replaced(one, status=started)]
    assert bench.find() == []
    about = ObjectReference(kind="Pod", name="train", uid="uid-of-train")
    bench.remote["events"] = [Event(metadata=ObjectMeta(name="a"), involved_object=about, message="it failed")]
    assert bench.kinds() == [("claim-not-prepared", "broken")]
    bench.remote["events"] = []
    bench.remote["pods"] = [replaced(one, status=replaced(started, start_time="1970-01-01T00:10:00Z"))]
    assert bench.kinds() == [("claim-not-prepared", "broken")]


def test_administrators_and_shares_may_have_what_others_have(bench: Bench) -> None:
    """Neither is a device given away twice."""
    more = [claim_of("c2", name="looks", admin=True), claim_of("c3", name="part", gpu="gpu-1", share="s1")]
    more.append(claim_of("c4", name="other-part", gpu="gpu-1", share="s2"))
    bench.remote["claims"] += more
    assert bench.find() == []


def test_partitions_with_counters_may_stand_beside_their_gpu(bench: Bench) -> None:
    """The scheduler keeps them apart then."""
    _loose_partition(bench, consumes_counters=(DeviceCounterConsumption(counter_set="gpu-0", counters={}),))
    assert "partitions-without-counters" not in {kind for kind, _ in bench.kinds()}


def test_who_isnt_the_agent_is_only_told_what_an_agent_would_lack(bench: Bench) -> None:
    """A person may lack the agent's permissions without anything being broken."""
    bench.remote.update(user="jane", permissions=(Permission("patch nodes", allowed=False),))
    assert bench.kinds() == [("permission-missing", "note")]
    assert bench.find()[0].message.startswith("jane may not patch nodes")


def test_nothing_is_concluded_from_what_couldnt_be_seen(bench: Bench) -> None:
    """Without the API server and the database no claim is missing and no slice is lost."""
    bench.remote = {"unseen": (Unseen("the API server", "no answer within 15 s"),)}
    bench.local.update(claims=None, database=("absent", "", ""))
    assert bench.kinds() == [("api-server-unseen", "warning")]


def test_the_same_reason_is_told_once(bench: Bench) -> None:
    """Three lists are forbidden by one rule: one note."""
    bench.remote["unseen"] = [Unseen(what, "it is forbidden") for what in ("pods", "claims", "events")]
    (finding,) = bench.find()
    assert finding.message == "pods, claims, events couldn't be looked at: it is forbidden"


@pytest.mark.parametrize(
    ("version", "support"),
    [
        ("containerd://1.6.0", "none"),
        ("containerd://1.7.0", "opt-in"),
        ("containerd://v1.7.0", "opt-in"),
        ("containerd://2.0.0-rc.1", "on"),
        ("cri-o://1.22.0", "none"),
        ("cri-o://1.34.1", "on"),
        ("docker://28.0.0", "unknown"),
        ("nonsense", "unknown"),
    ],
)
def test_runtimes_by_release(version: str, support: str) -> None:
    """An unknown runtime is told as such."""
    assert cdi_support(version) == support


def kinds_in_code() -> set[str]:
    """Every ``kind="…"`` of a `Finding` in the modules of the node's doctor."""
    found = set()
    for path in [*(SOURCES / "node/doctor").glob("*.py"), SOURCES / "cdi/spec_findings.py"]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Finding":
                (kind,) = (each.value for each in call.keywords if each.arg == "kind")
                # A table of kinds, as for what a spec names: its words are constants of the module.
                found |= {kind.value} if isinstance(kind, ast.Constant) else set()
    return {str(each) for each in found} | {"cdi-node-missing", "cdi-hook-missing", "cdi-mount-missing"}


def test_every_finding_has_a_case_here() -> None:
    """Or a test of its own above; those about CDI files alone are tested with the machine's doctor."""
    elsewhere = {
        "driver-not-served",
        "driver-not-registered",
        "cdi-directory-unusual",
        "cdi-directory-unreadable",
        "cdi-conflict",
        "cdi-file-private",
        "cdi-hook-missing",
        "cdi-mount-missing",
    }
    assert kinds_in_code() == set(CASES) | elsewhere


def test_the_page_has_every_finding_and_no_other() -> None:
    """docs/doctor.md lists the kinds, and its tables of known troubles name only kinds that exist."""
    text = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z-]+)` \| (?:broken|warning|note)", text, re.MULTILINE))
    assert listed == kinds_in_code()
    troubles = [line for line in text.splitlines() if re.match(r"^\| (U|N)\d+ ", line)]
    assert [re.match(r"\| (\w+)", line)[1] for line in troubles] == [  # type: ignore[index]  # they matched above
        *(f"U{number}" for number in range(1, 11)),
        *(f"N{number}" for number in range(1, 17)),
    ]
    for line in troubles:
        named = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", line.split("|")[3])
        assert named or "can't be seen" in line, line
        assert set(named) <= kinds_in_code(), line


def test_the_page_gives_the_severities_that_are_found(bench: Bench) -> None:
    """As the cases above say them."""
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| (\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {kind: listed[kind] for kind in CASES} == {kind: severity for kind, (_, severity, _) in CASES.items()}
