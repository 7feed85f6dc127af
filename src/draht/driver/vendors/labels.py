"""Node labels that describe the NVIDIA GPUs of a machine, as NVIDIA's GPU feature discovery writes them.

Owns names and values, so that node selectors written for that tool work without it. Pure: writing them to a node is
somebody else's. What isn't known is left out: no label is better than a wrong one. ``nvidia.com/gfd.timestamp`` is left
out as well, because it would change the node whenever it is looked at.

Source: NVIDIA/k8s-device-plugin v0.20.0, ``internal/lm`` and ``internal/resource``. One difference: of several models
that tool describes whichever comes last; here it is the one of which there are most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

from draht.driver.vendors import nvidia
from draht.hardware import mig, profiles
from draht.hardware.inventory import Device, Inventory

__all__ = ["PREFIX", "Strategy", "gpu_labels"]

PREFIX: Final = "nvidia.com/"
Strategy = Literal["none", "single", "mixed"]
"""How the device plugin names instances of GPUs: not at all, as GPUs, or each profile by its own name."""

_FAMILIES: Final[Mapping[int, str]] = {
    1: "tesla",
    2: "fermi",
    3: "kepler",
    5: "maxwell",
    6: "pascal",
    9: "hopper",
    10: "blackwell",
    12: "blackwell",
    13: "rubin",
}
_MODES: Final[Mapping[str, str]] = {"0x0300": "graphics", "0x0302": "compute"}
_LONGEST: Final = 63


def gpu_labels(
    inventory: Inventory, *, machine: str = "unknown", strategy: Strategy = "none", clique: str = ""
) -> dict[str, str]:
    """Labels of a node with NVIDIA GPUs; none for a machine without.

    Args:
        inventory: The machine.
        machine: Its type, as firmware tells it (``/sys/class/dmi/id/product_name``).
        strategy: How the device plugin offers instances.
        clique: UUID of the NVLink cluster and number of the clique (``<uuid>.<number>``), empty outside of one.
    """
    gpus = [device for device in inventory.gpus() if device.vendor == "nvidia"]
    if not gpus:
        return {}
    labels = {
        "gpu.machine": _clean(machine) or "unknown",
        "gpu.mode": _mode(gpus),
        "gpu.clique": clique,
        "mig.capable": _truth(any(gpu.mig_capable for gpu in gpus)),
        "mps.capable": "false",
        **_versions(inventory),
        **_gpu(gpus, inventory),
    }
    if strategy != "none":
        labels["mig.strategy"] = strategy
        labels |= _single(gpus, inventory) if strategy == "single" else _mixed(gpus, inventory)
    named = {f"{PREFIX}{name}": value for name, value in labels.items() if value}
    return {**named, nvidia.SIMULATED: "true"} if inventory.simulated else named


def _gpu(gpus: list[Device], inventory: Inventory) -> dict[str, str]:
    """What describes the model of which there are most, its first name if several are equal."""
    counts = Counter(gpu.product for gpu in gpus)
    product = min(counts, key=lambda name: (-counts[name], name))
    of_model = [gpu for gpu in gpus if gpu.product == product]
    whole = [gpu for gpu in of_model if not inventory.instances(gpu)]
    one = (whole or of_model)[0]
    major, minor = _capability(one)
    return {
        "gpu.product": _clean(product),
        "gpu.count": str(len(of_model)),
        "gpu.memory": _mebibytes(one),
        # A GPU in MIG mode isn't given out as such, so it is replicated zero times.
        "gpu.replicas": "1" if whole else "0",
        "gpu.sharing-strategy": "none",
        "gpu.family": _family(major, minor),
        "gpu.compute.major": "" if major is None else str(major),
        "gpu.compute.minor": "" if minor is None else str(minor),
    }


def _single(gpus: list[Device], inventory: Inventory) -> dict[str, str]:
    """Every GPU is cut into instances of one profile, and these are what ``nvidia.com/gpu`` means."""
    cut = [gpu for gpu in gpus if inventory.instances(gpu)]
    if not cut:
        return {}
    instances = inventory.instances()
    if len(cut) < len(gpus) or len({_profile(instance) for instance in instances}) != 1 or not _profile(instances[0]):
        product = "-".join(part for part in (_clean(cut[0].product), "MIG", "INVALID") if part)
        return {
            "gpu.product": product,
            "gpu.count": "0",
            "gpu.replicas": "0",
            "gpu.sharing-strategy": "",
            "gpu.memory": "0",
        }
    return _instances("gpu", list(instances), inventory)


def _mixed(gpus: list[Device], inventory: Inventory) -> dict[str, str]:
    by_profile: dict[str, list[Device]] = {}
    for gpu in gpus:
        for instance in inventory.instances(gpu):
            if _profile(instance):
                by_profile.setdefault(_profile(instance), []).append(instance)
    labels: dict[str, str] = {}
    for profile, instances in by_profile.items():
        labels |= _instances(f"mig-{profile}", instances, inventory)
    return labels


def _instances(resource: str, instances: list[Device], inventory: Inventory) -> dict[str, str]:
    """What is said of all instances of one profile."""
    first = instances[0]
    parent = inventory.device(first.parent or "")
    name = str(first.attributes["profile"])
    entry = mig.profile(nvidia.mig_table(parent), name) if parent is not None else None
    found = {
        "product": "-".join(
            part for part in (_clean(parent.product) if parent else "", "MIG", _profile(first)) if part
        ),
        "count": str(len(instances)),
        "replicas": "1",
        "sharing-strategy": "none",
        "memory": _mebibytes(first),
    }
    if entry is not None:
        known = {
            "multiprocessors": entry.multiprocessors,
            "slices.gi": entry.compute_slices,
            # draht offers an instance whole, so it has one compute instance of its full size.
            "slices.ci": entry.compute_slices,
            "engines.copy": entry.engines.copy,
            "engines.decoder": entry.engines.decoders,
            "engines.encoder": entry.engines.encoders,
            "engines.jpeg": entry.engines.jpeg,
            "engines.ofa": entry.engines.ofa,
        }
        found |= {key: str(value) for key, value in known.items() if value is not None}
    return {f"{resource}.{key}": value for key, value in found.items()}


def _versions(inventory: Inventory) -> dict[str, str]:
    labels: dict[str, str] = {}
    driver = inventory.driver_version or ""
    if re.fullmatch(r"\d+\.\d+(\.\d+)?", driver):
        major, minor, revision = (*driver.split("."), "")[:3]
        labels |= {
            "cuda.driver-version.full": driver,
            "cuda.driver-version.major": major,
            "cuda.driver-version.minor": minor,
            "cuda.driver-version.revision": revision,
            "cuda.driver.major": major,
            "cuda.driver.minor": minor,
            "cuda.driver.rev": revision,
        }
    cuda = re.match(r"(\d+)\.(\d+)", inventory.cuda_version or "")
    if cuda:
        labels |= {
            "cuda.runtime-version.full": f"{cuda[1]}.{cuda[2]}",
            "cuda.runtime-version.major": cuda[1],
            "cuda.runtime-version.minor": cuda[2],
            "cuda.runtime.major": cuda[1],
            "cuda.runtime.minor": cuda[2],
        }
    return labels


def _mode(gpus: list[Device]) -> str:
    """Whether they are 3D controllers or have a display, by the PCI class that their model has."""
    classes = {
        (model.pci.vendor, model.pci.device): model.pci.class_[:6]
        for model in profiles.catalogue().values()
        if model.kind == "gpu"
    }
    found = {classes.get((str(gpu.attributes.get("vendorID")), str(gpu.attributes.get("deviceID")))) for gpu in gpus}
    return _MODES.get(found.pop() or "", "unknown") if len(found) == 1 else "unknown"


def _capability(gpu: Device) -> tuple[int | None, int | None]:
    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", gpu.compute_capability)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _family(major: int | None, minor: int | None) -> str:
    if major is None or minor is None:
        return ""
    if major == 7:
        return "volta" if minor < 5 else "turing"
    if major == 8:
        return "ampere" if minor < 9 else "ada-lovelace"
    return _FAMILIES.get(major, "undefined")


def _profile(instance: Device) -> str:
    """The profile as a part of names, which have no plus sign."""
    return str(instance.attributes.get("profile", "")).replace("+", ".")


def _mebibytes(device: Device) -> str:
    return "" if device.memory_bytes is None else str(device.memory_bytes >> 20)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _clean(text: str) -> str:
    """A text as a label's value: words joined by dashes, nothing else than letters, digits, dots and underscores."""
    words = re.sub(r"[^A-Za-z0-9\-_. ]", "", text).split()
    return "-".join(words)[:_LONGEST].strip("-_.")
