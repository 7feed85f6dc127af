"""Specs of the kinds people meet: each gets the verdict, and each container the edits, that the manifest states."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cdi_corpus import BROKEN, CORPUS, PLACED, VALID, CorpusHost
from draht import cdi
from oracle_client import Oracle
from requirements import require

Entry = dict[str, Any]


def _name(entry: Entry) -> str:
    return str(entry.get("name") or Path(entry["file"]).name)


def _oci() -> dict[str, Any]:
    return {"ociVersion": "1.2.0", "process": {"cwd": "/", "env": ["PATH=/usr/bin"]}, "linux": {}}


def _directory(path: Path, *files: Path) -> str:
    path.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, path)
    return str(path)


def _inject(entry: Entry, directory: str) -> dict[str, Any]:
    wanted = entry["inject"]
    oci = _oci()
    cdi.Cache([directory], host=CorpusHost(wanted.get("missing", ()))).inject(oci, wanted["request"])
    return oci


def test_the_manifest_names_every_file_once() -> None:
    """No file of the corpus is without a verdict, and none is named that isn't there."""
    named = [entry["file"] for entry in (*VALID, *BROKEN)]
    there = [f"{kind}/{path.name}" for kind in ("valid", "broken") for path in (CORPUS / kind).iterdir()]
    assert sorted(named) == sorted(there)
    assert len(VALID) >= 14


@pytest.mark.parametrize("entry", VALID, ids=_name)
def test_a_valid_spec_offers_its_devices(entry: Entry, tmp_path: Path) -> None:
    """A cache reads the file and offers exactly the devices that are stated, of the stated kind and version."""
    cache = cdi.Cache([_directory(tmp_path, CORPUS / entry["file"])])
    assert cache.errors() == {}
    (loaded,) = cache.specs()
    assert loaded.spec.kind == entry["kind"]
    assert loaded.spec.cdi_version.removeprefix("v") == entry["version"]
    assert cdi.minimum_version(loaded.spec) == entry["minimum"]
    assert cache.devices() == tuple(sorted(f"{entry['kind']}={name}" for name in entry["devices"]))


@pytest.mark.parametrize("entry", [entry for entry in VALID if "nodes" in entry["inject"]], ids=_name)
def test_a_container_gets_what_the_spec_says(entry: Entry, tmp_path: Path) -> None:
    """Nodes with numbers and access, environment, mounts, hooks, groups, interfaces and RDT arrive as stated."""
    wanted = entry["inject"]
    oci = _inject(entry, _directory(tmp_path, CORPUS / entry["file"]))
    linux = oci["linux"]
    assert _nodes(linux) == wanted["nodes"]
    assert oci["process"]["env"] == ["PATH=/usr/bin", *wanted["env"]]
    assert len(oci.get("mounts", [])) == wanted["mounts"]
    assert sorted(_hooks(oci)) == sorted(wanted["hooks"])
    assert oci["process"].get("user", {}).get("additionalGids", []) == wanted["gids"]
    assert linux.get("netDevices", {}) == {host: {"name": name} for host, name in wanted.get("interfaces", {}).items()}
    assert set(linux.get("intelRdt", {})) == set(wanted.get("rdt", {}))


def _nodes(linux: dict[str, Any]) -> dict[str, str]:
    """The device nodes in the manifest's notation; every one that isn't a FIFO has its cgroup rule."""
    rules = [dict(rule) for rule in linux.get("resources", {}).get("devices", [])]
    nodes = {}
    for device in linux.get("devices", []):
        numbers = {"type": device["type"], "major": device["major"], "minor": device["minor"]}
        access = next((rule["access"] for rule in rules if numbers.items() <= rule.items() and rule["allow"]), "rwm")
        if device["type"] != "p":
            assert any(numbers.items() <= rule.items() for rule in rules), device
        text = f"{device['type']} {device['major']}:{device['minor']} {device['fileMode']:04o} {access}"
        if "uid" in device or "gid" in device:
            text += f" uid={device.get('uid', '-')} gid={device.get('gid', '-')}"
        nodes[device["path"]] = text
    return nodes


def _hooks(oci: dict[str, Any]) -> Iterator[str]:
    for point, hooks in oci.get("hooks", {}).items():
        for hook in hooks:
            words = [word for word in hook["args"][1:] if word != "hook"]
            yield f"{point} {words[0] if words else hook['args'][0]}"


@pytest.mark.parametrize("entry", [entry for entry in VALID if "error" in entry["inject"]], ids=_name)
def test_a_host_without_a_node_refuses_the_injection(entry: Entry, tmp_path: Path) -> None:
    """Where a node that the spec leaves open is missing on the host, the error names it and nothing is changed."""
    with pytest.raises(cdi.HostDeviceError) as refused:
        _inject(entry, _directory(tmp_path, CORPUS / entry["file"]))
    assert entry["inject"]["error"] in str(refused.value)


