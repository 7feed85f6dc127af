"""``draht cel``: verdict and price of a selector, the devices it matches, and why the others not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from draht.cli.cel import cel
from draht.hardware import profiles

ARCHITECTURE = 'device.attributes["gpu.nvidia.com"].architecture == "Ampere"'

SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: small
    attributes: {model: {string: A2}}
    capacity: {memory: {value: 16Gi}}
  - name: large
    attributes: {model: {string: A100}}
    capacity: {memory: {value: 80Gi}}
"""


def run(*arguments: str, stdin: str = "") -> Result:
    """The command's result; a defect is raised."""
    return CliRunner().invoke(cel, arguments, input=stdin, catch_exceptions=False)


def test_a_valid_selector_has_a_price_and_what_it_reads() -> None:
    """The verdict comes with the type, the estimate and the attributes that matter."""
    result = run("check", ARCHITECTURE)
    assert result.stdout.splitlines() == [
        "valid: bool",
        "cost: 5 of 1,000,000 units",
        "reads: attributes gpu.nvidia.com/architecture",
    ]
    assert result.exit_code == 0


def test_a_broken_selector_is_pointed_at() -> None:
    """Every issue has its line, a caret under its column and a hint; the exit status says that it isn't valid."""
    result = run("check", 'device.capacity["a"].b == 4 &&\n  foo')
    assert result.exit_code == 1
    assert "  | device.capacity" in result.stdout
    assert "  |                        ^" in result.stdout
    assert 'hint: compare with a.compareTo(quantity("4")) == 0' in result.stdout
    assert "2:3: 'foo' is not declared" in result.stdout


def test_a_selector_that_is_too_expensive_is_not_valid() -> None:
    """An API server refuses it, so the exit status does, too."""
    result = run("check", "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))")
    assert result.exit_code == 1
    assert result.stdout.startswith("too expensive: bool\n")


def test_a_selector_that_is_too_long_is_told_so() -> None:
    """The limit is that of the API server, in bytes."""
    result = CliRunner().invoke(cel, ["check", f"'{'é' * 6000}' == ''"])
    assert result.exit_code == 1
    assert "12,008 bytes" in str(result.exception)


def test_a_derived_attribute_may_have_other_types() -> None:
    """With --derived the output may be a scalar or a list of scalars."""
    assert run("check", "--derived", 'device.attributes["a"].b').exit_code == 0
    assert run("check", "'text'").exit_code == 1
    assert run("check", "--derived", "'text'").exit_code == 0


def test_programs_get_the_same_as_json() -> None:
    """Everything that a person sees is a field."""
    checked = json.loads(run("check", ARCHITECTURE, "-o", "json").stdout)
    assert (checked["valid"], checked["type"], checked["issues"]) == (True, "bool", [])
    broken = json.loads(run("check", "1 +", "-o", "json").stdout)
    assert broken["valid"] is False
    assert broken["issues"][0]["line"] == 1
    tried = json.loads(run("eval", ARCHITECTURE, "--profile", "mixed-x6", "-o", "json").stdout)
    assert (tried["matches"], tried["simulated"]) == (2, "mixed-x6")
    by_name = {each["device"]: each for each in tried["devices"]}
    assert by_name["gpu-0"]["answer"] == "match"
    assert by_name["gpu-4"]["decidedBy"] == ARCHITECTURE
    assert by_name["gpu-4"]["readings"] == {"architecture": '"Ada Lovelace"'}
    assert by_name["pci-0000-25-00-0"]["errorKind"] == "no-such-key"


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_can_be_asked_and_says_that_it_is_simulated(name: str) -> None:
    """A selector that holds for everything matches all devices, and the name stands on top."""
    result = run("eval", "true", "--profile", name)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"simulated machine {name}"
    count = len(lines) - 3
    assert count > 0
    assert lines[-1] == f"{count} of {count} devices match"


def test_devices_come_from_files_and_standard_input(tmp_path: Path) -> None:
    """The table shows the answer, the deciding condition and what the device says."""
    file = tmp_path / "slices.yaml"
    file.write_text(SLICE)
    memory = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
    selector = f'device.driver == "gpu.example.com" && {memory}'
    for result in (
        run("eval", selector, "-f", str(file)),
        run("eval", selector, "-f", str(tmp_path)),
        run("eval", selector, "-f", "-", stdin=SLICE),
    ):
        assert result.exit_code == 0
        small, large, total = result.stdout.splitlines()[1:]
        assert small.split()[:2] == ["gpu.example.com/node-1/small", "no"]
        assert small.endswith(f'{memory}   memory is quantity("16Gi")')
        assert large.split() == ["gpu.example.com/node-1/large", "match", "-", "-"]
        assert total == "1 of 2 devices match"


def test_no_match_is_told_by_the_exit_status() -> None:
    """1 where nothing matches or the selector is broken, 2 where the question can't be asked."""
    assert run("eval", "false", "--profile", "t4-x1").exit_code == 1
    assert run("eval", "fals", "--profile", "t4-x1").exit_code == 1
    assert run("eval", "true").exit_code == 2
    assert run("eval", "true", "-f", "/nowhere.yaml").exit_code == 2


def test_a_wrong_name_is_answered_with_the_right_one() -> None:
    """The hint is told once, on stderr."""
    result = run("eval", 'device.attributes["gpu.nvidia.com"].architectur == "Turing"', "--profile", "t4-x1")
    assert "no such key: architectur; architectur is missing, but there is architecture" in result.stdout
    assert result.stderr.splitlines()[0] == "hint: did you mean architecture?"


def test_no_devices_are_no_silent_answer(tmp_path: Path) -> None:
    """A file without slices is told."""
    file = tmp_path / "class.yaml"
    file.write_text("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec: {}\n")
    result = run("eval", "true", "-f", str(file))
    assert (result.exit_code, result.stdout) == (1, "0 of 0 devices match\n")
    assert result.stderr.startswith("there are no devices\nhint: ")
