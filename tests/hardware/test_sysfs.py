"""The sysfs provider: it finds what a profile describes, and lives with whatever else it meets."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from draht.hardware import profiles
from draht.hardware.files import Files
from draht.hardware.inventory import Device, Inventory
from draht.hardware.profiles.check import check
from draht.hardware.profiles.format import NUMA, SRIOV, Profile, Root, Slot
from draht.hardware.sysfs import SysfsProvider, pcie_root
from draht.hardware.topology import CPU
from fake_sysfs import add_function, build, write

NVIDIA = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}


def seen(device: Device) -> Device:
    """A simulated device without what the kernel's files can't tell."""
    memory = device.memory_bytes if device.vendor == "amd" else None
    return replace(device, simulated=False, memory_bytes=memory, attributes={})


def assert_same_machine(found: Inventory, described: Inventory) -> None:
    """The provider found exactly what the profile says, as far as files can tell."""
    assert [replace(device, attributes={}) for device in found.devices] == [seen(d) for d in described.devices]
    for one, other in zip(found.devices, described.devices, strict=True):
        assert other.attributes.items() <= one.attributes.items()
    assert (found.roots, found.bridges) == (described.roots, described.bridges)
    assert (found.numa_nodes, found.memory_bytes) == (described.numa_nodes, described.memory_bytes)
    assert found.cpu == (replace(described.cpu, architecture="") if described.cpu else None)
    assert (found.machine, found.driver_version) == (described.machine, described.driver_version)
    linked = tuple(replace(link, version="") for link in described.links if link.kind == "xgmi")
    assert found.links == linked
    visible = replace(described, links=linked)
    for gpu in described.gpus():
        for other in (*described.gpus(), *described.nics()):
            assert found.distance(gpu.id, other.id) == visible.distance(gpu.id, other.id)
    assert found.problems == ()


@pytest.mark.parametrize("name", profiles.names())
def test_every_shipped_profile_is_found_again(name: str, tmp_path: Path) -> None:
    """A profile written as a sysfs tree gives the devices, the tree and the distances of the profile."""
    described = build(profiles.load(name), tmp_path)
    assert_same_machine(SysfsProvider(tmp_path).inventory(), described)


def machine(seed: int) -> Profile:
    """A random machine: roots in several domains, switches in switches, GPUs of two vendors, virtual functions."""
    chance = random.Random(seed)

    def below(bus: list[int], domain: str, depth: int) -> tuple[Slot, ...]:
        bus[0] += 1
        here = bus[0]
        if depth == 0 or chance.random() < 0.3:
            kind = chance.choice(["h100-sxm5-80", "l4", "mi300x", "connectx-7-ib", "intel-x550", "nvswitch-h100"])
            functions = tuple(f"{domain}:{here:02x}:00.{number}" for number in (4, 5))
            sriov = SRIOV(model="mlx5-ib-vf", total=4, functions=functions) if kind == "connectx-7-ib" else None
            network = {"connectx-7-ib": (f"ib{here}", f"mlx5_{here}"), "intel-x550": (f"en{here}", "")}
            interface, rdma = network.get(kind, ("", ""))
            address = f"{domain}:{here:02x}:00.0"
            return (Slot(device=address, model=kind, interface=interface, rdma=rdma, sriov=sriov),)
        bus[0] += 1
        ports = bus[0]
        down = tuple(
            Slot(downstream_port=f"{domain}:{ports:02x}:{number:02x}.0", below=below(bus, domain, depth - 1))
            for number in range(chance.randint(1, 3))
        )
        return (Slot(switch=f"{domain}:{here:02x}:00.0", below=down),)

    roots = []
    for number in range(chance.randint(1, 4)):
        domain, bus = f"{number:04x}", [chance.randint(0, 8)]
        start = bus[0]
        ports = tuple(
            Slot(root_port=f"{domain}:{start:02x}:{port + 1:02x}.0", below=below(bus, domain, chance.randint(0, 3)))
            for port in range(chance.randint(1, 3))
        )
        roots.append(Root(root=f"pci{domain}:{start:02x}", numa_node=chance.choice([0, 1]), below=ports))
    numa = tuple(NUMA(id=node, cpus=str(node), memory_mib=64, distances=((10, 21), (21, 10))[node]) for node in (0, 1))
    cpu = CPU(model="test", architecture="x86_64", sockets=2, cores=2, threads=2)
    return Profile(
        name=f"machine-{seed}", description="random", synthetic=True, sources=("random",), cpu=cpu, memory_mib=128,
        numa=numa, pcie=tuple(roots),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_every_random_machine_is_found_again(seed: int, tmp_path: Path) -> None:
    """Whatever the shape of the tree, the two providers agree."""
    profile = machine(seed)
    assert check(profile, profiles.catalogue()) == []
    described = build(profile, tmp_path)
    assert_same_machine(SysfsProvider(tmp_path).inventory(), described)


@pytest.mark.parametrize(
    ("address", "target", "root"),
    [
        ("0000:1b:00.0", "../../../devices/pci0000:15/0000:15:01.0/0000:1b:00.0", "pci0000:15"),
        ("0009:01:00.0", "../../../devices/pci0009:00/0009:00:00.0/0009:01:00.0", "pci0009:00"),
        ("0000:00:02.0", "../../../devices/pci0000:00/0000:00:02.0", "pci0000:00"),
        ("0000:1B:00.0", "../../../devices/pci0000:15/0000:1B:00.0", None),
        ("10000:01:00.0", "../../../devices/pci0000:64/0000:64:00.5/pci10000:00/10000:01:00.0", None),
        ("0001:00:00.0", "../../../devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/pci0001:00/0001:00:00.0", None),
        ("0000:1b:00.0", "../../../devices/pci0000:15/0000:1c:00.0", None),
        ("0000:1b:00.0", "../../../class/pci0000:15/0000:1b:00.0", None),
        ("0000:1b:00.0", "0000:1b:00.0", None),
        ("0000:1b:00.0", None, None),
    ],
)
def test_the_root_follows_upstreams_rule(address: str, target: str | None, root: str | None, tmp_path: Path) -> None:
    """Where the helper of k8s.io/dynamic-resource-allocation gives no root, neither do we."""
    bus = tmp_path / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    if target is not None:
        (bus / address).symlink_to(target)
    assert pcie_root(Files(tmp_path), address) == root


@pytest.mark.parametrize("chain", ["LNXSYSTM:00/VMBUS:00/pci0001:00/0001:00:00.0", "pci10000:00/10000:01:00.0"])
def test_a_device_without_a_root_stays(chain: str, tmp_path: Path) -> None:
    """An unresolvable root costs the attribute, not the GPU."""
    add_function(tmp_path, chain, NVIDIA)
    [gpu] = SysfsProvider(tmp_path).inventory().gpus()
    assert gpu.pcie_root is None
    assert gpu.pci_address == Path(chain).name


def test_a_machine_without_anything_is_an_empty_inventory(tmp_path: Path) -> None:
    """No /sys, no /proc: no devices and no complaint."""
    inventory = SysfsProvider(tmp_path).inventory()
    assert (inventory.devices, inventory.problems, inventory.cpu) == ((), (), None)


def test_this_machine_can_be_read() -> None:
    """Whatever runs the tests is a Linux machine that the provider understands."""
    inventory = SysfsProvider().inventory()
    assert inventory.machine
    assert inventory.cpu is not None
    assert inventory.memory_bytes


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({**NVIDIA, "vendor": "nvidia"}, "left out"),
        ({**NVIDIA, "class": ""}, "left out"),
        ({"vendor": "0x10de"}, "left out"),
        ({**NVIDIA, "numa_node": "one"}, 'must have a number, not "one"'),
        ({**NVIDIA, "numa_node": "9" * 5000}, "must have a number"),
        ({**NVIDIA, "vendor": "0x10de" * 1000}, "left out"),
    ],
)
def test_a_broken_function_is_recorded_beside_the_good_one(files: dict[str, str], words: str, tmp_path: Path) -> None:
    """One line says what is wrong; the other GPU is there."""
    add_function(tmp_path, "pci0000:00/0000:00:01.0/0000:01:00.0", files)
    add_function(tmp_path, "pci0000:00/0000:00:02.0/0000:02:00.0", {**NVIDIA, "numa_node": "-1"})
    inventory = SysfsProvider(tmp_path).inventory()
    assert inventory.device("0000:02:00.0") is not None
    [problem] = inventory.problems
    assert words in problem.message
    assert "0000:01:00.0" in problem.where


def test_odd_files_neither_block_nor_raise(tmp_path: Path) -> None:
    """Pipes, link loops, directories in place of files, binary text and names that are no addresses."""
    directory = add_function(tmp_path, "pci0000:00/0000:01:00.0", NVIDIA)
    os.mkfifo(directory / "subsystem_vendor")
    (directory / "subsystem_device").mkdir()
    (directory / "numa_node").symlink_to("numa_node")
    bus = tmp_path / "sys/bus/pci/devices"
    (bus / "garbage").mkdir()
    (bus / "0000:02:00.0").symlink_to("0000:02:00.0")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_bytes(b"\xff\x00" * 5000)
    information = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information"
    information.parent.mkdir(parents=True)
    information.write_bytes(b"GPU UUID: GPU-????????-????-????-????-????????????\nDevice Minor: x\n\xff")
    inventory = SysfsProvider(tmp_path).inventory()
    [gpu] = inventory.gpus()
    assert (gpu.id, gpu.uuid, gpu.numa_node) == ("0000:01:00.0", None, None)
    assert {Path(problem.where).name for problem in inventory.problems} >= {"numa_node", "garbage", "subsystem_device"}


def test_an_entry_that_is_no_link_stays_without_a_place(tmp_path: Path) -> None:
    """A copied tree has directories on the bus; where they hang isn't known, and that is said."""
    for name, text in NVIDIA.items():
        write(tmp_path, f"sys/bus/pci/devices/0000:01:00.0/{name}", text)
    inventory = SysfsProvider(tmp_path).inventory()
    [gpu] = inventory.gpus()
    assert (gpu.pcie_root, gpu.pcie_parent) == (None, None)
    assert "isn't a link" in inventory.problems[0].message


