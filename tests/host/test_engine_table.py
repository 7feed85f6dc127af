"""The same requests through podman, docker and runc, and what the containers saw: real engines, real containers."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import select
import shutil
import signal
import stat
import struct
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from draht import cdi
from draht.hardware.inventory import Device, Inventory
from draht.host.engine import HOLD_LABEL, Bind, EngineError, NoSuchContainerError
from draht.host.usage import survey
from engine_bench import PATIENCE, Bench, eventually
from requirements import require

pytestmark = pytest.mark.engine

ENGINES = ("podman", "docker", "runc")


@pytest.fixture(params=ENGINES)
def bench(request: pytest.FixtureRequest, busybox_rootfs: Path, tmp_path: Path) -> Iterator[Bench]:
    """Each engine of this machine in turn."""
    require(os.geteuid() == 0, "these tests need root")
    name = request.param
    path, environ, specs = shutil.which(name), dict(os.environ), Path("/var/run/cdi")
    if name == "docker":
        daemon = request.getfixturevalue("dockerd")
        path, environ, specs = str(daemon.client), dict(daemon.variables), daemon.cdi_directory
    elif name == "runc":
        specs = tmp_path / "cdi"
    require(path, f"no {name} on this machine")
    made = Bench(name, busybox_rootfs, tmp_path, specs, str(path), environ)
    yield made
    made.clean()


def device(name: str, **edits: Any) -> cdi.Device:
    """A device with these edits."""
    return cdi.Device(name=name, container_edits=cdi.ContainerEdits(**edits))


def null(path: str, **fields: Any) -> cdi.DeviceNode:
    """A node backed by /dev/null."""
    return cdi.DeviceNode(path=path, host_path="/dev/null", **fields)


LOOK = """
for node in /dev/nvidia0 /dev/nvidia-uvm /dev/nvidia-caps/nvidia-cap1; do
  test -e $node && stat -c "node %n %F %t:%T %a %u:%g" $node
done
opens() { dd $1=/dev/nvidia-uvm count=0 2>&1 | grep -q "not permitted" && echo "$2 denied" || echo "$2 allowed"; }
opens if read
opens of write
for file in /usr/lib/libcuda.so.1 /opt/stubs/inner; do test -e $file && echo "file $file $(cat $file)"; done
awk '$5 == "/usr/lib/libcuda.so.1" || $5 == "/opt/stubs" {split($6, o, ","); print "mount", $5, o[1]}' \
  /proc/self/mountinfo
