"""``draht cdi list, devices, show, dirs, schema``: the commands that only look."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdi_command import Outcome, run, run_script
from cdi_corpus import CORPUS
from draht import cdi


class Place:
    """Two directories: one good and one broken file in the first, a stronger spec in the second."""

    def __init__(self, root: Path) -> None:
        self.etc = root / "etc"
        self.run = root / "run"
        self.options = ("--dir", str(self.etc), "--dir", str(self.run))
        self.etc.mkdir()
        self.run.mkdir()
        self.put("valid/nvidia-small.yaml", self.etc / "nvidia.yaml")
        self.put("broken/unknown-key.yaml", self.etc / "broken.yaml")
        self.put("valid/nvidia-nixos.json", self.run / "nvidia.json")

    def put(self, file: str, target: Path) -> None:
        shutil.copy(CORPUS / file, target)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A machine with specs."""
    return Place(tmp_path)


def _parsed(outcome: Outcome, output: str) -> Any:
    assert outcome.status == 0, outcome.stderr
    return json.loads(outcome.stdout) if output == "json" else yaml.safe_load(outcome.stdout)


def test_list_shows_good_and_broken_files(place: Place) -> None:
    """Each file has a row with kind, version and number of devices, or with what is wrong and where."""
    outcome = run("cdi", "list", *place.options)
    assert outcome.status == 0
    header, *rows = outcome.lines
    assert header.split() == ["FILE", "KIND", "VERSION", "DEVICES", "PROBLEM"]
    assert [row.split()[:4] for row in rows] == [
        [str(place.etc / "nvidia.yaml"), "nvidia.com/gpu", "0.5.0", "3"],
        [str(place.run / "nvidia.json"), "nvidia.com/gpu", "0.5.0", "2"],
        [str(place.etc / "broken.yaml"), "-", "-", "-"],
    ]
    assert rows[2].endswith("22:11: there is no field 'hostpath' in a DeviceNode")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["list"], "there are no spec files in"),
        (["devices"], "there are no devices in"),
        (["devices", "nvidia.com/*"], "there are no matching devices in"),
    ],
)
def test_nothing_is_said_with_the_directories(tmp_path: Path, command: list[str], words: str) -> None:
    """An empty table doesn't tell a person whether the right place was looked at; programs get an empty list."""
    outcome = run("cdi", *command, "--dir", str(tmp_path))
    assert (outcome.status, len(outcome.lines)) == (0, 1)
    assert outcome.stderr == f"{words} {tmp_path}; see draht cdi dirs\n"
    for_programs = run("cdi", *command, "--dir", str(tmp_path), "-o", "json")
    assert (json.loads(for_programs.stdout), for_programs.stderr) == ([], "")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_list_for_programs(place: Place, output: str) -> None:
    """JSON and YAML have the same facts, with names of devices and all problems."""
    files = _parsed(run("cdi", "list", *place.options, "-o", output), output)
    assert files[1]["priority"] == 1
    assert files[1]["devices"] == ["0", "all"]
    assert files[1]["problems"] == []
    assert len(files[2]["problems"]) == 1


def test_list_shows_conflicts_beside_the_usable_rest(place: Place) -> None:
    """A file whose devices clash with another's is listed once, with its devices and the conflict."""
    place.put("valid/nvidia-small.yaml", place.etc / "second.yaml")
    files = _parsed(run("cdi", "list", *place.options, "-o", "json"), "json")
    first = next(file for file in files if file["path"].endswith("etc/nvidia.yaml"))
    assert len(first["problems"]) == 3
    row = next(row for row in run("cdi", "list", *place.options).lines if "second.yaml" in row)
    assert "is defined by" in row
    assert row.endswith("(and 2 more)")


def test_devices_come_from_the_strongest_file_and_problems_are_announced(place: Place) -> None:
    """Names are sorted and say their file; on stderr stands that some files have problems."""
    outcome = run("cdi", "devices", *place.options)
    rows = [line.split() for line in outcome.lines[1:]]
    assert rows == [
        ["nvidia.com/gpu=0", str(place.run / "nvidia.json")],
        ["nvidia.com/gpu=GPU-133cc9e2-1ed9-5f67-89a5-88f646873531", str(place.etc / "nvidia.yaml")],
        ["nvidia.com/gpu=all", str(place.run / "nvidia.json")],
    ]
    assert outcome.stderr == "warning: 1 file has problems: draht cdi list\n"


