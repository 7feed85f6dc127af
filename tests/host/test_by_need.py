"""``draht run`` by need: requests in words, and the pods of manifests, beside what the database holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from draht import cdi
from draht.allocator import Snapshot, allocate
from draht.api.errors import DrahtError
from draht.api.reader import read_text
from draht.api.resource import ResourceClaim
from draht.cli.run import run
from draht.driver.slices import publish
from draht.driver.vendors.classes import device_classes
from draht.hardware.inventory import Inventory
from draht.hardware.simulated import from_profile
from draht.host import local
from draht.host.claims import ClaimsAsk
from draht.host.errors import NotFreeError, SelectionError
from draht.host.order import Host
from draht.host.wish import claim_of
from draht.manifests import Manifests
from draht.validation import validate
from running import Workplace, gpus

POD = """
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]
  containers:
    - name: one
      command: [sh, -c, 'echo "$DRAHT_DEVICES" $A']
      env: [{name: A, value: b}]
      resources: {claims: [{name: gpus}]}
    - {name: two, command: [sh, -c, 'echo "${DRAHT_DEVICES:-nothing}"; exit 3']}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: unused}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, count: 8}}]}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    """The commands work on a host with the fake engine."""
    place = Workplace(root=tmp_path)
    host = place.host()
    host = Host(
        database=host.database,
        engines=host.engines,
        cdi_directory=host.cdi_directory,
        cache=cdi.Cache([place.cdi]),
        say=host.say,
    )
    monkeypatch.setattr(local, "local_host", lambda say: host)
    yield place
    place.clean()


def call(*words: str) -> Result:
    """`draht run` with these words; what draht raises is raised."""
    return CliRunner().invoke(run, ["--profile", "dgx-h100", "--engine", "fake", *words], catch_exceptions=False)


def names(text: str, profile: str) -> list[str]:
    """The devices that a request in words gets on an empty machine."""
    inventory = from_profile(profile)
    published = publish(inventory, node_name="n", partitions="profile=" in text)
    snapshot = Snapshot.of(slices=published.slices, classes=device_classes())
    found = allocate(snapshot, [claim_of([text])], "n")
    return [result.device for each in found or () for result in each.devices.results]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "profile", "expected"),
        [
            ("model=H100,memory>=80Gi,count=2", "dgx-h100", ["gpu-0", "gpu-1"]),
            ("model=h100", "mixed-x6", []),
            ("model=L4", "mixed-x6", ["gpu-2"]),
            ("model!=L4,architecture=Ada Lovelace,count=all", "mixed-x6", ["gpu-4", "gpu-5"]),
            ("model~^NVIDIA A100", "mixed-x6", ["gpu-0"]),
            ("memory>=48Gi", "mixed-x6", ["gpu-0"]),
            ("memory>=48Gi,model=L40S", "mixed-x6", ["gpu-4"]),
            ("memory<30Gi", "mixed-x6", ["gpu-2"]),
            ("compute>=8.9,compute<9", "mixed-x6", ["gpu-2"]),
            ("driver>=550.90.07", "mixed-x6", ["gpu-2"]),
            ("driver>550.90.07", "mixed-x6", []),
            ("numa=1", "mixed-x6", ["gpu-4"]),
            ("vendor=amd,memory>=190Gi", "mi300x-x8", ["gpu-1-128"]),
            ("profile=3g.40gb", "dgx-h100", ["gpu-0-mig-3g40gb-9-0"]),
        ],
    )
    def test_a_request_in_words_gets_the_devices_it_means(self, text: str, profile: str, expected: list[str]) -> None:
        """Words of a name in any case, nominal memory, versions as versions, the order of the machine."""
        assert sorted(names(text, profile)[:2]) == sorted(expected)[:2] if expected else names(text, profile) == []

    @pytest.mark.parametrize("text", ["model=A'\"\\\n100", 'uuid=x"y', "architecture=\u00fc"])
    def test_whatever_a_value_holds_stays_a_value(self, text: str) -> None:
        """Quotes and backslashes don't end the text of the condition."""
        assert names(text, "mixed-x6") == []

    def test_a_pattern_that_is_none_is_refused(self) -> None:
        """When the first device is tested, as upstream does."""
        with pytest.raises(DrahtError, match="doesn't compile"):
            names("model~(", "mixed-x6")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "`` can't be read"),
            ("H100", "`H100` can't be read"),
            ("size=3", "`size=3` can't be read"),
            ("count=0", "`0` is no number of devices"),
            ("count>=2", "`count` takes one value"),
            ("count=1,count=2", "`count` takes one value"),
            ("vendor=intel", "vendor `intel` isn't known"),
            ("model>=H100", "`model` can't be compared"),
            ("memory>=lots", "`lots` is no amount"),
            ("memory~80Gi", "`memory` can't be compared"),
            ("compute>=nine", "compares no version"),
            ("numa=first", "names no NUMA node"),
        ],
    )
    def test_what_cannot_be_read_is_refused_with_what_can_be_written(self, text: str, says: str) -> None:
        """The part that is wrong, and a hint."""
        with pytest.raises(SelectionError) as caught:
            claim_of([text])
        assert says in str(caught.value)
        assert caught.value.hint

    def test_the_claim_it_stands_for_is_printed_and_valid(self) -> None:
        """``--show-claim`` runs nothing; kube-apiserver would take what it prints."""
        result = call("--request", "model=H100,memory>=80Gi,count=2", "--request", "profile=1g.10gb", "--show-claim")
        assert result.exit_code == 0
        read = read_text(result.output)
        assert not read.problems
        (located,) = read.objects
        assert isinstance(located.object, ResourceClaim)
        assert validate(located.object) == ()
        assert [each.name for each in located.object.spec.devices.requests] == ["gpu-0", "gpu-1"]


