"""``draht node`` on the command line: what it takes, and what it says of what can't be served."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.core import Option

from cdi_command import Outcome, run, run_script
from cli_cluster import SLICES
from draht.api.errors import DrahtError
from draht.cli.driver_file import load_driver
from draht.cli.node import _settings, node
from draht.cli.node_parts import Parts
from draht.hardware.simulated import from_profile
from draht.node.agent import Settings

PAGE = Path(__file__).resolve().parents[2] / "docs/node.md"
GOOD = "from draht.driver.framework import Driver\n\nclass Toy(Driver):\n    name = 'toy.example.com'\n"


def serve(directory: Path, *words: str, environment: Mapping[str, str] | None = None) -> Outcome:
    """The command, which ends before it serves: there is no cluster."""
    given = {"NODE_NAME": "node-1", "KUBECONFIG": str(directory / "none"), "HOME": str(directory)}
    given |= {"KUBERNETES_SERVICE_HOST": "", "DRAHT_STATE_DIR": str(directory / "state"), **(environment or {})}
    return run("node", *words, environment=given)


def settings(directory: Path) -> Settings:
    """Everything below a directory."""
    return Settings(
        node_name="node-1",
        kubelet=directory,
        cdi_directory=directory / "cdi",
        metadata_directory=directory / "m",
        state_directory=directory / "state",
    )


def parts(directory: Path, **options: Any) -> Parts:
    """What a command line serves."""
    given: dict[str, Any] = {"drivers": (), "profile": "l4-x4", "partitions": False, "shares": False}
    given |= {"slice_files": (), "device_plugin": "", "labels": True, **options}
    return Parts.of(settings(directory), **given)


def test_the_node_must_be_named(tmp_path: Path) -> None:
    """By option or variable; guessing could mean another node's slices."""
    said = serve(tmp_path, environment={"NODE_NAME": ""})
    assert said.status == 2
    assert "Missing option '--node-name'" in said.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--node-name", value) for value in ("", "a/../b", "Node-1", "ü", "n" * 254)),
        *(("--pod-uid", value) for value in ("../../etc/x", "a/b", ".", "u" * 64)),
    ],
)
def test_names_that_become_selectors_and_paths_are_checked(tmp_path: Path, option: str, value: str) -> None:
    """An empty node would own all slices without a node, a UID with dots leads out of the kubelet's directory."""
    said = serve(tmp_path, option, value)
    assert said.status == 2
    assert f"Invalid value for {option}" in said.stderr


@pytest.mark.parametrize("listen", ["8080", "0.0.0.0:٣", "host:", "0.0.0.0:99999", "0.0.0.0:http", ""])
def test_an_address_that_is_none_is_refused_with_an_example(tmp_path: Path, listen: str) -> None:
    """Before anything is looked at."""
    said = serve(tmp_path, "--listen", listen, "--profile", "l4-x4")
    assert said.status == 2
    assert "write ADDRESS:PORT, such as 0.0.0.0:8080" in said.stderr


@pytest.mark.parametrize(
    ("listen", "address", "port"),
    [("0.0.0.0:8080", "0.0.0.0", 8080), ("[::1]:0", "::1", 0), ("localhost:80", "localhost", 80), (":9", "", 9)],
)
def test_addresses_are_taken_apart(listen: str, address: str, port: int) -> None:
    """IPv6 in brackets; port 0 is a free one."""
    made = _settings(
        node_name="n",
        kubelet_root="/k",
        cdi_dir=None,
        state_dir=None,
        metadata_dir="/m",
        listen=listen,
        pod_uid="",
    )
    assert (made.address, made.port) == (address, port)


def test_a_profile_that_isnt_there_is_named_with_what_is_meant(tmp_path: Path) -> None:
    """The likeliest one."""
    said = serve(tmp_path, "--profile", "dgx-h1000")
    assert said.status == 1
    assert "dgx-h1000" in said.stderr
    assert "dgx-h100" in said.stderr.splitlines()[-1]


def test_without_a_cluster_it_says_where_one_is_looked_for(tmp_path: Path) -> None:
    """After everything else was found good."""
    said = serve(tmp_path, "--profile", "l4-x4")
    assert said.status == 1
    assert said.stderr.startswith("error: no cluster is configured")
    assert "hint: " in said.stderr


def test_the_script_ends_with_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    """As a process, which is how a node runs it."""
    environment = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path), "NODE_NAME": "n"}
    said = run_script("node", "--driver", str(tmp_path / "none.py"), environment=environment)
    assert (said.status, said.stdout) == (1, "")
    assert said.stderr.splitlines()[0].endswith("there is no such Python file")
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such Python file"),
        ("class Toy(:\n", "the file can't be run: SyntaxError"),
        ("1 / 0\n", "the file can't be run: ZeroDivisionError: division by zero (line 1)"),
        ("import no_such_package\n", "the file can't be run: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", "the file can't be run: SystemExit: 3 (line 2)"),
        ("x = 1\n", "it has no driver classes"),
        (f"{GOOD}class Other(Toy):\n    name = 'b.example.com'\n", "it has 2 driver classes"),
        (GOOD.replace("    name = 'toy.example.com'\n", "    pass\n"), "the class Toy has no name"),
        (GOOD.replace("toy.example.com", "Toy Driver"), "the class Toy has the name 'Toy Driver'"),
        (
            f"{GOOD}    def __init__(self):\n        raise RuntimeError('no bus')\n",
            "Toy() failed: RuntimeError: no bus",
        ),
        (f"{GOOD}    def __init__(self, bus):\n        pass\n", "Toy() failed: TypeError"),
        ("\udcff", "the file can't be run"),
    ],
)
def test_a_driver_file_that_cant_be_used_says_why(tmp_path: Path, text: str | None, message: str) -> None:
    """In one sentence with the file; a mistake in it has its line."""
    file = tmp_path / "toy.py"
    if text is not None:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DrahtError) as refused:
        load_driver(str(file))
    assert message in refused.value.message
    assert refused.value.where == str(file)
    assert "\n" not in refused.value.message


