"""Every finding of `draht doctor`, on machines made for it, and how the command shows them."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click.testing
import pytest

from draht import cdi
from draht.api.finding import Finding
from draht.cli.doctor import doctor, plain, text
from draht.driver.database import FILE, Database
from draht.host import doctor as doctor_module
from draht.host.condition import database_state
from draht.host.engine import EngineInfo
from draht.host.machine import Machine, read_machine
from draht.host.ownership import Owner, Ownership
from requirements import require

GOOD_MACHINE = Machine(
    cgroups="v2",
    cgroups_writable=True,
    effective_capabilities=(1 << 41) - 1,
    nofile=None,
    nproc=None,
    pid_max=4194304,
    systemd=True,
)

SPEC = {
    "cdiVersion": "0.5.0",
    "kind": "vendor.example/gpu",
    "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/null"}]}}],
}


NOBODY = Ownership()


class FakeEngine:
    """An engine that only says what it is."""

    def __init__(self, info: EngineInfo) -> None:
        self._info = info
        self.name = info.name

    def info(self) -> EngineInfo:
        return self._info


@dataclasses.dataclass
class Bench:
    """A healthy machine below a directory, to be spoilt in one point."""

    root: Path
    engines: list[EngineInfo]
    machine: Machine = GOOD_MACHINE
    ownership: Ownership = NOBODY
    uid: int = 0
    database: tuple[Any, str, str] = ("absent", "", "")

    @property
    def specs(self) -> Path:
        return self.root / "specs"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def spec(self, name: str = "gpu.json", **changes: Any) -> Path:
        """Write a spec file, good but for the changes."""
        path = self.specs / name
        path.write_text(json.dumps({**SPEC, **changes}), encoding="utf-8")
        path.chmod(0o644)
        return path

    def edits(self, **edits: Any) -> None:
        """Write a spec file with these edits."""
        self.spec(devices=[{"name": "0", "containerEdits": edits}])

    def engine(self, **fields: Any) -> None:
        """Change the engine."""
        self.engines[0] = dataclasses.replace(self.engines[0], **fields)

    def look(self) -> doctor_module.Report:
        """What doctor says."""
        return doctor_module.examine(
            {info.name: FakeEngine(info) for info in self.engines},  # type: ignore[misc]
            machine=self.machine,
            cache=cdi.Cache([self.specs]),
            state=self.state,
            cdi_directory=self.specs,
            ownership=self.ownership,
            database=lambda: self.database,
            root=self.root,
            uid=self.uid,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A machine on which nothing is wrong."""
    made = Bench(tmp_path, [])
    made.specs.mkdir()
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/null").touch()
    made.engines.append(
        EngineInfo(
            name="podman",
            version="4.3.1",
            path="/usr/bin/podman",
            cdi_version="0.5.0",
            spec_directories=(str(made.specs),),
        )
    )
    made.spec()
    return made


def broken_engine(name: str = "docker") -> EngineInfo:
    """An engine that can't be used."""
    problem = Finding(kind="docker-daemon-silent", severity="broken", message="no answer", fix="start it", where=name)
    return EngineInfo(name=name, version=None, path=f"/usr/bin/{name}", cdi_version=None, problems=(problem,))


def _selinux(bench: Bench) -> None:
    place = bench.root / "sys/fs/selinux"
    (place / "booleans").mkdir(parents=True)
    (place / "enforce").write_text("1", encoding="ascii")
    (place / "booleans/container_use_devices").write_text("0 0", encoding="ascii")


def _conflict(bench: Bench) -> None:
    bench.spec("other.json")


def _machine(bench: Bench, **fields: Any) -> None:
    bench.machine = dataclasses.replace(bench.machine, **fields)


OWNER = Owner(vendor="nvidia", what="the DRA driver gpu.nvidia.com", socket="/x/reg.sock")

