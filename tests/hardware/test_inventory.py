"""The inventory value: distances, conflicts, JSON; and simulated machines, where most inventories come from."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from draht.hardware import profiles, simulated
from draht.hardware.inventory import Bridge, Device, Inventory, Link, NUMANode, RootComplex
from draht.hardware.topology import DISTANCES, path, rank


def machine() -> Inventory:
    """Two nodes; a root with a switch that has a switch below it, and roots with one device each."""
    bridges = (
        Bridge(address="0000:00:01.0", parent="pci0000:00", root="pci0000:00", port="root"),
        Bridge(address="0000:01:00.0", parent="0000:00:01.0", root="pci0000:00", port="upstream"),
        Bridge(address="0000:02:00.0", parent="0000:01:00.0", root="pci0000:00", port="downstream"),
        Bridge(address="0000:02:01.0", parent="0000:01:00.0", root="pci0000:00", port="downstream"),
        Bridge(address="0000:02:02.0", parent="0000:01:00.0", root="pci0000:00", port="downstream"),
        Bridge(address="0000:05:00.0", parent="0000:02:02.0", root="pci0000:00", port="upstream"),
        Bridge(address="0000:06:00.0", parent="0000:05:00.0", root="pci0000:00", port="downstream"),
        Bridge(address="0000:00:02.0", parent="pci0000:00", root="pci0000:00", port="root"),
    )

    def at(id_: str, root: str | None, parent: str | None, node: int | None, kind: str = "nic") -> Device:
        return msgspec.convert(
            {
                "id": id_,
                "kind": kind,
                "pcieRoot": root,
                "pcieParent": parent,
                "numaNode": node,
                "units": [id_],
            },
            Device,
        )

    return Inventory(
        machine="m",
        source="test",
        devices=(
            at("gpu", "pci0000:00", "0000:02:00.0", 0, "gpu"),
            at("linked", "pci0000:80", "pci0000:80", 1, "gpu"),
            at("fabric", "pci0000:80", "pci0000:80", 1, "gpu"),
            at("twin", "pci0000:00", "0000:02:00.0", 0),
            at("switch", "pci0000:00", "0000:02:01.0", 0),
            at("deeper", "pci0000:00", "0000:06:00.0", 0),
            at("port", "pci0000:00", "0000:00:02.0", 0),
            at("host", "pci0000:40", "pci0000:40", 0),
            at("far", "pci0000:80", "pci0000:80", 1),
            at("hidden", None, None, 0),
            at("unknown", None, None, None),
        ),
        bridges=bridges,
        roots=tuple(RootComplex(name=f"pci0000:{bus}", numa_node=bus == "80") for bus in ("00", "40", "80")),
        numa_nodes=(NUMANode(id=0), NUMANode(id=1)),
        links=(Link(kind="nvlink", a="linked", b="gpu", count=4), Link(kind="xgmi", a="fabric", b="gpu", count=1)),
    )


@pytest.mark.parametrize(
    ("other", "distance"),
    [
        ("gpu", "X"),
        ("linked", "NV4"),
        ("fabric", "XGMI"),
        ("twin", "PIX"),
        ("switch", "PIX"),
        ("deeper", "PXB"),
        ("port", "PHB"),
        ("host", "NODE"),
        ("hidden", "NODE"),
        ("far", "SYS"),
        ("unknown", "SYS"),
    ],
)
def test_distances_are_those_of_nvidia_smi(other: str, distance: str) -> None:
    """What lies between decides, in both directions alike; what isn't known counts as far."""
    assert machine().distance("gpu", other) == distance
    assert machine().distance(other, "gpu") == distance


def test_a_machine_with_one_numa_node_needs_no_node_numbers() -> None:
    """Virtual machines often have no NUMA numbers; everything is on the one node they have."""
    one = msgspec.structs.replace(machine(), numa_nodes=(NUMANode(id=0),))
    assert one.distance("hidden", "hidden") == "X"
    both = msgspec.structs.replace(one, devices=tuple(msgspec.structs.replace(d, numa_node=None) for d in one.devices))
    assert both.distance("gpu", "unknown") == "NODE"


def test_distances_rank_from_near_to_far() -> None:
    """More links are nearer; the legend lists all in this order."""
    order = ["X", "NV18", "NV12", "NV1", "XGMI", "PIX", "PXB", "PHB", "NODE", "SYS"]
    assert sorted(order, key=rank) == order
    assert {"NV#" if name.startswith("NV") else name for name in order} == set(DISTANCES)


def test_the_nearest_nics_are_all_that_are_equally_near() -> None:
    """Two at PIX are two answers; a machine without NICs has none."""
    near, distance = machine().nearest_nics("gpu")
    assert ([nic.id for nic in near], distance) == (["twin", "switch"], "PIX")
    assert Inventory(machine="m", source="t", devices=machine().devices[:3]).nearest_nics("gpu") == ((), None)


def test_an_unknown_id_is_a_key_error() -> None:
    """A caller that asks for what isn't there made a mistake."""
    with pytest.raises(KeyError):
        machine().distance("gpu", "nothing")
    assert machine().device("nothing") is None


