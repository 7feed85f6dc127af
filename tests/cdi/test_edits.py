"""Edits applied to an OCI runtime spec: order, replacement, what the host adds, and that failures change nothing."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest

from draht import cdi

NULL = Path("/dev/null").stat()


class FakeHost:
    """A host with the device nodes it is given."""

    def __init__(self, **nodes: cdi.HostNode) -> None:
        self.nodes = {f"/dev/{name}": node for name, node in nodes.items()}
        self.asked: list[str] = []

    def node(self, path: str) -> cdi.HostNode:
        """The node at a path."""
        self.asked.append(path)
        if path not in self.nodes:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.nodes[path]


HOST = FakeHost(
    gpu=cdi.HostNode("c", 195, 7, 0o660), disk=cdi.HostNode("b", 8, 1, 0o600), pipe=cdi.HostNode("p", 0, 0, 0o644)
)


def applied(oci: dict[str, Any], host: cdi.HostNodes = HOST, **edits: Any) -> dict[str, Any]:
    """A runtime spec after some edits."""
    cdi.apply(cdi.ContainerEdits(**edits), oci, host)
    return oci


def test_no_edits_change_nothing() -> None:
    """Empty edits add no sections, and don't even sort mounts."""
    oci: dict[str, Any] = {"mounts": [{"destination": "/a/b"}, {"destination": "/"}]}
    assert applied(copy.deepcopy(oci)) == oci


def test_a_variable_replaces_the_last_one_of_its_name() -> None:
    """A variable that is there is replaced where it stands, others are appended, and later edits replace earlier."""
    oci = {"process": {"env": ["A=1", "B=1", "A=2", "bare"]}}
    assert applied(oci, env=("A=new", "C=1", "bare=x", "C=2"))["process"]["env"] == [
        "A=1",
        "B=1",
        "A=new",
        "bare=x",
        "C=2",
    ]


def test_a_device_node_is_filled_from_the_host() -> None:
    """What a node leaves open comes from its host path; the node in the edits stays as it is."""
    node = cdi.DeviceNode(path="/dev/x", host_path="/dev/gpu")
    oci = applied({}, device_nodes=(node,))
    assert oci["linux"]["devices"] == [{"path": "/dev/x", "type": "c", "major": 195, "minor": 7, "fileMode": 0o660}]
    assert oci["linux"]["resources"]["devices"] == [
        {"allow": True, "type": "c", "major": 195, "minor": 7, "access": "rwm"}
    ]
    assert node == cdi.DeviceNode(path="/dev/x", host_path="/dev/gpu")


@pytest.mark.parametrize(
    ("node", "device"),
    [
        ({"path": "/dev/gpu", "type": "c"}, {"type": "c", "major": 195, "minor": 7, "fileMode": 0o660}),
        ({"path": "/dev/gpu", "major": 9, "minor": 9}, {"type": "c", "major": 9, "minor": 9, "fileMode": 0o660}),
        ({"path": "/dev/gpu", "minor": 9}, {"type": "c", "major": 195, "minor": 7, "fileMode": 0o660}),
        ({"path": "/dev/gpu", "type": "b", "major": 9}, {"type": "b", "major": 9, "minor": 0, "fileMode": 0o660}),
        ({"path": "/dev/gpu", "file_mode": 0}, {"type": "c", "major": 195, "minor": 7, "fileMode": 0}),
        ({"path": "/dev/gone", "type": "c", "major": 9}, {"type": "c", "major": 9, "minor": 0}),
        ({"path": "/dev/gone", "type": "u", "major": 9, "uid": 0}, {"type": "u", "major": 9, "minor": 0, "uid": 0}),
        ({"path": "/dev/gone", "type": "p"}, {"type": "p", "major": 0, "minor": 0}),
        ({"path": "/dev/pipe"}, {"type": "p", "major": 0, "minor": 0, "fileMode": 0o644}),
        (
            {"path": "/dev/disk", "uid": 5, "gid": 0},
            {"type": "b", "major": 8, "minor": 1, "fileMode": 0o600, "uid": 5, "gid": 0},
        ),
    ],
)
def test_what_the_host_adds_to_a_node(node: dict[str, Any], device: dict[str, Any]) -> None:
    """A node with type and number only gets its mode, and needs no host at all; the rest is looked up."""
    assert applied({}, device_nodes=(cdi.DeviceNode(**node),))["linux"]["devices"] == [{"path": node["path"], **device}]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"path": "/dev/gone"}, "no such file or directory"),
        ({"path": "/dev/gone", "type": "c"}, "no such file or directory"),
        ({"path": "/dev/gone", "major": 5}, "no such file or directory"),
        ({"path": "/dev/gpu", "type": "b"}, "wants a node of type b, the host has one of type c"),
        ({"path": "/dev/gpu", "type": "u"}, "wants a node of type u, the host has one of type c"),
    ],
)
def test_an_incomplete_node_needs_the_host(node: dict[str, Any], message: str) -> None:
    """The error names the path on the host, and nothing of the runtime spec has changed."""
    oci: dict[str, Any] = {"process": {"env": ["A=1"]}, "linux": {"devices": []}}
    before = copy.deepcopy(oci)
    with pytest.raises(cdi.HostDeviceError, match=message) as failed:
        applied(oci, env=("A=2",), device_nodes=(cdi.DeviceNode(path="/dev/gpu"), cdi.DeviceNode(**node)))
    assert failed.value.path == node["path"]
    assert oci == before


