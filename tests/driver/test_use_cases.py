"""The twelve use cases as the kubelet sees them: what is allocated is prepared, and each container sees its devices."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from draht import cdi
from draht.api.resource import ResourceClaim
from draht.driver.claims.preparation import Places, PreparedClaim, Preparer
from draht.driver.database import Database
from draht.driver.errors import ParametersError
from draht.driver.framework import Driver
from draht.driver.vendors import simulated
from draht.driver.vendors.drivers import NetworkDriver, NvidiaDriver
from draht.driver.vendors.slice_files import read_slices, slice_drivers
from draht.hardware.inventory import Inventory
from draht.host.claims import ClaimsAsk
from draht.host.use_cases import UseCase, ask_of, use_cases
from draht.manifests import PodClaim
from draht.manifests.containers import container_requests

CASES = {Path(case.directory).name: case for case in use_cases()}
REFUSED = "06-sharing-settings"


class Known:
    """A provider of an inventory that is known already."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    def inventory(self) -> Inventory:
        """Always the same."""
        return self._inventory


def drivers(case: UseCase, ask: ClaimsAsk) -> list[Driver]:
    """What a node agent would run for the case."""
    publish = case.publish
    made: list[Driver] = [
        NvidiaDriver(Known(ask.inventory), partitions=publish.partitions, shares=publish.shares),
        NetworkDriver(Known(ask.inventory)),
    ]
    for name in case.files:
        made += slice_drivers(read_slices([Path(case.directory) / name]))
    return made


def preparers(case: UseCase, ask: ClaimsAsk, directory: Path) -> dict[str, Preparer]:
    """Driver → what prepares its claims, with files in a directory."""
    database = Database(directory / "state")
    return {
        driver.name: Preparer(
            driver,
            database,
            Places(
                cdi_directory=directory / "cdi",
                metadata_directory=directory / "metadata",
                files_directory=directory / "files" / driver.name,
            ),
            node_name=ask.node,
        )
        for driver in drivers(case, ask)
    }


def allocated(ask: ClaimsAsk) -> Iterator[tuple[Any, tuple[PodClaim, ...]]]:
    """Each pod with its allocated claims, which have UIDs as an API server gives them."""
    for placement in ask._place(ask._snapshot(frozenset())):
        assert placement.node == ask.node
        claims = tuple(with_uid(each, uid_of(each.claim)) for each in placement.claims)
        yield placement.pod, claims


def uid_of(claim: ResourceClaim) -> str:
    """The same for the same claim, so that pods can share it."""
    return f"{claim.metadata.namespace}-{claim.metadata.name}"


def with_uid(each: PodClaim, uid: str) -> PodClaim:
    """The claim with a UID."""
    return dataclasses.replace(each, claim=replace(each.claim, metadata=replace(each.claim.metadata, uid=uid)))


@pytest.mark.parametrize("name", [name for name in CASES if name != REFUSED])
def test_every_container_sees_the_devices_of_its_claims(name: str, tmp_path: Path) -> None:
    """Prepared by the drivers, injected from the CDI files that they wrote, seen by the vendor's tool."""
    case = CASES[name]
    ask = ask_of(case)
    by_driver = preparers(case, ask, tmp_path)
    pods = list(allocated(ask))
    prepared: dict[str, list[PreparedClaim]] = {}
    for _, claims in pods:
        for each in claims:
            allocation = each.claim.status.allocation
            assert allocation is not None
            if each.claim.metadata.uid not in prepared:
                prepared[each.claim.metadata.uid] = [
                    by_driver[driver].prepare(each.claim)
                    for driver in dict.fromkeys(result.driver for result in allocation.devices.results)
                ]
    cache = cdi.Cache([tmp_path / "cdi"])
    for pod, claims in pods:
        for container in pod.spec.containers:
            names = [
                id_
                for each, request in container_requests(pod, container.name, claims, ask.manifests)
                for answer in prepared[each.claim.metadata.uid]
                for device in answer.devices
                if request in {None, *device.base_requests}
                for id_ in device.cdi_device_ids
            ]
            oci: dict[str, Any] = {"process": {"env": ["PATH=/usr/bin:/bin"]}, "linux": {}}
            cache.inject(oci, names)
            env = dict(entry.split("=", 1) for entry in oci["process"]["env"])
            wanted = case.devices[pod.metadata.name][container.name]
            seen = {entry.removeprefix("DRAHT_DEVICE_") for entry in env if entry.startswith("DRAHT_DEVICE_")}
            assert {each.removeprefix("rack_7_") for each in seen} == {simulated.variable(each) for each in wanted}
            assert tool(oci, env) == {env[f"DRAHT_DEVICE_{each}"] for each in seen if each.startswith("gpu_")}
    for uid in prepared:
        for preparer in by_driver.values():
            preparer.unprepare(uid)
    assert not list((tmp_path / "cdi").iterdir())


def tool(oci: dict[str, Any], env: dict[str, str]) -> set[str]:
    """The UUIDs that ``nvidia-smi -L`` in the container would list."""
    (source,) = (mount["source"] for mount in oci["mounts"] if mount["destination"] == "/usr/bin/nvidia-smi")
    listed = subprocess.run(["sh", source], env=env, capture_output=True, text=True, check=True).stdout
    assert "simulated" in listed.splitlines()[0]
    return {line.rpartition("UUID: ")[2].rstrip(")") for line in listed.splitlines()[1:]}


def test_settings_that_nobody_can_carry_out_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    """The use case of time-slicing and MPS says so in the claim's error, with both places."""
    case = CASES[REFUSED]
    ask = ask_of(case)
    preparer = preparers(case, ask, tmp_path)["gpu.nvidia.com"]
    ((_, (each,)),) = allocated(ask)
    with pytest.raises(ParametersError) as raised:
        preparer.prepare(each.claim)
    assert "[0].opaque.parameters.sharing.timeSlicingConfig.interval: the time-slicing interval Long" in str(
        raised.value
    )
    assert "[1].opaque.parameters.sharing.strategy: MPS is asked for" in str(raised.value)
    assert preparer.prepared() == []
    assert not list(tmp_path.glob("cdi/*"))
