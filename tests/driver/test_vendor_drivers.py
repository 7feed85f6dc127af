from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from draht import cdi
from draht.api.resource import DeviceTaint
from draht.driver.errors import DeviceMissingError, DriverError, ParametersError
from draht.driver.framework import Health, Prepared
from draht.driver.vendors.drivers import DRIVERS, AmdDriver, NetworkDriver, NvidiaDriver
from draht.driver.vendors.inventory_driver import InventoryDriver
from draht.hardware import profiles
from draht.hardware.inventory import Device, Inventory
from draht.hardware.simulated import SimulatedProvider
from driver_claims import claim_of, parameters

STUBS = "/var/lib/draht/files"


def simulated(driver: type[InventoryDriver], profile: str, **options: Any) -> InventoryDriver:
    """A driver of a simulated machine."""
    made = driver(SimulatedProvider(profiles.load(profile)), **options)
    made.files = STUBS
    return made


def environment(*prepared: Prepared) -> dict[str, str]:
    """What a container sees that has every device of these claims."""
    edits = [each.common for each in prepared] + [edit for each in prepared for edit in each.edits.values()]
    oci: dict[str, Any] = {"process": {"env": []}, "linux": {}}
    cdi.apply(cdi.collect(edits), oci, host=cdi.HostDevices())
    return dict(entry.split("=", 1) for entry in oci["process"]["env"])


@pytest.mark.parametrize("profile", profiles.names())
def test_every_device_of_every_profile_can_be_prepared(profile: str) -> None:
    """By the driver that offers it, with edits that are valid CDI and say that they are simulated."""
    for driver in DRIVERS:
        made = simulated(driver, profile, partitions=driver is NvidiaDriver)
        names = [name for _, name in made.discover().devices()]
        if not names:
            continue
        claim = claim_of(made, {f"r{number}": name for number, name in enumerate(names)})
        prepared = made.prepare(claim)
        assert list(prepared.edits) == [each.key for each in claim.devices]
        spec = cdi.Spec(
            cdi_version="0.5.0",
            kind="k8s.test/claim",
            devices=tuple(
                cdi.Device(name=f"d{number}", container_edits=edit)
                for number, edit in enumerate(prepared.edits.values())
            ),
            container_edits=prepared.common,
        )
        cdi.validate(spec)
        assert f"DRAHT_SIMULATED={profile}" in prepared.common.env
        mounted = {mount.host_path for mount in prepared.common.mounts}
        assert mounted == {f"{STUBS}/{name}" for name in prepared.files}
        made.unprepare(claim)


def test_a_claim_prepared_twice_says_the_same() -> None:
    """Also by another instance of the driver, as after a restart."""
    one, other = (simulated(NvidiaDriver, "dgx-h100") for _ in range(2))
    claim = claim_of(one, {"a": "gpu-3", "b": "gpu-5"})
    assert one.prepare(claim) == one.prepare(claim) == other.prepare(claim)


def test_a_container_with_two_claims_sees_all_of_its_devices(tmp_path: Path) -> None:
    """No claim's variables replace those of another; the tool lists both GPUs, in order."""
    driver = simulated(NvidiaDriver, "dgx-h100")
    prepared = [driver.prepare(claim_of(driver, {"r": name}, uid=name)) for name in ("gpu-7", "gpu-2")]
    env = environment(*prepared)
    ids = {device.index: device.id for device in driver.inventory.gpus()}
    assert {name: value for name, value in env.items() if name.startswith("DRAHT_DEVICE_")} == {
        "DRAHT_DEVICE_gpu_2": ids[2],
        "DRAHT_DEVICE_gpu_7": ids[7],
    }
    tool = tmp_path / "nvidia-smi"
    tool.write_bytes(prepared[0].files["nvidia-smi"][0])
    lines = subprocess.run(
        ["sh", tool], env={"PATH": "/usr/bin:/bin", **env}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "simulated" in lines[0]
    assert [line.split(":")[0] for line in lines[1:]] == ["GPU 2", "GPU 7"]


def test_a_container_that_has_one_request_sees_that_device_only() -> None:
    """What is common to the claim says nothing of its devices."""
    driver = simulated(NvidiaDriver, "dgx-h100")
    prepared = driver.prepare(claim_of(driver, {"a": "gpu-0", "b": "gpu-1"}))
    first = next(iter(prepared.edits.values()))
    env = environment(Prepared(edits={"a": first}, common=prepared.common))
    assert [name for name in env if "gpu" in name.lower()] == [
        "DRAHT_SIMULATED_GPU_" + driver.inventory.gpus()[0].id.replace("-", "_"),
        "DRAHT_DEVICE_gpu_0",
    ]


def test_a_partition_of_a_simulated_gpu_is_prepared_as_simulated() -> None:
    """The instance isn't made anywhere; the container sees one."""
    driver = simulated(NvidiaDriver, "dgx-h100", partitions=True)
    prepared = driver.prepare(claim_of(driver, {"r": "gpu-0-mig-3g40gb-9-4"}))
    (edits,) = prepared.edits.values()
    assert any(entry.startswith("DRAHT_DEVICE_gpu_0_mig_3g40gb_9_4=MIG-") for entry in edits.env)


def test_parameters_of_simulated_gpus_are_refused_like_those_of_real_ones() -> None:
    """A simulated share would promise something that nobody keeps."""
    value = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 50}},
    }
    driver = simulated(NvidiaDriver, "dgx-h100")
    with pytest.raises(ParametersError, match="can't start MPS yet"):
        driver.prepare(claim_of(driver, {"r": "gpu-0"}, parameters(value)))


