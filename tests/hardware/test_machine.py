"""The real machine: the kernel's devices joined with the names that CDI specs offer for them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from draht import cdi
from draht.hardware import profiles
from draht.hardware.inventory import Device, Inventory
from draht.hardware.machine import MachineProvider
from fake_sysfs import build

CAP = "/dev/nvidia-caps/nvidia-cap"


def machine(tmp_path: Path, profile: str, specs: dict[str, dict[str, list[str]]]) -> Inventory:
    """A fake machine of a profile with specs: kind → device name → nodes."""
    build(profiles.load(profile), tmp_path / "root")
    for number, (kind, devices) in enumerate(specs.items()):
        spec = cdi.Spec(
            cdi_version="1.1.0",
            kind=kind,
            devices=tuple(
                cdi.Device(
                    name=name,
                    container_edits=cdi.ContainerEdits(device_nodes=tuple(cdi.DeviceNode(path=path) for path in nodes)),
                )
                for name, nodes in devices.items()
            ),
        )
        cdi.write_spec(spec, tmp_path / "cdi", f"spec{number}", format="json")
    return MachineProvider(cdi.Cache([tmp_path / "cdi"]), str(tmp_path / "root")).inventory()


def by_name(inventory: Inventory, name: str) -> Device:
    """The one device that a qualified name means."""
    [found] = [device for device in inventory.devices if name in device.cdi_names]
    return found


def test_a_gpu_of_both_is_one_device(tmp_path: Path) -> None:
    """It has the kernel's place and the specs' names; index and minor differ and it is found all the same."""
    nodes = {str(index): [f"/dev/nvidia{minor}"] for index, minor in enumerate((2, 3, 0, 1, 4, 5))}
    everything = {"all": [node for each in nodes.values() for node in each]}
    inventory = machine(tmp_path, "mixed-x6", {"nvidia.com/gpu": nodes | everything})
    assert [gpu.cdi_names for gpu in inventory.gpus()] == [(f"nvidia.com/gpu={index}",) for index in range(6)]
    assert len(inventory.devices) == 7
    third = by_name(inventory, "nvidia.com/gpu=2")
    assert (third.pci_address, third.product, third.numa_node) == ("0000:23:00.0", "NVIDIA A100 80GB PCIe", 0)
    assert inventory.aliases == {"nvidia.com/gpu=all": tuple(sorted(gpu.id for gpu in inventory.gpus()))}
    assert inventory.source == "sysfs+cdi"
    assert not any(one.conflicts(two) for one, two in itertools.combinations(inventory.devices, 2))


@pytest.mark.parametrize(
    ("profile", "kind", "name", "nodes"),
    [
        ("mi300x-x8", "amd.com/gpu", "3", ["/dev/kfd", "/dev/dri/card4", "/dev/dri/renderD131"]),
        ("l4-x4", "nvidia.com/gpu", "3", ["/run/nvidia/driver/dev/nvidia3"]),
        ("t4-x1", "k8s.gpu.nvidia.com/claim", "0000-3b-00-0", ["/dev/vfio/7"]),
    ],
)
def test_other_ways_to_recognise_a_gpu(profile: str, kind: str, name: str, nodes: list[str], tmp_path: Path) -> None:
    """By render node, by GPU node below a driver container's root, by PCI address in the name."""
    inventory = machine(tmp_path, profile, {kind: {name: nodes}})
    found = by_name(inventory, f"{kind}={name}")
    assert found.product
    assert len([device for device in inventory.devices if device.kind == "gpu"]) == len(inventory.gpus())
    assert len(inventory.devices) == len(build(profiles.load(profile), tmp_path / "again").devices)


def test_instances_stand_below_the_gpu_they_are_cut_from(tmp_path: Path) -> None:
    """A partitioned GPU isn't offered itself; its instances conflict with it, not with each other."""
    instances = {
        "0:0": ["/dev/nvidia0", f"{CAP}21", f"{CAP}22"],
        "0:1": ["/dev/nvidia0", f"{CAP}30", f"{CAP}31"],
    }
    specs = {"nvidia.com/gpu": {**instances, "1": ["/dev/nvidia1"]}}
    inventory = machine(tmp_path, "dgx-h100", specs)
    gpu = inventory.gpus()[0]
    one, other = inventory.instances(gpu)
    assert (one.pci_address, one.numa_node, one.architecture) == (gpu.pci_address, 0, "Hopper")
    assert inventory.devices[1:3] == (one, other)
    assert gpu.conflicts(one)
    assert gpu.conflicts(other)
    assert not one.conflicts(other)
    assert gpu.cdi_names == ()
    assert inventory.distance(one, "0000:18:00.0") == "PXB"


def test_a_second_offer_of_one_gpu_conflicts_with_the_first(tmp_path: Path) -> None:
    """Specs that the grouping can't join, but the kernel knows as one device, are never held at once."""
    specs = {"intel.com/gpu": {"0000-3b-00-0": ["/dev/a"]}, "nvidia.com/gpu": {"0": ["/dev/nvidia0"]}}
    inventory = machine(tmp_path, "t4-x1", specs)
    assert by_name(inventory, "intel.com/gpu=0000-3b-00-0").conflicts(by_name(inventory, "nvidia.com/gpu=0"))


def test_a_uuid_from_a_spec_becomes_the_identity(tmp_path: Path) -> None:
    """Without the driver's /proc files the kernel has an address only; the specs know more."""
    uuid = "GPU-11111111-1111-1111-1111-111111111111"
    build(profiles.load("t4-x1"), tmp_path / "root")
    (tmp_path / "root/proc/driver/nvidia/gpus/0000:3b:00.0/information").unlink()
    node = cdi.DeviceNode(path="/dev/dri/renderD128")
    device = cdi.Device(name=uuid, container_edits=cdi.ContainerEdits(device_nodes=(node,)))
    spec = cdi.Spec(cdi_version="0.5.0", kind="nvidia.com/gpu", devices=(device,))
    cdi.write_spec(spec, tmp_path / "cdi", "nvidia", format="json")
    inventory = MachineProvider(cdi.Cache([tmp_path / "cdi"]), str(tmp_path / "root")).inventory()
    [gpu] = inventory.gpus()
    assert (gpu.id, gpu.uuid, gpu.units) == (uuid, uuid, frozenset({uuid}))


def test_what_only_a_spec_knows_stays(tmp_path: Path) -> None:
    """A device without a place in the kernel's tree is listed behind the others."""
    inventory = machine(tmp_path, "t4-x1", {"example.com/sensor": {"front": ["/dev/sensor0"]}})
    assert inventory.devices[-1].cdi_names == ("example.com/sensor=front",)


def test_problems_of_both_are_kept(tmp_path: Path) -> None:
    """Each with its place."""
    (tmp_path / "cdi").mkdir()
    (tmp_path / "cdi/broken.json").write_text("{")
    bus = tmp_path / "root/sys/bus/pci/devices"
    bus.mkdir(parents=True)
    (bus / "garbage").mkdir()
    inventory = MachineProvider(cdi.Cache([tmp_path / "cdi"]), str(tmp_path / "root")).inventory()
    assert [Path(problem.where).name for problem in inventory.problems] == ["garbage", "broken.json"]
