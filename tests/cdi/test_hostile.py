"""Spec directories and inputs that are out to do harm: one line of error, nothing lost, bounded time and memory."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdi_command import run, run_script
from cdi_corpus import CORPUS
from draht import cdi
from draht.api.yaml import MAX_BYTES
from requirements import require

GOOD = CORPUS / "valid" / "intel-npu.yaml"
GOOD_NAME = "intel.com/npu=npu0"


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A directory with one good spec, which nothing here may hide."""
    directory = tmp_path / "specs"
    directory.mkdir()
    shutil.copy(GOOD, directory / "good.yaml")
    return directory


def _recorded(directory: Path, name: str) -> cdi.CDIError:
    """The one-line error of a file, after checking that the good file beside it is on offer."""
    cache = cdi.Cache([directory])
    assert cache.device(GOOD_NAME) is not None
    (error,) = cache.errors()[str(directory / name)]
    assert "\n" not in str(error)
    assert len(str(error)) < 1500
    assert str(error).startswith(str(directory / name))
    return error


# --- contents ---------------------------------------------------------------------------------------------------------

_BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{','.join([f'*{chr(97 + level)}'] * 10)}]\n" for level in range(9)
)
_CONTENTS: dict[str, Callable[[], bytes]] = {
    "random bytes": lambda: random.Random(1).randbytes(100_000),
    "an ELF file": lambda: Path(sys.executable).resolve().read_bytes()[:100_000],
    "zero bytes": lambda: bytes(100_000),
    "UTF-16 without an end": lambda: b"\xff\xfe" + "kind".encode("utf-16-le")[:-1],
    "invalid UTF-8": lambda: b"kind: \xc3\x28",
    "a control character": lambda: b"kind: \x07",
    "10 MB of YAML": lambda: GOOD.read_bytes() + b"# filler\n" * 1_200_000,
    "8 MB in one scalar": lambda: b"kind: " + b"x" * (MAX_BYTES - 100),
    "an 8 MB kind": lambda: (
        b"cdiVersion: 0.3.0\ndevices: [{name: a, containerEdits: {env: [A=b]}}]\nkind: " + b"x" * (MAX_BYTES - 100)
    ),
    "an 8 MB name": lambda: (
        b"cdiVersion: 0.3.0\nkind: x.com/y\ndevices: [{name: a, containerEdits: {env: [A=b]}}, {name: "
        + b"\xc3\xa4" * (MAX_BYTES // 2 - 100)
        + b"}]"
    ),
    "a crowd of devices": lambda: b"devices:\n" + b"- a\n" * 60_000,
    "a crowd of keys": lambda: b"".join(b"k%d: 1\n" % index for index in range(30_000)),
    "brackets without end": lambda: b"[" * 1_000_000,
    "deep nesting": lambda: b"devices: " + b"[" * 5_000 + b"]" * 5_000,
    "deep flow maps": lambda: b"{a: " * 5_000 + b"}" * 5_000,
    "deep indentation": lambda: b"".join(b" " * level + b"a:\n" for level in range(500)),
    "an alias bomb": lambda: f"cdiVersion: 0.5.0\nkind: a/b\n{_BOMB}".encode(),
    "an alias bomb in devices": lambda: _BOMB.replace("a: &a", "devices: &a").encode(),
    "an alias of itself": lambda: b"devices: &a [*a]",
    "an alias without anchor": lambda: b"kind: *nowhere",
    "a merge bomb": lambda: b"".join(
        b"m%d: &m%d {<<: [%s]}\n" % (level, level, b",".join([b"*m%d" % (level - 1)] * 20))
        if level
        else b"m0: &m0 {a: b}\n"
        for level in range(20)
    ),
    "a Python object": lambda: b"kind: !!python/object/apply:os.system ['touch /tmp/owned']",
    "an unknown tag": lambda: b"kind: !vendor/thing x",
    "an enormous number": lambda: (
        b"devices: [{name: d, containerEdits: {deviceNodes: [{path: a, major: 1e999999999}]}}]"
    ),
    "a long number": lambda: (
        b"devices: [{name: d, containerEdits: {deviceNodes: [{path: a, major: " + b"9" * 100_000 + b"}]}}]"
    ),
    "a kind that talks to the terminal": lambda: b'{"cdiVersion": "0.3.0", "kind": "\\u001b[2J/x", "devices": []}',
    "a name with line breaks": lambda: b'{"cdiVersion": "0.3.0", "kind": "a/b", "devices": [{"name": "a\\nb"}]}',
    "HTML": lambda: b"<!DOCTYPE html><html><body>404</body></html>",
}


@pytest.mark.parametrize("what", _CONTENTS)
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_hostile_contents_are_one_line_of_error(specs: Path, what: str, suffix: str) -> None:
    """Whatever is in a spec file, the error is one line about the file, and the good file stays on offer."""
    (specs / f"bad.{suffix}").write_bytes(_CONTENTS[what]())
    assert _recorded(specs, f"bad.{suffix}").message.isprintable()


@pytest.mark.parametrize("what", _CONTENTS)
def test_hostile_contents_on_the_command_line(specs: Path, what: str) -> None:
    """The commands show the problem with an exit status, and explain a name that the file may have defined."""
    (specs / "bad.yaml").write_bytes(_CONTENTS[what]())
    outcome = run("cdi", "validate", str(specs / "bad.yaml"))
    assert outcome.status == 1
    assert outcome.stdout.startswith(str(specs / "bad.yaml"))
    assert len(outcome.stdout) < 5000
    listed = run("cdi", "list", "--dir", str(specs))
    assert listed.status == 0
    assert len(listed.lines) == 3
    explained = run("cdi", "show", "x.com/y=z", "--dir", str(specs))
    assert explained.status == 1
    assert all(line.isprintable() for line in explained.stderr.splitlines())
    lowered = run("cdi", "lower", "--to", "0.3.0", str(specs / "bad.yaml"))
    assert lowered.status == 1
    assert lowered.stderr.startswith("error: ")


def test_hostile_contents_stay_within_memory_and_time(specs: Path) -> None:
    """All of them together are read in a process with 1 GiB of address space and 60 s of processor time."""
    for number, make in enumerate(_CONTENTS.values()):
        (specs / f"bad{number}.yaml").write_bytes(make())

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    program = "import sys; from draht import cdi; c = cdi.Cache([sys.argv[1]]); print(len(c.errors()), *c.devices())"
    done = subprocess.run(
        [sys.executable, "-c", program, str(specs)], preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [str(len(_CONTENTS)), GOOD_NAME], done.stderr


def _mutated(original: bytes, random_: random.Random) -> bytes:
    """A text with some bytes changed, cut, doubled, or YAML's special characters put in."""
    data = bytearray(original)
    for _ in range(random_.randint(1, 8)):
        place = random_.randrange(len(data) + 1)
        match random_.randrange(4):
            case 0:
                data[place : place + 1] = random_.randbytes(1)
            case 1:
                del data[place : place + random_.randint(1, 50)]
            case 2:
                data[place:place] = data[place : place + random_.randint(1, 200)]
            case _:
                data[place:place] = random_.choice([b"&a ", b"*a ", b"<<: ", b"!!int ", b"null", b"- ", b"{", b"]"])
    return bytes(data)


def _check_mutated(cases: int) -> None:
    seed = int(os.environ.get("DRAHT_FUZZ_SEED", "20261130"))
    originals = [path.read_bytes() for path in sorted((CORPUS / "valid").iterdir())]
    for case in range(cases):
        random_ = random.Random(f"{seed}/{case}")
        data = _mutated(random_.choice(originals), random_)
        try:
            spec, problems = cdi.check(data)
        except Exception as error:  # noqa: BLE001 - the point is that there is none
            pytest.fail(f"DRAHT_FUZZ_SEED={seed}, case {case}: {type(error).__name__}: {error}\n{data!r}")
        assert spec is not None or problems


def test_mutated_specs_never_raise_anything_else() -> None:
    """A real spec with bytes changed, cut and doubled is a spec or has problems, never another exception."""
    _check_mutated(1500)


@pytest.mark.fuzz
def test_many_mutated_specs_never_raise_anything_else() -> None:
    """The same at length."""
    _check_mutated(int(os.environ.get("DRAHT_FUZZ_CASES", "100000")))


# --- things that are no files -----------------------------------------------------------------------------------------


def test_a_fifo_is_not_opened(specs: Path) -> None:
    """A FIFO, whose opening would wait for ever, is refused by its type."""
    os.mkfifo(specs / "fifo.yaml")
    assert "not a regular file" in str(_recorded(specs, "fifo.yaml"))
    assert run("cdi", "validate", str(specs / "fifo.yaml")).status == 1
    assert run("cdi", "show", "x.com/y=z", "--dir", str(specs)).status == 1


def test_a_socket_is_not_opened(specs: Path) -> None:
    """A socket is refused by its type."""
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryDirectory(dir="/tmp") as short:
        server.bind(f"{short}/s")
        (specs / "socket.json").symlink_to(f"{short}/s")
        assert "not a regular file" in str(_recorded(specs, "socket.json"))


def test_a_device_is_not_read(specs: Path) -> None:
    """A link to a device that never ends is refused by its type."""
    (specs / "zero.yaml").symlink_to("/dev/zero")
    assert "not a regular file" in str(_recorded(specs, "zero.yaml"))
    assert run("cdi", "validate", "/dev/zero").status == 1
    assert run("cdi", "lower", "--to", "0.3.0", "/dev/zero").status == 1


def test_a_file_of_proc_that_lies_about_its_size(specs: Path) -> None:
    """A file that says it is empty and isn't is read and refused for its content."""
    (specs / "proc.yaml").symlink_to("/proc/self/status")
    _recorded(specs, "proc.yaml")


def test_symbolic_links_that_lead_nowhere_or_round(specs: Path) -> None:
    """A link to nowhere and a loop of links are errors of that file alone."""
    (specs / "gone.yaml").symlink_to(specs / "missing")
    (specs / "loop.yaml").symlink_to(specs / "loop2.yaml")
    (specs / "loop2.yaml").symlink_to(specs / "loop.yaml")
    _recorded(specs, "gone.yaml")
    assert "symbolic links" in str(_recorded(specs, "loop.yaml"))
    explained = run("cdi", "show", "intel.com/npu=npu1", "--dir", str(specs)).stderr
    assert "a symbolic link that leads back to itself" in explained
    assert "a symbolic link to nowhere" in explained


def test_a_directory_called_like_a_spec(specs: Path) -> None:
    """A directory named x.yaml, and a link to one, hide nothing."""
    (specs / "directory.yaml").mkdir()
    (specs / "link.yaml").symlink_to(specs / "directory.yaml")
    assert cdi.Cache([specs]).devices() == (GOOD_NAME,)


def test_a_spec_directory_that_is_a_file(specs: Path) -> None:
    """A file in place of a directory is an error of that directory alone."""
    cache = cdi.Cache([specs / "good.yaml", specs])
    assert cache.devices() == (GOOD_NAME,)
    assert cache.directories()[0].error is not None
    outcome = run("cdi", "dirs", "--dir", str(specs / "good.yaml"), "--dir", str(specs))
    assert "not a directory" in outcome.lines[1]


def test_a_spec_directory_that_is_a_loop(tmp_path: Path, specs: Path) -> None:
    """A loop of links in place of a directory is an error of that directory alone, with a next step."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    cache = cdi.Cache([loop, specs])
    assert cache.devices() == (GOOD_NAME,)
    finding = cdi.explain_unresolvable(cache, ["x.com/y=z"], others=()).names[0].findings[0]
    assert finding.cause == "unreadable-directory"


@pytest.mark.parametrize("name", ["a\nb.yaml", "a\x1b[31m.yaml", os.fsdecode(b"\xff\xfe.yaml"), " .yaml", "-rf.yaml"])
def test_odd_file_names(specs: Path, name: str) -> None:
    """Files with line breaks, terminal codes or no text in their names are read, listed and explained."""
    (specs / name).write_text("kind: x.com/y\n")
    assert cdi.Cache([specs]).device(GOOD_NAME) is not None
    assert run("cdi", "list", "--dir", str(specs), "-o", "json").status == 0
    assert run("cdi", "list", "--dir", str(specs)).status == 0
    outcome = run("cdi", "show", "x.com/y=z", "--dir", str(specs))
    assert outcome.status == 1
    assert all(line.isprintable() for line in outcome.stderr.splitlines())


def test_thousands_of_broken_files(specs: Path) -> None:
    """A directory full of rubbish is answered with a bounded explanation."""
    for number in range(3000):
        (specs / f"bad{number}.yaml").write_text("kind: x.com/y\n{")
    diagnosis = cdi.explain_unresolvable(cdi.Cache([specs]), ["x.com/y=z"], others=())
    assert len(diagnosis.lines()) < 1000


# --- things that vanish -----------------------------------------------------------------------------------------------


def test_a_directory_that_vanishes(specs: Path) -> None:
    """A cache whose directory goes away offers nothing, says why, and recovers when it comes back."""
    cache = cdi.Cache([specs])
    shutil.move(specs, specs.with_name("away"))
    assert cache.refresh()
    assert cache.devices() == ()
    assert cdi.explain_unresolvable(cache, [GOOD_NAME], others=()).directories[0].state == "missing"
    shutil.move(specs.with_name("away"), specs)
    assert cache.refresh()
    assert cache.devices() == (GOOD_NAME,)


def test_files_that_come_and_go_while_the_cache_reads(specs: Path) -> None:
    """With another process writing and removing specs all the time, every refresh is calm and the good file stays."""
    program = textwrap.dedent(
        """
        import os, sys, time
        directory, text = sys.argv[1], open(sys.argv[2], "rb").read().replace(b"npu0", b"npu1")
        end = time.monotonic() + 20
        while time.monotonic() < end and os.getppid() != 1 and not os.path.exists(directory + "/stop"):
            for name in ("a.yaml", "b.yaml"):
                with open(f"{directory}/.x.tmp", "wb") as file:
                    file.write(text)
                os.rename(f"{directory}/.x.tmp", f"{directory}/{name}")
            for name in ("a.yaml", "b.yaml"):
                os.unlink(f"{directory}/{name}")
        """
    )
    with subprocess.Popen([sys.executable, "-c", program, str(specs), str(GOOD)]) as writer:
        cache = cdi.Cache([specs])
        seen = set()
        for _ in range(400):
            cache.refresh()
            assert cache.device(GOOD_NAME) is not None
            cdi.explain_unresolvable(cache, ["intel.com/npu=npu2", "intel.com/npu=npu1"], others=())
            seen.add(cache.devices())
        (specs / "stop").touch()
        assert writer.wait(timeout=30) == 0
    assert len(seen) > 1


# --- writing where it can't be done -----------------------------------------------------------------------------------

_SPEC = cdi.Spec(
    kind="example.com/gpu",
    devices=(
        cdi.Device(name="d", container_edits=cdi.ContainerEdits(env=tuple(f"V{n}={'x' * 90}" for n in range(2000)))),
    ),
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KiB."""
    require(os.geteuid() == 0, "mounting a small disk takes root")
    target = tmp_path / "disk"
    target.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", 0, b"size=64k")
    require(done == 0, f"this machine doesn't let root mount a tmpfs: {os.strerror(ctypes.get_errno())}")
    try:
        yield target
    finally:
        libc.umount2(os.fsencode(target), 2)


def test_a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    """Writing to a full disk is one line of error; the old spec stays whole, and no temporary file is left."""
    small = cdi.Spec(
        kind="example.com/gpu",
        devices=(cdi.Device(name="old", container_edits=cdi.ContainerEdits(env=("A=b",))),),
    )
    path = cdi.write_spec(small, small_disk, "gpu.json")
    before = path.read_bytes()
    with pytest.raises(cdi.WriteError) as refused:
        cdi.write_spec(_SPEC, small_disk, "gpu.json")
    assert "no space left on device" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.hint
    assert path.read_bytes() == before
    assert [each.name for each in small_disk.iterdir()] == ["gpu.json"]
    assert cdi.Cache([small_disk]).devices() == ("example.com/gpu=old",)


def test_a_place_that_takes_no_files(tmp_path: Path) -> None:
    """A file in place of the directory, and a proc file system, are one line of error with the path and a hint."""
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/cdi"), Path("/dev/null/cdi")):
        with pytest.raises(cdi.WriteError) as refused:
            cdi.write_spec(_SPEC, directory, "gpu")
        assert str(directory) in str(refused.value)
        assert "\n" not in str(refused.value)
        assert refused.value.hint


def test_a_target_that_is_a_directory(tmp_path: Path) -> None:
    """A directory in the place of the file can't be replaced: an error, and nothing is left behind."""
    (tmp_path / "gpu.json").mkdir()
    with pytest.raises(cdi.WriteError):
        cdi.write_spec(_SPEC, tmp_path, "gpu.json")
    assert [each.name for each in tmp_path.iterdir()] == ["gpu.json"]


# --- output -----------------------------------------------------------------------------------------------------------


def test_standard_output_that_is_full(specs: Path) -> None:
    """Printing to a full device is one line of error, not a traceback."""
    require(Path("/dev/full").exists(), "there is no /dev/full")
    done = subprocess.run(
        f'"{Path(sys.executable).with_name("draht")}" cdi schema > /dev/full',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away(specs: Path) -> None:
    """`draht … | head -1` ends quietly."""
    done = subprocess.run(
        ["bash", "-c", f'"{Path(sys.executable).with_name("draht")}" cdi schema | head -1'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_a_reader_that_is_gone_already() -> None:
    """Output that nobody takes any more is no failure, whichever command prints it and however often it writes."""
    for arguments in (["cdi", "schema"], ["devices", "--profile", "dgx-h100", "-o", "tree"]):
        reading, writing = os.pipe()
        os.close(reading)
        program = str(Path(sys.executable).with_name("draht"))
        done = subprocess.run([program, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, "")


def test_closed_standard_input() -> None:
    """Where there is no standard input at all, that is said, without a traceback."""
    for arguments in ("validate -", "lower --to 0.3.0 -", "inject --spec - a.com/b=c"):
        done = subprocess.run(
            ["bash", "-c", f'"{Path(sys.executable).with_name("draht")}" cdi {arguments} <&-'],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "standard input is closed" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_binary_standard_input() -> None:
    """Rubbish on standard input is one line of error in the real process."""
    for arguments in (("validate", "-"), ("lower", "--to", "0.3.0", "-"), ("inject", "--spec", "-", "a.com/b=c")):
        outcome = run_script("cdi", *arguments, stdin=random.Random(2).randbytes(100_000))
        assert outcome.status == 1
        assert "Traceback" not in outcome.stderr