def test_the_real_host_is_asked_without_following_links(tmp_path: Path) -> None:
    """Below a root, device nodes, FIFOs, links, files and impossible paths are told apart."""
    os.mkfifo(tmp_path / "pipe", 0o640)
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "file").touch()
    below, real = cdi.HostDevices(tmp_path), cdi.HostDevices()
    assert real.node("/dev/null") == ("c", os.major(NULL.st_rdev), os.minor(NULL.st_rdev), NULL.st_mode & 0o7777)
    assert below.node("/pipe") == ("p", 0, 0, 0o640)
    for path, problem in (("/link", "a symbolic link"), ("/file", "not a device node"), ("/nul\0", "null")):
        with pytest.raises(ValueError, match=problem):
            below.node(path)
    with pytest.raises(FileNotFoundError):
        below.node("/dev/null")


def test_devices_replace_those_of_their_path() -> None:
    """A node takes the place of the first of its path; with two of them there, the second's place."""
    devices = [{"path": path, "type": "c", "major": 1, "minor": number} for number, path in enumerate("xayxbx")]
    oci = applied({"linux": {"devices": devices}}, device_nodes=(cdi.DeviceNode(path="x", type="c", major=9),) * 2)
    shown = "".join(f"{device['path']}{device['major']}" for device in oci["linux"]["devices"])
    assert shown == "a1y1b1x9"
    one = applied({"linux": {"devices": devices[:4]}}, device_nodes=(cdi.DeviceNode(path="x", type="c", major=9),))
    assert "".join(f"{device['path']}{device['major']}" for device in one["linux"]["devices"]) == "a1y1x9"
    assert len(oci["linux"]["resources"]["devices"]) == 2


@pytest.mark.parametrize(
    ("permissions", "rule"),
    [("", {"access": "rwm"}), ("r", {"access": "r"}), ("none", {})],
)
def test_a_cgroup_rule_follows_the_permissions(permissions: str, rule: dict[str, str]) -> None:
    """Empty permissions are all of them, ``none`` are none; the rules that are there stay before it."""
    node = cdi.DeviceNode(path="/dev/gpu", permissions=permissions)
    oci = applied({"linux": {"resources": {"devices": [{"allow": False}], "pids": {}}}}, device_nodes=(node,))
    expected = {"allow": True, "type": "c", "major": 195, "minor": 7, **rule}
    assert oci["linux"]["resources"] == {"devices": [{"allow": False}, expected], "pids": {}}