CASES: dict[str, tuple[Callable[[Bench], object], str, str]] = {
    "no-engine": (lambda bench: bench.engines.clear(), "broken", "apt install podman"),
    "docker-daemon-silent": (lambda bench: bench.engines.append(broken_engine()), "warning", "start it"),
    "cgroups-missing": (lambda bench: _machine(bench, cgroups="none"), "broken", "mount cgroup2"),
    "no-sys-resource": (lambda bench: _machine(bench, effective_capabilities=0), "note", ""),
    "selinux-denies-devices": (_selinux, "warning", "setsebool -P container_use_devices on"),
    "database-unreadable": (
        lambda bench: setattr(bench, "database", ("unreadable", "the holds database is damaged: x", "run `draht ps`")),
        "broken",
        "draht ps",
    ),
    "state-not-writable": (lambda bench: bench.state.touch(), "broken", "DRAHT_STATE_DIR"),
    "cdi-directory-not-read": (lambda bench: bench.engine(spec_directories=("/etc/cdi",)), "warning", "DRAHT_CDI_DIR"),
    "cdi-file-broken": (lambda bench: bench.spec("bad.json", kind="nonsense"), "warning", ""),
    "cdi-conflict": (_conflict, "warning", ""),
    "cdi-file-private": (lambda bench: bench.spec().chmod(0o600), "warning", "chmod 0644"),
    "cdi-node-missing": (
        lambda bench: bench.edits(deviceNodes=[{"path": "/dev/nvidia9"}, {"path": "/dev/nvidia8"}]),
        "warning",
        "nvidia-ctk cdi generate",
    ),
    "cdi-hook-missing": (
        lambda bench: bench.edits(hooks=[{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook"}]),
        "warning",
        "write the spec anew",
    ),
    "cdi-mount-missing": (
        lambda bench: bench.edits(mounts=[{"hostPath": "/usr/lib/libcuda.so.550", "containerPath": "/x"}]),
        "warning",
        "write the spec anew",
    ),
    "cdi-version-too-new": (lambda bench: bench.spec(cdiVersion="0.6.0"), "warning", "draht cdi lower --to 0.5.0"),
    "kubelet-owns-devices": (
        lambda bench: setattr(bench, "ownership", Ownership(owners=(OWNER,))),
        "warning",
        "run the workload as a pod",
    ),
    "kubelet-unseen": (
        lambda bench: setattr(bench, "ownership", Ownership(unseen="/var/lib/kubelet")),
        "note",
        "sudo draht doctor",
    ),
}
"""Finding → what brings it about, how bad it is, and a part of the fix."""


def test_a_healthy_machine_has_no_findings(bench: Bench) -> None:
    """So each of the cases below is the only thing wrong."""
    report = bench.look()
    assert report.findings == ()
    assert not report.broken
    assert text(report).endswith("nothing stops `draht run` on this machine")


@pytest.mark.parametrize("kind", CASES)
def test_each_finding_is_found_alone_with_its_fix(bench: Bench, kind: str) -> None:
    """One thing is spoilt; exactly that is found, with its severity and the next step."""
    spoil, severity, fix = CASES[kind]
    spoil(bench)
    report = bench.look()
    assert [(finding.kind, finding.severity) for finding in report.findings] == [(kind, severity)]
    (finding,) = report.findings
    assert fix in finding.fix
    assert finding.fix or severity == "note"
    assert report.broken is (severity == "broken")
    shown = " ".join(text(report, width=10_000).split())
    assert f"{severity}: {finding.message}" in shown
    assert finding.fix in shown


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda bench: _machine(bench, nofile=512), "few-open-files"),
        (lambda bench: bench.engine(name="docker"), "docker-means-root"),
    ],
    ids=["few-open-files", "docker-means-root"],
)
def test_findings_of_users_without_root(bench: Bench, spoil: Callable[[Bench], object], kind: str) -> None:
    """Root is told neither."""
    spoil(bench)
    assert bench.look().findings == ()
    bench.uid = 1000
    assert [finding.kind for finding in bench.look().findings] == [kind]


