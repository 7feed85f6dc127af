"""Directories, requests, names and annotations against the Go library."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cdi_cases import NAMES, cases, first_seed, oci_spec, spec_value
from cdi_deviations import explained
from cdi_texts import mutate, spec_text
from draht import cdi
from oracle_client import Oracle

_KINDS = ("nvidia.com/gpu",) * 6 + ("vendor.com/device", "a/b")
_SUFFIXES = (*(".json", ".yaml") * 5, ".yml", ".JSON", "")
_REQUESTS = 8
"""Requests per set of directories."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what a device node's path may lead to besides a device."""
    directory = tmp_path_factory.mktemp("host")
    os.mkfifo(directory / "fifo", 0o640)
    (directory / "file").write_text("")
    (directory / "link").symlink_to("/dev/null")
    return directory


def write_directories(rng: random.Random, root: Path, host: Path) -> list[Path]:
    """Spec directories with good, broken and misleading files; some files of one directory define the same device."""
    directories = [root / str(number) for number in range(rng.choice((1, 2, 2, 3)))]
    for directory in directories:
        if rng.random() < 0.05:
            continue
        directory.mkdir()
        for number in range(rng.choice((0, 1, 2, 3, 4, 6))):
            value = spec_value(rng, rng.choice(_KINDS))
            if rng.random() < 0.95:
                value["cdiVersion"] = "1.1.0"
            text = json.dumps(value).replace("/dev/null2", f"{host}/fifo").replace("/dev/x", f"{host}/link")
            data = text.encode() if rng.random() < 0.6 else spec_text(rng, json.loads(text))
            name = f"{rng.choice('abcXYZ')}{number}" + rng.choice(
                (".json", ".json", ".yaml", ".yaml", ".yml", ".JSON", "")
            )
            (directory / name).write_bytes(mutate(rng, data) if rng.random() < 0.1 else data)
        if rng.random() < 0.1:
            (directory / "directory.json").mkdir()
        if rng.random() < 0.1:
            (directory / ".json").write_bytes(b"{}")
        if rng.random() < 0.1:
            (directory / "link.yaml").symlink_to(rng.choice(("nowhere", ".", "a0.json", "link.yaml")))
    if rng.random() < 0.05:
        directories.append(directories[0])
    return directories


def make_request(rng: random.Random, cache: cdi.Cache) -> list[str]:
    """Names to ask for: mostly known ones, some twice, some unknown."""
    known = cache.devices()
    names = [rng.choice(known) for _ in range(rng.choice((1, 1, 2, 3, 8)))] if known else []
    if rng.random() < 0.08 or not names:
        names.insert(rng.randrange(len(names) + 1), rng.choice(("nvidia.com/gpu=none", "0", "", "/dev/null", "a/b=c")))
    return names


def answer(cache: cdi.Cache, names: list[str], oci: dict[str, Any]) -> dict[str, Any]:
    """What draht makes of a request, in the form of the oracle."""
    before = json.dumps(oci)
    try:
        cache.inject(oci, names)
    except cdi.InjectionError as error:
        assert json.dumps(oci) == before, "a failed injection changed the runtime spec"
        unresolved = {"unresolved": list(error.names)} if isinstance(error, cdi.UnresolvableDeviceError) else {}
        return {"error": str(error), **unresolved}
    return {"oci": oci}


def has_explained_file(oracle: Oracle, directories: list[Path]) -> bool:
    """Whether a deliberate difference decides about one of the files."""

    def ours(data: bytes) -> dict[str, Any]:
        try:
            cdi.validate(cdi.decode(data))
        except cdi.CDIError as error:
            return {"accepted": False, "error": str(error)}
        return {"accepted": True}

    texts = [file.read_bytes() for directory in directories for file in directory.glob("*") if file.is_file()]
    return any(
        oracle.call("cdi.parse", data=text)["accepted"] != ours(text)["accepted"]
        and explained(text, oracle, ours) is not None
        for text in texts
    )


