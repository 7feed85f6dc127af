"""What CDI specs offer, grouped into pieces of silicon: the corpus of real shapes, and shapes easy to get wrong."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from draht import cdi
from draht.hardware.cdi import CDIProvider, group
from draht.hardware.inventory import Device, Inventory

CORPUS = Path(__file__).parents[1] / "data/cdi/valid"


def read(tmp_path: Path, *names: str, kind: str | None = None) -> Inventory:
    """What the provider makes of these files of the corpus in one directory."""
    for name in names:
        shutil.copy(CORPUS / name, tmp_path)
    return CDIProvider(cdi.Cache([tmp_path]), kind).inventory()


EXPECTED: dict[str, tuple[list[str], dict[str, int]]] = {
    "amd-mi300x.json": ([f"gpu {n} amd 1" for n in range(8)], {"amd.com/gpu=all": 8}),
    "amd-rocm-handwritten.json": (["gpu 0 amd 2"], {}),
    "dra-example-claim.json": (["other - example 1"], {}),
    "dra-example-common.json": (["other - example 1"], {}),
    "handwritten-scalars.yaml": (["gpu 0 example 1", "other - example 1", "other - example 1"], {}),
    "intel-gaudi-claim.json": (["other - intel 1"], {}),
    "intel-gaudi-dra.json": (["accelerator - intel 1"] * 4, {}),
    "intel-gpu-dra.yaml": (["gpu - intel 1"] * 3, {}),
    "intel-npu.yaml": (["accelerator - intel 1"], {}),
    "intel-qat-vfio.yaml": (["other - intel 1"] * 2, {}),
    "intel-rdt-1.1.0.yaml": (["other - intel 1"] * 2, {}),
    "minimal-0.3.0.yaml": (["other - example 1"] * 2, {}),
    "nic-netdevices-1.1.0.yaml": (["nic - dra 1", "nic - dra 1", "other - dra 1"], {}),
    "nvidia-device-plugin.json": (["gpu - nvidia 1"] * 4, {}),
    "nvidia-dra-claim.yaml": (["gpu - nvidia 1"] * 2, {}),
    "nvidia-early-0.4.0.yaml": ([f"gpu {n} nvidia 1" for n in range(8)], {"nvidia.com/gpu=all": 8}),
    "nvidia-gds.yaml": (["other - nvidia 1"], {}),
    "nvidia-gh200-coherent.yaml": (["gpu 0 nvidia 2"], {}),
    "nvidia-imex-channels.yaml": ([f"other {n} nvidia 1" for n in (0, 1, 2, 3, 2047)], {}),
    "nvidia-jetson-orin-csv.json": (["gpu 0 nvidia 1"], {"nvidia.com/gpu=all": 1}),
    "nvidia-jetson-pva.yaml": (["other 0 nvidia 1"], {"nvidia.com/pva=all": 1}),
    "nvidia-management.yaml": (["gpu - nvidia 1"], {}),
    "nvidia-mig-h100.yaml": (["mig 0 nvidia 2"] * 3 + ["gpu 1 nvidia 2"], {"nvidia.com/gpu=all": 4}),
    "nvidia-nixos.json": (["gpu 0 nvidia 1"], {"nvidia.com/gpu=all": 1}),
    "nvidia-nvml-dgx-a100.yaml": ([f"gpu {n} nvidia 2" for n in range(8)], {"nvidia.com/gpu=all": 8}),
    "nvidia-nvml-l40s-gids.yaml": (["gpu 0 nvidia 2", "gpu 1 nvidia 2"], {"nvidia.com/gpu=all": 2}),
    "nvidia-small.yaml": (["gpu 0 nvidia 2"], {"nvidia.com/gpu=all": 1}),
    "nvidia-stale-render-node.yaml": (["gpu 0 nvidia 1"], {"nvidia.com/gpu=all": 1}),
    "nvidia-wsl.yaml": (["gpu - nvidia 1"], {}),
    "rdma-shared-plugin.yaml": ([f"other {n} rdma 1" for n in range(4)], {}),
    "sriov-vfio.yaml": (["other - intel 1"] * 4, {}),
}
"""File → kind, index, vendor and number of names of each device, and aliases with the number of devices they mean."""


def test_every_file_of_the_corpus_is_in_the_table() -> None:
    """A new file needs an opinion."""
    assert set(EXPECTED) == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_corpus_is_grouped(name: str, tmp_path: Path) -> None:
    """Each file gives the devices a person would count, and every name on offer leads to one of them."""
    inventory = read(tmp_path, name)
    devices, aliases = EXPECTED[name]
    shown = [
        f"{device.kind} {'-' if device.index is None else device.index} {device.vendor} {len(device.cdi_names)}"
        for device in inventory.devices
    ]
    assert shown == devices
    assert {alias: len(ids) for alias, ids in inventory.aliases.items()} == aliases
    assert_sound(inventory, cdi.Cache([tmp_path]).devices())


def assert_sound(inventory: Inventory, on_offer: Sequence[str]) -> None:
    """What holds for any specs: each name is accounted for once, ids are unique and no path, units are there."""
    named = [name for device in inventory.devices for name in device.cdi_names] + list(inventory.aliases)
    assert sorted(named) == sorted(on_offer)
    ids = [device.id for device in inventory.devices]
    assert len(ids) == len(set(ids))
    assert not any(id_.startswith("/") for id_ in ids)
    assert all(device.units for device in inventory.devices)
    assert all(set(members) <= set(ids) and members for members in inventory.aliases.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_only_parents_and_their_instances_conflict(name: str, tmp_path: Path) -> None:
    """Within one file no two devices are in each other's way, except a GPU and an instance of it."""
    for one, other in itertools.combinations(read(tmp_path, name).devices, 2):
        assert one.conflicts(other) == (other.parent == one.id or one.parent == other.id)