(echo x > /usr/lib/libcuda.so.1) 2>/dev/null && echo "library writable" || echo "library read-only"
echo groups $(id -G)
env | grep -E '^(DRAHT|NVIDIA|OWN)_' | sort | sed 's/^/env /'
exit 7
"""

SEEN = """\
node /dev/nvidia0 character special file 1:3 660 0:44
node /dev/nvidia-uvm character special file a:e5 666 0:0
node /dev/nvidia-caps/nvidia-cap1 character special file 1:3 400 0:0
read allowed
write denied
file /usr/lib/libcuda.so.1 a library
file /opt/stubs/inner within
mount /opt/stubs rw
mount /usr/lib/libcuda.so.1 ro
library read-only
groups 0 44 1000
env DRAHT_SHARED=spec
env NVIDIA_VISIBLE_DEVICES=GPU-1
env OWN_WORDS=two words
"""


def test_a_container_sees_what_its_devices_say_whatever_the_engine(bench: Bench) -> None:
    """Nodes with numbers, modes and owners, cgroup rules, mounts, env, groups and the exit status are the same."""
    # No engine allows every container to open 10:229 (fuse), so what the device cgroup says is seen.
    os.mknod(node := bench.scratch / "node", 0o600 | stat.S_IFCHR, os.makedev(10, 229))
    stubs = bench.scratch / "stubs"
    stubs.mkdir()
    (bench.scratch / "lib").write_text("a library\n", encoding="ascii")
    (stubs / "inner").write_text("within\n", encoding="ascii")
    names, gids = bench.offer(
        device(
            "one",
            env=("NVIDIA_VISIBLE_DEVICES=GPU-1",),
            device_nodes=(
                null("/dev/nvidia0", file_mode=0o660, gid=44, permissions="rw"),
                cdi.DeviceNode(path="/dev/nvidia-uvm", host_path=str(node), permissions="r", file_mode=0o666),
            ),
            mounts=(
                cdi.Mount(
                    host_path=str(bench.scratch / "lib"),
                    container_path="/usr/lib/libcuda.so.1",
                    options=("ro", "nosuid", "nodev", "bind"),
                ),
            ),
        ),
        device("two", device_nodes=(null("/dev/nvidia-caps/nvidia-cap1", file_mode=0o400),)),
        edits=cdi.ContainerEdits(
            env=("DRAHT_SHARED=spec",),
            mounts=(cdi.Mount(host_path=str(stubs), container_path="/opt/stubs", options=("bind",)),),
            additional_gids=(44, 1000),
        ),
    )
    request = bench.request(
        "/bin/sh", "-c", LOOK, cdi_names=names, additional_gids=gids, env={"OWN_WORDS": "two words"}
    )  # fmt: skip
    status, out, err = bench.see(request)
    assert (out, status) == (SEEN, 7), err


def test_paths_of_the_host_are_mounted(bench: Bench) -> None:
    """A directory that may be written and a file that may not, both in place of what the root file system has."""
    data = bench.scratch / "data"
    data.mkdir()
    (bench.scratch / "settings").write_text("set\n", encoding="ascii")
    binds = (
        Bind(source=str(data), target="/data"),
        Bind(source=str(bench.scratch / "settings"), target="/etc/settings", read_only=True),
    )
    look = "echo made > /data/made; cat /etc/settings; (echo x > /etc/settings) 2>/dev/null || echo read-only"
    status, out, err = bench.see(bench.request("/bin/sh", "-c", look, binds=binds))
    assert (out, status) == ("set\nread-only\n", 0), err
    assert (data / "made").read_text(encoding="ascii") == "made\n"


def test_a_hook_of_the_spec_runs_on_the_host(bench: Bench) -> None:
    """Hooks of createRuntime, which NVIDIA's specs lean on, run with their arguments before the container does."""
    mark = bench.scratch / "mark"
    hook = cdi.Hook(hook_name="createRuntime", path="/bin/sh", args=("sh", "-c", f"echo ran >> {mark}"))
    names, _ = bench.offer(device("hooked", hooks=(hook,)))
    status, _, err = bench.see(bench.request("/bin/true", cdi_names=names))
    assert (status, mark.read_text()) == (0, "ran\n"), err


@pytest.mark.parametrize("status", [1, 3, 125, 127])
def test_the_exit_status_is_the_container_s(bench: Bench, status: int) -> None:
    """Also those statuses with which clients report failures of their own."""
    assert bench.see(bench.request("/bin/sh", "-c", f"exit {status}"))[0] == status


def test_stdin_stdout_and_stderr_pass_through_separately(bench: Bench) -> None:
    """With -i the container reads draht's stdin to its end; its two outputs stay apart."""
    request = bench.request("/bin/sh", "-c", "cat; echo wrong >&2; exit 4", interactive=True)
    assert bench.see(request, b"\x00bytes\n" * 20_000) == (4, "\x00bytes\n" * 20_000, "wrong\n")


def test_without_i_stdin_is_empty(bench: Bench) -> None:
    """A container that doesn't want input takes none from the user's terminal or pipe."""
    assert bench.see(bench.request("/bin/cat"), b"not for you") == (0, "", "")


TRAPS = """
for s in INT TERM HUP QUIT USR1 USR2; do trap "echo got $s" $s; done
trap 'echo got USR1; exit 31' USR1
echo ready
while :; do sleep 0.05; done
"""


def test_signals_reach_the_container(bench: Bench) -> None:
    """Each signal sent to draht arrives once, and the container decides what it means."""
    with bench.attached(bench.request("/bin/sh", "-c", TRAPS)) as attached:
        out = attached.process.stdout
        assert out is not None
        said = []
        assert _line(out) == "ready"
        for number in ("INT", "TERM", "HUP", "QUIT", "USR2", "USR1"):
            attached.process.send_signal(getattr(signal, f"SIG{number}"))
            said.append(_line(out))
        assert said == [f"got {number}" for number in ("INT", "TERM", "HUP", "QUIT", "USR2", "USR1")]
        assert attached.process.wait(PATIENCE) == 31
        assert out.read() == b""


def test_a_container_that_a_signal_kills_gives_128_plus_its_number(bench: Bench) -> None:
    """As a shell would show it."""
    with bench.attached(bench.request("/bin/sleep", "60")) as attached:
        running = eventually(lambda: _running(bench, attached.created()), "the container runs")
        os.kill(running.pid, signal.SIGKILL)
        assert attached.process.wait(PATIENCE) == 137