@pytest.mark.parametrize("kind", ["u", "p"])
def test_only_block_and_character_devices_get_a_rule(kind: str) -> None:
    """The kernel's device rules know no FIFOs, and upstream leaves ``u`` out too."""
    oci = applied({}, device_nodes=(cdi.DeviceNode(path="/dev/x", type=kind, major=1),))
    assert "resources" not in oci["linux"]


@pytest.mark.parametrize(
    ("user", "owner"),
    [({"uid": 5, "gid": 6}, {"uid": 5, "gid": 6}), ({"uid": 0, "gid": 0}, {}), ({"gid": 6}, {"gid": 6}), (None, {})],
)
def test_a_node_belongs_to_the_user_of_the_process(user: dict[str, int] | None, owner: dict[str, int]) -> None:
    """A node without owner gets the container's user and group, unless that is root."""
    (device,) = applied({"process": {"user": user}}, device_nodes=(cdi.DeviceNode(path="/dev/gpu"),))["linux"][
        "devices"
    ]
    assert {key: device[key] for key in ("uid", "gid") if key in device} == owner


def test_mounts_replace_and_are_sorted_by_depth() -> None:
    """A mount takes the place of the first of its destination; then all are sorted, stably, shallow ones first."""
    oci = {"mounts": [{"destination": path} for path in ("/a/b/c", "/x", "/a//b/", "/x", "", "relative", "//y")]}
    mounts = applied(oci, mounts=(cdi.Mount(host_path="/h", container_path="/x", options=("ro",), type="bind"),))[
        "mounts"
    ]
    assert [mount["destination"] for mount in mounts] == ["", "relative", "/x", "//y", "/x", "/a//b/", "/a/b/c"]
    assert mounts[4] == {"destination": "/x", "type": "bind", "source": "/h", "options": ["ro"]}


@pytest.mark.parametrize(
    ("mount", "options"),
    [
        ({"type": "bind"}, ["idmap"]),
        ({"options": ("bind",)}, ["bind", "idmap"]),
        ({"options": ("rbind", "ro")}, ["rbind", "ro", "ridmap"]),
        ({"options": ("bind", "rbind")}, ["bind", "rbind", "ridmap"]),
        ({"options": ("bind", "ridmap")}, ["bind", "ridmap"]),
        ({"type": "tmpfs"}, None),
    ],
)
def test_bind_mounts_are_mapped_in_a_user_namespace(mount: dict[str, Any], options: list[str] | None) -> None:
    """Where the container has a user namespace with both mappings, bind mounts get the option for it; else not."""
    linux = {"namespaces": [{"type": "user"}], "uidMappings": [{}], "gidMappings": [{}]}
    edits = (cdi.Mount(host_path="/h", container_path="/x", **mount),)
    assert applied({"linux": linux}, mounts=edits)["mounts"][0].get("options") == options
    for lacking in ({**linux, "gidMappings": []}, {**linux, "namespaces": [{"type": "pid"}]}, None):
        plain = applied({"linux": lacking}, mounts=edits)["mounts"][0]
        assert plain.get("options") == (list(mount["options"]) if "options" in mount else None)


def test_hooks_rdt_groups_and_interfaces() -> None:
    """Hooks are appended at their point, RDT is replaced as a whole, groups appear once, interfaces by host name."""
    oci = applied(
        {
            "hooks": {"prestart": [{"path": "/old"}]},
            "linux": {"intelRdt": {"closID": "old", "memBwSchema": "x"}, "netDevices": {"eth0": {"name": "old"}}},
            "process": {"user": {"additionalGids": [7]}},
        },
        hooks=(
            cdi.Hook(hook_name="prestart", path="/new", args=("a",), env=("A=B",), timeout=0),
            cdi.Hook(hook_name="createContainer", path="/c"),
        ),
        intel_rdt=cdi.IntelRdt(clos_id="new", schemata=(), enable_monitoring=True),
        additional_gids=(0, 7, 9, 9),
        net_devices=(cdi.NetDevice(host_interface_name="eth0", name="a"),),
    )
    assert oci == {
        "hooks": {
            "prestart": [{"path": "/old"}, {"path": "/new", "args": ["a"], "env": ["A=B"], "timeout": 0}],
            "createContainer": [{"path": "/c"}],
        },
        "linux": {"intelRdt": {"closID": "new", "enableMonitoring": True}, "netDevices": {"eth0": {"name": "a"}}},
        "process": {"user": {"additionalGids": [7, 9]}},
    }


