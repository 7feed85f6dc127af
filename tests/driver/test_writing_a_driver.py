"""The page about writing a driver does what it shows, and so do the drivers that it starts from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fake_sysfs
from doc_examples import run
from draht.cli.driver_file import load_driver
from draht.driver.framework import Driver
from draht.hardware import profiles

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = ROOT / "examples/drivers"


def test_the_page_shows_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim is prepared twice with the same answer, and nothing is left of it."""
    monkeypatch.chdir(ROOT)
    assert run(ROOT / "docs/writing-a-driver.md", ROOT, dict(os.environ)) == 2


@pytest.mark.parametrize("path", sorted(DRIVERS.glob("*.py")), ids=lambda path: path.stem)
def test_a_driver_is_no_longer_than_a_page(path: Path) -> None:
    """Sixty lines with everything."""
    assert len(path.read_text().splitlines()) <= 60


def test_the_nic_driver_offers_the_functions_of_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual functions instead of the physical one that has them, each with its PCIe root."""
    inventory = fake_sysfs.build(profiles.load("dgx-h100"), tmp_path)
    monkeypatch.setenv("SYSFS_ROOT", str(tmp_path))
    driver = load_driver(str(DRIVERS / "nic.py"))
    devices = driver.discover().devices()
    split = {device.parent for device in inventory.devices if device.kind == "vf"}
    wanted = [each for each in inventory.devices if each.kind in {"nic", "vf"} and each.id not in split]
    assert len(devices) == len(wanted) > 0
    for (_, name), offered in devices.items():
        assert name.startswith("pci-")
        assert offered.device.attributes["resource.kubernetes.io/pcieRoot"].string


def test_the_toy_is_ill_while_it_has_a_file(tmp_path: Path) -> None:
    """Health and taint come and go with it."""
    driver: Driver = load_driver(str(DRIVERS / "toy.py"))
    driver.files = str(tmp_path)
    assert not driver.health()
    broken = tmp_path / "toy-2" / "broken"
    broken.parent.mkdir()
    broken.touch()
    (ill,) = driver.health()
    assert (ill.device, ill.state) == ("toy-2", "Unhealthy")
    assert ill.taint is not None
    assert ill.taint.effect == "NoSchedule"
    broken.unlink()
    assert not driver.health()