def test_a_detached_container_runs_on_its_own_until_removed(bench: Bench) -> None:
    """It is listed with its label, its names and its pid; removing it twice is fine, starting it afterwards is not."""
    names, _ = bench.offer(device("one", device_nodes=(null("/dev/nvidia0"),)))
    engine = bench.engine()
    request = bench.request("/bin/sleep", "60", cdi_names=names, detach=True)
    container = engine.create(request)
    created = bench.found(container)
    assert created is not None
    assert (created.state, created.hold, created.cdi_names) == ("created", request.hold, names)
    assert created.started_at is None
    assert engine.start(container, attach=False) == 0
    running = bench.found(container)
    assert running is not None
    assert running.state == "running"
    assert running.started_at is not None
    assert running.labels[HOLD_LABEL] == request.hold
    assert running.pid is not None
    assert Path("/proc", str(running.pid), "root").exists()
    engine.remove(container)
    eventually(lambda: not Path("/proc", str(running.pid), "root").exists(), "its process is gone")
    assert bench.found(container) is None
    bench.engine().remove(container)
    with pytest.raises(NoSuchContainerError):
        engine.start(container, attach=False)


def test_a_container_that_was_removed_before_its_start_can_t_be_started_attached(bench: Bench) -> None:
    """The late start of a run whose hold was cleaned up fails instead of running without a hold."""
    engine = bench.engine()
    container = engine.create(bench.request("/bin/true"))
    bench.engine().remove(container)
    with pytest.raises(NoSuchContainerError):
        engine.start(container, attach=True)


def test_a_finished_container_is_listed_as_exited(bench: Bench) -> None:
    """So that its hold ends although nobody waited for it."""
    engine = bench.engine()
    container = engine.create(bench.request("/bin/true", detach=True))
    engine.start(container, attach=False)
    exited = eventually(lambda: _state(bench, container, "exited"), "it has ended")
    assert exited.pid is None


def test_a_container_survives_the_death_of_draht(bench: Bench) -> None:
    """After kill -9 of the attached draht the container runs on, with its label, and another draht can remove it."""
    request = bench.request("/bin/sh", "-c", "echo up; sleep 60")
    with bench.attached(request) as attached:
        assert attached.process.stdout is not None
        assert _line(attached.process.stdout) == "up"
        container = attached.created()
        attached.process.kill()
        attached.process.wait(PATIENCE)
        found = _running(bench, container)
        assert found is not None
        assert found.hold == request.hold
        assert _alive(found.pid)
        bench.engine().remove(container)
        eventually(lambda: not _alive(found.pid), "its process is gone")
        assert bench.found(container) is None


# runc's foreign containers are known by their nodes alone; see test_engine_runc.
@pytest.mark.parametrize("bench", ["podman", "docker"], indirect=True)
def test_devices_of_containers_that_others_started_are_seen(bench: Bench) -> None:
    """A plain ``run --device vendor/class=name`` of the same engine has no label of ours, and its device is in use."""
    node = bench.scratch / "gpu"
    os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(10, 229))
    (name,), _ = bench.offer(device("0", device_nodes=(cdi.DeviceNode(path="/dev/gpu", host_path=str(node)),)))
    container = bench.start_foreign("--device", name)
    foreign = bench.found(container)
    assert foreign is not None
    assert (foreign.hold, foreign.state, foreign.cdi_names) == (None, "running", (name,))
    inventory = Inventory(
        machine="here",
        source="cdi",
        devices=(Device(id="gpu", kind="gpu", units=frozenset({"gpu"}), cdi_names=(name,), device_nodes=(str(node),)),),
    )
    seen = survey(inventory, bench.engine().containers())
    assert [(usage.device, usage.by, usage.container) for usage in seen.usages] == [("gpu", "container", container)]
    assert survey(inventory, bench.engine().containers(), ours=(container,)).usages == ()


@pytest.mark.parametrize(
    ("command", "fields", "complaint"),
    [
        (("/no/such/program",), {}, r"no such file|not found"),
        (("/bin/true",), {"cdi_names": ("nowhere.example/gpu=9",)}, r"unresolvable CDI device|CDI device"),
    ],
    ids=["command", "device"],
)
def test_a_container_that_can_t_start_is_an_error_and_leaves_nothing(
    bench: Bench, command: tuple[str, ...], fields: dict[str, Any], complaint: str
) -> None:
    """The engine's own words are in the error; no container, bundle or mount stays."""
    request = bench.request(*command, detach=True, **fields)
    engine = bench.engine()
    with pytest.raises(EngineError) as failure:
        engine.start(engine.create(request), attach=False)
    assert re.search(complaint, str(failure.value), re.IGNORECASE), failure.value
    for container in engine.containers():
        if container.name == request.name:
            assert container.state == "created"
            engine.remove(container.id)
    assert str(bench.scratch) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