@pytest.mark.parametrize(
    ("driver", "profile", "name"), [(AmdDriver, "mi300x-x8", "gpu-0-128"), (NetworkDriver, "l4-x4", None)]
)
def test_parameters_that_nobody_knows_are_refused(
    driver: type[InventoryDriver], profile: str, name: str | None
) -> None:
    """The drivers without parameters take none."""
    made = simulated(driver, profile)
    device = name or next(name for _, name in made.discover().devices())
    with pytest.raises(ParametersError, match="knows no parameters") as raised:
        made.prepare(claim_of(made, {"r": device}, parameters({"interface": {"mtu": 9000}}, index=4)))
    assert raised.value.where == "status.allocation.devices.config[4].opaque.parameters"


def test_a_device_that_is_gone_is_named() -> None:
    """The allocation names one that the machine doesn't have."""
    driver = simulated(NvidiaDriver, "t4-x1")
    with pytest.raises(DeviceMissingError, match="gpu-9"):
        driver.prepare(claim_of(driver, {"r": "gpu-9"}))


def test_what_the_device_plugin_gives_away_isnt_offered() -> None:
    """A GPU belongs to one of the two."""
    driver = simulated(NvidiaDriver, "l4-x4", without=lambda inventory: [inventory.gpus()[1].id])
    assert [name for _, name in driver.discover().devices()] == ["gpu-0", "gpu-2", "gpu-3"]


def test_health_is_told_of_own_devices_only() -> None:
    """A health file may name the devices of several drivers."""
    taint = DeviceTaint(key="example.com/hot", effect="NoSchedule")
    told = [Health(device="gpu-0", state="Unhealthy", taint=taint), Health(device="pci-0000-01-00-0")]
    driver = simulated(NvidiaDriver, "t4-x1", watch=lambda: told)
    driver.discover()
    assert list(driver.health()) == told[:1]


def test_partitions_are_as_their_gpu_is() -> None:
    """Unless something is said of them; those of other GPUs are well, whether the GPU itself is published or not."""
    told = [
        Health(device="gpu-0", state="Unhealthy", message="lost"),
        Health(device="gpu-0-mig-7g80gb-0-0", state="Unknown"),
    ]
    driver = simulated(NvidiaDriver, "dgx-h100", partitions=True, watch=lambda: told)
    driver.discover()
    states = {health.device: health.state for health in driver.health()}
    assert len(states) == 26
    assert states.pop("gpu-0-mig-7g80gb-0-0") == "Unknown"
    assert set(states.values()) == {"Unhealthy"}
    assert all(name.startswith("gpu-0") for name in states)


class Real:
    """The inventory of a real machine with two GPUs, whose specs say what containers get."""

    def inventory(self) -> Inventory:
        """Two GPUs, the second perhaps of another spec."""
        return Inventory(
            machine="host",
            source="sysfs+cdi",
            devices=tuple(
                Device(
                    id=f"GPU-{number}",
                    uuid=f"GPU-{number}",
                    kind="gpu",
                    index=number,
                    vendor="nvidia",
                    product="NVIDIA L4",
                    units=frozenset({f"GPU-{number}"}),
                    cdi_names=names,
                )
                for number, names in enumerate(
                    [
                        ("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-0", "k8s.gpu.nvidia.com/claim=x-0"),
                        ("other.com/gpu=one",),
                    ]
                )
            ),
        )