@pytest.mark.parametrize("entry", BROKEN, ids=_name)
def test_a_broken_spec_is_recorded_with_its_reason(entry: Entry, tmp_path: Path) -> None:
    """The error is one line, is about the file, says what is wrong, and hides no good file beside it."""
    good = CORPUS / "valid" / "intel-npu.yaml"
    cache = cdi.Cache([_directory(tmp_path, CORPUS / entry["file"], good)])
    path = str(tmp_path / Path(entry["file"]).name)
    (error,) = cache.errors()[path]
    assert str(error).startswith(path)
    assert "\n" not in str(error)
    for words in entry["says"]:
        assert words in f"{error} {error.hint}"
    assert cache.devices() == ("intel.com/npu=npu0",)


# Files that a user may not read are in test_hostile.py, which has such a user.
@pytest.mark.parametrize("entry", [entry for entry in PLACED if "mode" not in entry], ids=_name)
def test_a_placed_file_is_offered_or_lost(entry: Entry, tmp_path: Path) -> None:
    """Precedence, conflicts and names of files decide as stated."""
    for target, source in entry["place"].items():
        path = tmp_path / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CORPUS / source, path)
    cache = cdi.Cache([tmp_path / "etc/cdi", tmp_path / "var/run/cdi"], host=CorpusHost())
    for name in entry["lost"]:
        assert cache.device(name) is None
    for name in entry["offered"]:
        assert cache.device(name) is not None
    assert set(cache.devices()) >= set(entry["offered"])


@pytest.mark.parametrize("entry", [*VALID, *BROKEN], ids=_name)
def test_go_gives_the_same_verdict(entry: Entry, oracle: Oracle) -> None:
    """The Go library accepts and rejects the same files, and decodes and versions the good ones alike."""
    data = (CORPUS / entry["file"]).read_bytes()
    verdict = oracle.call("cdi.parse", data=data)
    assert verdict["accepted"] == (entry in VALID), verdict.get("error")
    if verdict["accepted"]:
        assert verdict["minimum"] == entry["minimum"]
        theirs = cdi.decode(json.dumps(verdict["spec"]).encode())
        assert theirs == cdi.decode(data)


@pytest.fixture(scope="module")
def device_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nodes of the imaginary host as real ones in a directory: the Go library looks nowhere but on disk."""
    require(os.geteuid() == 0, "making device nodes takes root")
    root = tmp_path_factory.mktemp("host")
    for path, (type_, major, minor, mode) in CorpusHost().nodes.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        kind = {"c": 0o020000, "b": 0o060000, "p": 0o010000}[type_]
        try:
            os.mknod(target, mode | kind, os.makedev(major, minor))
        except PermissionError:
            require(False, "this machine doesn't let root make device nodes")
        target.chmod(mode)
    return root


@pytest.mark.parametrize("entry", [entry for entry in VALID if "nodes" in entry["inject"]], ids=_name)
def test_go_injects_the_same(entry: Entry, oracle: Oracle, device_tree: Path, tmp_path: Path) -> None:
    """The Go library turns the same request into the same OCI spec, looking at real nodes of the same numbers."""
    spec = _with_host_root(cdi.decode((CORPUS / entry["file"]).read_bytes()), device_tree)
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "spec.json").write_bytes(cdi.encode(spec, format="json"))
    ours = _inject(entry, _directory(tmp_path / "plain", CORPUS / entry["file"]))
    request = {"oci": _oci(), "names": entry["inject"]["request"]}
    (theirs,) = oracle.call("cdi.inject", directories=[str(tmp_path / "moved")], requests=[request])
    assert "error" not in theirs
    assert oracle.call("cdi.oci", specs=[ours]) == [theirs["oci"]]


def _with_host_root(spec: cdi.Spec, root: Path) -> cdi.Spec:
    """The spec with its device nodes taken from below another directory, which never shows in the container."""

    def moved(edits: cdi.ContainerEdits) -> cdi.ContainerEdits:
        nodes = tuple(
            msgspec.structs.replace(node, host_path=f"{root}{node.host_path or node.path}")
            for node in edits.device_nodes
        )
        return msgspec.structs.replace(edits, device_nodes=nodes)

    devices = tuple(msgspec.structs.replace(each, container_edits=moved(each.container_edits)) for each in spec.devices)
    changed = msgspec.structs.replace(spec, devices=devices, container_edits=moved(spec.container_edits))
    return msgspec.structs.replace(changed, cdi_version=cdi.minimum_version(changed))
