"""The parts of the test cluster that can be judged without starting it."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cluster_programs
from cluster import forwarder, images, limits, network, place, ports, profile, runtime, space
from cluster.component import Component
from cluster.errors import ClusterError
from cluster.network import Network
from go_programs import Module


@pytest.mark.parametrize("name", ["a", "draht", "t12345", "a-b", "a234567890123456"])
def test_short_labels_name_clusters(name: str) -> None:
    """What becomes part of node names and of paths of sockets is a short DNS label."""
    assert place.directory_of(name).name == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "1a", "a_b", "a/b", "..", "a" * 17, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    """Names that couldn't be used, or would lead out of the directory, are refused in one sentence."""
    with pytest.raises(ClusterError, match="can't name a cluster"):
        place.directory_of(name)


def test_paths_of_sockets_are_short_enough() -> None:
    """With the longest name, the longest socket that plugins usually have fits into a socket's 107 bytes."""
    node = place.directory_of("a" * 16) / "n9"
    registration = node / "kubelet" / "plugins_registry" / "dra.example.com-reg.sock"
    assert len(os.fsencode(registration)) <= 107


def test_a_record_says_whose_a_cluster_is(tmp_path: Path) -> None:
    """A cluster of this process isn't abandoned, one without a record is, one that is to stay never."""
    assert place.is_abandoned(tmp_path)
    place.write_record(tmp_path, {"version": "1.37"}, outlives=False)
    assert not place.is_abandoned(tmp_path)
    record = json.loads((tmp_path / "cluster.json").read_text())
    record["owner"]["started"] = "1"  # the id was given to another process
    (tmp_path / "cluster.json").write_text(json.dumps(record))
    assert place.is_abandoned(tmp_path)
    place.write_record(tmp_path, {"version": "1.37"}, outlives=True)
    assert not place.is_abandoned(tmp_path)


def test_a_lock_that_is_held_can_be_passed_by() -> None:
    """Who doesn't want to wait learns that somebody else is at work."""
    name = f"p{os.getpid()}"
    with place.locked(name) as first, place.locked(name, wait=False) as second:
        assert (first, second) == (True, False)
    with place.locked(name, wait=False) as third:
        assert third
    assert not (place.base() / f".lock-{name}").exists()


def test_a_lock_is_held_by_one_at_a_time() -> None:
    """Many that want the same lock get it one after the other, although its file goes with each."""
    inside: list[int] = []
    most: list[int] = []

    def want(number: int) -> None:
        for _ in range(20):
            with place.locked(f"p{os.getpid()}"):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(want, range(4)))
    assert most == [1] * 80


def test_free_ports_are_different_ones() -> None:
    """As many ports as wanted, none twice, none from the range of outgoing connections."""
    found = ports.free(20)
    assert len(set(found)) == 20
    assert all(port in ports.RANGE for port in found)


def test_addresses_of_a_network_do_not_meet(tmp_path: Path) -> None:
    """Nodes, the API server, the machine and the pods of each node have different addresses of one network."""
    made = Network(201, network.bridge_of(tmp_path))
    assert len(made.bridge) <= 15
    whole = ipaddress.IPv4Network("10.201.0.0/16")
    pods = []
    for index in range(10):
        plugin = json.loads(made.cni(index, tmp_path))["plugins"][0]
        assert plugin["bridge"] == made.bridge
        addresses = plugin["ipam"]["ranges"][0][0]
        first, last = (ipaddress.IPv4Address(addresses[end]) for end in ("rangeStart", "rangeEnd"))
        pods += [list(ipaddress.summarize_address_range(first, last))]
    others = [made.gateway, str(made.services[1]), *(made.node_address(index) for index in range(10))]
    assert len(set(others)) == len(others)
    for address in map(ipaddress.IPv4Address, others):
        assert address in whole
        assert not any(address in block for node in pods for block in node)
    blocks = [block for node in pods for block in node]
    assert not any(one.overlaps(other) for one in blocks for other in blocks if one is not other)
    assert all(block.subnet_of(whole) and not block.overlaps(made.services) for block in blocks)


def test_a_network_that_the_machine_knows_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks that overlap with a route, a wider or a narrower one, are passed over; if all do, that is said."""
    known = [{"dst": "default"}, {"dst": "10.200.0.0/15"}, {"dst": "10.202.7.0/24"}, {"dst": "10.203.0.1"}]
    monkeypatch.setattr(network, "_routes", lambda: known)
    assert Network.choose(tmp_path).second == 204
    known.append({"dst": "10.0.0.0/8"})
    with pytest.raises(ClusterError, match="no network"):
        Network.choose(tmp_path)


def test_settings_become_toml() -> None:
    """Nested settings are read back as they were, also keys with dots."""
    settings = {"version": 3, "grpc": {"address": "/a b"}, "plugins": {"io.x.v1": {"on": True, "dirs": ["a"], "o": {}}}}
    assert tomllib.loads(runtime._toml(settings)) == settings


def test_images_are_a_whole_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every blob that the archive refers to is in it, with the size that is said."""

    def make_rootfs(directory: Path) -> Path:
        (directory / "sh").write_text("#!")
        return directory

    monkeypatch.setattr("busybox.make_rootfs", make_rootfs)
    images.write_archive(tmp_path / "images.tar")
    with tarfile.open(tmp_path / "images.tar") as archive:
        sizes = {member.name: member.size for member in archive.getmembers()}
        assert len(sizes) == len(archive.getmembers())

        def read(name: str) -> Any:
            file = archive.extractfile(name)
            assert file is not None
            return json.load(file)

        seen = set()
        waiting = read("index.json")["manifests"]
        while waiting:
            blob = waiting.pop()
            path = f"blobs/{blob['digest'].replace(':', '/')}"
            assert sizes[path] == blob["size"]
            seen.add(path)
            if blob["mediaType"] == images.MANIFEST:
                manifest = read(path)
                waiting += [manifest["config"], *manifest["layers"]]
        assert seen == {name for name in sizes if name.startswith("blobs/")}


