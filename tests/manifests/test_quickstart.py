"""Manifests in the shapes of NVIDIA's quickstart mean here what they mean there."""

from __future__ import annotations

from pathlib import Path

import pytest

from draht.allocator import Snapshot
from draht.allocator.explain import Dominant, explain
from draht.api.reader import read_files
from draht.driver.slices import publish
from draht.driver.vendors.classes import device_classes
from draht.hardware.simulated import from_profile
from draht.manifests import Manifests, container_requests
from draht.scheduler import Placement, Sequence

SHAPES = Path(__file__).parents[1] / "data" / "quickstart"

Given = dict[str, dict[str, list[str]]]


def placed(shape: str, *, partitions: bool = False) -> tuple[list[Placement], Manifests, Snapshot]:
    """Place a shape on a simulated DGX H100."""
    read = read_files([SHAPES / f"{shape}.yaml"])
    assert not read.problems
    manifests = Manifests.of((each.object for each in read.objects), classes=device_classes())
    slices = publish(from_profile("dgx-h100"), node_name="node-1", partitions=partitions).slices
    sequence = Sequence(manifests, Snapshot.of(slices=slices, classes=manifests.classes.values()))
    return list(sequence.place()), manifests, sequence.snapshot


def devices(shape: str, *, partitions: bool = False) -> Given:
    """Pod → container → names of its devices."""
    placements, manifests, _ = placed(shape, partitions=partitions)
    found: Given = {}
    for each in placements:
        assert each.pod is not None
        assert each.node == "node-1", each.error
        by_container = found.setdefault(each.pod.metadata.name, {})
        for container in each.pod.spec.containers:
            names = by_container.setdefault(container.name, [])
            for claim, request in container_requests(each.pod, container.name, each.claims, manifests):
                assert claim.claim.status.allocation is not None
                results = claim.claim.status.allocation.devices.results
                names += [result.device for result in results if request in {None, result.request}]
    return found


MIG = {"ctr0": "1g10gb-19", "ctr1": "1g10gb-19", "ctr2": "2g20gb-14", "ctr3": "3g40gb-9"}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("gpu-test1", {"pod1": {"ctr": ["gpu-0"]}, "pod2": {"ctr": ["gpu-1"]}}),
        ("gpu-test2", {"pod": {"ctr0": ["gpu-0"], "ctr1": ["gpu-0"]}}),
        ("gpu-test3", {"pod1": {"ctr": ["gpu-0"]}, "pod2": {"ctr": ["gpu-0"]}}),
        (
            "gpu-test5",
            {"pod": {"ts-ctr0": ["gpu-0"], "ts-ctr1": ["gpu-0"], "mps-ctr0": ["gpu-1"], "mps-ctr1": ["gpu-1"]}},
        ),
        ("gpu-test6", {"pod1": {"ctr": ["gpu-1"]}, "pod2": {"ctr": ["gpu-1"]}}),
        ("gpu-test7", {"pod": {"ctr0": ["gpu-0"], "ctr1": ["gpu-1"]}}),
        ("gpu-test8", {"pod": {"ctr": ["gpu-0", "gpu-1"]}}),
        ("gpu-test-mps", {"pod1": {"ctr": ["gpu-0"]}, "pod2": {"ctr": ["gpu-0"]}}),
    ],
)
def test_pods_get_what_the_quickstart_promises(shape: str, expected: Given) -> None:
    """Own GPUs, one shared by containers or pods, settings per request, selection by attributes, counts."""
    assert devices(shape) == expected


def test_four_partitions_of_each_pod_have_one_parent() -> None:
    """gpu-test4: each of four replicas gets its four MIG devices on a GPU of its own, though any would do for each."""
    found = devices("gpu-test4", partitions=True)
    parents = set()
    for pod in found.values():
        names = {container: name for container, (name,) in pod.items()}
        assert {container: names[container].split("-mig-")[1].rpartition("-")[0] for container in names} == MIG
        (parent,) = {name.split("-mig-")[0] for name in names.values()}
        parents.add(parent)
    assert len(parents) == 4


@pytest.mark.parametrize(
    ("shape", "cause", "says"),
    [
        ("gpu-test6-stale", Dominant.ERROR, "no such key: index"),
        ("gpu-test-vfio", Dominant.NO_DEVICES, "no device of class vfio.gpu.nvidia.com is there"),
        ("imex-test1", Dominant.ERROR, "device class imex.nvidia.com doesn't exist"),
    ],
)
def test_what_cannot_be_had_is_explained(shape: str, cause: Dominant, says: str) -> None:
    """An attribute and a class that newer drivers don't have any more, and devices that nobody publishes here."""
    placements, _, snapshot = placed(shape)
    (only,) = placements
    assert only.node is None
    found = explain(snapshot, only.unallocated)
    assert found.cause is cause
    assert says in found.summary
    assert found.next_steps
