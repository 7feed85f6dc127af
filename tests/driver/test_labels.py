from __future__ import annotations

import re
from importlib.resources import files

import pytest

from draht.driver.vendors.labels import Strategy, gpu_labels
from draht.hardware import profiles
from draht.hardware.inventory import Device, Inventory
from draht.hardware.simulated import SimulatedProvider, from_profile

VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
KEY = re.compile(r"[a-z0-9.]+/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def cut(*instances: str, gpus: int = 1) -> Inventory:
    """A DGX A100 whose first GPUs have these instances."""
    text = files("draht.hardware.profiles").joinpath("dgx-a100-80.yaml").read_text()
    with_instances = f"model: a100-sxm4-80, mig: [{', '.join(instances)}]}}"
    text = text.replace("model: a100-sxm4-80}", with_instances, gpus)
    return SimulatedProvider(profiles.parse(text.encode(), source="test")).inventory()


def labels(inventory: Inventory, strategy: Strategy = "none") -> dict[str, str]:
    """Without the prefix."""
    return {name.removeprefix("nvidia.com/"): value for name, value in gpu_labels(inventory, strategy=strategy).items()}


def test_a_dgx_h100_is_described_as_gpu_feature_discovery_does() -> None:
    """All of it, and a mark that it is simulated."""
    assert gpu_labels(from_profile("dgx-h100"), machine="DGX H100 (rev. 2)", clique="1c2d.3") == {
        "draht.dev/simulated": "true",
        "nvidia.com/cuda.driver-version.full": "550.90.07",
        "nvidia.com/cuda.driver-version.major": "550",
        "nvidia.com/cuda.driver-version.minor": "90",
        "nvidia.com/cuda.driver-version.revision": "07",
        "nvidia.com/cuda.driver.major": "550",
        "nvidia.com/cuda.driver.minor": "90",
        "nvidia.com/cuda.driver.rev": "07",
        "nvidia.com/cuda.runtime-version.full": "12.4",
        "nvidia.com/cuda.runtime-version.major": "12",
        "nvidia.com/cuda.runtime-version.minor": "4",
        "nvidia.com/cuda.runtime.major": "12",
        "nvidia.com/cuda.runtime.minor": "4",
        "nvidia.com/gpu.clique": "1c2d.3",
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.machine": "DGX-H100-rev.-2",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mps.capable": "false",
    }


@pytest.mark.parametrize("strategy", ["none", "single", "mixed"])
@pytest.mark.parametrize("profile", profiles.names())
def test_labels_of_every_profile_are_valid(profile: str, strategy: Strategy) -> None:
    """A server takes them all, and a machine without NVIDIA GPUs has none."""
    found = gpu_labels(from_profile(profile), strategy=strategy)
    assert bool(found) == any(gpu.vendor == "nvidia" for gpu in from_profile(profile).gpus())
    for name, value in found.items():
        assert KEY.fullmatch(name)
        assert VALUE.fullmatch(value)
        assert value


def test_of_several_models_the_commonest_is_described() -> None:
    """Of equally common ones always the same: the first by name."""
    found = labels(from_profile("mixed-x6"))
    assert (found["gpu.product"], found["gpu.count"]) == ("NVIDIA-A100-80GB-PCIe", "2")
    assert found["gpu.family"] == "ampere"


@pytest.mark.parametrize(
    ("capability", "family"),
    [("7.0", "volta"), ("7.5", "turing"), ("8.6", "ampere"), ("8.9", "ada-lovelace"), ("9.0", "hopper"),
     ("10.0", "blackwell"), ("12.0", "blackwell"), ("13.0", "rubin"), ("99.0", "undefined"), ("", None)],
)  # fmt: skip
def test_families_follow_the_compute_capability(capability: str, family: str | None) -> None:
    """What isn't known has no label."""
    gpu = Device(id="x", kind="gpu", vendor="nvidia", compute_capability=capability)
    found = labels(Inventory(machine="m", source="cdi", devices=(gpu,)))
    assert found.get("gpu.family") == family


def test_what_a_real_machine_doesnt_tell_has_no_label() -> None:
    """Nor does a real machine say that it is simulated."""
    gpu = Device(id="x", kind="gpu", vendor="nvidia")
    found = gpu_labels(Inventory(machine="m", source="cdi", devices=(gpu,), driver_version="unknown"))
    assert found == {
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.machine": "unknown",
        "nvidia.com/gpu.mode": "unknown",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "false",
        "nvidia.com/mps.capable": "false",
    }


def test_mixed_strategy_describes_each_profile() -> None:
    """By the name that the device plugin gives its resource; a plus sign becomes a dot."""
    found = labels(cut("{profile: 3g.40gb, start: 4}", "{profile: 1g.10gb+me, start: 0}", gpus=2), "mixed")
    assert found["mig.strategy"] == "mixed"
    assert {name: value for name, value in found.items() if name.startswith("mig-3g.40gb.")} == {
        "mig-3g.40gb.count": "2",
        "mig-3g.40gb.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb",
        "mig-3g.40gb.memory": "40192",
        "mig-3g.40gb.multiprocessors": "42",
        "mig-3g.40gb.replicas": "1",
        "mig-3g.40gb.sharing-strategy": "none",
        "mig-3g.40gb.slices.gi": "3",
        "mig-3g.40gb.slices.ci": "3",
        "mig-3g.40gb.engines.copy": "3",
        "mig-3g.40gb.engines.decoder": "2",
        "mig-3g.40gb.engines.encoder": "0",
        "mig-3g.40gb.engines.jpeg": "0",
        "mig-3g.40gb.engines.ofa": "0",
    }
    assert found["mig-1g.10gb.me.count"] == "2"
    assert (found["gpu.count"], found["gpu.replicas"]) == ("8", "1")


def test_single_strategy_describes_the_instances_as_gpus() -> None:
    """If every GPU is cut into instances of one profile."""
    found = labels(cut("{profile: 3g.40gb, start: 0}", "{profile: 3g.40gb, start: 4}", gpus=8), "single")
    assert (found["gpu.count"], found["gpu.product"]) == ("16", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb")
    assert (found["gpu.memory"], found["gpu.slices.gi"]) == ("40192", "3")


@pytest.mark.parametrize(
    "inventory",
    [
        cut("{profile: 3g.40gb, start: 0}", gpus=7),
        cut("{profile: 3g.40gb, start: 0}", "{profile: 2g.20gb, start: 4}", gpus=8),
    ],
)
def test_single_strategy_on_a_machine_that_isnt_cut_alike_says_so(inventory: Inventory) -> None:
    """No GPU can then be had by that name."""
    found = labels(inventory, "single")
    assert (found["gpu.count"], found["gpu.product"]) == ("0", "NVIDIA-A100-SXM4-80GB-MIG-INVALID")


def test_gpus_that_are_all_cut_are_replicated_zero_times() -> None:
    """Without a strategy nobody can have one."""
    assert labels(cut("{profile: 7g.80gb, start: 0}", gpus=8))["gpu.replicas"] == "0"
