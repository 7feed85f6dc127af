"""The cache: precedence, conflicts, broken files beside good ones, refreshing, and what may lie in a directory."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from draht import cdi
from draht.api.yaml import MAX_BYTES
from draht.cdi import files
from draht.cdi.watch import changes


def spec(*names: str, kind: str = "v/c", env: str = "A=B") -> str:
    """The text of a spec with devices of these names."""
    devices = ", ".join(f"{{name: '{name}', containerEdits: {{env: [{env}]}}}}" for name in names)
    return f"{{cdiVersion: 1.1.0, kind: {kind}, containerEdits: {{env: [COMMON=1]}}, devices: [{devices}]}}"


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """The weaker directory."""
    (tmp_path / "etc").mkdir()
    return tmp_path / "etc"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The stronger directory."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def test_devices_vendors_and_classes_are_listed(etc: Path, run: Path) -> None:
    """Everything that is on offer is listed, sorted."""
    (etc / "b.yaml").write_text(spec("1", "0"))
    (run / "a.json").write_text(spec("x", kind="a.com/d"))
    cache = cdi.Cache([etc, run])
    assert cache.devices() == ("a.com/d=x", "v/c=0", "v/c=1")
    assert (cache.vendors(), cache.classes()) == (("a.com", "v"), ("c", "d"))
    assert [loaded.path for loaded in cache.specs()] == [str(etc / "b.yaml"), str(run / "a.json")]
    device = cache.device("v/c=1")
    assert device is not None
    assert (device.qualified_name, device.device.name, device.spec.priority) == ("v/c=1", "1", 0)
    assert (device.spec.vendor, device.spec.class_) == ("v", "c")
    assert cache.device("v/c=2") is None
    assert cache.errors() == {}


def test_the_stronger_directory_wins(etc: Path, run: Path) -> None:
    """A device in both directories comes from the later one, silently; the others of its spec stay."""
    (etc / "a.yaml").write_text(spec("0", "1", env="FROM=etc"))
    (run / "a.yaml").write_text(spec("0", env="FROM=run"))
    cache = cdi.Cache([etc, run])
    assert cache.edits_for(["v/c=0", "v/c=1"]).env == ("COMMON=1", "FROM=run", "COMMON=1", "FROM=etc")
    assert cache.errors() == {}


def test_a_conflict_takes_the_device_from_everybody(etc: Path, run: Path) -> None:
    """Two files of one directory with the same device lose it, even though a stronger directory has it, and say so."""
    (etc / "a.yaml").write_text(spec("0", "1"))
    (etc / "b.yaml").write_text(spec("0", "2"))
    (run / "c.yaml").write_text(spec("0"))
    cache = cdi.Cache([etc, run])
    assert cache.devices() == ("v/c=1", "v/c=2")
    (conflict,) = cache.conflicts()
    assert (conflict.device, set(conflict.paths)) == ("v/c=0", {str(etc / "a.yaml"), str(etc / "b.yaml")})
    assert cache.errors() == {str(etc / "a.yaml"): (conflict,), str(etc / "b.yaml"): (conflict,)}


def test_broken_files_hide_nothing(etc: Path) -> None:
    """Whatever is wrong with files is recorded with their paths; the good one is on offer."""
    (etc / "good.yaml").write_text(spec("0"))
    (etc / "syntax.yaml").write_text("{")
    (etc / "unknown.json").write_text('{"what": 1}')
    (etc / "rule.yaml").write_text(spec("0").replace("v/c", "nokind"))
    (etc / "empty.json").touch()
    (etc / "binary.json").write_bytes(bytes(range(256)) * 100)
    (etc / "dangling.json").symlink_to("nowhere")
    (etc / "loop.json").symlink_to("loop.json")
    (etc / "directory-link.json").symlink_to(".")
    os.mkfifo(etc / "fifo.json")
    (etc / "device.json").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(etc / "socket.json"))
        cache = cdi.Cache([etc])
    assert cache.devices() == ("v/c=0",)
    messages = {Path(path).name: str(error) for path, (error,) in cache.errors().items()}
    for name, part in {
        "syntax.yaml": "not readable as YAML or JSON",
        "unknown.json": ":1:2: there is no field 'what'",
        "rule.yaml": ": kind: 'nokind' is not a kind",
        "empty.json": "there is no spec in it",
        "binary.json": "not readable as YAML or JSON",
        "dangling.json": "no such file or directory",
        "loop.json": "too many levels of symbolic links",
        "directory-link.json": "not a regular file",
        "fifo.json": "not a regular file",
        "device.json": "not a regular file",
        "socket.json": "not a regular file",
    }.items():
        assert part in messages.pop(name)
    assert messages == {}


def test_only_json_and_yaml_directly_in_the_directory_count(etc: Path) -> None:
    """Other suffixes, temporary files and directories are not looked at; a file called ``.json`` is."""
    for name in ("a.yml", "a.JSON", "a", "spec.1.tmp", "a.yaml~"):
        (etc / name).write_text("{")
    (etc / "sub.json").mkdir()
    (etc / "sub").mkdir()
    (etc / "sub" / "a.json").write_text(spec("0"))
    (etc / ".json").write_text(spec("1"))
    cache = cdi.Cache([etc])
    assert (cache.devices(), cache.errors()) == (("v/c=1",), {})


def test_a_huge_file_is_not_read(etc: Path) -> None:
    """A file above the bound is refused by its size alone, whatever is in it."""
    with (etc / "huge.json").open("wb") as file:
        file.truncate(1 << 40)
    (etc / "long.json").write_text("#" * (MAX_BYTES + 1))
    (etc / "good.json").write_text(spec("0"))
    cache = cdi.Cache([etc])
    assert cache.devices() == ("v/c=0",)
    assert all("is larger than" in str(error) for (error,) in cache.errors().values())
    assert len(cache.errors()) == 2


def test_a_file_that_grows_while_it_is_read_is_bounded(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds for what is read, not only for the size that was looked up first."""
    (etc / "grows.json").write_text("x")
    monkeypatch.setattr(os, "read", lambda _descriptor, count: b"x" * count)
    with pytest.raises(cdi.SpecError, match="is larger than"):
        files.read_spec(str(etc / "grows.json"))