@pytest.mark.parametrize(
    ("patterns", "count"), [(["*"], 3), (["nvidia.com/gpu=all"], 1), (["*=0", "*=all"], 2), (["amd.com/*"], 0)]
)
def test_devices_by_pattern(place: Place, patterns: list[str], count: int) -> None:
    """Patterns choose among the names; none that match is an empty list, not an error."""
    assert len(_parsed(run("cdi", "devices", *patterns, *place.options, "-o", "json"), "json")) == count


def test_show_has_the_common_part_and_the_device(place: Place) -> None:
    """What a container gets from one device is the spec's common edits and then its own."""
    shown = _parsed(run("cdi", "show", "nvidia.com/gpu=0", *place.options, "-o", "json"), "json")
    assert shown["path"] == str(place.run / "nvidia.json")
    assert shown["minimumVersion"] == "0.5.0"
    paths = [node["path"] for node in shown["containerEdits"]["deviceNodes"]]
    assert paths[:1] == ["/dev/nvidia-modeset"]
    assert paths[-1] == "/dev/dri/renderD128"


@pytest.mark.parametrize(
    ("file", "name", "words"),
    [
        ("nvidia-nvml-l40s-gids.yaml", "nvidia.com/gpu=0", ["/dev/nvidia0  195:0 rwm", "groups:", "  105"]),
        (
            "nvidia-management.yaml",
            "management.nvidia.com/gpu=all",
            ["/dev/nvidia0 from /run/nvidia/driver/dev/nvidia0"],
        ),
        ("amd-mi300x.json", "amd.com/gpu=0", ["/dev/kfd c 511:0 rwm"]),
        ("nic-netdevices-1.1.0.yaml", "dra.net/nic=bond0", ["network devices:", "  enp65s0f0np0 as rail0"]),
        ("intel-rdt-1.1.0.yaml", "intel.com/rdt=gold", ["RDT:", "  gold", "  L3:0=ff0;1=ff0"]),
        (
            "nvidia-gh200-coherent.yaml",
            "nvidia.com/gpu.coherent=0",
            ["annotations:", "  gpu.nvidia.com/coherent: true"],
        ),
        ("nvidia-wsl.yaml", "nvidia.com/gpu=all", ["environment:", "  NVIDIA_VISIBLE_DEVICES=void", "hooks:"]),
        ("nvidia-nixos.json", "nvidia.com/gpu=0", ["nvidia-smi at /usr/bin/nvidia-smi (ro,nosuid,nodev,bind)"]),
    ],
)
def test_show_for_people(tmp_path: Path, file: str, name: str, words: list[str]) -> None:
    """Every kind of edit has its section with one line per item."""
    shutil.copy(CORPUS / "valid" / file, tmp_path)
    outcome = run("cdi", "show", name, "--dir", str(tmp_path))
    assert outcome.status == 0
    for each in words:
        assert any(line.endswith(each.rstrip()) or each in line for line in outcome.lines), outcome.stdout


def test_show_warns_of_missing_host_nodes(place: Place, tmp_path: Path) -> None:
    """A device that would fail in every container is shown, with a warning and a hint on stderr."""
    outcome = run("cdi", "show", "nvidia.com/gpu=0", *place.options, "--host-root", str(tmp_path / "empty"))
    assert outcome.status == 0
    assert "warning: " in outcome.stderr
    assert "/dev/nvidia0 (no such file or directory)" in outcome.stderr
    assert "hint: load the driver" in outcome.stderr


def test_show_explains_an_unknown_name(place: Place) -> None:
    """An unknown name ends with 1, one line of error, one of hint, and then what is known."""
    outcome = run("cdi", "show", "nvidia.com/gpu=7", *place.options)
    assert outcome.status == 1
    assert outcome.stdout == ""
    error, hint, *rest = outcome.stderr.splitlines()
    assert error.startswith("error: unresolvable CDI device nvidia.com/gpu=7: ")
    assert hint.startswith("hint: ")
    assert any(line.startswith("  nvidia.com/gpu offers 0, ") for line in rest)
    assert f"  {place.etc}: 1 spec, 1 file with problems" in rest


