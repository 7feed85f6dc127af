"""Writing and removing spec files: content, mode, atomicity, and failures that leave no trace."""

from __future__ import annotations

import os
import re
import resource
import signal
import stat
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from draht import cdi

SPEC = cdi.Spec(
    cdi_version="1.1.0",
    kind="draht.dev/gpu",
    devices=(cdi.Device(name="0", container_edits=cdi.ContainerEdits(env=("A=B", "Ü=🙂", "Y=yes: no", "N='\"\\"))),),
)
BIG = msgspec.structs.replace(
    SPEC, container_edits=cdi.ContainerEdits(env=tuple(f"V{i}={'x' * 100}" for i in range(999)))
)


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("format_", ["json", "yaml"])
def test_a_written_spec_is_read_back(tmp_path: Path, format_: Literal["json", "yaml"]) -> None:
    """The file has the lowest version that the spec needs, mode 0644, and nothing else is left beside it."""
    directory = tmp_path / "made" / "on the way"
    path = cdi.write_spec(SPEC, directory, "draht", format=format_)
    assert path == directory / f"draht.{format_}"
    assert cdi.decode(path.read_bytes()) == msgspec.structs.replace(SPEC, cdi_version="0.5.0")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert names(directory) == [path.name]
    assert cdi.Cache([directory]).devices() == ("draht.dev/gpu=0",)


@pytest.mark.parametrize(
    ("name", "format_", "file"),
    [("a", None, "a.json"), ("a.yaml", None, "a.yaml"), ("a.json", "json", "a.json"), ("a.b", "yaml", "a.b.yaml")],
)
def test_the_name_or_the_format_decides(
    tmp_path: Path, name: str, format_: Literal["json", "yaml"] | None, file: str
) -> None:
    """A suffix chooses the form; without one it is appended, JSON by default."""
    path = cdi.write_spec(SPEC, tmp_path, name, format=format_)
    assert path.name == file
    assert path.read_bytes().startswith(b"---\n" if file.endswith("yaml") else b"{")


@pytest.mark.parametrize("name", ["", ".json", "a/b", "../a", "nul\0"])
def test_odd_names_are_refused(tmp_path: Path, name: str) -> None:
    """A name is one part of a path."""
    with pytest.raises(cdi.WriteError, match="can't be the name"):
        cdi.write_spec(SPEC, tmp_path, name)
    with pytest.raises(cdi.WriteError, match="can't be the name"):
        cdi.remove_spec(tmp_path, name)
    with pytest.raises(cdi.WriteError, match="is not the name of a json file"):
        cdi.write_spec(SPEC, tmp_path, "a.yaml", format="json")


