"""What draht does for runc: requests it can't serve, bundles in every state, other callers' containers, CDI edits."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from draht import cdi
from draht.host.engine import Container, ContainerRequest, EngineError, RequestError
from draht.host.engines.bundle import Bundles
from draht.host.engines.ocispec import runtime_spec
from draht.host.engines.runc import Runc
from draht.host.machine import Machine
from fake_client import FakeClient
from requirements import require


@pytest.fixture
def client(tmp_path: Path) -> FakeClient:
    """A fake runc that knows no container."""
    fake = FakeClient(tmp_path, "runc").answer("--version", "runc version 1.1.5+ds1\ncommit: x\n")
    return fake.answer("delete", stderr='container "x" does not exist', status=1)


def runc(client: FakeClient, tmp_path: Path) -> Runc:
    """The adapter over the fake, with all its places in the test's directory."""
    return Runc(
        str(client.path), state=tmp_path / "state", spec_directories=[str(tmp_path / "cdi")], root=tmp_path / "root"
    )


def request(**fields: Any) -> ContainerRequest:
    """A request with a root file system."""
    return ContainerRequest(**{"hold": "h1", "name": "draht-h1", "rootfs": "/", "command": ("true",), **fields})


GOOD = Machine(
    cgroups="v2",
    cgroups_writable=True,
    effective_capabilities=0,
    nofile=None,
    nproc=None,
    pid_max=32768,
    systemd=True,
)


@pytest.mark.parametrize(
    ("machine", "uid", "kinds"),
    [
        (GOOD, 0, []),
        (GOOD, 1000, ["runc-needs-root"]),
        (dataclasses.replace(GOOD, cgroups_writable=False), 0, ["cgroups-not-writable"]),
        (dataclasses.replace(GOOD, cgroups="none"), 0, ["cgroups-not-writable"]),
    ],
    ids=["good", "user", "read-only-cgroups", "no-cgroups"],
)
def test_what_runc_needs_is_checked_before_it_is_used(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, machine: Machine, uid: int, kinds: list[str]
) -> None:
    """Each missing thing makes it unusable and has a fix; with everything there it reads every CDI version."""
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    info = Runc(str(client.path), state=Path("/nowhere"), spec_directories=["/etc/cdi"], machine=machine).info()
    assert [(problem.kind, problem.severity) for problem in info.problems] == [(kind, "broken") for kind in kinds]
    assert all(problem.fix for problem in info.problems)
    assert info.usable is not bool(kinds)
    assert (info.version, info.cdi_version, info.reads_cdi_itself) == ("1.1.5+ds1", cdi.VERSIONS[-1], False)


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"rootfs": None, "image": "ubuntu"}, "knows no images, so 'ubuntu' can't be run", "--rootfs DIR"),
        ({"command": ()}, "no image that says what to run", "-- /bin/sh"),
        ({"engine_args": ("--shm-size", "1g")}, "takes no further options", "podman or docker for --shm-size"),
        ({"network": "bridge"}, "has no network 'bridge'", "none"),
        ({"tty": True, "detach": True}, "nobody to keep the terminal", "leave out -t"),
        ({"name": "../../etc"}, "is no name for a runc container", ""),
        ({"rootfs": "/no/such"}, "is not a directory", ""),
        ({"rootfs": None}, "needs either an image or a root file system", "--rootfs"),
    ],
)
def test_what_runc_can_t_do_is_refused_with_the_way_out(
    client: FakeClient, tmp_path: Path, fields: dict[str, Any], message: str, hint: str
) -> None:
    """Before anything is written or runc is called."""
    with pytest.raises(RequestError, match=message) as refusal:
        runc(client, tmp_path).create(request(**fields))
    assert hint in (refusal.value.hint or "")
    assert not (tmp_path / "state").exists()


def test_a_device_that_nobody_offers_is_an_error_with_nothing_left(client: FakeClient, tmp_path: Path) -> None:
    """No bundle is made for a container that can't get its devices."""
    with pytest.raises(EngineError, match=r"unresolvable CDI device vendor\.example/gpu=0"):
        runc(client, tmp_path).create(request(cdi_names=("vendor.example/gpu=0",)))
    assert not (tmp_path / "state").exists()
    assert client.calls("create") == []


def test_the_runtime_spec_carries_labels_groups_and_environment() -> None:
    """As annotations, which runc lists; stdin, network and terminal as asked."""
    spec = runtime_spec(request(labels={"a": "b"}, env={"PATH": "/mine"}, additional_gids=(44,), tty=True))
    assert spec["annotations"] == {"a": "b", "draht.dev/hold": "h1"}
    assert spec["process"]["user"] == {"uid": 0, "gid": 0, "additionalGids": [44]}
    assert "PATH=/mine" in spec["process"]["env"]
    assert len([entry for entry in spec["process"]["env"] if entry.startswith("PATH=")]) == 1
    assert spec["process"]["terminal"] is True
    assert spec["linux"]["resources"]["devices"] == [{"allow": False, "access": "rwm"}]
    kinds = [namespace["type"] for namespace in spec["linux"]["namespaces"]]
    assert "network" in kinds
    host = runtime_spec(request(network="host"))
    assert "network" not in [namespace["type"] for namespace in host["linux"]["namespaces"]]


