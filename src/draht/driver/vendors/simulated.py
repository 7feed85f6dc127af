"""What a container receives for a GPU that doesn't exist: something visible where the real thing would be, and honest.

The device nodes are at the vendor's paths but are ``/dev/null``: opening them works, everything else fails at once. The
libraries are small text files that say what they are, so a program that loads one gets "invalid ELF header" and a
person who looks gets an explanation. The tool (``nvidia-smi``, ``rocm-smi``) is a shell script that lists the simulated
GPUs and says that they are simulated.

Pure: it returns edits and the text of the stub files. Writing them is `draht.host.specs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from draht import cdi
from draht.hardware.inventory import Device

__all__ = ["common_edits", "device_edits", "stub_files", "variable"]

_LIBRARIES = {
    "nvidia": ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"),
    "amd": ("libamdhip64.so", "librocm_smi64.so", "libhsa-runtime64.so.1"),
}
_TOOLS = {"nvidia": "nvidia-smi", "amd": "rocm-smi"}
_CONTROL_NODES = {
    "nvidia": ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"),
    "amd": ("/dev/kfd",),
}
_LIBRARY_DIRECTORY = "/usr/lib/x86_64-linux-gnu"
"""Where the NVIDIA Container Toolkit puts the driver's libraries on Debian and Ubuntu."""

_BACKING = "/dev/null"


def stub_files(devices: Sequence[Device]) -> dict[str, tuple[bytes, int]]:
    """Name → content and mode of the files that the edits mount, for the vendors of these devices.

    The content depends on the vendor only, so all containers of a machine can share the files.
    """
    files: dict[str, tuple[bytes, int]] = {}
    for vendor in _vendors(devices):
        for library in _LIBRARIES[vendor]:
            text = (
                f"This is not {library}. draht put this text here because the GPU of this container is simulated:\n"
                "it stands for a machine that was described by a profile, and nothing can be computed with it.\n"
            )
            files[library] = (text.encode(), 0o444)
        files[_TOOLS[vendor]] = (_TOOL.replace("@TOOL@", _TOOLS[vendor]).encode(), 0o555)
    return files


def common_edits(devices: Sequence[Device], *, stubs: str, machine: str, rootless: bool = False) -> cdi.ContainerEdits:
    """What a container gets once, however many simulated GPUs it has.

    Args:
        devices: The devices it gets.
        stubs: Host directory that has the `stub_files`.
        machine: Name of the profile.
        rootless: The engine can't make device nodes; see `device_edits`.
    """
    env = [f"DRAHT_SIMULATED={machine}"]
    mounts: list[cdi.Mount] = []
    nodes: list[str] = []
    for vendor in _vendors(devices):
        if vendor == "nvidia":
            # As generated NVIDIA specs do: keeps the older prestart hook from injecting a second time.
            env.append("NVIDIA_VISIBLE_DEVICES=void")
        nodes += _CONTROL_NODES[vendor]
        mounts += [_mount(f"{stubs}/{name}", f"{_LIBRARY_DIRECTORY}/{name}") for name in _LIBRARIES[vendor]]
        mounts.append(_mount(f"{stubs}/{_TOOLS[vendor]}", f"/usr/bin/{_TOOLS[vendor]}"))
    edits = _node_edits(nodes, rootless=rootless)
    return cdi.ContainerEdits(env=tuple(env), device_nodes=edits.device_nodes, mounts=(*edits.mounts, *mounts))


def device_edits(device: Device, *, rootless: bool = False) -> cdi.ContainerEdits:
    """What a container gets for one simulated device: its nodes, and a line for the vendor's tool.

    Each device has a variable of its own, because of two values of one variable a container sees the last only, and it
    may have devices of several claims.

    Rootless engines can't make nodes and bind the host's node of the *same* path instead, which doesn't exist here; for
    them the backing node is mounted at the path, which looks the same inside.
    """
    edits = _node_edits(_nodes(device), rootless=rootless)
    if not _computes(device):
        return edits
    line = f"GPU {device.index}: {device.product} (UUID: {device.id})"
    return msgspec.structs.replace(edits, env=(f"DRAHT_SIMULATED_GPU_{variable(device.id)}={line}",))


def variable(name: str) -> str:
    """A name as part of the name of an environment variable: ``gpu-0`` → ``gpu_0``."""
    return re.sub("[^A-Za-z0-9_]", "_", name)


def _nodes(device: Device) -> tuple[str, ...]:
    if device.device_nodes:
        return device.device_nodes
    index = device.index or 0
    if device.kind in {"nic", "vf"}:
        return (f"/dev/infiniband/uverbs{index}",)
    if device.vendor == "nvidia":
        return (f"/dev/nvidia{index}",)
    if device.vendor == "amd":
        return (f"/dev/dri/card{index}", f"/dev/dri/renderD{128 + index}")
    return (f"/dev/draht/{device.vendor or 'device'}{index}",)


def _node_edits(paths: Iterable[str], *, rootless: bool) -> cdi.ContainerEdits:
    if rootless:
        return cdi.ContainerEdits(
            mounts=tuple(
                cdi.Mount(host_path=_BACKING, container_path=path, options=("rbind", "nosuid")) for path in paths
            )
        )
    return cdi.ContainerEdits(
        device_nodes=tuple(cdi.DeviceNode(path=path, host_path=_BACKING, permissions="rw") for path in paths)
    )


def _vendors(devices: Sequence[Device]) -> list[str]:
    return [vendor for vendor in _LIBRARIES if any(device.vendor == vendor for device in devices if _computes(device))]


def _computes(device: Device) -> bool:
    """A GPU or a part of one: what the vendor's tool lists."""
    return device.kind in {"gpu", "mig"}


def _mount(host_path: str, container_path: str) -> cdi.Mount:
    return cdi.Mount(host_path=host_path, container_path=container_path, options=("ro", "nosuid", "nodev", "rbind"))


_TOOL = """\
#!/bin/sh
# Not the vendor's @TOOL@: it lists the simulated GPUs that draht gave this container.
echo "simulated by draht: machine profile $DRAHT_SIMULATED, no such hardware is here"
env | sed -n 's/^DRAHT_SIMULATED_GPU_[A-Za-z0-9_]*=//p' | sort -k 2 -n
"""