NVIDIA = """
cdiVersion: "0.5.0"
kind: nvidia.com/gpu
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
  deviceNodes: [{path: /dev/nvidiactl}]
  mounts: [{hostPath: /usr/lib/libcuda.so.1, containerPath: /usr/lib/libcuda.so.1},
           {hostPath: tmpfs, containerPath: /x, type: tmpfs}]
  hooks: [{hookName: createContainer, path: /usr/bin/nvidia-cdi-hook}]
devices:
  - {name: "0", containerEdits: {deviceNodes: [{path: /dev/nvidia0}], env: [BY=index]}}
  - {name: GPU-0, containerEdits: {deviceNodes: [{path: /dev/nvidia0, hostPath: /driver/dev/nvidia0}]}}
"""
OTHER = """
cdiVersion: "0.5.0"
kind: other.com/gpu
containerEdits: {env: [OTHER=yes]}
devices: [{name: one, containerEdits: {deviceNodes: [{path: /dev/nvidia1}]}}]
"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A spec directory with the specs of the two GPUs."""
    (tmp_path / "nvidia.yaml").write_text(NVIDIA)
    (tmp_path / "other.yaml").write_text(OTHER)
    return tmp_path


def real(specs: Path, **options: Any) -> NvidiaDriver:
    """The driver of the real machine."""
    return NvidiaDriver(Real(), cache=cdi.Cache([specs]), **options)


def test_a_real_gpu_comes_with_what_its_vendors_spec_says(specs: Path) -> None:
    """Under its UUID, which never moves; what the spec gives to all is common."""
    driver = real(specs)
    prepared = driver.prepare(claim_of(driver, {"r": "gpu-0"}))
    (own,) = prepared.edits.values()
    assert [node.host_path for node in own.device_nodes] == ["/driver/dev/nvidia0"]
    assert own.env == ("DRAHT_DEVICE_gpu_0=GPU-0",)
    assert [node.path for node in prepared.common.device_nodes] == ["/dev/nvidiactl"]
    assert not prepared.files
    assert not any("SIMULATED" in entry for entry in (*own.env, *prepared.common.env))


def test_what_one_spec_gives_to_all_isnt_for_the_devices_of_another(specs: Path) -> None:
    """With devices of two specs each brings its own."""
    driver = real(specs)
    prepared = driver.prepare(claim_of(driver, {"a": "gpu-0", "b": "gpu-1"}))
    assert prepared.common == cdi.ContainerEdits()
    first, second = prepared.edits.values()
    assert "NVIDIA_VISIBLE_DEVICES=void" in first.env
    assert "OTHER=yes" not in first.env
    assert second.env == ("OTHER=yes", "DRAHT_DEVICE_gpu_1=GPU-1")


def test_an_offered_gpu_names_the_files_it_cant_do_without(specs: Path) -> None:
    """Nodes, libraries and hooks on the host; nothing that isn't a path."""
    offered = real(specs).discover().devices()["", "gpu-0"]
    assert offered.paths == (
        "/dev/nvidiactl",
        "/driver/dev/nvidia0",
        "/usr/lib/libcuda.so.1",
        "/usr/bin/nvidia-cdi-hook",
    )


def test_a_gpu_without_a_cdi_spec_is_offered_and_its_claim_says_what_to_do(specs: Path) -> None:
    """The spec may be generated while the agent runs: the next try finds it."""
    (specs / "nvidia.yaml").unlink()
    driver = real(specs)
    claim = claim_of(driver, {"r": "gpu-0"})
    with pytest.raises(DeviceMissingError, match="no CDI spec on this machine describes NVIDIA L4 GPU-0") as raised:
        driver.prepare(claim)
    assert "nvidia-ctk cdi generate" in str(raised.value.hint)
    (specs / "nvidia.yaml").write_text(NVIDIA)
    assert driver.prepare(claim).edits


def test_the_spec_of_a_claim_isnt_the_vendors(specs: Path) -> None:
    """What an earlier claim left must not be copied into the next one."""
    (specs / "nvidia.yaml").unlink()
    (specs / "claim.yaml").write_text(
        NVIDIA.replace("nvidia.com/gpu", "k8s.gpu.nvidia.com/claim").replace("GPU-0", "x-0")
    )
    driver = real(specs)
    with pytest.raises(DeviceMissingError):
        driver.prepare(claim_of(driver, {"r": "gpu-0"}))


@pytest.mark.parametrize("option", ["partitions", "shares"])
def test_partitions_and_shares_of_real_gpus_are_refused_at_the_start(specs: Path, option: str) -> None:
    """Nobody can make them yet."""
    with pytest.raises(DriverError, match="can't be made yet"):
        real(specs, **{option: True}).discover()