def test_cdi_edits_land_in_the_runtime_spec(tmp_path: Path) -> None:
    """What a spec offers is in config.json, cgroup rule included; the real runc runs it in the engine tests."""
    spec = cdi.Spec(
        cdi_version="0.5.0",
        kind="vendor.example/gpu",
        devices=(
            cdi.Device(
                name="0",
                container_edits=cdi.ContainerEdits(
                    env=("GPU=0",),
                    device_nodes=(cdi.DeviceNode(path="/dev/gpu0", type="c", major=195, minor=0, permissions="rw"),),
                ),
            ),
        ),
    )
    cdi.write_spec(spec, tmp_path, "gpu")
    config = runtime_spec(request())
    cdi.Cache([tmp_path]).inject(config, ["vendor.example/gpu=0"])
    assert config["linux"]["devices"] == [{"path": "/dev/gpu0", "type": "c", "major": 195, "minor": 0}]
    assert config["linux"]["resources"]["devices"][-1] == {
        "allow": True, "type": "c", "major": 195, "minor": 0, "access": "rw"
    }  # fmt: skip
    assert "GPU=0" in config["process"]["env"]


def test_a_bundle_that_runc_knows_nothing_of_is_listed_and_can_be_removed(client: FakeClient, tmp_path: Path) -> None:
    """What a killed draht has left between bundle and container still says whose it was."""
    adapter = runc(client, tmp_path)
    place = tmp_path / "state/runc/bundles/draht-h1"
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(runtime_spec(request(cdi_names=("a.b/c=d",)))), encoding="utf-8")
    (found,) = adapter.containers()
    assert found == Container(
        engine="runc",
        id="draht-h1",
        name="draht-h1",
        hold="h1",
        state="created",
        cdi_names=("a.b/c=d",),
        labels={"draht.dev/hold": "h1", "draht.dev/cdi": "a.b/c=d"},
    )
    adapter.remove("draht-h1")
    adapter.remove("draht-h1")
    assert adapter.containers() == []
    assert not place.exists()


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[]", b'{"annotations": 3', b"{" * 100_000])
def test_a_bundle_with_a_broken_configuration_hides_no_other(
    client: FakeClient, tmp_path: Path, content: bytes
) -> None:
    """It is listed without a hold."""
    for name in ("bad", "good"):
        (tmp_path / "state/runc/bundles" / name).mkdir(parents=True)
    (tmp_path / "state/runc/bundles/bad/config.json").write_bytes(content)
    good = json.dumps(runtime_spec(request()))
    (tmp_path / "state/runc/bundles/good/config.json").write_text(good, encoding="utf-8")
    assert [(found.id, found.hold) for found in runc(client, tmp_path).containers()] == [("bad", None), ("good", "h1")]


def test_other_callers_containers_are_listed_and_podman_s_are_left_to_podman(
    client: FakeClient, tmp_path: Path
) -> None:
    """With the nodes that their bundles say, and never as ours to remove."""
    (tmp_path / "root/run/runc").mkdir(parents=True)
    (tmp_path / "root/run/containerd/runc/k8s.io").mkdir(parents=True)
    (tmp_path / "root/run/containerd/runc/moby").mkdir(parents=True)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    config = {"linux": {"devices": [{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}]}}
    (bundle / "config.json").write_text(json.dumps(config), encoding="utf-8")
    client.answer(
        "list",
        [
            {"id": "pod", "status": "running", "pid": 77, "bundle": str(bundle), "created": "2026-01-01T00:00:00Z"},
            {"id": "p", "status": "running", "annotations": {"io.container.manager": "libpod"}},
        ],
    )
    found = runc(client, tmp_path).containers()
    assert [(one.id, one.pid, one.hold) for one in found] == [("pod", 77, None)] * 2
    assert found[0].device_nodes[0].major == 195
    assert [call[1] for call in client.calls("list")] == [
        str(tmp_path / "root/run/runc"), str(tmp_path / "root/run/containerd/runc/k8s.io")
    ]  # fmt: skip


def test_a_runc_that_fails_says_so_instead_of_listing_nothing(client: FakeClient, tmp_path: Path) -> None:
    """Its own state can't be read: holds on it must be kept. Other callers' state may be unreadable."""
    (tmp_path / "state/runc/state").mkdir(parents=True)
    client.answer("list", stderr='time="x" level=error msg="permission denied"', status=1)
    with pytest.raises(EngineError, match="runc can't list containers: permission denied"):
        runc(client, tmp_path).containers()


def test_a_container_that_goes_while_it_is_listed_hides_no_other(client: FakeClient, tmp_path: Path) -> None:
    """``runc list`` then fails as a whole, so the containers are asked for one by one."""
    for name in ("gone", "going", "here"):
        (tmp_path / "state/runc/state" / name).mkdir(parents=True)
    client.answer("list", stderr="stat /x/state/gone: no such file or directory", status=1)
    client.answer("state gone", stderr='container "gone" does not exist', status=1)
    client.answer("state going", stderr="open /x/state/going/state.json: no such file or directory", status=1)
    client.answer("state here", {"id": "here", "status": "created", "pid": 7, "annotations": {"draht.dev/hold": "h"}})
    assert [(one.id, one.state, one.hold) for one in runc(client, tmp_path).containers()] == [("here", "created", "h")]
    client.answer("state here", stderr="permission denied", status=1)
    with pytest.raises(EngineError, match="can't tell a container's state: permission denied"):
        runc(client, tmp_path).containers()


def test_a_container_made_elsewhere_can_t_be_attached_to(client: FakeClient, tmp_path: Path) -> None:
    """Its exit status would be unknown."""
    with pytest.raises(EngineError, match="was not created attached by this process"):
        runc(client, tmp_path).start("draht-h1", attach=True)


def test_a_second_container_of_a_name_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    """The bundle appears in one rename, so two creators can't share it."""
    require(os.geteuid() == 0, "mounting needs root")
    bundles = Bundles(tmp_path / "bundles")
    (tmp_path / "lower").mkdir()
    bundles.create("one", {"annotations": {"a": "1"}}, str(tmp_path / "lower"))
    try:
        with pytest.raises(EngineError, match="there is a container one already"):
            bundles.create("one", {"annotations": {"a": "2"}}, str(tmp_path / "lower"))
        assert bundles.config("one") == {"annotations": {"a": "1"}}
        assert bundles.ids() == ["one"]
        assert [path.name for path in (tmp_path / "bundles").iterdir()] == ["one"]
    finally:
        bundles.remove("one")


def test_a_root_file_system_that_stays_mounted_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be unmounted may be the user's own directory, so its bundle stays until it can."""
    user = tmp_path / "user"
    user.mkdir()
    (user / "precious").touch()
    bundles = Bundles(tmp_path / "bundles")
    place = bundles.path("one")
    (place / "rootfs").mkdir(parents=True)
    if os.geteuid() == 0:
        monkeypatch.setattr(bundles, "_libc", SimpleNamespace(umount2=lambda _path, _flags: -1))
        subprocess.run(["mount", "--bind", user, place / "rootfs"], check=True)
    else:
        (place / "rootfs" / "precious").touch()
    try:
        with pytest.raises(EngineError, match="can't be unmounted"):
            bundles.remove("one")
        assert (place / "rootfs" / "precious").exists()
        assert os.geteuid() != 0 or (user / "precious").exists()
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", place / "rootfs"], check=True)
    monkeypatch.undo()
    (place / "rootfs" / "precious").unlink(missing_ok=True)
    bundles.remove("one")
    assert bundles.ids() == []


def test_a_root_file_system_with_odd_characters_is_mounted_and_kept_clean(tmp_path: Path) -> None:
    """Separators of mount options in the path are no injection, and writes stay in the bundle."""
    require(os.geteuid() == 0, "mounting needs root")
    lower = tmp_path / "a:b,upperdir=c\\d e"
    lower.mkdir()
    (lower / "file").write_text("lower", encoding="ascii")
    bundles = Bundles(tmp_path / "bundles")
    place = bundles.create("one", {}, str(lower))
    try:
        assert (place / "rootfs/file").read_text(encoding="ascii") == "lower"
        (place / "rootfs/new").write_text("x", encoding="ascii")
        assert [path.name for path in lower.iterdir()] == ["file"]
    finally:
        bundles.remove("one")
    assert "draht" not in [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert not place.exists()
    assert (lower / "file").exists()


def test_what_a_killed_creator_has_left_is_swept_by_the_next_one(tmp_path: Path) -> None:
    """A bundle under construction belongs to a process; it goes when that process is gone, and stays while it lives."""
    require(os.geteuid() == 0, "mounting needs root")
    directory = tmp_path / "bundles"
    (directory / ".new-4194999-dead").mkdir(parents=True)
    (directory / f".new-{os.getpid()}-alive").mkdir()
    bundles = Bundles(directory)
    assert bundles.ids() == []
    bundles.create("one", {}, str(tmp_path))
    bundles.remove("one")
    assert [path.name for path in directory.iterdir()] == [f".new-{os.getpid()}-alive"]


def test_a_bundle_directory_that_can_t_be_written_is_one_sentence(tmp_path: Path) -> None:
    """With a hint, and nothing left."""
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match="bundle can't be written: file exists") as failure:
        Bundles(tmp_path / "file").create("one", {}, "/")
    assert "draht doctor" in str(failure.value.hint)