def test_a_tree_that_bites_its_tail_ends() -> None:
    """Inventories also come from JSON; a walk upwards is bounded."""
    loop = tuple(Bridge(address=a, parent=b, root="r") for a, b in (("x", "y"), ("y", "x")))
    broken = msgspec.structs.replace(machine(), bridges=loop)
    device = msgspec.structs.replace(broken.devices[0], pcie_parent="x")
    assert len(path(broken, device)) <= 3


@pytest.mark.parametrize("name", profiles.names())
def test_an_inventory_survives_json(name: str) -> None:
    """What is written is read back equal."""
    inventory = simulated.from_profile(name)
    text = msgspec.json.encode(inventory.to_builtins())
    assert msgspec.json.decode(text, type=Inventory) == inventory


def test_the_same_profile_is_the_same_machine_in_every_process() -> None:
    """Neither hash seeds nor time get into an inventory."""
    program = (
        "import json; from draht.hardware import simulated;"
        "print(json.dumps(simulated.from_profile('hgx-h200').to_builtins()))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert json.loads(printed.pop())["machine"] == "hgx-h200"


def test_uuids_never_change() -> None:
    """State that outlives an upgrade names them."""
    found = {name: simulated.from_profile(name).gpus()[0].id for name in ("dgx-h100", "mi300x-x8")}
    assert found == {"dgx-h100": "GPU-07e89fe4-bbf2-5f07-bdd7-0ef36319bc36", "mi300x-x8": "GPU-32b177a72f9a5f81"}


@pytest.mark.parametrize("name", profiles.names())
def test_a_simulated_machine_says_so_and_its_devices_do_not_conflict(name: str) -> None:
    """Each device is marked, has an id of its own, and can be held beside every other."""
    inventory = simulated.from_profile(name)
    assert inventory.simulated
    assert all(device.simulated for device in inventory.devices)
    assert len({device.id for device in inventory.devices}) == len(inventory.devices)
    assert not any(one.conflicts(other) for one, other in itertools.combinations(inventory.devices, 2))
    assert [gpu.index for gpu in inventory.gpus()] == list(range(len(inventory.gpus())))


@pytest.mark.parametrize(
    ("name", "links", "gpu_to_nic", "gpus"),
    [
        ("dgx-a100-80", "NV12", "PXB", 8),
        ("dgx-h100", "NV18", "PXB", 8),
        ("hgx-h200", "NV18", "PIX", 8),
        ("hgx-b200", "NV18", "PIX", 8),
        ("mi300x-x8", "XGMI", "PIX", 8),
        ("gh200", None, "NODE", 1),
        ("l40s-x4", "PIX", "PIX", 4),
        ("l4-x4", "PHB", "NODE", 4),
        ("t4-x1", None, "NODE", 1),
        ("mixed-x6", "PHB", "NODE", 6),
    ],
)
def test_shipped_machines_have_the_distances_people_report(
    name: str, links: str | None, gpu_to_nic: str, gpus: int
) -> None:
    """First GPU to the second and to its nearest network function, as in ``nvidia-smi topo -m`` of such machines."""
    inventory = simulated.from_profile(name)
    found = inventory.gpus()
    assert len(found) == gpus
    assert inventory.nearest_nics(found[0])[1] == gpu_to_nic
    if links is not None:
        assert inventory.distance(found[0], found[1]) == links


PARTITIONED = """\
name: parted
description: a partitioned GPU
synthetic: true
sources: [made up for this test]
cpu: {model: Some CPU}
memoryMiB: 1024
numa: [{id: 0}]
pcie:
  - root: pci0000:00
    below:
      - rootPort: 0000:00:01.0
        below:
          - device: 0000:01:00.0
            model: h100-sxm5-80
            mig: [{profile: 3g.40gb, start: 4}, {profile: 1g.10gb, start: 0}, {profile: 2g.20gb, start: 2}]
      - rootPort: 0000:00:02.0
        below: [{device: 0000:02:00.0, model: l4, index: 0, minor: 5}]
"""


def test_an_instance_conflicts_with_its_gpu_only(tmp_path: Path) -> None:
    """Siblings have disjoint slices; the GPU has all of them; another GPU has none."""
    (tmp_path / "parted.yaml").write_text(PARTITIONED)
    inventory = simulated.from_profile(tmp_path / "parted.yaml")
    small, big = inventory.gpus()
    assert (small.index, small.device_nodes[0], big.index) == (0, "/dev/nvidia5", 1)
    instances = inventory.instances(big)
    assert [instance.product for instance in instances] == [
        f"NVIDIA H100 80GB HBM3 MIG {profile}" for profile in ("3g.40gb", "1g.10gb", "2g.20gb")
    ]
    assert [instance.memory_bytes for instance in instances] == [mib << 20 for mib in (40448, 9984, 20096)]
    for one, other in itertools.combinations([small, big, *instances], 2):
        assert one.conflicts(other) == (one.id == big.id and other.parent == big.id)
    assert all(inventory.distance(instance, big) == "X" for instance in instances)
    assert inventory.instances(small) == ()
    assert inventory.devices.index(instances[0]) == inventory.devices.index(big) + 1
