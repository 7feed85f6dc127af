"""``draht cdi validate, inject, lower``: the commands that give a verdict about a file, or a new file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cdi_command import Outcome, run, run_script
from cdi_corpus import BROKEN, CORPUS, VALID
from draht import cdi


def _lines_with(outcome: Outcome, words: str) -> list[str]:
    return [line for line in outcome.lines if words in line]


# --- validate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", VALID, ids=lambda entry: entry["file"])
def test_validate_accepts_the_good_files(entry: dict[str, Any]) -> None:
    """A good file is one line with kind, number of devices and version, and the command ends with 0."""
    file = str(CORPUS / entry["file"])
    outcome = run("cdi", "validate", file)
    assert outcome.status == 0
    assert outcome.stdout.startswith(f"{file}: valid: {entry['kind']}, {len(entry['devices'])} device")


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry["file"])
def test_validate_refuses_the_broken_files(entry: dict[str, Any]) -> None:
    """A broken file is refused with line and column (unless it is empty), and the command ends with 1."""
    file = str(CORPUS / entry["file"])
    outcome = run("cdi", "validate", file, "-o", "json")
    assert outcome.status == 1
    (verdict,) = json.loads(outcome.stdout)
    assert verdict["valid"] is False
    for problem in verdict["problems"]:
        assert problem["message"]
        assert (problem["line"] is None) == ("empty.yaml" in file)


def test_validate_finds_every_problem_and_its_line() -> None:
    """All rules that a spec breaks are shown at once, each at the line of its field, or of what lacks it."""
    text = b"""\
cdiVersion: 0.3.0
kind: example.com/gpu
devices:
- name: "0"
  containerEdits: {}
- name: ok
  containerEdits:
    env: [A=b, WRONG]
    deviceNodes:
    - path: /dev/a
      permissions: x
    - major: -1
      path: /dev/b
    mounts:
    - hostPath: /lib
"""
    outcome = run("cdi", "validate", "-", stdin=text)
    assert outcome.status == 1
    found = [line.split(": ", 2)[:2] for line in outcome.lines if line.startswith("<stdin>")]
    assert found == [
        ["<stdin>:4:9", "devices[0].name"],
        ["<stdin>:5:19", "devices[0].containerEdits"],
        ["<stdin>:8:16", "devices[1].containerEdits.env[1]"],
        ["<stdin>:11:20", "devices[1].containerEdits.deviceNodes[0].permissions"],
        ["<stdin>:12:14", "devices[1].containerEdits.deviceNodes[1].major"],
        ["<stdin>:15:7", "devices[1].containerEdits.mounts[0].containerPath"],
    ]


def test_validate_reports_all_files(tmp_path: Path) -> None:
    """A file that is broken, missing, a FIFO or a directory doesn't keep the others from being checked."""
    shutil.copy(CORPUS / "broken/truncated.yaml", tmp_path / "a.yaml")
    shutil.copy(CORPUS / "valid/intel-npu.yaml", tmp_path / "b.yaml")
    files = [str(tmp_path / "missing"), str(tmp_path), str(CORPUS / "valid/amd-mi300x.json")]
    outcome = run("cdi", "validate", *files)
    assert outcome.status == 1
    assert len(_lines_with(outcome, ": valid: ")) == 2
    assert _lines_with(outcome, "missing: the file can't be read: no such file or directory")
    assert _lines_with(outcome, "a.yaml:21:")


def test_validate_without_files_checks_the_directories_together(tmp_path: Path) -> None:
    """Also conflicts count then; missing directories don't."""
    shutil.copy(CORPUS / "valid/intel-npu.yaml", tmp_path / "a.yaml")
    options = ("--dir", str(tmp_path), "--dir", str(tmp_path / "missing"))
    assert run("cdi", "validate", *options).status == 0
    shutil.copy(CORPUS / "valid/intel-npu.yaml", tmp_path / "b.yaml")
    outcome = run("cdi", "validate", *options)
    assert outcome.status == 1
    assert _lines_with(outcome, "intel.com/npu=npu0 is defined by")
    assert len(json.loads(run("cdi", "validate", *options, "-o", "json").stdout)) == 3