def compare_case(oracle: Oracle, seed: int, root: Path, host: Path, seen: Counter[str]) -> None:
    """Compare one set of directories and some requests to it."""
    rng = random.Random(seed)
    directories = write_directories(rng, root, host)
    cache = cdi.Cache(directories)
    reproduce = f"reproduce with DRAHT_FUZZ_SEED={seed} DRAHT_FUZZ_CASES=1 pytest -m fuzz {__file__}"
    go = oracle.call("cdi.cache", directories=directories)
    if "panic" in go:
        seen["go panics"] += 1
        return
    mine = {
        "devices": {name: loaded.spec.path for name in cache.devices() if (loaded := cache.device(name)) is not None},
        "vendors": list(cache.vendors()),
        "classes": list(cache.classes()),
        "errors": {path: len(errors) for path, errors in cache.errors().items()},
    }
    theirs_all = {key: value or type(mine[key])() for key, value in go.items()}
    if mine != theirs_all and has_explained_file(oracle, directories):
        seen["explained"] += 1
        return
    assert mine == theirs_all, reproduce
    seen["conflicts"] += len(cache.conflicts())
    seen["errors"] += len(cache.errors())
    requests = [(make_request(rng, cache), oci_spec(rng)) for _ in range(_REQUESTS)]
    theirs = oracle.call(
        "cdi.inject", directories=directories, requests=[{"names": names, "oci": oci} for names, oci in requests]
    )
    ours = [answer(cache, names, json.loads(json.dumps(oci))) for names, oci in requests]
    written = iter(oracle.call("cdi.oci", specs=[result["oci"] for result in ours if "oci" in result]))
    for (names, oci), go_result, result in zip(requests, theirs, ours, strict=True):
        context = f"{reproduce}\n{names} into {json.dumps(oci)}\ngo:    {go_result}\ndraht: {result}"
        if "oci" in result:
            seen["injected"] += 1
            assert next(written) == go_result.get("oci"), context
        else:
            seen["refused"] += 1
            assert "error" in go_result, context
            assert result.get("unresolved") == go_result.get("unresolved"), context


def compare(oracle: Oracle, first: int, requests: int, root: Path, host: Path) -> Counter[str]:
    """Compare as many requests as asked for, each set of directories on its own."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + -(-requests // _REQUESTS)):
        directory = root / "case"
        directory.mkdir()
        compare_case(oracle, seed, directory, host, seen)
        shutil.rmtree(directory)
    return seen


def test_directories_and_requests_get_the_same_answer(oracle: Oracle, tmp_path: Path, host: Path) -> None:
    """2,000 requests to directories with conflicts and broken files give Go's devices, errors and runtime specs."""
    seen = compare(oracle, 0, 2000, tmp_path, host)
    assert min(seen["injected"], seen["refused"], seen["errors"]) > 200, seen
    assert seen["conflicts"] > 20, seen
    assert seen["explained"] + seen["go panics"] < 10, seen


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_requests_get_the_same_answer(oracle: Oracle, tmp_path: Path, host: Path) -> None:
    """As above, with as many requests as ``DRAHT_FUZZ_CASES`` says."""
    compare(oracle, first_seed(), cases(50_000), tmp_path, host)


def _name(rng: random.Random) -> str:
    kind = rng.choice(
        ("nvidia.com/gpu", "a/b", "a1/c.d-e_f", "1a/b", "a-/b", "a", "/dev/x", "", "a/b/c", "é/b", "a/bé")
    )
    return rng.choice((f"{kind}={rng.choice(NAMES)}", kind, f"{kind}=", f"={kind}", f"{kind}=a=b", f"{kind}=x\n"))


def test_names_get_the_same_answer(oracle: Oracle) -> None:
    """Generated device names are accepted and taken apart as by Go."""
    rng = random.Random(0)
    names = sorted({_name(rng) for _ in range(2000)})
    for name, go in zip(names, oracle.call_many("cdi.name", [{"name": name} for name in names]), strict=True):
        assert cdi.is_qualified_name(name) == go["accepted"], name
        try:
            assert list(cdi.parse_qualified_name(name)) == go["parts"], name
            assert go["accepted"], name
        except cdi.DeviceNameError:
            assert not go["accepted"], name


def test_annotations_get_the_same_answer(oracle: Oracle) -> None:
    """Generated annotations are written and read as by Go."""
    rng = random.Random(0)
    for _ in range(500):
        plugin = rng.choice(("vendor.device", "", "-x", "a", "x" * 40, "é"))
        device = rng.choice(("0", "", "pci/0000:01", "a/b", "x" * 22, "x" * 23, "a-", "a_b", "é"))
        devices = [_name(rng) if rng.random() < 0.3 else "nvidia.com/gpu=0" for _ in range(rng.randrange(3))]
        present = {"cdi.k8s.io/a_0": _name(rng), "other/key": "a/b=c"} if rng.random() < 0.5 else {}
        go = oracle.call("cdi.annotate", annotations=present, plugin=plugin, device=device, names=devices)
        try:
            updated: dict[str, str] | None = cdi.update_annotations(present, plugin, device, devices)
        except cdi.AnnotationError:
            updated = None
        assert updated == go.get("annotations"), (plugin, device, devices, go)
        read = oracle.call("cdi.annotated", annotations=present)
        try:
            found = cdi.parse_annotations(present)
            assert (sorted(found.keys), sorted(found.devices)) == (read["keys"] or [], read["devices"] or [])
        except cdi.AnnotationError:
            assert not read["accepted"], present
