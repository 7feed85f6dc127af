"""``draht devices``: what a person and a program see of a machine."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from draht.api import yaml
from draht.cli.devices import devices
from draht.cli.main import draht, report
from draht.hardware import profiles
from draht.hardware.errors import HardwareError
from fake_sysfs import build

CORPUS = Path(__file__).parents[1] / "data/cdi/valid"


def run(*arguments: str) -> Result:
    """The command's result; a failure is raised."""
    return CliRunner().invoke(devices, arguments, catch_exceptions=False)


@pytest.mark.parametrize("output", ["table", "wide", "tree"])
@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_is_shown_as_simulated(name: str, output: str) -> None:
    """Its name, the word and every GPU are on the screen, and nothing is complained about."""
    result = run("--profile", name, "-o", output)
    assert result.stdout.startswith(f"{name} (simulated): ")
    assert result.stderr == ""
    assert all(f"gpu {number}" in result.stdout for number in range(len(_gpus(name))))
    assert not any(line != line.rstrip() for line in result.stdout.splitlines())


def _gpus(name: str) -> list[str]:
    listed = json.loads(run("--profile", name, "-o", "json").stdout)
    return [device["id"] for device in listed["devices"] if device["kind"] == "gpu"]


def test_the_tree_shows_what_shares_a_switch() -> None:
    """NUMA node, root, switch, devices; ports with one thing below aren't drawn."""
    lines = run("--profile", "l40s-x4", "-o", "tree").stdout.splitlines()
    assert lines[2:10] == [
        "├─ NUMA node 0 (CPUs 0-31,64-95, 512 GiB)",
        "│  └─ pci0000:26",
        "│     └─ switch 0000:27:00.0",
        "│        ├─ gpu 0  0000:29:00.0  NVIDIA L40S  45 GiB",
        "│        ├─ gpu 1  0000:2a:00.0  NVIDIA L40S  45 GiB",
        "│        └─ nic 0  0000:2b:00.0  ConnectX-6 Dx  (enp43s0f0np0, mlx5_0)",
        "│           ├─ nic 0 vf 0  0000:2b:00.2  ConnectX Family mlx5Gen Virtual Function",
        "│           ├─ nic 0 vf 1  0000:2b:00.3  ConnectX Family mlx5Gen Virtual Function",
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dgx-h100", "NVLink 4: 18 links between every two GPUs through NVSwitch"),
        ("mixed-x6", "NVLink 3: 12 links between gpu 2 and gpu 3"),
        ("mi300x-x8", "XGMI 3: 1 link between every two GPUs"),
    ],
)
def test_the_tree_ends_with_the_links(name: str, line: str) -> None:
    """One line for all that are alike."""
    assert run("--profile", name, "-o", "tree").stdout.splitlines()[-1] == line


def test_wide_has_the_matrix_and_explains_its_words() -> None:
    """Distances between GPUs and to network functions, and only the words that occur."""
    text = run("--profile", "mixed-x6", "-o", "wide").stdout
    assert "gpu 2      NODE    NODE    X       NV12    SYS     SYS     PIX" in text
    assert "nic 0 (PIX)" in text
    legend = text.rpartition("WHAT LIES BETWEEN")[2]
    assert [line.split()[0] for line in legend.strip().splitlines()] == ["X", "NV#", "PIX", "PHB", "NODE", "SYS"]


def test_json_and_yaml_are_the_same_inventory() -> None:
    """For programs."""
    as_json = json.loads(run("--profile", "gh200", "-o", "json").stdout)
    [node] = yaml.documents(run("--profile", "gh200", "-o", "yaml").stdout)
    assert as_json["machine"] == "gh200"
    assert as_json["simulated"] is True
    assert [key.value for key, _ in node.value] == list(as_json)


def test_a_real_machine_shows_kernel_and_specs(tmp_path: Path) -> None:
    """Names on offer stand beside the devices of sysfs, a broken spec is reported beside them."""
    build(profiles.load("l4-x4"), tmp_path / "root")
    (tmp_path / "cdi").mkdir()
    shutil.copy(CORPUS / "nvidia-small.yaml", tmp_path / "cdi")
    (tmp_path / "cdi/broken.yaml").write_text("- 1\n")
    result = run("--root", str(tmp_path / "root"), "--dir", str(tmp_path / "cdi"))
    assert result.exit_code == 0
    [line] = [line for line in result.stdout.splitlines() if line.startswith("gpu 0")]
    assert "NVIDIA L4" in line
    assert line.endswith(", nvidia.com/gpu=0")
    assert "(simulated)" not in result.stdout
    assert f"problem: {tmp_path}/cdi/broken.yaml: " in result.stderr