def test_dirs(place: Place, tmp_path: Path) -> None:
    """Directories come with their state, what they hold, and how many files are ignored for their name."""
    place.put("valid/intel-npu.yaml", place.run / "npu.yml")
    outcome = run("cdi", "dirs", *place.options, "--dir", str(tmp_path / "gone"))
    assert [line.split() for line in outcome.lines[1:]] == [
        [str(place.etc), "read", "1", "1", "0"],
        [str(place.run), "read", "1", "0", "1"],
        [str(tmp_path / "gone"), "missing", "0", "0", "0"],
    ]
    reports = _parsed(run("cdi", "dirs", *place.options, "-o", "yaml"), "yaml")
    assert reports[1]["priority"] == 1
    assert reports[1]["ignored"] == [str(place.run / "npu.yml")]


def test_directories_from_the_environment(place: Place) -> None:
    """DRAHT_CDI_DIRS names several directories; --dir on the command line takes their place."""
    both = {"DRAHT_CDI_DIRS": f"{place.etc}:{place.run}"}
    paths = [report["path"] for report in _parsed(run("cdi", "dirs", "-o", "json", environment=both), "json")]
    assert paths == [str(place.etc), str(place.run)]
    one = run("cdi", "dirs", "--dir", str(place.run), "-o", "json", environment=both)
    assert [report["path"] for report in _parsed(one, "json")] == [str(place.run)]


@pytest.mark.parametrize("version", [*cdi.VERSIONS, None])
def test_schema(version: str | None) -> None:
    """The schema of a version, the newest by default, as JSON or YAML."""
    options = ("--version", version) if version else ()
    expected = cdi.json_schema(version or "1.1.0")
    assert _parsed(run("cdi", "schema", *options), "json") == expected
    assert _parsed(run("cdi", "schema", *options, "-o", "yaml"), "yaml") == expected


def test_schema_of_no_version() -> None:
    """A version that doesn't exist is one line of error and a hint."""
    outcome = run("cdi", "schema", "--version", "2.0.0")
    assert outcome.status == 1
    assert outcome.stderr.startswith("error: there is no CDI version '2.0.0'\nhint: one of 0.3.0, ")


def test_the_installed_script(place: Place) -> None:
    """The real program prints the same, errors go to stderr, and a reader that goes away is no trouble."""
    outcome = run_script("cdi", "devices", *place.options, "-o", "json")
    assert outcome.status == 0
    assert json.loads(outcome.stdout)[0]["name"] == "nvidia.com/gpu=0"
    refused = run_script("cdi", "show", "nvidia.com/gpu=7", *place.options)
    assert (refused.status, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: unresolvable CDI device nvidia.com/gpu=7")
    assert run_script("cdi", "--help").stdout.count("\n") > 10


def test_a_spec_cant_change_the_terminal(tmp_path: Path) -> None:
    """Control characters in the texts of a spec and in file names are shown, not obeyed."""
    edits = {"env": ["A=\x1b[31m"], "mounts": [{"hostPath": "/a\nb", "containerPath": "/c\x9b"}]}
    device = {"name": "a", "annotations": {"note": "\x1b[2J\nroot#"}, "containerEdits": edits}
    spec = {"cdiVersion": "0.6.0", "kind": "v.com/gpu", "devices": [device]}
    (tmp_path / "\x1b]0;title\x07.json").write_text(json.dumps(spec))
    outcome = run("cdi", "show", "v.com/gpu=a", "--dir", str(tmp_path))
    assert all(line.isprintable() for line in outcome.lines)
    assert r"  note: \x1b[2J\nroot#" in outcome.lines
    assert r"  /a\nb at /c\x9b ()" in outcome.lines


def test_an_empty_directory_name_is_none(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A colon too many in DRAHT_CDI_DIRS doesn't make the current directory one of specs."""
    monkeypatch.chdir(place.run)
    outcome = run("cdi", "dirs", environment={"DRAHT_CDI_DIRS": f"{place.etc}::"})
    assert [line.split()[0] for line in outcome.lines] == ["DIRECTORY", str(place.etc)]
    assert "no spec directories" in run("cdi", "show", "nvidia.com/gpu=0", "--dir", "").stderr