def test_profiles_are_known_by_release() -> None:
    """Every release has its profile; a gate that doesn't exist there isn't asked for."""
    assert profile.profile("1.37", "default").gate_flags == []
    assert "resource.k8s.io/v1beta1=true" in profile.profile("1.33", "default").runtime_config
    with pytest.raises(ValueError, match=r"no profile 'alpha' of Kubernetes 1\.33"):
        profile.profile("1.33", "alpha")


@pytest.mark.parametrize("module", [*cluster_programs.MODULES, *cluster_programs.OLDER], ids=lambda m: m.directory.name)
def test_modules_pin_what_is_built(module: Module) -> None:
    """Each module has a lock file, names its programs as Go does, and pins the versions that are told to them."""
    assert (module.directory / "go.sum").is_file()
    for path in module.versions.values():
        assert module.pinned_version(path)
    if len(module.packages) > 1:
        assert all(package.endswith(f"/{name}") for name, package in module.packages.items())
    with pytest.raises(ValueError, match="doesn't pin"):
        module.pinned_version("example.com/nothing")


def test_a_component_that_ends_is_an_error_with_its_log(tmp_path: Path) -> None:
    """Waiting for a program that ends, or that isn't ready in time, shows what it said last."""
    ends = Component("ends", tmp_path, ["sh", "-c", "echo it broke; exit 3"])
    ends.start()
    with pytest.raises(ClusterError, match=r"ends ended with status 3\nit broke"):
        ends.wait_until(lambda: False, patience=30)
    slow = Component("slow", tmp_path, ["sh", "-c", "echo still starting; exec sleep 100"])
    slow.start()
    again = Component("slow", tmp_path, ["never", "started"])
    assert again.pid == slow.pid is not None  # another process knows it by its record
    with pytest.raises(ClusterError, match=r"slow wasn't ready within 0 s\n"):
        slow.wait_until(lambda: False, patience=0.3)
    slow.stop()
    assert slow.pid is again.pid is None


def test_a_component_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """A program that ignores SIGTERM ends all the same."""
    deaf = Component(
        "deaf", tmp_path, ["sh", "-c", f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.1; done"]
    )
    deaf.start()
    deaf.wait_until((tmp_path / "ready").exists, patience=30)
    deaf.stop(patience=0.2)
    assert deaf.pid is None


def test_a_forwarder_passes_bytes_both_ways() -> None:
    """What a client sends reaches the server, the answer comes back, and each end learns that the other is done."""

    async def run() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"heard " + await reader.read())
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        target = server.sockets[0].getsockname()[1]
        (port,) = ports.free(1)
        task = asyncio.create_task(forwarder.serve("127.0.0.1", port, target))
        for _ in range(200):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.01)
        writer.write(b"x" * 100_000)
        writer.write_eof()
        answered = await reader.read()
        writer.close()
        server.close()
        task.cancel()
        return answered

    assert asyncio.run(run()) == b"heard " + b"x" * 100_000


def test_a_limit_is_raised_once(tmp_path: Path) -> None:
    """A low limit is raised, one that is high enough stays as it is."""
    setting = tmp_path / "max_user_instances"
    for before, after in ((128, limits.ENOUGH), (limits.ENOUGH * 2, limits.ENOUGH * 2)):
        setting.write_text(f"{before}\n")
        limits.raise_inotify_instances(setting)
        assert int(setting.read_text()) == after


@pytest.mark.parametrize(
    ("mounted", "found"),
    [
        (
            "30 20 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            [("/sys/fs/cgroup", "cgroup2", "rw")],
        ),
        (
            (
                "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                "33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd\n"
                "34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                "35 20 0:32 / /elsewhere rw - cgroup2 cgroup2 rw\n"
            ),
            [
                ("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct"),
                ("/sys/fs/cgroup/systemd", "cgroup", "rw,none,name=systemd"),
                ("/sys/fs/cgroup/unified", "cgroup2", "rw"),
            ],
        ),
    ],
)
def test_hierarchies_of_control_groups_are_found(mounted: str, found: list[tuple[str, str, str]]) -> None:
    """Both versions, side by side or alone, with the options that mount them again."""
    assert [(str(where), kind, options) for where, kind, options in space.hierarchies(mounted)] == found


def test_the_command_line_refuses_in_one_sentence() -> None:
    """What can't be done is said without a traceback."""
    command = [sys.executable, str(Path(__file__).parent)]
    for arguments, said in (
        (["down", "--name", "No"], "can't name a cluster"),
        (["shell", "--name", "nobody-has-it"], "no cluster 'nobody-has-it' runs"),
        (["up", "--version", "1.33", "--gates", "alpha"], "no profile 'alpha'"),
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
