from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos import chaos
from draht import cdi
from requirements import require
from running import RealWorkplace, Workplace, gpus


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    place.clean()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in range(2, 12))])
def test_no_device_is_ever_held_twice(place: Workplace, seed: int) -> None:
    """Whatever is killed and when: never two containers with one device, and at the end nothing is lost or left."""
    locks = place.root / "locks"
    locks.mkdir()
    chaos(place, seed, runs=50, locks=locks, seen_as=str(locks), bound=90)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in range(2, 12))])
def test_not_even_when_the_database_is_destroyed(place: Workplace, seed: int) -> None:
    """The same, while the database is deleted or overwritten three times: what runs keeps its devices."""
    locks = place.root / "locks"
    locks.mkdir()
    chaos(place, seed, runs=40, locks=locks, seen_as=str(locks), bound=90, losses=3)


@pytest.mark.engine
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("engine", "runs"), [("runc", 50), ("podman", 50)])
def test_no_device_is_ever_held_twice_by_real_containers(
    tmp_path: Path, busybox_rootfs: Path, engine: str, runs: int
) -> None:
    """The same with real containers, whose devices come from a vendor's spec."""
    require(os.geteuid() == 0, "real containers need root here")
    require(shutil.which(engine), f"no {engine} on this machine")
    locks = tmp_path / "locks"
    locks.mkdir()
    place = RealWorkplace(
        root=tmp_path,
        inventory=gpus(8, simulated=False, kind=f"draht-test.example/chaos{os.getpid()}"),
        engine_name=engine,
        rootfs=busybox_rootfs,
    )
    place.cdi.mkdir(parents=True, exist_ok=True)
    # The programs of this machine: busybox has no flock.
    mounts = [(str(locks), "/locks", "rw"), *((path, path, "ro") for path in ("/usr", "/lib", "/lib64"))]
    spec = cdi.Spec(
        kind=place.kind,
        devices=tuple(
            cdi.Device(
                name=str(index),
                container_edits=cdi.ContainerEdits(
                    device_nodes=(cdi.DeviceNode(path=f"/dev/test{index}", host_path="/dev/null"),)
                ),
            )
            for index in range(8)
        ),
        container_edits=cdi.ContainerEdits(
            mounts=tuple(
                cdi.Mount(host_path=host, container_path=inside, options=("rbind", mode))
                for host, inside, mode in mounts
                if Path(host).exists()
            )
        ),
    )
    vendor = cdi.write_spec(spec, place.cdi, f"{place.kind.replace('/', '-')}.json")
    try:
        chaos(place, 1, runs=runs, locks=locks, seen_as="/locks", bound=300)
    finally:
        place.clean()
        vendor.unlink()