def test_one_of_several_classes_is_named(tmp_path: Path) -> None:
    """Others that the file imports don't count."""
    file = tmp_path / "toy-driver.py"
    file.write_text(f"{GOOD}class Other(Toy):\n    name = 'other.example.com'\n", encoding="utf-8")
    assert load_driver(f"{file}:Other").name == "other.example.com"
    with pytest.raises(DrahtError, match="no driver class Nothing") as refused:
        load_driver(f"{file}:Nothing")
    assert refused.value.hint == "there are Toy, Other"
    with pytest.raises(DrahtError) as several:
        load_driver(str(file))
    assert several.value.hint == f"name one: {file}:Toy"


def test_without_driver_the_vendors_of_the_machine_are_served(tmp_path: Path) -> None:
    """With the node's labels, and nothing by number."""
    made = parts(tmp_path)
    assert [driver.name for driver in made.drivers] == ["gpu.nvidia.com"]
    assert made.resources == []
    assert made.labels is not None
    assert made.labels.wanted()["nvidia.com/gpu.count"] == "4"
    assert parts(tmp_path, labels=False).labels is None


def test_drivers_are_named_one_by_one(tmp_path: Path) -> None:
    """Those that draht brings, and those of files, in their order."""
    file = tmp_path / "toy.py"
    file.write_text(GOOD, encoding="utf-8")
    made = parts(tmp_path, drivers=(str(file), "gpu.nvidia.com", "dra.net"))
    assert [driver.name for driver in made.drivers] == ["toy.example.com", "gpu.nvidia.com", "dra.net"]


@pytest.mark.parametrize(
    "twice", [{"drivers": ("gpu.nvidia.com", "gpu.nvidia.com")}, {"drivers": ("gpu.example.com",), "slices": True}]
)
def test_a_driver_is_served_once(tmp_path: Path, twice: dict[str, Any]) -> None:
    """Also where one comes from a file of slices."""
    slices = tmp_path / "slices.yaml"
    slices.write_text(SLICES, encoding="utf-8")
    file = tmp_path / "toy.py"
    file.write_text(GOOD.replace("toy.example.com", "gpu.example.com"), encoding="utf-8")
    drivers = [str(file) if name == "gpu.example.com" else name for name in twice["drivers"]]
    with pytest.raises(DrahtError, match="is asked for twice"):
        parts(tmp_path, drivers=drivers, slice_files=(str(slices),) if "slices" in twice else ())


def test_slices_of_files_are_served_beside_the_machine(tmp_path: Path) -> None:
    """Each driver name is a driver."""
    slices = tmp_path / "slices.yaml"
    slices.write_text(SLICES, encoding="utf-8")
    made = parts(tmp_path, slice_files=(str(slices),))
    assert [driver.name for driver in made.drivers] == ["gpu.nvidia.com", "gpu.example.com"]
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    with pytest.raises(DrahtError, match="there is no ResourceSlice"):
        parts(tmp_path, slice_files=(str(tmp_path / "empty.yaml"),))


def test_gpus_belong_to_claims_or_to_the_device_plugin(tmp_path: Path) -> None:
    """What the one gives away the other doesn't have."""
    made = parts(tmp_path, device_plugin="0,1")
    (driver,) = made.drivers
    driver.node_name = "node-1"
    assert {name for _, name in driver.discover().devices()} == {"gpu-2", "gpu-3"}
    assert [resource.name for resource in made.resources] == ["nvidia.com/gpu"]
    ids = [gpu.id for gpu in from_profile("l4-x4").gpus()]
    assert set(made.resources[0]._which(from_profile("l4-x4"))) == set(ids[:2])
    with pytest.raises(DrahtError, match="has no GPU 9"):
        parts(tmp_path, device_plugin="9")


def test_a_machine_without_gpus_says_what_could_be_served(tmp_path: Path) -> None:
    """Instead of serving nothing for ever."""
    file = tmp_path / "bare.yaml"
    file.write_text("nothing: here\n", encoding="utf-8")
    with pytest.raises(DrahtError) as broken:
        parts(tmp_path, profile=str(file))
    assert str(file) in str(broken.value)


def test_the_page_has_every_option() -> None:
    """docs/node.md, compared with the command."""
    listed = set(re.findall(r"^\| `(--[a-z-]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    known = {option.opts[0] for option in node.params if isinstance(option, Option)}
    assert listed == known