def test_a_gpu_is_known_by_its_uuid_or_pci_address(tmp_path: Path) -> None:
    """The identity is the vendor's, even where the device node has another number than the index."""
    inventory = read(tmp_path, "nvidia-nvml-dgx-a100.yaml")
    first = inventory.gpus()[0]
    assert first.id == first.uuid == "GPU-52f2dfc8-79ca-536a-a3c6-6f2b211be538"
    assert first.cdi_names == (f"nvidia.com/gpu={first.id}", "nvidia.com/gpu=0")
    assert (first.pci_address, first.device_nodes[0]) == ("0000:07:00.0", "/dev/nvidia2")


def test_two_kinds_that_open_the_same_gpu_are_one_device(tmp_path: Path) -> None:
    """A generated spec, the device plugin's and a DRA claim's: three names, one GPU, other paths of its node."""
    inventory = read(tmp_path, "nvidia-early-0.4.0.yaml", "nvidia-device-plugin.json", "nvidia-dra-claim.yaml")
    first = next(gpu for gpu in inventory.gpus() if gpu.index == 0)
    assert first.id == "GPU-604336b1-4cee-5b17-9a23-c7d8f99f4276"
    assert [name.partition("=")[0] for name in first.cdi_names] == [
        "nvidia.com/gpu",
        "k8s.device-plugin.nvidia.com/gpu",
        "k8s.gpu.nvidia.com/claim",
    ]
    assert len(inventory.gpus()) == 8


def test_a_management_spec_means_all_gpus_it_opens(tmp_path: Path) -> None:
    """It is no ninth GPU beside those that other specs offer."""
    inventory = read(tmp_path, "nvidia-device-plugin.json", "nvidia-management.yaml")
    assert len(inventory.gpus()) == 4
    assert inventory.aliases["management.nvidia.com/gpu=all"] == tuple(sorted(gpu.id for gpu in inventory.gpus()))


def whole(device: Device) -> set[str]:
    """The nodes that give access to a whole GPU, without the prefix of a driver container."""
    found = (re.search(r"/dev/(nvidia|dri/renderD)[0-9]+$", path) for path in device.device_nodes)
    return {match[0] for match in found if match}


def device(name: str, *paths: str, env: str = "", number: int = 0) -> tuple[str, cdi.Device]:
    """A device of a spec that opens these nodes."""
    nodes = tuple(cdi.DeviceNode(path=path, major=number and 195, minor=number and number - 1) for path in paths)
    edits = cdi.ContainerEdits(device_nodes=nodes, env=(env,) if env else ())
    return name, cdi.Device(name=name.partition("=")[2], container_edits=edits)


def grouped(*devices: tuple[str, cdi.Device]) -> tuple[list[Device], dict[str, tuple[str, ...]]]:
    """The devices and aliases of a machine with these on offer."""
    return group(dict(devices))