def test_a_directory_that_is_a_file_hides_no_other(tmp_path: Path, etc: Path) -> None:
    """A directory that can't be read is recorded; missing ones are no error; those after it are read."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (etc / "a.json").write_text(spec("0"))
    cache = cdi.Cache([tmp_path / "file", tmp_path / "missing", tmp_path / "loop", etc])
    assert cache.devices() == ("v/c=0",)
    states = [(Path(state.path).name, state.exists, state.error is not None) for state in cache.directories()]
    assert states == [("file", True, True), ("missing", False, False), ("loop", True, True), ("etc", True, False)]
    assert "not a directory" in str(cache.directories()[0].error)


@pytest.mark.parametrize("target", ["directory", "file"])
def test_what_may_not_be_read_is_recorded(etc: Path, run: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without permission for a file or directory there is an error with a hint, and the others are on offer."""
    (etc / "secret.json").write_text(spec("0"))
    (run / "good.json").write_text(spec("1"))
    denied = str(etc if target == "directory" else etc / "secret.json")
    function = "scandir" if target == "directory" else "open"
    real = getattr(os, function)

    def refuse(path: str, *arguments: int) -> object:
        # Tests run as root, whom the kernel refuses nothing.
        if path == denied:
            raise PermissionError(13, "Permission denied", path)
        return real(path, *arguments)

    monkeypatch.setattr(os, function, refuse)
    cache = cdi.Cache([etc, run])
    assert cache.devices() == ("v/c=1",)
    errors = [cache.directories()[0].error] if target == "directory" else cache.errors()[denied]
    (error,) = errors
    assert error is not None
    assert (error.where, "permission denied" in error.message, bool(error.hint)) == (denied, True, True)


def test_refresh_says_whether_anything_changed(etc: Path, run: Path) -> None:
    """New, changed, mended, broken and removed files count; looking again without a change doesn't."""
    cache = cdi.Cache([etc, run])
    file = run / "a.json"
    steps: list[tuple[Callable[[], object], tuple[str, ...]]] = [
        (lambda: file.write_text(spec("0")), ("v/c=0",)),
        (lambda: file.write_text(spec("1")), ("v/c=1",)),
        (lambda: file.write_text("{"), ()),
        (lambda: file.write_text(spec("2")), ("v/c=2",)),
        (lambda: file.rename(etc / "a.json"), ("v/c=2",)),
        (lambda: (etc / "a.json").unlink(), ()),
        (run.rmdir, ()),
        (run.mkdir, ()),
    ]
    assert not cache.refresh()
    for step, devices in steps:
        step()
        assert cache.refresh()
        assert cache.devices() == devices
        assert not cache.refresh()