def test_validate_says_so_when_there_is_nothing(tmp_path: Path) -> None:
    """No spec at all is no failure, but not silence either."""
    outcome = run("cdi", "validate", "--dir", str(tmp_path))
    assert outcome.status == 0
    assert outcome.stderr == f"no specs in {tmp_path}\n"


# --- inject -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def specs(tmp_path: Path) -> str:
    """A directory with one spec that needs nothing from the host."""
    (tmp_path / "specs").mkdir()
    shutil.copy(CORPUS / "valid/amd-mi300x.json", tmp_path / "specs")
    return str(tmp_path / "specs")


def test_inject_prints_the_container_with_the_device(specs: str, tmp_path: Path) -> None:
    """What is in the config stays, in its order, and the device is added; the file itself isn't touched."""
    config = tmp_path / "config.json"
    text = '{"ociVersion": "1.2.0", "zeta": 12345678901234567890123, "process": {"args": ["sh"], "cwd": "/"}}'
    config.write_text(text)
    outcome = run("cdi", "inject", "--spec", str(config), "amd.com/gpu=3", "--dir", specs)
    assert outcome.status == 0
    oci = json.loads(outcome.stdout)
    assert list(oci)[:3] == ["ociVersion", "zeta", "process"]
    assert oci["zeta"] == 12345678901234567890123
    assert [device["path"] for device in oci["linux"]["devices"]] == [
        "/dev/kfd",
        "/dev/dri/card4",
        "/dev/dri/renderD131",
    ]
    assert config.read_text() == text


def test_inject_is_what_the_library_does(specs: str) -> None:
    """The command adds nothing of its own to `Cache.inject`; standard input works like a file."""
    names = ["amd.com/gpu=0", "amd.com/gpu=1"]
    oci: dict[str, Any] = {"process": {"env": ["A=b"]}}
    outcome = run("cdi", "inject", "--spec", "-", *names, "--dir", specs, stdin=json.dumps(oci).encode())
    cdi.Cache([specs]).inject(oci, names)
    assert json.loads(outcome.stdout) == oci


@pytest.mark.parametrize("name", ["amd.com/gpu=9", "gpu", "nvidia.com/gpu=0"])
def test_inject_of_an_unknown_device_prints_no_container(specs: str, name: str) -> None:
    """Nothing is printed that a script could take for a result; the reason and the next step are on stderr."""
    outcome = run("cdi", "inject", "--spec", "-", "amd.com/gpu=0", name, "--dir", specs, stdin=b"{}")
    assert (outcome.status, outcome.stdout) == (1, "")
    error, hint = outcome.stderr.splitlines()[:2]
    assert error.startswith(f"error: unresolvable CDI device {name}: ")
    assert hint.startswith("hint: ")


def test_inject_looks_nodes_up_below_another_root(tmp_path: Path) -> None:
    """With --host-root the host's nodes are looked up there; those that are missing are named."""
    shutil.copy(CORPUS / "valid/nvidia-small.yaml", tmp_path)
    options = ("--spec", "-", "nvidia.com/gpu=0", "--dir", str(tmp_path), "--host-root", str(tmp_path))
    outcome = run("cdi", "inject", *options, stdin=b"{}")
    assert outcome.status == 1
    assert "error: can't inject CDI device nvidia.com/gpu=0: " in outcome.stderr
    assert "/dev/nvidiactl (no such file or directory)" in outcome.stderr


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": 1e999}', "1e999 is too large a number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"linux": []}', "linux is not an object"),
        (b'{"linux": {"devices": {}}}', "linux.devices is not a list"),
    ],
)
def test_inject_refuses_what_is_no_oci_spec(specs: str, config: bytes, words: str) -> None:
    """A config that isn't one is a line of error, never a traceback."""
    outcome = run("cdi", "inject", "--spec", "-", "amd.com/gpu=0", "--dir", specs, stdin=config)
    assert (outcome.status, outcome.stdout) == (1, "")
    assert words in outcome.stderr.splitlines()[0]