@pytest.mark.parametrize("node", ["/dev/dxg", "/dev/nvmap"])
@pytest.mark.parametrize("env", [("", ""), ("NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=1")])
def test_two_gpus_with_one_node_stay_two(node: str, env: tuple[str, str]) -> None:
    """WSL and Jetson have one node for everything: numbers tell devices apart, the node doesn't."""
    devices, aliases = grouped(
        device("nvidia.com/gpu=0", node, env=env[0]),
        device("nvidia.com/gpu=1", node, env=env[1]),
        device("nvidia.com/gpu=all", node),
    )
    assert [found.index for found in devices] == [0, 1]
    assert not devices[0].conflicts(devices[1])
    assert set(aliases["nvidia.com/gpu=all"]) == {found.id for found in devices}


def test_names_that_cannot_be_told_apart_hold_everything_they_may_mean() -> None:
    """Two numbers and two UUIDs with equal edits: which is which isn't known, so a UUID stands for both."""
    devices, aliases = grouped(
        device("nvidia.com/gpu=0", "/dev/dxg"),
        device("nvidia.com/gpu=1", "/dev/dxg"),
        device("nvidia.com/gpu=GPU-11111111-1111-1111-1111-111111111111", "/dev/dxg"),
        device("nvidia.com/gpu=GPU-22222222-2222-2222-2222-222222222222", "/dev/dxg"),
    )
    both = ("nvidia.com/gpu=0", "nvidia.com/gpu=1")
    assert tuple(found.id for found in devices) == both
    assert list(aliases.values()) == [both, both]


def test_an_instance_conflicts_with_its_gpu_and_not_with_its_sibling() -> None:
    """Also when names come from different specs and the GPU is offered although it is partitioned."""
    cap = "/dev/nvidia-caps/nvidia-cap"
    devices, _ = grouped(
        device("nvidia.com/gpu=0", "/dev/nvidia0"),
        device("nvidia.com/gpu=1", "/dev/nvidia1"),
        device("nvidia.com/gpu=0:0", "/dev/nvidia0", f"{cap}21", f"{cap}22"),
        device("nvidia.com/gpu=0:1", "/dev/nvidia0", f"{cap}30", f"{cap}31"),
        device("k8s.gpu.nvidia.com/claim=uid-gpu-0-mig", "/dev/nvidia0", f"{cap}30", f"{cap}31"),
    )
    gpu, first, second, other = devices
    assert [found.kind for found in devices] == ["gpu", "mig", "mig", "gpu"]
    assert (first.parent, second.parent, other.parent) == (gpu.id, gpu.id, None)
    assert gpu.conflicts(first)
    assert gpu.conflicts(second)
    assert not first.conflicts(second)
    assert not other.conflicts(gpu)
    assert second.cdi_names == ("nvidia.com/gpu=0:1", "k8s.gpu.nvidia.com/claim=uid-gpu-0-mig")


def test_mig_configuration_nodes_make_no_instance() -> None:
    """The nodes for MIG configuration and monitoring belong to the driver."""
    [gpu], _ = grouped(
        device("nvidia.com/gpu=0", "/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2")
    )
    assert gpu.kind == "gpu"


def test_names_with_different_edits_for_one_gpu_are_one_device() -> None:
    """Somebody's second name for a GPU, with another variable in it, must not be held beside the first."""
    [gpu], aliases = grouped(
        device("nvidia.com/gpu=0", "/dev/nvidia0"), device("nvidia.com/gpu=debug", "/dev/nvidia0", env="DEBUG=1")
    )
    assert gpu.cdi_names == ("nvidia.com/gpu=0", "nvidia.com/gpu=debug")
    assert aliases == {}


def test_a_claim_of_two_gpus_is_an_alias() -> None:
    """It opens exactly two known GPUs, and holding it holds both."""
    devices, aliases = grouped(
        *(device(f"nvidia.com/gpu={number}", f"/dev/nvidia{number}") for number in range(3)),
        device("k8s.gpu.nvidia.com/claim=both", "/dev/nvidia0", "/dev/nvidia2"),
    )
    assert len(devices) == 3
    assert aliases == {"k8s.gpu.nvidia.com/claim=both": ("nvidia.com/gpu=0", "nvidia.com/gpu=2")}