def test_a_change_within_one_tick_of_the_clock_is_seen(etc: Path) -> None:
    """A file that is overwritten at once, with the same size and times, is read again."""
    file = etc / "a.json"
    file.write_text(spec("0"))
    before = file.stat()
    cache = cdi.Cache([etc])
    file.write_text(spec("1"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.refresh()
    assert cache.devices() == ("v/c=1",)


def test_unchanged_files_are_not_read_again(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a file's times are old enough to tell a change, refreshing only looks at them, and specs stay the same."""
    (etc / "a.json").write_text(spec("0"))
    monkeypatch.setattr(files, "_CLOCK_STEP", -(10**12))
    cache = cdi.Cache([etc])
    (loaded,) = cache.specs()
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("the file was opened"))
    assert not cache.refresh()
    assert cache.specs() == (loaded,)


def test_files_may_vanish_while_they_are_read(etc: Path) -> None:
    """Files and the directory itself come and go under a refreshing cache without an exception or a wrong device."""
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            etc.mkdir(exist_ok=True)
            (etc / "a.json").write_text(spec("0"))
            (etc / "a.json").unlink()
            etc.rmdir()

    writer = threading.Thread(target=come_and_go)
    writer.start()
    try:
        cache = cdi.Cache([etc])
        for _ in range(300):
            cache.refresh()
            assert cache.devices() in {(), ("v/c=0",)}
    finally:
        stop.set()
        writer.join()


def test_a_request_collects_common_edits_once_per_spec(etc: Path) -> None:
    """A spec's common edits come before its first device; a device asked for twice counts twice."""
    (etc / "a.json").write_text(spec("0", "1"))
    (etc / "b.json").write_text(spec("2", env="C=D"))
    env = cdi.Cache([etc]).edits_for(["v/c=1", "v/c=2", "v/c=0", "v/c=1"]).env
    assert env == ("COMMON=1", "A=B", "COMMON=1", "C=D", "A=B", "A=B")


def test_unresolvable_names_are_all_named(etc: Path) -> None:
    """Every unknown name of a request is in the error, in order, and the runtime spec is unchanged."""
    (etc / "a.json").write_text(spec("0"))
    oci: dict[str, object] = {}
    with pytest.raises(cdi.UnresolvableDeviceError, match="unresolvable CDI devices v/c=9, x") as failed:
        cdi.Cache([etc]).inject(oci, ["v/c=9", "v/c=0", "x"])
    assert (failed.value.names, oci) == (("v/c=9", "x"), {})


def test_one_text_is_not_taken_for_a_list(etc: Path) -> None:
    """A path or a name in place of a list would be taken apart into letters without a word."""
    with pytest.raises(TypeError, match="not one path"):
        cdi.Cache(str(etc))
    with pytest.raises(TypeError, match="not one name"):
        cdi.Cache([etc]).inject({}, "v/c=0")


def test_injection_works_on_a_container(etc: Path) -> None:
    """The devices' edits end up in the runtime spec."""
    (etc / "a.json").write_text(spec("0"))
    oci: dict[str, object] = {"process": {"env": ["A=old"]}}
    cdi.Cache([etc]).inject(oci, ["v/c=0"])
    assert oci == {"process": {"env": ["A=B", "COMMON=1"]}}


def test_changes_are_noticed_until_told_to_stop(etc: Path) -> None:
    """Watching yields once per change and ends when waiting says so."""
    seen: list[tuple[str, ...]] = []

    def wait(texts: Iterator[str | None]) -> bool:
        text = next(texts)
        if text:
            (etc / "a.json").write_text(text)
        return text is None

    texts = iter(["", spec("0"), "", spec("1"), None])
    seen.extend(cache.devices() for cache in changes(cdi.Cache([etc]), lambda _seconds: wait(texts)))
    assert seen == [("v/c=0",), ("v/c=1",)]