def test_inject_of_a_missing_config(specs: str, tmp_path: Path) -> None:
    """A file that isn't there is named."""
    outcome = run("cdi", "inject", "--spec", str(tmp_path / "config.json"), "amd.com/gpu=0", "--dir", specs)
    assert outcome.stderr.startswith(f"error: {tmp_path / 'config.json'}: the file can't be read")


# --- lower ------------------------------------------------------------------------------------------------------------


def test_lower_rewrites_what_it_can(tmp_path: Path) -> None:
    """The result says the wanted version, is valid there, and keeps the format of the file."""
    outcome = run("cdi", "lower", "--to", "0.3.0", str(CORPUS / "valid/nvidia-early-0.4.0.yaml"))
    assert outcome.status == 0
    assert outcome.stdout.startswith("---\ncdiVersion: 0.3.0\n")
    lowered = cdi.decode(outcome.stdout.encode())
    cdi.validate(lowered)
    assert all(mount.type == "" for mount in lowered.container_edits.mounts)
    again = run("cdi", "lower", "--to", "0.5.0", "-o", "json", "-", stdin=outcome.stdout.encode())
    assert json.loads(again.stdout)["cdiVersion"] == "0.3.0"


def test_lower_keeps_json_json() -> None:
    """A JSON file gives JSON."""
    outcome = run("cdi", "lower", "--to", "0.5.0", str(CORPUS / "valid/amd-mi300x.json"))
    assert json.loads(outcome.stdout)["cdiVersion"] == "0.5.0"


@pytest.mark.parametrize(
    ("file", "to", "words"),
    [
        ("valid/nvidia-nvml-l40s-gids.yaml", "0.5.0", "additional group ids"),
        ("valid/nic-netdevices-1.1.0.yaml", "1.0.0", "network devices"),
        ("valid/nvidia-gh200-coherent.yaml", "0.5.0", "annotations"),
        ("valid/nvidia-small.yaml", "0.4.0", "starts with a digit"),
        ("valid/nvidia-small.yaml", "0.5.1", "there is no CDI version"),
        ("broken/permissions-rwx.yaml", "0.3.0", "'rwx' are not permissions"),
        ("broken/truncated.yaml", "0.3.0", "not readable as YAML"),
    ],
)
def test_lower_refuses_what_would_be_lost(file: str, to: str, words: str) -> None:
    """The feature that is in the way is named with its place, and nothing is printed on stdout."""
    outcome = run("cdi", "lower", "--to", to, str(CORPUS / file))
    assert (outcome.status, outcome.stdout) == (1, "")
    assert words in outcome.stderr.splitlines()[0]


def test_lower_drops_annotations_when_asked() -> None:
    """Annotations reach no container, so they may go if the caller says so."""
    spec = b"{cdiVersion: 0.6.0, kind: a/b, annotations: {x: y}, devices: [{name: d, containerEdits: {env: [A=b]}}]}"
    assert run("cdi", "lower", "--to", "0.3.0", "-", stdin=spec).status == 1
    outcome = run("cdi", "lower", "--to", "0.3.0", "--drop-annotations", "-", "-o", "json", stdin=spec)
    assert "annotations" not in json.loads(outcome.stdout)


# --- the real program -------------------------------------------------------------------------------------------------


def test_the_installed_script_in_a_pipe(specs: str) -> None:
    """Standard input, output and exit status work in the real process."""
    outcome = run_script("cdi", "inject", "--spec", "-", "amd.com/gpu=0", "--dir", specs, stdin=b"{}")
    assert outcome.status == 0
    assert len(json.loads(outcome.stdout)["linux"]["devices"]) == 3
    refused = run_script("cdi", "validate", "-", stdin=b"kind: nvidia.com/gpu\n")
    assert refused.status == 1
    assert "Traceback" not in refused.stderr
