from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from draht import cdi
from draht.driver.vendors import simulated
from draht.hardware.inventory import Device
from draht.hardware.simulated import from_profile


def gpus(profile: str, number: int = 2) -> tuple[Device, ...]:
    """The first GPUs of a profile."""
    return from_profile(profile).gpus()[:number]


@pytest.mark.parametrize(
    ("profile", "nodes", "library", "tool"),
    [
        (
            "dgx-h100",
            {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"},
            "libcuda.so.1",
            "nvidia-smi",
        ),
        ("mi300x-x8", {"/dev/kfd", "/dev/dri/renderD128"}, "libamdhip64.so", "rocm-smi"),
    ],
)
@pytest.mark.parametrize("rootless", [False, True])
def test_everything_is_at_the_vendors_places(
    profile: str, nodes: set[str], library: str, tool: str, rootless: bool
) -> None:
    """Nodes, libraries and the tool are where a program looks; the nodes are harmless, and rootless ones are mounts."""
    devices = gpus(profile)
    common = simulated.common_edits(devices, stubs="/stubs", machine=profile, rootless=rootless)
    edits = [common, *(simulated.device_edits(device, rootless=rootless) for device in devices)]
    made = {node.path: node.host_path for edit in edits for node in edit.device_nodes}
    mounted = {mount.container_path: mount.host_path for edit in edits for mount in edit.mounts}
    there = mounted if rootless else made
    assert nodes <= there.keys()
    assert {there[node] for node in nodes} == {"/dev/null"}
    assert not made or not rootless
    assert mounted[f"/usr/lib/x86_64-linux-gnu/{library}"] == f"/stubs/{library}"
    assert mounted[f"/usr/bin/{tool}"] == f"/stubs/{tool}"
    assert {Path(source).name for target, source in mounted.items() if target.startswith("/usr")} == set(
        simulated.stub_files(devices)
    )
    assert f"DRAHT_SIMULATED={profile}" in common.env


def test_a_container_with_two_models_gets_each_library_once() -> None:
    """Whatever the number of GPUs, what is common is there once."""
    devices = from_profile("mixed-x6").gpus()
    common = simulated.common_edits(devices, stubs="/stubs", machine="m")
    targets = [mount.container_path for mount in common.mounts] + [node.path for node in common.device_nodes]
    assert len(targets) == len(set(targets))
    own = [node.path for device in devices for node in simulated.device_edits(device).device_nodes]
    assert len(own) == len(set(own))
    assert set(own).isdisjoint(targets)


def test_an_engine_of_debian_12_can_read_it() -> None:
    """Nothing in a simulated device needs more than CDI 0.5.0."""
    devices = gpus("dgx-h100")
    spec = cdi.Spec(
        cdi_version="0.5.0",
        kind="draht.dev/gpu",
        devices=tuple(
            cdi.Device(name=f"h-{number}", container_edits=simulated.device_edits(device))
            for number, device in enumerate(devices)
        ),
        container_edits=simulated.common_edits(devices, stubs="/stubs", machine="dgx-h100"),
    )
    cdi.validate(spec)
    assert cdi.minimum_version(spec) == "0.5.0"


def test_stub_libraries_say_what_they_are() -> None:
    """They are text that no loader takes for a library."""
    for name, (content, mode) in simulated.stub_files(gpus("dgx-h100")).items():
        assert not content.startswith(b"\x7fELF")
        assert b"simulated" in content
        assert mode == (0o555 if name == "nvidia-smi" else 0o444)


def test_the_tool_lists_the_gpus_and_says_that_they_are_simulated(tmp_path: Path) -> None:
    """It runs with any POSIX shell, on what the edits put into the environment."""
    devices = gpus("dgx-h100", 8)
    content, _mode = simulated.stub_files(devices)["nvidia-smi"]
    common = simulated.common_edits(devices, stubs="/stubs", machine="dgx-h100")
    tool = tmp_path / "nvidia-smi"
    tool.write_bytes(content)
    edits = cdi.collect([common, *(simulated.device_edits(device) for device in reversed(devices))])
    env = dict(entry.split("=", 1) for entry in edits.env)
    lines = subprocess.run(
        ["sh", tool], env={"PATH": "/usr/bin:/bin", **env}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert lines[0] == "simulated by draht: machine profile dgx-h100, no such hardware is here"
    assert lines[1:] == [f"GPU {one.index}: {one.product} (UUID: {one.id})" for one in devices]
