"""Who else hands out this machine's devices: a kubelet's device plugin or DRA driver.

On a node a GPU belongs to the kubelet or to `draht run`, never to both, because neither would know of the other's
holds. Plugins show by their sockets below the kubelet's directory: a DRA driver registers as
``plugins_registry/<driver>[-<instance>]-reg.sock`` and serves ``plugins/<driver>/dra*.sock`` (KEP-3063, KEP-4381), a
device plugin serves ``device-plugins/<name>.sock``. A socket file outlives its process, so it counts only if something
answers there.

It asks nobody anything: connecting is enough.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from draht.api.finding import Finding

__all__ = ["DEVICE_PLUGINS", "DRA_DRIVERS", "Owner", "Ownership", "look"]

DRA_DRIVERS = {
    "gpu.nvidia.com": "nvidia",
    "gpu.amd.com": "amd",
    "gpu.intel.com": "intel",
    "gaudi.intel.com": "intel",
}
"""DRA driver → vendor of the devices it hands out. NVIDIA's compute-domain driver hands out no GPUs."""

DEVICE_PLUGINS = (
    ("nvidia-", "nvidia", "nvidia.com/gpu"),
    ("amd.com_", "amd", "amd.com/gpu"),
    ("gpu.intel.com-", "intel", "gpu.intel.com"),
)
"""Prefix of the socket's name, vendor, and the resource for people."""

KUBELET = "var/lib/kubelet"
_PATIENCE = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """Something that hands out all devices of one vendor.

    Attributes:
        vendor: As `draht.hardware.inventory.Device.vendor`.
        what: For people, such as ``the DRA driver gpu.nvidia.com``.
        socket: Where it answers.
    """

    vendor: str
    what: str
    socket: str

    @property
    def reason(self) -> str:
        """Why `draht run` leaves the devices alone, as a sentence."""
        return f"{self.what} hands out this machine's {self.vendor} devices to pods"

    @property
    def fix(self) -> str:
        """What a person can do about it."""
        return "run the workload as a pod, or take the node out of the plugin's DaemonSet first"

    def finding(self) -> Finding:
        """As `draht doctor` shows it."""
        return Finding(
            kind="kubelet-owns-devices",
            severity="warning",
            message=f"{self.reason}, so `draht run` refuses them",
            fix=self.fix,
            where=self.socket,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ownership:
    """What was found.

    Attributes:
        owners: One for each driver or plugin that answers.
        unseen: A directory of the kubelet that can't be read, so that there may be more.
    """

    owners: tuple[Owner, ...] = ()
    unseen: str | None = None

    def of(self, vendor: str) -> Owner | None:
        """Who owns a vendor's devices, if anybody."""
        return next((owner for owner in self.owners if owner.vendor == vendor), None)

    def findings(self) -> list[Finding]:
        """As `draht doctor` shows it."""
        found = [owner.finding() for owner in self.owners]
        if self.unseen is not None:
            found.append(
                Finding(
                    kind="kubelet-unseen",
                    severity="note",
                    message="whether a kubelet's plugins own the devices can't be seen",
                    fix="run `sudo draht doctor`",
                    where=self.unseen,
                )
            )
        return found


def answers(path: Path) -> bool:
    """Whether a process listens on a Unix socket; what may not be asked counts as alive."""
    try:
        # A socket's address has at most 107 bytes; below /proc/self/fd every path is short.
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(_PATIENCE)
            client.connect(f"/proc/self/fd/{directory}/{path.name}")
    except OSError as error:
        return error.errno in {errno.EACCES, errno.EPERM, errno.EAGAIN} or isinstance(error, TimeoutError)
    finally:
        os.close(directory)
    return True


def look(root: str | Path = "/", *, alive: Callable[[Path], bool] = answers) -> Ownership:
    """Find plugins that own devices of this machine.

    Args:
        root: Where ``var/lib/kubelet`` is found.
        alive: Whether something answers on a socket.
    """
    kubelet = Path(root) / KUBELET
    unseen: list[str] = []
    found: dict[str, Owner] = {}
    for vendor, what, path in _candidates(kubelet, unseen):
        if what not in found and alive(path):
            found[what] = Owner(vendor=vendor, what=what, socket=str(path))
    return Ownership(owners=tuple(found.values()), unseen=unseen[0] if unseen else None)


def _candidates(kubelet: Path, unseen: list[str]) -> Iterator[tuple[str, str, Path]]:
    for path in _entries(kubelet / "plugins_registry", unseen):
        for driver, vendor in DRA_DRIVERS.items():
            if path.name.startswith(f"{driver}-") and path.name.endswith("reg.sock"):
                yield vendor, f"the DRA driver {driver}", path
    for driver, vendor in DRA_DRIVERS.items():
        for path in _entries(kubelet / "plugins" / driver, unseen):
            if path.name.startswith("dra") and path.name.endswith(".sock"):
                yield vendor, f"the DRA driver {driver}", path
    for path in _entries(kubelet / "device-plugins", unseen):
        for prefix, vendor, resource in DEVICE_PLUGINS:
            if path.name.startswith(prefix):
                yield vendor, f"the device plugin of {resource}", path


def _entries(directory: Path, unseen: list[str]) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except PermissionError:
        unseen.append(str(directory))
    except OSError:
        pass
    return []
