from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import fake_sysfs
from draht import cdi
from draht.api.errors import DrahtError
from draht.cli.ps import ps
from draht.cli.release import release
from draht.cli.run import run
from draht.driver import holds
from draht.driver.database import Database
from draht.hardware import profiles
from draht.hardware.inventory import Inventory
from draht.host import local
from draht.host.engine import Bind
from draht.host.errors import NotFreeError, OwnedError, SelectionError
from draht.host.local import database_directory, local_inventory, outside, refuse_owned
from draht.host.order import Host, Order, Outcome
from draht.host.ownership import Owner, Ownership
from draht.host.reconcile import FACTS_LABEL, STATE_LABEL, Reconciled
from draht.host.selection import Request, Selection
from holding import hold
from requirements import require
from running import Workplace, gpus


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    """The commands work on a host with the fake engine."""
    place = Workplace(root=tmp_path)
    host = place.host()
    host = Host(
        database=host.database,
        engines=host.engines,
        cdi_directory=host.cdi_directory,
        cache=cdi.Cache([place.cdi]),
        outside=lambda inventory, state: outside(inventory, state, host.database.directory),
        say=host.say,
    )
    monkeypatch.setattr(local, "local_host", lambda say: host)
    yield place
    place.clean()


def call(*words: str) -> Result:
    """`draht run` with these words; what draht raises is raised."""
    return CliRunner().invoke(run, list(words), catch_exceptions=False)


