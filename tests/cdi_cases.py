"""Random CDI specs and runtime specs for the comparisons with the Go library; ``cdi_texts`` writes them down.

Owns the generators; everything comes from one `random.Random`, so a seed is a case. Values are chosen to meet the rules
of decoding and validation from both sides: most specs are nearly right, because nothing is learnt from noise.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

__all__ = ["NAMES", "Value", "cases", "first_seed", "oci_spec", "spec_value"]

Value = Any


def cases(default: int = 2000) -> int:
    """How many cases to run: ``DRAHT_FUZZ_CASES``, or what a normal run takes."""
    return int(os.environ.get("DRAHT_FUZZ_CASES", default))


def first_seed() -> int:
    """The first seed of a long run; ``DRAHT_FUZZ_SEED`` repeats a case that was reported."""
    return int(os.environ.get("DRAHT_FUZZ_SEED", "1000000"))


VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
NAMES = (
    "0",
    "gpu0",
    "all",
    "a",
    "GPU-1b2c",
    "mig1:0",
    "x.y",
    "0:1",
    "9a",
    "-a",
    "a-",
    "a b",
    "",
    "é",
    "a/b",
    "dev_1",
    "Z",
)
KINDS = (
    "nvidia.com/gpu",
    "vendor.com/device",
    "a/b",
    "v/c.d",
    "v1/c2",
    "vendor/",
    "/x",
    "novendor",
    "",
    "1v/c",
    "v-/c",
    "v/c/d",
)
PATHS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/x", "relative", "", "/a/../b", "/dev/with space", "/dev/Ünïcode")
ENV = ("A=B", "PATH=/bin", "A=", "NVIDIA_VISIBLE_DEVICES=void", "=x", "novalue", "", "B=1=2", "LANG=C", "X= y ", "E=é")
GOOD = 0.993
"""How often a field is given a value that is right."""


def pick(rng: random.Random, good: tuple[Value, ...], bad: tuple[Value, ...] = ()) -> Value:
    return rng.choice(bad) if bad and rng.random() > GOOD else rng.choice(good)


def some(rng: random.Random, make: Callable[[random.Random], Value], most: int = 3) -> list[Value]:
    return [make(rng) for _ in range(rng.randint(0, most))]


def fields(
    rng: random.Random, always: dict[str, Value], sometimes: dict[str, Callable[[], Value]], share: float
) -> Value:
    result = {key: value for key, value in always.items() if rng.random() < 0.999}
    result.update({key: make() for key, make in sometimes.items() if rng.random() < share})
    return result


def device_node(rng: random.Random) -> Value:
    return fields(
        rng,
        {"path": pick(rng, ("/dev/null", "/dev/zero", "/dev/full", "/dev/null2", "/dev/x"), PATHS)},
        {
            "hostPath": lambda: pick(rng, ("/dev/null", "/dev/zero", "/dev/urandom", ""), PATHS),
            "type": lambda: pick(rng, ("c", "b", "u", "p", ""), ("x", "cc", "C")),
            "major": lambda: pick(rng, (0, 1, 195, 1, 2**63 - 1), (-1, 2**63, 1.5, "1")),
            "minor": lambda: pick(rng, (0, 3, 5, 255), (-1, -(2**63), None)),
            "fileMode": lambda: pick(rng, (0, 438, 0o777, 2**32 - 1), (2**32, -1, "438")),
            "permissions": lambda: pick(
                rng, ("rwm", "r", "rw", "mmm", "", "none"), ("x", "r-w", "rwx", "none ", "NONE")
            ),
            "uid": lambda: pick(rng, (0, 1000, 2**32 - 1, None), (2**32, -1)),
            "gid": lambda: pick(rng, (0, 44, None), (-1, "video")),
        },
        0.35,
    )


def mount(rng: random.Random) -> Value:
    return fields(
        rng,
        {
            "hostPath": pick(rng, ("/lib/a.so", "/dev/shm", "/x"), ("", None)),
            "containerPath": pick(
                rng, ("/lib/a.so", "/", "/a/b/c", "//x//y", "/a/../b", "x", "/lib/b.so", "/etc/x/"), ("",)
            ),
        },
        {
            "options": lambda: some(rng, lambda r: r.choice(("ro", "bind", "rbind", "idmap", "ridmap", "nosuid")), 4),
            "type": lambda: pick(rng, ("bind", "tmpfs", "", "none")),
        },
        0.5,
    )


def hook(rng: random.Random) -> Value:
    return fields(
        rng,
        {
            "hookName": pick(
                rng,
                ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"),
                ("CreateContainer", "", "poststopped"),
            ),
            "path": pick(rng, ("/usr/bin/nvidia-ctk", "hook"), ("", None)),
        },
        {
            "args": lambda: some(rng, lambda r: r.choice(("nvidia-ctk", "--link", "a::b", "")), 3),
            "env": lambda: some(rng, lambda r: pick(r, ENV[:4], ENV), 2),
            "timeout": lambda: pick(rng, (0, 5, -5, None, 2**63 - 1), (2**63, 1.5, "5")),
        },
        0.4,
    )


def net_device(rng: random.Random) -> Value:
    return fields(
        rng,
        {
            "hostInterfaceName": pick(rng, ("eth0", "eth1", "ib0", "ib1", "ib2"), ("", None)),
            "name": pick(rng, ("net0", "net1", "net2", "net3", "net4"), ("",)),
        },
        {},
        0.0,
    )


def intel_rdt(rng: random.Random) -> Value:
    return fields(
        rng,
        {},
        {
            "closID": lambda: pick(rng, ("guaranteed", "/", ""), (".", "..", "a/b", "a\nb", "x" * 4096, "x" * 4095)),
            "l3CacheSchema": lambda: "L3:0=f",
            "memBwSchema": lambda: "MB:0=50",
            "schemata": lambda: pick(rng, ([], ["L3:0=f"], None, [None])),
            "enableMonitoring": lambda: pick(rng, (True, False, None), ("yes", 1)),
            "enableCMT": lambda: True,
        }
        if rng.random() < 0.03
        else {
            "closID": lambda: pick(rng, ("guaranteed", "/", ""), (".", "..", "a/b", "a\nb", "x" * 4096, "x" * 4095)),
            "l3CacheSchema": lambda: "L3:0=f",
            "schemata": lambda: pick(rng, ([], ["L3:0=f"], None, [None])),
            "enableMonitoring": lambda: pick(rng, (True, False, None)),
        },
        0.4,
    )


def edits(rng: random.Random, share: float = 0.3) -> Value:
    return fields(
        rng,
        {"env": some(rng, lambda r: pick(r, ENV[:4], ENV), 3) or ["A=1"]} if rng.random() < 0.6 else {},
        {
            "deviceNodes": lambda: some(rng, device_node),
            "netDevices": lambda: some(rng, net_device, 2) if rng.random() < 0.4 else [],
            "hooks": lambda: some(rng, hook, 2),
            "mounts": lambda: some(rng, mount),
            "intelRdt": lambda: intel_rdt(rng) if rng.random() < 0.4 else None,
            "additionalGids": lambda: some(rng, lambda r: pick(r, (0, 1, 44, 2**32 - 1), (2**32, -1, 1.5, None))),
        },
        share,
    )


def notes(rng: random.Random) -> Value:
    return {
        rng.choice(("a", "b.c/d", "x y", "1", "true", "", "<<")): rng.choice(("", "v", "1", "~", None))
        for _ in range(2)
    }


def spec_value(rng: random.Random, kind: str | None = None) -> dict[str, Value]:
    """A spec as builtin values, nearly always close to valid."""
    names = [rng.choice(NAMES[:9] if rng.random() < 0.95 else NAMES) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.9:
        names = list(dict.fromkeys(names))
    devices = [
        fields(rng, {"name": name, "containerEdits": edits(rng)}, {"annotations": lambda: notes(rng)}, 0.1)
        for name in (names if rng.random() < 0.98 else [])
    ]
    value: dict[str, Value] = fields(
        rng,
        {
            "cdiVersion": pick(
                rng, ("1.1.0",) * 12 + ("v1.1.0", *VERSIONS), ("", "0.2.0", "0.1.0", "1.2.0", "vv1.1.0", 1.1)
            ),
            "kind": kind or pick(rng, KINDS[:5], KINDS),
            "devices": devices,
        },
        {"annotations": lambda: notes(rng), "containerEdits": lambda: edits(rng)},
        0.3,
    )
    if rng.random() < 0.02:
        value[rng.choice(("CDIVersion", "Kind", "extra", "deviceNodes", "containeredits"))] = rng.choice((1, None, {}))
    return value


OCI_MOUNTS = ("/proc", "/dev", "/dev/shm", "/sys", "/lib/a.so", "/a/b/c", "/", "//x//y", "x", "/etc/resolv.conf")


def oci_spec(rng: random.Random) -> dict[str, Value]:
    """An OCI runtime spec with the parts that injection looks at, each of them missing now and then."""

    def maybe(share: float, make: Callable[[], Value]) -> Value:
        return make() if rng.random() < share else None

    user = maybe(
        0.8,
        lambda: {
            "uid": rng.choice((0, 1000)),
            "gid": rng.choice((0, 1000)),
            "additionalGids": maybe(0.5, lambda: some(rng, lambda r: r.choice((0, 1, 44)))),
        },
    )
    process = maybe(
        0.9,
        lambda: {
            "user": user,
            "cwd": "/",
            "args": ["sh"],
            "env": maybe(0.8, lambda: some(rng, lambda r: r.choice(ENV), 5)),
        },
    )
    mappings = [{"containerID": 0, "hostID": 1000, "size": 1}]
    linux = maybe(
        0.85,
        lambda: {
            "namespaces": maybe(0.8, lambda: some(rng, lambda r: {"type": r.choice(("user", "pid", "mount"))})),
            "uidMappings": maybe(0.5, lambda: mappings),
            "gidMappings": maybe(0.5, lambda: mappings),
            "devices": maybe(
                0.6,
                lambda: some(
                    rng,
                    lambda r: {
                        "path": r.choice(("/dev/null", "/dev/zero", "/dev/x")),
                        "type": "c",
                        "major": 9,
                        "minor": 9,
                    },
                    4,
                ),
            ),
            "resources": maybe(
                0.5, lambda: {"devices": maybe(0.7, lambda: [{"allow": False, "access": "rwm"}]), "pids": {"limit": 5}}
            ),
            "netDevices": maybe(0.3, lambda: {"eth0": {"name": "old"}}),
            "intelRdt": maybe(0.2, lambda: {"closID": "old", "memBwSchema": "MB:0=1"}),
        },
    )
    spec = {
        "ociVersion": "1.2.0",
        "process": process,
        "root": {"path": "rootfs"},
        "mounts": maybe(
            0.8,
            lambda: some(
                rng,
                lambda r: {
                    "destination": r.choice(OCI_MOUNTS),
                    "type": "tmpfs",
                    "source": str(r.randrange(9)),
                    "options": ["nosuid"],
                },
                6,
            ),
        ),
        "hooks": maybe(0.4, lambda: {"prestart": [{"path": "/bin/old"}], "createContainer": []}),
        "linux": linux,
        "annotations": {"io.x": "y"},
    }
    return {key: value for key, value in spec.items() if value is not None or rng.random() < 0.1}