class TestRun:
    def test_a_request_is_held_like_a_count(self, place: Workplace) -> None:
        """What it gets is in the database while it runs; who comes later gets others, or is told who has them."""
        first = call("--request", "model=H100,count=6", "-d", "--rootfs", "/", "--", "sleep", "60")
        assert first.exit_code == 0, first.output
        (hold,) = place.holds()
        assert [device.label for device in hold.devices] == [f"GPU {number}" for number in range(6)]
        second = call("--request", "model=H100", "-d", "--rootfs", "/", "--", "sleep", "60")
        assert second.exit_code == 0
        assert [device.label for device in place.holds()[1].devices] == ["GPU 6"]
        with pytest.raises(NotFreeError, match="2 wanted, 1 of 8 free; GPU 0-5 held by"):
            call("--request", "model=H100,count=2", "--rootfs", "/", "--", "true")
        with pytest.raises(NotFreeError, match="8 wanted"):
            call("--gpus", "8", "--rootfs", "/", "--", "true")

    def test_what_never_fits_is_explained(self, place: Workplace) -> None:
        """The cause with its numbers, and what would help."""
        with pytest.raises(SelectionError) as caught:
            call("--request", "model=H100,memory>=100Gi", "--rootfs", "/", "--", "true")
        assert "none of 8 devices of class gpu.nvidia.com meet the request's selectors" in str(caught.value)
        assert "the largest is 81559Mi" in str(caught.value)
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("relax `memory")

    def test_partitions_and_whole_gpus_exclude_each_other_across_commands(self, place: Workplace) -> None:
        """A partition is held by its slices: the whole GPU isn't free then, another part of it is."""
        call("--partitions", "--request", "profile=4g.40gb", "-d", "--rootfs", "/", "--", "sleep", "60")
        call("--partitions", "--request", "profile=3g.40gb", "-d", "--rootfs", "/", "--", "sleep", "60")
        call("--gpus", "7", "-d", "--rootfs", "/", "--", "sleep", "60")
        held = [[device.label for device in hold.devices] for hold in place.holds()]
        assert len(held[0]) == len(held[1]) == 1
        assert held[2] == [f"GPU {number}" for number in range(1, 8)]
        with pytest.raises(NotFreeError):
            call("--partitions", "--request", "profile=1g.10gb", "--rootfs", "/", "--", "true")

    def test_the_pods_of_a_file_run_with_their_claims(self, place: Workplace, tmp_path: Path) -> None:
        """Each container sees what its claims were given; claims that no pod uses hold nothing; the status is told."""
        (tmp_path / "pod.yaml").write_text(POD)
        result = call("-f", str(tmp_path / "pod.yaml"), "--rootfs", "/")
        lines = sorted(line for line in result.stdout.splitlines() if line.startswith("train/"))
        uuids = ",".join(device.id for device in from_profile("dgx-h100").gpus()[:2])
        assert lines == [f"train/one: {uuids} b", "train/two: nothing"]
        assert result.exit_code == 3
        assert place.holds() == []

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["-f", "{file}", "--gpus", "1"], "-f doesn't go with gpus"),
            (["-f", "{file}", "-d"], "-f doesn't go with --detach"),
            (["-f", "{file}", "IMAGE"], "-f doesn't go with IMAGE or COMMAND"),
            (["-f", "/nowhere.yaml"], "there is no such file"),
            (["-f", "{file}"], "container one of pod train has no image"),
            (["--request", "model=H100", "--gpus", "1", "IMAGE"], "--request goes with neither"),
            (["--show-claim"], "--show-claim prints the claim of a --request"),
            (["IMAGE"], "no device is asked for"),
        ],
    )
    def test_what_does_not_go_together_is_refused(
        self, place: Workplace, tmp_path: Path, words: list[str], says: str
    ) -> None:
        """Before anything is held."""
        file = tmp_path / "pod.yaml"
        file.write_text(POD)
        with pytest.raises(DrahtError) as caught:
            call(*(word.replace("{file}", str(file)) for word in words))
        assert says in str(caught.value)
        assert place.holds() == []