def test_the_number_of_problems_is_bounded(tmp_path: Path) -> None:
    """Thousands of broken entries don't fill the memory with complaints."""
    bus = tmp_path / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    for number in range(300):
        (bus / f"x{number}").mkdir()
    assert len(SysfsProvider(tmp_path).inventory().problems) == 100


def test_consoles_and_unknown_display_controllers_are_no_gpus(tmp_path: Path) -> None:
    """A management controller (ASPEED) has a display and computes nothing."""
    add_function(tmp_path, "pci0000:00/0000:01:00.0", {"vendor": "0x1a03", "device": "0x2000", "class": "0x030000"})
    assert SysfsProvider(tmp_path).inventory().devices == ()


def test_a_virtual_function_without_its_physical_one_is_listed(tmp_path: Path) -> None:
    """Inside a virtual machine only the function that was passed through is seen."""
    ids = {"vendor": "0x15b3", "device": "0x101e", "class": "0x020000"}
    directory = add_function(tmp_path, "pci0000:00/0000:00:05.0", ids)
    (directory / "physfn").symlink_to("../0000:00:04.0")
    [function] = SysfsProvider(tmp_path).inventory().devices
    assert (function.kind, function.parent, function.index) == ("vf", None, None)


def test_a_virtio_interface_is_found(tmp_path: Path) -> None:
    """Its network directory is one level further down."""
    ids = {"vendor": "0x1af4", "device": "0x1041", "class": "0x020000"}
    directory = add_function(tmp_path, "pci0000:00/0000:00:03.0", ids)
    write(directory, "virtio0/net/eth0/speed", "-1")
    [nic] = SysfsProvider(tmp_path).inventory().nics()
    assert nic.attributes["interface"] == "eth0"
    assert "speedGbps" not in nic.attributes


