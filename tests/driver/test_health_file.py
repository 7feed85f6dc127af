from __future__ import annotations

from pathlib import Path

import pytest

from draht.api.resource import DeviceTaint
from draht.driver.framework import Health
from draht.driver.vendors.health_file import HealthFile

GOOD = """
gpu-3:
  state: Unhealthy
  message: two uncorrectable ECC errors
  taint: {key: example.com/ecc, value: "2", effect: NoSchedule}
rack-7/channel-0: {state: Unknown}
"""
KNOWN = (
    Health(
        device="gpu-3",
        state="Unhealthy",
        message="two uncorrectable ECC errors",
        taint=DeviceTaint(key="example.com/ecc", value="2", effect="NoSchedule"),
    ),
    Health(pool="rack-7", device="channel-0", state="Unknown"),
)


def test_a_file_says_how_devices_are(tmp_path: Path) -> None:
    """Device or pool/device, with state, message and taint; JSON is YAML."""
    path = tmp_path / "health"
    source = HealthFile(path)
    path.write_text(GOOD)
    assert source() == KNOWN
    path.write_text('{"rack-7/channel-0": {"state": "Unknown"}}')
    assert source() == KNOWN[1:]
    assert source.problems == ()


@pytest.mark.parametrize("text", [None, "", "# nothing yet\n", "{}", "null\n"])
def test_without_a_file_and_with_an_empty_one_everything_is_healthy(tmp_path: Path, text: str | None) -> None:
    """Also when there was something in it before: that is how a device recovers."""
    path = tmp_path / "health"
    path.write_text(GOOD)
    source = HealthFile(path)
    source()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert source() == ()
    assert source.problems == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu-3: [", "can't be read"),
        ("- gpu-3\n", "isn't one mapping"),
        ("a: {state: Healthy}\n---\nb: {state: Healthy}\n", "isn't one mapping"),
        ("x" * (1 << 21), "more than"),
    ],
)
def test_a_broken_file_changes_nothing_until_it_is_repaired(tmp_path: Path, text: str, message: str) -> None:
    """An editor that writes in the middle heals no device."""
    path = tmp_path / "health"
    path.write_text(GOOD)
    source = HealthFile(path)
    source()
    path.write_text(text)
    assert source() == KNOWN
    (problem,) = source.problems
    assert message in problem.message
    assert problem.where == str(path)
    path.write_text(GOOD)
    assert source() == KNOWN
    assert source.problems == ()


def test_a_directory_in_its_place_is_a_problem_and_not_an_error(tmp_path: Path) -> None:
    """Whatever is there, the agent goes on."""
    source = HealthFile(tmp_path)
    assert source() == ()
    assert len(source.problems) == 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("gpu-0: {state: Sick}", "gpu-0.state: must be one of"),
        ("gpu-0: Unhealthy", "gpu-0: must be a mapping"),
        ("gpu-0: {message: x}", "gpu-0: misses state"),
        ("gpu-0: {state: Healthy, taint: {key: a/b}}", "gpu-0.taint: misses effect"),
        ("gpu-0: {state: Healthy, taint: {key: a/b, effect: Never}}", "gpu-0.taint.effect: must be one of"),
        ("gpu-0: {state: Healthy, colour: red}", "gpu-0.colour: unknown field"),
        ("gpu-3: {state: Healthy}", "gpu-3 is given twice"),
        ("rack/: {state: Healthy}", "isn't the name of a device"),
    ],
)
def test_one_bad_entry_never_hides_the_others(tmp_path: Path, entry: str, message: str) -> None:
    """It is named, with its line."""
    path = tmp_path / "health"
    path.write_text(f"{GOOD}{entry}\n")
    source = HealthFile(path)
    assert source() == KNOWN
    (problem,) = source.problems
    assert message in problem.message
    assert problem.where.startswith(f"{path}:7:")