def real(count: int) -> Inventory:
    """A machine whose GPUs count as real."""
    return gpus(count, simulated=False)


def test_settings_for_a_driver_are_refused_on_real_gpus() -> None:
    """What can't be applied yet isn't ignored."""
    inventory = real(2)
    text = json.dumps({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"})
    pod = POD.replace(
        "count: 2}}]}}}", f"count: 2}}}}], config: [{{opaque: {{driver: gpu.nvidia.com, parameters: {text}}}}}]}}}}}}"
    )
    read = read_text(pod)
    assert not read.problems
    manifests = Manifests.of(
        (each.object for each in read.objects if each.object.metadata.name != "unused"), classes=device_classes()
    )
    ask = ClaimsAsk(inventory, publish(inventory, node_name="test"), manifests, "test")
    with pytest.raises(SelectionError, match="aren't applied to real devices yet"):
        ask.choose(frozenset())


def test_devices_of_other_machines_are_refused_on_a_real_one() -> None:
    """A slice in the manifests that brings devices which this machine doesn't have."""
    inventory = real(1)
    text = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: other}
spec:
  driver: gpu.nvidia.com
  nodeName: test
  pool: {name: other, resourceSliceCount: 1}
  devices:
    - {name: gpu-0, attributes: {type: {string: gpu}}}
    - {name: gpu-9, attributes: {type: {string: gpu}}}
"""
    read = read_text(text + "---" + POD)
    manifests = Manifests.of(
        (each.object for each in read.objects if each.object.metadata.name != "unused"), classes=device_classes()
    )
    ask = ClaimsAsk(inventory, publish(inventory, node_name="test"), manifests, "test")
    with pytest.raises(SelectionError, match="isn't one of this machine"):
        ask.choose(frozenset())