def test_what_contains_a_known_gpu_conflicts_with_it() -> None:
    """A device that opens a known GPU and an unknown one is its own device, but in the known one's way."""
    devices, _ = grouped(
        device("nvidia.com/gpu=0", "/dev/nvidia0"), device("example.com/gpu=pair", "/dev/nvidia0", "/dev/nvidia1")
    )
    assert devices[0].conflicts(devices[1])


def test_devices_that_share_a_gpu_conflict() -> None:
    """Two pairs with one GPU in common: neither is part of the other, and both can't be held."""
    devices, _ = grouped(
        device("example.com/gpu=left", "/dev/nvidia0", "/dev/nvidia1"),
        device("example.com/gpu=right", "/dev/nvidia1", "/dev/nvidia2"),
        device("example.com/gpu=other", "/dev/nvidia3", "/dev/nvidia4"),
    )
    by_name = {found.id.partition("=")[2]: found for found in devices}
    assert by_name["left"].conflicts(by_name["right"])
    assert not by_name["left"].conflicts(by_name["other"])


def test_equal_device_numbers_are_one_node() -> None:
    """A driver container's root has the same node at another path."""
    devices, _ = grouped(
        device("nvidia.com/gpu=0", "/dev/nvidia0", number=1),
        device("example.com/gpu=a", "/dev/gpus/first", number=1),
    )
    assert len(devices) == 1


def test_the_own_transient_specs_offer_nothing() -> None:
    """What draht delivers is held already; counting it would find each GPU twice."""
    assert grouped(device("draht.dev/gpu=hold-1", "/dev/nvidia0")) == ([], {})


def test_a_kind_can_be_chosen(tmp_path: Path) -> None:
    """Only its devices, and only its names of them."""
    files = ("nvidia-early-0.4.0.yaml", "nvidia-device-plugin.json", "amd-rocm-handwritten.json")
    inventory = read(tmp_path, *files, kind="k8s.device-plugin.nvidia.com/gpu")
    assert [len(gpu.cdi_names) for gpu in inventory.devices] == [1] * 4
    assert inventory.aliases == {}


def test_a_broken_file_is_a_problem_beside_the_devices(tmp_path: Path) -> None:
    """It hides nothing."""
    (tmp_path / "broken.yaml").write_text("cdiVersion: [")
    inventory = read(tmp_path, "nvidia-small.yaml")
    assert len(inventory.gpus()) == 1
    assert [Path(problem.where).name for problem in inventory.problems] == ["broken.yaml"]


@pytest.mark.parametrize("seed", range(50))
def test_any_mixture_of_specs_is_sound(seed: int, tmp_path: Path) -> None:
    """All names are accounted for whatever files lie together, and the order of files in a directory doesn't matter."""
    chance = random.Random(seed)
    files = chance.sample(sorted(EXPECTED), chance.randint(2, 8))
    inventory = read(tmp_path, *files)
    cache = cdi.Cache([tmp_path])
    assert_sound(inventory, cache.devices())
    for one, other in itertools.combinations(inventory.devices, 2):
        if whole(one) & whole(other) and "mig" not in (one.kind, other.kind):
            assert one.conflicts(other)
    loaded = [(name, found.device) for name in cache.devices() if (found := cache.device(name))]
    chance.shuffle(loaded)
    assert group(dict(loaded)) == (list(inventory.devices), dict(inventory.aliases))


def calls(count: int) -> int:
    """How many calls it takes to group that many devices, each with a node of its own and a name in two kinds."""
    found = 0

    def note(*_: object) -> None:
        nonlocal found
        found += 1

    edits = [cdi.ContainerEdits(device_nodes=(cdi.DeviceNode(path=f"/dev/nvidia{n}"),)) for n in range(count)]
    names = {f"nvidia.com/gpu={n}": cdi.Device(name=str(n), container_edits=edits[n]) for n in range(count)}
    names |= {f"v{n}.com/x=a": cdi.Device(name="a", container_edits=edits[n]) for n in range(count)}
    names["nvidia.com/gpu=all"] = cdi.Device(name="all", container_edits=cdi.ContainerEdits(env=("A=b",)))
    sys.setprofile(note)
    try:
        devices, aliases = group(names)
    finally:
        sys.setprofile(None)
    assert len(devices) == count
    assert len(aliases["nvidia.com/gpu=all"]) == count
    return found


def test_thousands_of_devices_are_not_compared_with_each_other() -> None:
    """Ten times as many devices take about ten times the work, not a hundred times."""
    assert calls(1000) < 15 * calls(100)