class TestRunOptions:
    @pytest.fixture
    def orders(self, place: Workplace, monkeypatch: pytest.MonkeyPatch) -> list[Order]:
        """What the command would run."""
        seen: list[Order] = []

        def note(host: Host, order: Order) -> Outcome:
            seen.append(order)
            return Outcome(hold="h1", status=7)

        monkeypatch.setattr("draht.host.run.run", note)
        return seen

    @pytest.mark.parametrize(
        ("words", "image", "command", "wait"),
        [
            (["IMAGE"], "IMAGE", (), 0),
            (["IMAGE", "--", "train", "--fast"], "IMAGE", ("train", "--fast"), 0),
            (["IMAGE", "train", "--wait", "-d"], "IMAGE", ("train", "--wait", "-d"), 0),
            (["--wait", "IMAGE", "--", "--wait"], "IMAGE", ("--wait",), math.inf),
            (["--wait=30s", "IMAGE"], "IMAGE", (), 30),
            (["--wait=1h30m", "IMAGE"], "IMAGE", (), 5400),
            (["--wait=0.5", "IMAGE"], "IMAGE", (), 0.5),
            (["--name", "--wait", "IMAGE"], "IMAGE", (), 0),
            (["--wait", "--rootfs", "/", "--", "sh", "-c", "x"], None, ("sh", "-c", "x"), math.inf),
            (["--rootfs", "/", "sh"], None, ("sh",), 0),
        ],
    )
    def test_words(
        self, orders: list[Order], words: list[str], image: str | None, command: tuple[str, ...], wait: float
    ) -> None:
        """Options end at the image and ``--wait`` may stand alone; what follows is the command's."""
        result = call("--profile", "dgx-h100", "--gpus", "2", *words)
        assert result.exit_code == 7, result.output
        (order,) = orders
        assert (order.image, order.command, order.wait) == (image, command, wait)
        assert (order.request.gpus, order.rootfs) == (2, None if image else "/")

    def test_everything_else(self, orders: list[Order], monkeypatch: pytest.MonkeyPatch) -> None:
        """Each option reaches the order."""
        monkeypatch.setenv("PASSED", "on")
        monkeypatch.delenv("ABSENT", raising=False)
        call(
            *("--profile", "dgx-h100", "--gpus", "all", "--device", "nvidia.com/gpu=3", "-d", "-i", "-t"),
            *("--name", "mine", "-e", "A=1=2", "-e", "PASSED", "-e", "ABSENT", "--network", "none"),
            *("--engine", "fake", "--engine-arg", "--ipc=host", "-v", "/tmp:/data:ro", "-v", "/:/host", "IMAGE"),
        )
        (order,) = orders
        assert (order.request.gpus, order.request.names) == ("all", ("nvidia.com/gpu=3",))
        assert (order.detach, order.interactive, order.tty, order.name) == (True, True, True, "mine")
        assert order.env == {"A": "1=2", "PASSED": "on"}
        assert order.binds == (Bind(source="/tmp", target="/data", read_only=True), Bind(source="/", target="/host"))
        assert (order.network, order.engine, order.engine_args) == ("none", "fake", ("--ipc=host",))

    @pytest.mark.parametrize(
        "words",
        [
            ["--gpus", "0", "IMAGE"],
            ["--gpus", "two", "IMAGE"],
            ["--gpus", "-1", "IMAGE"],
            ["--gpus", "1", "--wait=soon", "IMAGE"],
            ["--gpus", "1", "--wait=", "IMAGE"],
            ["--no-such-option", "IMAGE"],
            ["--gpus", "1", "--rootfs", "/no/such/directory", "x"],
        ],
    )
    def test_misuse_has_the_status_of_a_failure(self, orders: list[Order], words: list[str]) -> None:
        """125, so that a script can tell it from what the command answered."""
        assert call(*words).exit_code == 125
        assert orders == []

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["IMAGE"], "no device is asked for"),
            (["--gpus", "1", "--profile", "dgx-h100"], "neither an image nor --rootfs"),
            (["--gpus", "1", "--profile", "dgx-h100", "-e", "=x", "IMAGE"], "names no environment variable"),
            (["--gpus", "1", "--profile", "dgx-h100", "-v", "/tmp", "IMAGE"], "is no mount"),
            (["--gpus", "1", "--profile", "dgx-h100", "-v", "/tmp:data", "IMAGE"], "is no mount"),
            (["--gpus", "1", "--profile", "dgx-h100", "-v", "/no/such:/data", "IMAGE"], "there is nothing to mount"),
            (["--gpus", "1", "--profile", "no-such-machine", "IMAGE"], "no-such-machine"),
            (["--gpus", "1", "--profile", "dgx-h100", "--engine", "rkt", "IMAGE"], "rkt"),
            (["--gpus", "1", "IMAGE"], "no CDI spec offers nvidia.com/gpu or amd.com/gpu"),
            (["--gpus", "1", "--kind", "intel.com/gpu", "IMAGE"], "no CDI spec offers devices of kind intel.com/gpu"),
            (["--device", "nvidia.com/gpu=0", "IMAGE"], "unresolvable CDI device nvidia.com/gpu=0: "),
            (["--device", "gpu0", "IMAGE"], "`gpu0` is not a CDI name"),
        ],
    )
    def test_refused_with_a_next_step(self, orders: list[Order], words: list[str], message: str) -> None:
        """Whatever can't be done is one sentence with a hint, and the status is 125."""
        with pytest.raises(DrahtError) as caught:
            call(*words)
        assert message in str(caught.value)
        assert caught.value.hint
        assert caught.value.exit_code == 125
        assert orders == []

    @pytest.mark.parametrize("words", [["--gpus", "1"], ["--device", "nvidia.com/gpu=0"]])
    def test_a_broken_spec_is_named_when_its_devices_are_missed(
        self, orders: list[Order], place: Workplace, words: list[str]
    ) -> None:
        """A file that engines refuse looks like no file at all, so its mistake is the answer."""
        (place.cdi / "nvidia.yaml").write_text("cdiVersion: 0.3.0\nkind: nvidia.com/gpu\ndevics: []\n")
        with pytest.raises(DrahtError) as caught:
            call(*words, "IMAGE")
        told = f"{caught.value} {caught.value.hint}"
        assert "nvidia.yaml" in told
        assert "devics" in told
        assert orders == []

    def test_a_missing_node_of_the_host_is_named_before_anything_is_held(
        self, orders: list[Order], place: Workplace
    ) -> None:
        """A spec written before the driver was changed offers a device that can't be given."""
        node = cdi.DeviceNode(path="/dev/nvidia0", host_path="/dev/no-such-gpu")
        devices = (cdi.Device(name="0", container_edits=cdi.ContainerEdits(device_nodes=(node,))),)
        cdi.write_spec(cdi.Spec(kind="nvidia.com/gpu", devices=devices), place.cdi, "nvidia.json")
        with pytest.raises(cdi.InjectionError, match="/dev/no-such-gpu") as caught:
            call("--device", "nvidia.com/gpu=0", "IMAGE")
        assert caught.value.hint
        assert orders == []

    def test_a_spec_directory_that_is_a_link_to_itself(self, place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where a spec can't be written the answer is a sentence, whatever the directory is."""
        place.cdi.rename(place.root / "moved")
        place.cdi.symlink_to(place.cdi)
        with pytest.raises(DrahtError) as caught:
            call("--profile", "l4-x4", "--gpus", "1", "--rootfs", "/", "--", "true")
        assert caught.value.hint


def test_life_of_a_hold_through_the_commands(place: Workplace) -> None:
    """Run detached, see it, be refused, release it by the beginning of its id, read what happened."""
    started = call("--profile", "dgx-h100", "--gpus", "8", "-d", "--rootfs", "/", "--", "sleep", "60")
    assert started.exit_code == 0
    identity = started.stdout.strip()
    assert "simulated: dgx-h100" in started.stderr
    with pytest.raises(NotFreeError, match=identity) as caught:
        call("--profile", "dgx-h100", "--gpus", "1", "--rootfs", "/", "--", "true")
    assert caught.value.exit_code == 125
    shown = json.loads(CliRunner().invoke(ps, ["-o", "json"], catch_exceptions=False).stdout)
    assert [(one["id"], one["state"], len(one["deviceIds"])) for one in shown["holds"]] == [(identity, "running", 8)]
    table = CliRunner().invoke(ps, catch_exceptions=False).stdout.splitlines()
    assert table[0].split()[:3] == ["HOLD", "STATE", "DEVICES"]
    assert "dgx-h100 (simulated)" in table[1]
    released = CliRunner().invoke(release, [identity[:6]], catch_exceptions=False)
    assert released.stdout.startswith(f"{identity}: GPU 0-7 free")
    trail = json.loads(CliRunner().invoke(ps, ["--audit", "-o", "json"], catch_exceptions=False).stdout)
    assert [entry["event"] for entry in trail if entry["hold"] == identity] == [
        "held",
        "created",
        "started",
        "released",
        "freed",
    ]
    with pytest.raises(SelectionError, match="there is no hold"):
        CliRunner().invoke(release, [identity], catch_exceptions=False)
    again = call("--profile", "dgx-h100", "--gpus", "8", "--rootfs", "/", "--", "sh", "-c", "exit 9")
    assert again.exit_code == 9


def test_ps_shows_who_waits_and_what_is_used_outside(place: Workplace) -> None:
    """Tickets and devices without a hold are part of the picture."""
    place.run(["sleep", "60"], number=8, detach=True)
    pid = place.fork(place.order(["true"], number=2, wait=60))
    while not place.tickets():
        time.sleep(0.01)
    try:
        output = CliRunner().invoke(ps, catch_exceptions=False).stdout
        assert "TICKET   WANTED" in output
        assert "1        2" in output
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class TestLocal:
    inventory = gpus(2, simulated=False)

    @pytest.mark.parametrize(
        ("environ", "machine", "expected"),
        [
            ({"DRAHT_STATE_DIR": "/x"}, True, "/x"),
            ({"XDG_STATE_HOME": "/home/ada/state"}, True, "machine"),
        ],
    )
    def test_whose_database(self, tmp_path: Path, environ: Mapping[str, str], machine: bool, expected: str) -> None:
        """The environment decides; else the machine's, for all who may write it."""
        directory = tmp_path / "machine"
        if machine:
            directory.mkdir()
        found = database_directory(environ, machine=directory)
        assert str(found) == (str(directory) if expected == "machine" else expected)

    def test_machine_holds_count_for_users_with_an_own_database(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the machine's database says is taken, also where the user has an own one."""
        machine = Database(tmp_path / "machine")
        with machine.transaction() as tx:
            holds.insert(tx, hold("h1"), {"GPU-0/0", "GPU-0/1"})
        monkeypatch.setattr(local._machine_holds, "__defaults__", (machine.directory,))
        found = outside(self.inventory, Reconciled(), tmp_path / "own")
        assert found == dict.fromkeys(("GPU-0/0", "GPU-0/1"), f"ada (h1 in {machine.directory})")
        assert outside(self.inventory, Reconciled(), machine.directory) == {}
        assert outside(gpus(2), Reconciled(), tmp_path / "own") == {}, "simulated devices are everybody's own"

    def test_other_databases_on_the_same_engine(self, tmp_path: Path, place: Workplace) -> None:
        """Containers of another draht say which units they have; our own don't count, simulated ones neither."""
        place.inventory = self.inventory
        place.cdi.mkdir(exist_ok=True)
        node = cdi.DeviceNode(path="/dev/x", host_path="/dev/null")
        devices = tuple(
            cdi.Device(name=str(index), container_edits=cdi.ContainerEdits(device_nodes=(node,))) for index in range(2)
        )
        cdi.write_spec(cdi.Spec(kind="nvidia.com/gpu", devices=devices), place.cdi, "vendor.json")
        call("--gpus", "1", "-d", "--rootfs", "/", "--", "sleep", "60")
        state = Reconciled(listed={"fake": place.engine().containers()})
        (container,) = state.listed["fake"]
        inventory, _kind = local_inventory(cdi.Cache([place.cdi]), profile=None, kind=None)
        assert outside(inventory, state, place.root / "state") == {}
        used = outside(inventory, state, tmp_path / "other")
        assert set(used) == set(json.loads(container.labels[FACTS_LABEL])["units"])
        assert container.labels[STATE_LABEL] == str(place.root / "state")

    def test_real_gpus_have_their_place_in_the_machine(self, tmp_path: Path, place: Workplace) -> None:
        """What the kernel knows is joined with what specs offer, so that a job's GPUs can be chosen close together."""
        built = fake_sysfs.build(profiles.load("l4-x4"), tmp_path)
        devices = tuple(
            cdi.Device(
                name=str(gpu.index),
                container_edits=cdi.ContainerEdits(device_nodes=(cdi.DeviceNode(path=gpu.device_nodes[0]),)),
            )
            for gpu in built.gpus()
        )
        cdi.write_spec(cdi.Spec(kind="nvidia.com/gpu", devices=devices), place.cdi, "nvidia.json")
        found, kind = local_inventory(cdi.Cache([place.cdi]), profile=None, kind=None, root=str(tmp_path))
        assert kind == "nvidia.com/gpu"
        assert [(gpu.cdi_names, gpu.pcie_root, gpu.numa_node) for gpu in found.gpus()] == [
            ((f"nvidia.com/gpu={gpu.index}",), gpu.pcie_root, gpu.numa_node) for gpu in built.gpus()
        ]

    @pytest.mark.parametrize(
        ("inventory", "vendor", "refused"),
        [(inventory, "nvidia", True), (inventory, "amd", False), (gpus(2), "nvidia", False)],
    )
    def test_a_kubelets_devices_are_left_alone(self, inventory: Inventory, vendor: str, refused: bool) -> None:
        """Where a plugin owns the vendor's devices draht refuses and says why; simulated ones are nobody's."""
        owned = Ownership(owners=(Owner(vendor=vendor, what="the DRA driver x", socket="/s"),))
        if not refused:
            refuse_owned(inventory, Selection(inventory, Request(gpus=1)), owned)
            return
        with pytest.raises(OwnedError, match="the DRA driver x hands out") as caught:
            refuse_owned(inventory, Selection(inventory, Request(gpus=1)), owned)
        assert caught.value.hint


DRAHT = (sys.executable, "-c", "from draht.cli.main import main; main()")


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["runc", "podman", "docker"])
class TestRealContainers:
    @pytest.fixture
    def environ(self, request: pytest.FixtureRequest, engine: str, tmp_path: Path) -> Iterator[dict[str, str]]:
        """An own database; all its containers are released at the end."""
        require(os.geteuid() == 0, "real containers need root here")
        environ = {**os.environ, "DRAHT_STATE_DIR": str(tmp_path / "state")}
        if engine == "docker":
            daemon = request.getfixturevalue("dockerd")
            environ |= daemon.variables
            environ |= {"DRAHT_CDI_DIR": str(daemon.cdi_directory)}
            environ["PATH"] = f"{Path(daemon.client).parent}:{environ['PATH']}"
        else:
            require(shutil.which(engine), f"no {engine} on this machine")
        yield environ
        shown = self.draht(environ, "ps", "-o", "json")
        for held in json.loads(shown.stdout)["holds"]:
            self.draht(environ, "release", held["id"])

    def draht(self, environ: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
        """The command as people call it."""
        return subprocess.run(
            [*DRAHT, *words],
            env=environ,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def test_two_containers_a_third_and_kill(
        self, environ: dict[str, str], engine: str, busybox_rootfs: Path, tmp_path: Path
    ) -> None:
        """Two containers hold different GPUs at once, a third is refused, kill -9 frees nothing that runs."""
        common = ("--profile", "dgx-h100", "--engine", engine, "--rootfs", str(busybox_rootfs))
        look = 'ls /dev; echo "$DRAHT_DEVICES"; cat /usr/lib/x86_64-linux-gnu/libcuda.so.1; exit 42'
        seen = self.draht(environ, "run", "--gpus", "2", *common, "--", "sh", "-c", look)
        assert seen.returncode == 42, seen.stderr
        assert "simulated: dgx-h100 is a machine profile" in seen.stderr
        assert {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"} <= set(seen.stdout.split())
        assert "nvidia2" not in seen.stdout.split()
        assert "This is not libcuda.so.1" in seen.stdout
        first = self.draht(environ, "run", "-d", "--gpus", "4", *common, "--", "sleep", "300")
        assert first.returncode == 0, first.stderr
        process = subprocess.Popen(
            [*DRAHT, "run", "--gpus", "4", *common, "--", "sleep", "300"],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while True:
            shown = json.loads(self.draht(environ, "ps", "-o", "json").stdout)
            if [one["state"] for one in shown["holds"]] == ["running", "running"]:
                break
            assert time.monotonic() < end
        ids = [set(one["deviceIds"]) for one in shown["holds"]]
        assert ids[0].isdisjoint(ids[1])
        process.kill()
        process.wait()
        third = self.draht(environ, "run", "--gpus", "1", *common, "--", "true")
        assert third.returncode == 125
        assert "0 of 8 free" in third.stderr
        for held in shown["holds"]:
            assert self.draht(environ, "release", held["id"]).returncode == 0
        assert json.loads(self.draht(environ, "ps", "-o", "json").stdout)["holds"] == []
        assert self.draht(environ, "run", "--gpus", "all", *common, "--", "true").returncode == 0

    @pytest.mark.parametrize(("command", "status"), [("exit 3", 3), ("exec /no/such", 127)])
    def test_exit_status(
        self, environ: dict[str, str], engine: str, busybox_rootfs: Path, command: str, status: int
    ) -> None:
        """The status is the container's."""
        common = ("--profile", "t4-x1", "--engine", engine, "--rootfs", str(busybox_rootfs))
        assert self.draht(environ, "run", "--gpus", "1", *common, "--", "sh", "-c", command).returncode == status

    @pytest.mark.parametrize(("command", "status"), [("/no/such", 127), ("no-such", 127), ("/bin", 126)])
    def test_command_that_cannot_be_executed(
        self, environ: dict[str, str], engine: str, busybox_rootfs: Path, command: str, status: int
    ) -> None:
        """127 if it isn't there, 126 if it can't be executed, as podman and docker have it; nothing stays held."""
        common = ("--profile", "t4-x1", "--engine", engine, "--rootfs", str(busybox_rootfs))
        ended = self.draht(environ, "run", "--gpus", "1", *common, "--", command)
        assert (ended.returncode, "error: " in ended.stderr) == (status, True), ended.stderr
        assert json.loads(self.draht(environ, "ps", "-o", "json").stdout)["holds"] == []

    def test_stdio_and_signals(self, environ: dict[str, str], engine: str, busybox_rootfs: Path) -> None:
        """Stdin, stdout and stderr are the container's; SIGTERM to draht reaches it, and all is freed."""
        common = ("--profile", "t4-x1", "--engine", engine, "--rootfs", str(busybox_rootfs))
        script = "trap 'echo caught; exit 5' TERM; cat; echo err >&2; while :; do sleep 0.1; done"
        process = subprocess.Popen(
            [*DRAHT, "run", "-i", "--gpus", "1", *common, "--", "sh", "-c", script],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("through\n")
        process.stdin.close()
        assert process.stdout.readline() == "through\n"
        while process.stderr.readline() != "err\n":
            pass
        process.terminate()
        assert process.stdout.read() == "caught\n"
        process.stderr.close()
        process.stdout.close()
        assert process.wait() == 5
        assert json.loads(self.draht(environ, "ps", "-o", "json").stdout)["holds"] == []