def test_a_machine_without_gpus_says_what_to_try(tmp_path: Path) -> None:
    """No error: an empty machine is a fact."""
    result = run("--root", str(tmp_path), "--dir", str(tmp_path))
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == "no GPU was found"
    assert "--profile dgx-h100" in result.stderr


def test_a_missing_number_of_a_device_is_not_invented(tmp_path: Path) -> None:
    """Devices that only a spec knows have no number, size or place."""
    shutil.copy(CORPUS / "nvidia-wsl.yaml", tmp_path)
    result = run("--root", str(tmp_path), "--dir", str(tmp_path), "-o", "tree")
    assert result.stdout.splitlines()[1:] == ["└─ NUMA node not known", "   └─ gpu  (nvidia.com/gpu=all)"]


def test_an_unknown_profile_is_an_error_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, one hint."""
    with pytest.raises(HardwareError) as caught:
        draht.main(["devices", "--profile", "dgx-h10"], standalone_mode=False)
    report(caught.value)
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith('error: there is no machine profile "dgx-h10"; did you mean dgx-h100')
    assert hint.startswith("hint: use one of dgx-a100-80, dgx-h100")


@pytest.mark.parametrize("output", ["table", "wide", "tree"])
def test_names_cant_change_the_terminal(output: str, tmp_path: Path) -> None:
    """Control characters in a profile's texts and in names of spec files are shown, not obeyed."""
    name = min(profiles.names())
    text = (Path(profiles.__file__).parent / f"{name}.yaml").read_text()
    described = re.sub(r"^description: .*$", r'description: "\\e[31mred\\e[0m"', text, count=1, flags=re.MULTILINE)
    (tmp_path / "machine.yaml").write_text(described)
    shown = run("--profile", str(tmp_path / "machine.yaml"), "-o", output).stdout
    assert r"\x1b[31mred" in shown
    assert all(line.isprintable() for line in shown.splitlines())
    (tmp_path / "\x1b[31m\n.json").write_text("{")
    problems = run("--root", str(tmp_path), "--dir", str(tmp_path), "-o", output).stderr
    assert r"\x1b[31m\n.json: " in problems
    assert all(line.isprintable() for line in problems.splitlines())


def test_an_error_cant_change_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The same holds for the names in errors."""
    report(HardwareError("no\x1b[31m", where="a\x07b", hint="try\x9b"))
    assert capsys.readouterr().err == "error: a\\x07b: no\\x1b[31m\nhint: try\\x9b\n"


@pytest.mark.parametrize("options", [["--root", "/x"], ["--dir", "/x"]])
def test_a_profile_and_a_real_machine_are_not_mixed(options: list[str]) -> None:
    """Options that would mean nothing are refused instead of ignored."""
    result = run("--profile", "l4-x4", *options)
    assert result.exit_code == 2
    assert "--profile shows a simulated machine" in result.stderr


def test_a_matrix_that_nobody_could_read_is_left_out(tmp_path: Path) -> None:
    """A machine of a hundred GPUs is listed, and the missing distances are announced."""
    text = (Path(profiles.__file__).parent / "l4-x4.yaml").read_text(encoding="utf-8")
    place = "      - rootPort: 0000:50:{0:02x}.0\n        below: [{{device: '0000:{1:02x}:00.0', model: l4}}]\n"
    root = '  - root: "pci0000:50"\n    numaNode: 0\n    below:\n'
    more = "".join(place.format(number % 32, 0x60 + number) for number in range(32))
    slot = "      - {{device: '0000:50:{0:02x}.{1}', model: l4}}\n"
    beside = "".join(slot.format(number % 32, 1 + number // 32) for number in range(64))
    profile = tmp_path / "many.yaml"
    profile.write_text(f"{text}{root}{more}{beside}", encoding="utf-8")
    result = run("--profile", str(profile), "-o", "wide")
    assert "gpu 99" in result.stdout
    assert "the distances between 101 devices are left out" in result.stdout
    assert "WHAT LIES BETWEEN" not in result.stdout