def test_an_invalid_spec_is_not_written(tmp_path: Path) -> None:
    """A rule that is broken stops the writer before it touches the directory."""
    with pytest.raises(cdi.ValidationError, match="at least one device"):
        cdi.write_spec(cdi.Spec(kind="v/c"), tmp_path / "new", "a")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("edits", "path", "words"),
    [
        ({"env": (1,)}, "env[0]", "expected `str`, got `int`"),
        ({"env": ("A=\udcff",)}, "", "is not Unicode text"),
        (
            {"device_nodes": (cdi.DeviceNode(path="/dev/x", major=2**70),)},
            "deviceNodes[0].major",
            "<= 9223372036854775807",
        ),
        ({"device_nodes": (cdi.DeviceNode(path="/dev/x", file_mode=-1),)}, "deviceNodes[0].fileMode", ">= 0"),
        ({"additional_gids": (2**32,)}, "additionalGids[0]", "<= 4294967295"),
    ],
)
@pytest.mark.parametrize("format_", ["json", "yaml"])
def test_what_no_file_can_say_is_not_written(
    tmp_path: Path, format_: Literal["json", "yaml"], edits: dict[str, Any], path: str, words: str
) -> None:
    """Structs take any value; one that nobody could read again is refused with its field before a file is made."""
    device = cdi.Device(name="0", container_edits=cdi.ContainerEdits(**edits))
    spec = msgspec.structs.replace(SPEC, devices=(device,))
    with pytest.raises(cdi.ValidationError, match=re.escape(words)) as caught:
        cdi.write_spec(spec, tmp_path, "gpu", format=format_)
    assert caught.value.path == (f"devices[0].containerEdits.{path}" if path else "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("directory", "name"), [("a\0b", "gpu"), ("\ud800", "gpu"), ("a", "\ud800")])
def test_names_that_no_file_system_has(tmp_path: Path, directory: str, name: str) -> None:
    """A directory or name that can't be one is a failure to write or remove like any other."""
    with pytest.raises(cdi.WriteError, match="can't be written"):
        cdi.write_spec(SPEC, tmp_path / directory, name)
    with pytest.raises(cdi.WriteError, match="can't be removed"):
        cdi.remove_spec(tmp_path / directory, name)


def test_a_file_is_replaced_only_if_allowed(tmp_path: Path) -> None:
    """By default the new file takes the old one's place; with overwrite off the old one stays."""
    path = cdi.write_spec(SPEC, tmp_path, "a")
    cdi.write_spec(BIG, tmp_path, "a")
    assert path.stat().st_size > 100_000
    with pytest.raises(cdi.WriteError, match="there is one already"):
        cdi.write_spec(SPEC, tmp_path, "a", overwrite=False)
    assert path.stat().st_size > 100_000
    cdi.write_spec(SPEC, tmp_path, "b", overwrite=False)
    assert names(tmp_path) == ["a.json", "b.json"]
    assert (tmp_path / "b.json").stat().st_nlink == 1


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """When the file system takes no more bytes, the old file is whole and no temporary one is left."""
    path = cdi.write_spec(SPEC, tmp_path, "a")
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # The kernel's own refusal in the middle of a write, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(cdi.WriteError, match="file too large"):
            cdi.write_spec(BIG, tmp_path, "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("call", ["fsync", "fchmod", "replace", "open"])
def test_a_failure_at_any_step_leaves_no_trace(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever system call fails, the old file is untouched and the temporary one is gone."""
    path = cdi.write_spec(SPEC, tmp_path, "a")
    before = path.read_bytes()

    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "replace":
        monkeypatch.setattr(Path, call, fail)
    else:
        monkeypatch.setattr(os, call, fail)
    with pytest.raises(cdi.WriteError, match="no space left on device") as failed:
        cdi.write_spec(BIG, tmp_path, "a")
    monkeypatch.undo()
    assert failed.value.where == str(path)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["a.json"]


def test_an_interruption_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C in the middle of a write removes the temporary file and goes on."""

    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cdi.write_spec(SPEC, tmp_path, "a")
    assert names(tmp_path) == []


def test_a_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """Where a directory can't be made, one sentence says so."""
    (tmp_path / "file").touch()
    with pytest.raises(cdi.WriteError, match="can't be written"):
        cdi.write_spec(SPEC, tmp_path / "file" / "below", "a")


def test_removal_is_idempotent(tmp_path: Path) -> None:
    """A file is removed by its name with or without suffix; removing it again, or from nowhere, is no error."""
    cdi.write_spec(SPEC, tmp_path, "a", format="yaml")
    cdi.write_spec(SPEC, tmp_path, "b.json")
    assert cdi.remove_spec(tmp_path, "a") is True
    assert cdi.remove_spec(tmp_path, "a") is False
    assert cdi.remove_spec(tmp_path, "b.json") is True
    assert cdi.remove_spec(tmp_path / "missing", "a") is False
    assert names(tmp_path) == []


def test_what_is_no_file_is_not_removed(tmp_path: Path) -> None:
    """A directory of that name stays and is an error."""
    (tmp_path / "a.json").mkdir()
    with pytest.raises(cdi.WriteError, match="can't be removed"):
        cdi.remove_spec(tmp_path, "a")