def test_a_bridge_between_buses_is_no_switch(tmp_path: Path) -> None:
    """A bridge with devices right below a root port isn't the upstream port of a switch."""
    chain = "pci0000:00/0000:00:01.0/0000:01:00.0"
    for part in (chain.rpartition("/")[0], chain):
        add_function(tmp_path, part, {"vendor": "0x8086", "device": "0x1", "class": "0x060400"})
    add_function(tmp_path, f"{chain}/0000:02:00.0", NVIDIA)
    bridges = SysfsProvider(tmp_path).inventory().bridges
    assert [(bridge.address, bridge.port) for bridge in bridges] == [
        ("0000:00:01.0", "root"),
        ("0000:01:00.0", "bridge"),
    ]


def test_links_of_a_broken_fabric_are_left_out(tmp_path: Path) -> None:
    """Text in place of numbers, links to itself, to processors and to nowhere: no link, no exception."""
    described = build(profiles.load("mi300x-x8"), tmp_path)
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    write(nodes, "1/properties", "location_id five\ndomain 0")
    write(nodes, "2/io_links/9/properties", "type 11\nnode_to 2")
    write(nodes, "2/io_links/10/properties", "type 11\nnode_to 99999999999999999999999")
    write(nodes, "x/properties", "")
    links = SysfsProvider(tmp_path).inventory().links
    assert len(links) == 7 * 6 // 2
    assert described.gpus()[0].id not in {end for link in links for end in (link.a, link.b)}
