"""The twelve use cases: allocated in every test run, run in real containers where there is an engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from draht.api.reader import read_files
from draht.cli.main import draht
from draht.host.errors import HostError
from draht.host.use_cases import UseCase, ask_of, chosen, expected, use_cases
from requirements import require

CASES = use_cases()
ROOT = Path(__file__).resolve().parents[2]


def named(case: UseCase) -> str:
    """The case's folder."""
    return Path(case.directory).name


def test_there_are_twelve_and_the_page_lists_them() -> None:
    """Each folder has its line in the table, with the release and what is simulated."""
    page = (ROOT / "examples/use-cases/README.md").read_text()
    assert [case.number for case in CASES] == [f"{number:02}" for number in range(1, 13)]
    for case in CASES:
        (line,) = [line for line in page.splitlines() if f"({named(case)}/README.md)" in line]
        assert f"| {case.since} |" in line
        assert line.rstrip(" |").endswith("\N{EN DASH}") == (not case.simulated)
        assert (Path(case.directory) / "README.md").read_text().count(f"draht demo {case.number}") == 1


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_page_says_what_happens_on_kubernetes(case: UseCase) -> None:
    """The second table has the options that the agent needs, and which case it refuses."""
    page = (ROOT / "examples/use-cases/README.md").read_text().partition("## On Kubernetes")[2]
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {case.number} |")]
    assert f"--profile {case.profile}" in line
    assert ("--partitions" in line, "--shares" in line) == (case.publish.partitions, case.publish.shares)
    assert all(f"--slices {named(case)}/{file}" in line for file in case.files)
    assert ("refused" in line) == bool(case.refused)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_use_case_gets_the_devices_it_names(case: UseCase) -> None:
    """The manifests are plain Kubernetes objects without a field of draht's, and the allocator chooses what is said."""
    read = read_files([Path(case.directory) / "manifests.yaml"])
    assert not read.problems
    assert "draht" not in (Path(case.directory) / "manifests.yaml").read_text()
    ask = ask_of(case)
    choice = ask.choose(frozenset())
    assert choice is not None
    assert chosen(ask, choice) == expected(case)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_use_case_waits_while_all_of_its_machine_is_taken(case: UseCase) -> None:
    """What the database holds is held for claims too, whether whole GPUs or their partitions are asked for."""
    ask = ask_of(case)
    units = frozenset(unit for device in ask.published.devices.values() for unit in device.units)
    assert ask.choose(units) is None
    assert all(demand.wanted > 0 and demand.candidates for demand in ask.demands())


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["runc", "podman"])
def test_all_twelve_run_in_real_containers(busybox_rootfs: Path, engine: str) -> None:
    """``draht demo --json``: every container sees exactly the devices its claims were given."""
    require(os.geteuid() == 0, "containers with device nodes need root")
    require(shutil.which(engine), f"no {engine} on this machine")
    done = subprocess.run(
        [Path(sys.executable).parent / "draht", "demo", "--json", "--engine", engine, "--rootfs", busybox_rootfs],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = json.loads(done.stdout)
    assert [outcome["result"] for outcome in outcomes] == ["ok"] * 12
    assert set(outcomes[0]) == {
        "useCase",
        "since",
        "mechanism",
        "devices",
        "seenInContainer",
        "simulated",
        "result",
        "reason",
    }
    assert outcomes[5]["simulated"] == ["hardware", "time-slicing", "MPS"]


def test_a_case_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    """File, line and column of what is wrong; an empty directory is an error too."""
    with pytest.raises(HostError, match="the use cases can't be read"):
        use_cases(tmp_path)
    (tmp_path / "cases.yaml").write_text(
        "x:\n  useCase: x\n  since: 1\n  mechanism: y\n  profile: l4-x4\n  devices: 3\n"
    )
    with pytest.raises(HostError) as caught:
        use_cases(tmp_path)
    assert "cases.yaml:6:12" in str(caught.value)


def test_an_unknown_number_is_refused() -> None:
    """With the numbers that there are."""
    from click.testing import CliRunner

    result = CliRunner().invoke(draht, ["demo", "13"])
    assert "no use case 13" in str(result.exception)