def test_places_that_only_others_may_write(bench: Bench) -> None:
    """The state directory stops everything, the spec directory what needs a spec of ours."""
    require(os.geteuid() == 0, "needs root to become another user")
    for place in (bench.root, *bench.root.parents[:-1]):
        if place != Path("/tmp"):
            place.chmod(0o755)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        kinds = " ".join(f"{finding.kind}:{finding.severity}" for finding in bench.look().findings)
        os.write(write, kinds.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "state-not-writable:broken cdi-directory-not-writable:warning"


def test_a_directory_that_can_t_be_read_is_found(bench: Bench) -> None:
    """A link that leads nowhere but to itself, where a directory should be."""
    for path in bench.specs.iterdir():
        path.unlink()
    bench.specs.rmdir()
    bench.specs.symlink_to(bench.specs)
    kinds = {finding.kind for finding in bench.look().findings}
    assert "cdi-directory-unreadable" in kinds


def test_without_any_usable_engine_the_engine_s_problem_is_what_is_broken(bench: Bench) -> None:
    """With another usable engine the same problem is a warning."""
    bench.engines[0] = broken_engine("podman")
    report = bench.look()
    assert report.broken
    assert [finding.severity for finding in report.findings] == ["broken"]


def test_a_spec_for_another_engine_s_directory_is_no_concern(bench: Bench) -> None:
    """A version that is too new matters only where the engine looks."""
    bench.engine(spec_directories=("/elsewhere",))
    bench.spec(cdiVersion="1.0.0")
    assert "cdi-version-too-new" not in {finding.kind for finding in bench.look().findings}


def test_nodes_that_a_spec_describes_wholly_needn_t_exist(bench: Bench) -> None:
    """With type and numbers they are made without looking at the host."""
    bench.edits(deviceNodes=[{"path": "/dev/gpu", "type": "c", "major": 195, "minor": 0}])
    assert bench.look().findings == ()


def test_the_worst_comes_first(bench: Bench) -> None:
    """Broken, then warnings, then notes."""
    for kind in ("no-sys-resource", "cdi-conflict", "cgroups-missing"):
        CASES[kind][0](bench)
    bench.machine = dataclasses.replace(GOOD_MACHINE, cgroups="none", effective_capabilities=0)
    assert [finding.severity for finding in bench.look().findings] == ["broken", "warning", "note"]


@pytest.mark.parametrize(
    ("spoil", "condition", "words"),
    [
        (lambda path: path.unlink(), "absent", "no holds database yet"),
        (lambda path: None, "healthy", "is healthy"),
        (lambda path: path.write_bytes(b"\xff" * 8192), "unreadable", "not a database"),
        (lambda path: _version(path, 999), "unreadable", "schema version 999"),
    ],
    ids=["absent", "healthy", "garbage", "newer"],
)
def test_the_database_is_looked_at_without_being_repaired(
    tmp_path: Path, spoil: Callable[[Path], object], condition: str, words: str
) -> None:
    """A check that repairs would hide what it should show."""
    database = Database(tmp_path)
    database.check()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    spoil(tmp_path / FILE)
    for rest in (f"{FILE}-wal", f"{FILE}-shm"):
        (tmp_path / rest).unlink(missing_ok=True)
    before = (tmp_path / FILE).read_bytes() if condition != "absent" else b""
    found, sentence, fix = database_state(tmp_path)
    assert found == condition
    assert words in sentence
    assert bool(fix) is (condition == "unreadable")
    if condition != "absent":
        assert (tmp_path / FILE).read_bytes() == before
    assert not list(tmp_path.glob("*unreadable*"))


def _version(path: Path, number: int) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    connection.close()


@pytest.mark.parametrize(
    ("files", "mode"),
    [
        (["cgroup.controllers"], "v2"),
        (["devices/tasks"], "v1"),
        (["devices/tasks", "unified/cgroup.procs"], "hybrid"),
        ([], "none"),
    ],
)
def test_the_cgroup_layout_is_told_by_its_files(tmp_path: Path, files: list[str], mode: str) -> None:
    """As systemd's documentation describes the three layouts."""
    for name in files:
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    machine = read_machine(tmp_path)
    assert (machine.cgroups, machine.effective_capabilities, machine.pid_max) == (mode, 0, 4194304)


def test_capabilities_and_limits_are_read(tmp_path: Path) -> None:
    """From procfs of the process itself."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text("Name:\tx\nCapEff:\t0000000001000000\n", encoding="ascii")
    (tmp_path / "proc/sys/kernel/pid_max").write_text("32768\n", encoding="ascii")
    machine = read_machine(tmp_path)
    assert (machine.may(24), machine.may(21), machine.pid_max, machine.systemd) == (True, False, 32768, True)


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
@pytest.mark.parametrize("broken", [False, True])
def test_the_command_ends_with_1_only_when_something_is_broken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, output: str, broken: bool
) -> None:
    """In every format, after printing everything."""
    if broken:
        bench.engines.clear()
    else:
        CASES["cdi-conflict"][0](bench)
    monkeypatch.setattr("draht.cli.doctor.examine", lambda *_args, **_kwargs: bench.look())
    result = click.testing.CliRunner().invoke(doctor, ["-o", output])
    assert result.exit_code == int(broken), result.output
    assert ("there is no container engine" if broken else "other.json") in result.output


def test_the_report_for_programs_has_everything(bench: Bench) -> None:
    """Names in camel case, findings with kind and fix, engines with what they read."""
    CASES["cdi-conflict"][0](bench)
    report = plain(bench.look())
    assert report["engines"] == [
        {
            "name": "podman",
            "version": "4.3.1",
            "path": "/usr/bin/podman",
            "cdiVersion": "0.5.0",
            "cdiSource": "",
            "specDirectories": [str(bench.specs)],
            "rootless": False,
            "usable": True,
        }
    ]
    assert [finding["kind"] for finding in report["findings"]] == ["cdi-conflict"]
    assert report["broken"] is False
    assert report["machine"]["cgroups"] == "v2"
    json.dumps(report)


def test_this_machine_can_be_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command works on whatever machine the tests run on, and writes nothing."""
    monkeypatch.setenv("DRAHT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DRAHT_CDI_DIR", str(tmp_path / "cdi"))
    result = click.testing.CliRunner().invoke(doctor, ["-o", "json"])
    report = json.loads(result.stdout)
    assert result.exit_code == int(report["broken"])
    assert report["places"] == {"state": str(tmp_path / "state"), "cdi": str(tmp_path / "cdi")}
    assert list(tmp_path.iterdir()) == []