def test_edits_that_clash_only_together_are_refused() -> None:
    """Two devices that move the same interface can't go into one container."""
    part = cdi.ContainerEdits(net_devices=(cdi.NetDevice(host_interface_name="eth0", name="a"),))
    with pytest.raises(cdi.InjectionError, match=r"netDevices\[0\] has hostInterfaceName 'eth0' already"):
        cdi.apply(cdi.collect([part, part]), {}, HOST)


def test_the_last_rdt_settings_win() -> None:
    """Collected edits are one list after the other, but only one RDT object."""
    parts = [
        cdi.ContainerEdits(env=("A=1",), intel_rdt=cdi.IntelRdt(clos_id="a")),
        cdi.ContainerEdits(env=("B=1",), intel_rdt=cdi.IntelRdt(clos_id="b")),
        cdi.ContainerEdits(env=("A=1",)),
    ]
    collected = cdi.collect(parts)
    assert collected.env == ("A=1", "B=1", "A=1")
    assert collected.intel_rdt == cdi.IntelRdt(clos_id="b")


@pytest.mark.parametrize(
    "oci",
    [
        {"process": []},
        {"process": {"env": "A=B"}},
        {"process": {"env": []}, "linux": "x"},
        {"linux": {"devices": {}}},
        {"linux": {"resources": {"devices": 5}}},
        {"mounts": {}},
        {"hooks": {"prestart": {}}},
        {"process": {"user": {"additionalGids": "x"}}},
        {"linux": {"netDevices": []}},
        {"process": {"env": [{}]}},
        {"process": {"user": {"uid": []}}},
        {"process": {"user": {"additionalGids": [{}]}}},
        {"linux": {"devices": [{"path": {}}]}},
        {"linux": {"devices": ["/dev/gpu"]}},
        {"mounts": [{"destination": "/a"}, {"destination": ["/b"]}]},
    ],
)
def test_a_malformed_runtime_spec_is_refused_and_unchanged(oci: dict[str, Any]) -> None:
    """A section of a wrong type ends the injection with one sentence before anything has changed."""
    before = copy.deepcopy(oci)
    with pytest.raises(cdi.InjectionError, match=r"the OCI spec's .* is not (an object|a list|a number)"):
        applied(
            oci,
            env=("A=B",),
            device_nodes=(cdi.DeviceNode(path="/dev/gpu"),),
            mounts=(cdi.Mount(host_path="a", container_path="b"),),
            hooks=(cdi.Hook(hook_name="prestart", path="x"),),
            additional_gids=(5,),
            net_devices=(cdi.NetDevice(host_interface_name="a", name="b"),),
        )
    assert oci == before


def test_a_runtime_spec_is_not_shared_with_its_copy() -> None:
    """Injecting into a shallow copy leaves the original alone: what changes is copied first."""
    original: dict[str, Any] = {"process": {"env": ["A=1"]}, "mounts": [], "linux": {"devices": []}}
    shallow = dict(original)
    applied(shallow, env=("B=1",), device_nodes=(cdi.DeviceNode(path="/dev/gpu"),))
    assert original == {"process": {"env": ["A=1"]}, "mounts": [], "linux": {"devices": []}}


def test_large_edits_stay_cheap() -> None:
    """Tens of thousands of mounts, nodes and groups are found by key, not by going through the list for each."""
    many = range(40_000)
    oci = applied(
        {},
        mounts=tuple(cdi.Mount(host_path="/h", container_path=f"/m/{number}") for number in many),
        device_nodes=tuple(cdi.DeviceNode(path=f"/dev/{number}", type="c", major=1) for number in many),
        additional_gids=tuple(many),
    )
    assert (len(oci["mounts"]), len(oci["linux"]["devices"])) == (40_000, 40_000)
