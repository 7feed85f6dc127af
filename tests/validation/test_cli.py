"""``draht validate``: what is printed, and with which status it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdi_command import run

GOOD = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
"""
BAD = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata:
  name: Claim
spec:
  devices:
    requests:
    - name: gpu
      deviceClassName: gpu.example.com
      selectors:
      - cel:
          expression: |
            device.driver == "x" &&
            device.memory > 3
      count: -1
"""
CLAIM_NAME = (
    "\"Claim\" must consist of lower-case letters, digits, '-' and '.', and begin and end with a letter or digit"
)
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"


def _write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_good_file_is_valid(tmp_path: Path) -> None:
    """One line says what is in it; kinds without rules are only read."""
    _write(tmp_path, good=GOOD + "---\n" + POD)
    outcome = run("validate", "-f", str(tmp_path / "good.yaml"))
    assert (outcome.status, outcome.lines) == (0, [f"{tmp_path}/good.yaml: valid: 1 DeviceClass, 1 Pod (only read)"])


def test_every_error_has_its_place_in_the_file(tmp_path: Path) -> None:
    """Line, column and the path as the file has it, in the order of the file, and the picture of an expression."""
    _write(tmp_path, bad=BAD)
    outcome = run("validate", "-f", str(tmp_path / "bad.yaml"))
    name = f"{tmp_path}/bad.yaml"
    assert outcome.status == 1
    assert outcome.lines == [
        f"{name}:4:3: metadata.name: {CLAIM_NAME}",
        f"{name}:12:11: spec.devices.requests[0].selectors[0].cel.expression: the expression doesn't compile",
        "  2:7: kubernetes.DRADevice has no field 'memory'",
        "    | device.memory > 3",
        "    |       ^",
        '    hint: write device.attributes["<domain>"].memory or device.capacity["<domain>"].memory',
        f"{name}:15:7: spec.devices.requests[0].count: -1 must be greater than zero",
    ]


def test_directories_and_standard_input_are_read(tmp_path: Path) -> None:
    """A directory's manifests in the order of their names; other files in it are left alone."""
    _write(tmp_path, b=GOOD, a=BAD)
    (tmp_path / "notes.txt").write_text("no manifest", encoding="utf-8")
    outcome = run("validate", "-f", str(tmp_path), "-f", "-", stdin=GOOD.encode())
    assert outcome.status == 1
    assert outcome.lines[0].startswith(f"{tmp_path}/a.yaml:4:3: ")
    assert outcome.lines[-2:] == [f"{tmp_path}/b.yaml: valid: 1 DeviceClass", "<stdin>: valid: 1 DeviceClass"]


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A missing file, broken YAML and unknown fields end with 1, and hide no other file."""
    _write(tmp_path, broken="a: [", unknown=GOOD.replace("selectors", "selector"), good=GOOD)
    files = [str(tmp_path / name) for name in ("missing.yaml", "broken.yaml", "unknown.yaml", "good.yaml")]
    outcome = run("validate", *(part for file in files for part in ("-f", file)))
    assert outcome.status == 1
    assert all(any(line.startswith(file) for line in outcome.lines) for file in files)
    assert any(line.startswith("  hint: ") and "selectors" in line for line in outcome.lines)
    assert outcome.lines[-1] == f"{tmp_path}/good.yaml: valid: 1 DeviceClass"


def test_nothing_to_check_is_said(tmp_path: Path) -> None:
    """An empty directory is valid, and somebody is told that nothing was there."""
    outcome = run("validate", "-f", str(tmp_path))
    assert (outcome.status, outcome.stdout) == (0, "")
    assert str(tmp_path) in outcome.stderr


def test_a_command_without_files_is_a_wrong_call() -> None:
    """Usage errors end with 2."""
    assert run("validate").status == 2


def test_programs_get_json(tmp_path: Path) -> None:
    """Per file its objects, per object its errors with path, kind, message, place, hint and picture."""
    _write(tmp_path, bad=BAD)
    outcome = run("validate", "-o", "json", "-f", str(tmp_path / "bad.yaml"))
    (file,) = json.loads(outcome.stdout)
    (obj,) = file["objects"]
    assert outcome.status == 1
    assert (file["valid"], obj["valid"], obj["judged"], obj["name"]) == (False, False, True, "Claim")
    assert [error["kind"] for error in obj["errors"]] == ["Invalid", "Invalid", "Invalid"]
    assert obj["errors"][1]["path"] == "spec.devices.requests[0].selectors[0].cel.expression"
    assert obj["errors"][1]["where"] == f"{tmp_path}/bad.yaml:12:11"
    assert "^" in obj["errors"][1]["picture"]


@pytest.mark.parametrize(("options", "warned"), [((), True), (("--all-features",), False)])
def test_fields_that_a_server_drops_are_said(tmp_path: Path, options: tuple[str, ...], warned: bool) -> None:
    """A field behind a gate that is off is no error, but nobody should rely on it."""
    spec = "{nodeName: node, driver: d, pool: {name: p, resourceSliceCount: 1}, skipNodeOperations: ['*']}"
    _write(tmp_path, s=f"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s}}\nspec: {spec}\n")
    outcome = run("validate", *options, "-f", str(tmp_path / "s.yaml"))
    assert outcome.status == 0
    assert any("warning: spec.skipNodeOperations" in line for line in outcome.lines) is warned


def test_names_in_files_cannot_change_the_terminal(tmp_path: Path) -> None:
    """Control characters of a manifest are shown escaped."""
    _write(tmp_path, odd=GOOD.replace("gpu.example.com}", '"\\e[31mred"}'))
    outcome = run("validate", "-f", str(tmp_path / "odd.yaml"))
    assert outcome.status == 1
    assert "\x1b" not in outcome.stdout