def test_the_root_file_system_is_a_template(bench: Bench) -> None:
    """What a container writes, and mount points made for its devices, never reach the user's directory."""
    before = sorted(path.relative_to(bench.rootfs) for path in bench.rootfs.rglob("*"))
    names, _ = bench.offer(
        device("one", mounts=(cdi.Mount(host_path="/etc/hostname", container_path="/made/for/it", options=("bind",)),))
    )
    request = bench.request("/bin/sh", "-c", "echo x > /bin/new && cat /bin/new", cdi_names=names)
    assert bench.see(request)[:2] == (0, "x\n")
    assert sorted(path.relative_to(bench.rootfs) for path in bench.rootfs.rglob("*")) == before


def test_a_terminal_passes_keys_size_and_resizes_through(bench: Bench) -> None:
    """With -t -i the program has a terminal of the user's size, sees Ctrl-C as a signal and learns of a new size."""
    script = (
        "trap 'echo got-int' INT; trap 'stty size' WINCH; test -t 0 && test -t 1 && stty size; echo ready; "
        "while :; do read word && { echo said $word; test $word = end && exit 5; }; done"
    )
    master, slave = pty.openpty()
    try:
        _resize(master, 31, 97)
        request = bench.request("/bin/sh", "-c", script, interactive=True, tty=True)
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        with bench.attached(request, start_new_session=True, preexec_fn=_take_terminal, **streams) as attached:
            reader = _Reader(master)
            reader.until("ready")
            # podman sets the size after the start: the first answer may be that of a terminal just made. docker's
            # client listens for resizes only some time after the start, so a person's next try has to count too.
            sizes = itertools.cycle([41, 40])
            reader.until("40 120", meanwhile=lambda: _resize(master, next(sizes), 120))
            os.write(master, b"\x03")
            reader.until("got-int")
            os.write(master, b"word\r")
            reader.until("said word")
            os.write(master, b"end\r")
            assert attached.process.wait(PATIENCE) == 5
            assert termios.tcgetattr(slave)[3] & termios.ECHO, "the user's terminal is as it was"
    finally:
        os.close(master)
        os.close(slave)


def test_ctrl_c_at_a_terminal_reaches_a_container_without_one_exactly_once(bench: Bench) -> None:
    """The terminal signals the whole foreground group, and the client is not in it."""
    script = "trap 'echo got-int' INT; trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done"
    master, slave = pty.openpty()
    try:
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        request = bench.request("/bin/sh", "-c", script)
        with bench.attached(request, start_new_session=True, preexec_fn=_take_terminal, **streams) as attached:
            reader = _Reader(master)
            reader.until("ready")
            os.write(master, b"\x03")
            reader.until("got-int")
            attached.process.send_signal(signal.SIGTERM)
            assert attached.process.wait(PATIENCE) == 6
            assert reader.rest().count("got-int") == 0
    finally:
        os.close(master)
        os.close(slave)


def _running(bench: Bench, container: str) -> Any:
    return _state(bench, container, "running")


def _state(bench: Bench, container: str, state: str) -> Any:
    found = bench.found(container)
    return found if found is not None and found.state == state else None


def _alive(pid: int) -> bool:
    """Whether a process exists and isn't a zombie that some other process has to collect."""
    try:
        return Path("/proc", str(pid), "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _line(stream: Any) -> str:
    ready, _, _ = select.select([stream], [], [], PATIENCE)
    assert ready, "no line in time"
    return bytes(stream.readline()).decode().rstrip("\n")


def _resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class _Reader:
    """What appears on a terminal, read up to an expected text."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._text = ""

    def until(self, text: str, meanwhile: Callable[[], None] = lambda: None) -> str:
        """What comes before the text; `meanwhile` is done again and again until it appears."""

        def look() -> bool:
            meanwhile()
            self._more(0.25)
            return text in self._text

        eventually(look, f"{text!r} appears, after {self._text!r}")
        before, _, self._text = self._text.partition(text)
        return before

    def rest(self) -> str:
        self._more(0.2)
        return self._text

    def _more(self, patience: float) -> None:
        if select.select([self._master], [], [], patience)[0]:
            self._text += os.read(self._master, 65536).decode(errors="replace")
