"""Machine profiles: the shipped ones are right, and a wrong one is refused with everything that is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from draht.hardware import mig, profiles
from draht.hardware.errors import ProfileError, UnknownProfileError
from draht.hardware.profiles.format import places
from draht.hardware.simulated import SimulatedProvider

GOOD = """\
name: lab
description: one GPU and one network card
synthetic: true
sources: [made up for this test]
cpu: {model: Some CPU, architecture: x86_64, sockets: 1, cores: 4, threads: 8}
memoryMiB: 65536
driver: {version: "550.90.07", cuda: "12.4"}
numa:
  - {id: 0, cpus: "0-7", memoryMiB: 65536, distances: [10]}
pcie:
  - root: pci0000:00
    numaNode: 0
    below:
      - rootPort: 0000:00:01.0
        below:
          - switch: 0000:01:00.0
            below:
              - downstreamPort: 0000:02:00.0
                below: [{device: 0000:03:00.0, model: h100-sxm5-80}]
              - downstreamPort: 0000:02:01.0
                below: [{device: 0000:04:00.0, model: l40s}]
              - downstreamPort: 0000:02:02.0
                below:
                  - device: 0000:05:00.0
                    model: connectx-7-ib
                    sriov: {model: mlx5-ib-vf, total: 2, functions: ["0000:05:00.1"]}
links:
  - {kind: nvlink, count: 4, between: [[0, 1]]}
"""


def refused(text: str) -> tuple[str, ...]:
    """The problems of a profile that must be refused."""
    with pytest.raises(ProfileError) as caught:
        profiles.parse(text.encode(), source="lab.yaml")
    return caught.value.problems


def test_the_good_profile_of_these_tests_is_good() -> None:
    """Addresses need no quotes, although YAML 1.1 takes them for numbers in base 60."""
    profile = profiles.parse(GOOD.encode(), source="lab.yaml")
    assert [place.address for place in places(profile) if place.key == "rootPort"] == ["0000:00:01.0"]


@pytest.mark.parametrize("name", profiles.names())
def test_a_shipped_profile_is_named_like_its_file_and_has_sources(name: str) -> None:
    """Each says where its facts come from, what it assumes, and that it is synthetic."""
    profile = profiles.load(name)
    assert profile.name == name
    assert profile.synthetic
    assert any("assumptions" in source for source in profile.sources)


def test_the_promised_profiles_are_shipped() -> None:
    """The list that documents and demonstrations rely on."""
    wanted = "dgx-a100-80 dgx-h100 gh200 hgx-b200 hgx-h200 l4-x4 l40s-x4 mi300x-x8 mixed-x6 t4-x1"
    assert set(wanted.split()) <= set(profiles.names())


@pytest.mark.parametrize(
    ("model", "device", "capability", "memory", "table"),
    [
        ("a100-sxm4-80", "0x20b2", "8.0", 81920, "a100-80"),
        ("h100-sxm5-80", "0x2330", "9.0", 81559, "h100-80"),
        ("h200-sxm-141", "0x2335", "9.0", 143771, "h200-141"),
        ("b200-sxm-180", "0x2901", "10.0", 183359, "b200-180"),
        ("gh200-96", "0x2342", "9.0", 97871, "gh200-96"),
        ("l40s", "0x26b9", "8.9", 46068, ""),
        ("l4", "0x27b8", "8.9", 23034, ""),
        ("t4", "0x1eb8", "7.5", 15360, ""),
        ("mi300x", "0x74a1", "", 196608, ""),
    ],
)
def test_the_catalogue_has_the_published_facts(
    model: str, device: str, capability: str, memory: int, table: str
) -> None:
    """Device id, compute capability, memory in MiB and MIG table, once more beside the catalogue."""
    entry = profiles.catalogue()[model]
    assert (entry.pci.device, entry.compute_capability, entry.memory_mib, entry.mig) == (
        device,
        capability,
        memory,
        table,
    )
    assert entry.sources


CHANGES = [
    ("name: lab", "name: Lab 1", "lab.yaml:1:7: name: a name has lower-case"),
    ("synthetic: true", "synthetic: false", "lab.yaml:3:12: synthetic: must be true"),
    ("synthetic: true", "synthetic: maybe", 'lab.yaml:3:12: synthetic: must be true or false, not "maybe"'),
    ("[made up for this test]", "[]", "lab.yaml:4:10: sources: must say where"),
    ("memoryMiB: 65536\ndriver", "memoryMiB: 64Gi\ndriver", 'lab.yaml:6:12: memoryMiB: must be an integer, not "64Gi"'),
    ("memoryMiB: 65536\ndriver", "memory: 65536\ndriver", 'memory: unknown field "memory"; did you mean memoryMiB?'),
    ("memoryMiB: 65536\ndriver", "driver", "lab.yaml:1:1: the document: misses memoryMiB"),
    ("name: lab", "name: lab\nname: lab", 'lab.yaml:2:1: name: field "name" is given twice'),
    ("distances: [10]", "distances: [10, 20]", "numa[0].distances: has 2 distances, but there are 1 nodes"),
    ("distances: [10]", "distances: [11]", "numa[0].distances: the distance of a node to itself is 10"),
    ("numaNode: 0", "numaNode: 1", "lab.yaml:12:15: pcie[0].numaNode: there is no NUMA node 1"),
    ("root: pci0000:00", "root: '0000:00'", 'isn\'t a root like "pci0000:15"'),
    ("rootPort: 0000:00:01.0", "rootPort: 0000:01:01.0", "isn't on the bus of its root"),
    ("rootPort: 0000:00:01.0", "switch: 0000:00:01.0", "a switch can't be below a root"),
    ("switch: 0000:01:00.0", "bridge: 0000:01:00.0", "a downstreamPort can't be below a bridge"),
    ("device: 0000:03:00.0", "device: 0000:04:00.0", "0000:04:00.0 is already at pcie.0.below.0"),
    ("device: 0000:03:00.0", "device: 0000:0G:00.0", '"0000:0G:00.0" isn\'t a PCI address'),
    ("device: 0000:03:00.0", "device: 0000:0A:00.0", "in lower case"),
    ("device: 0000:03:00.0", "device: 0000:01:01.0", "must come after that of 0000:02:00.0"),
    ("device: 0000:03:00.0", "device: 0000:04:01.0", "bus 0000:04 is already below 0000:02:00.0"),
    ("device: 0000:03:00.0", "bridge: 0000:06:00.0, device: 0000:03:00.0", "has bridge and device"),
    ("device: 0000:03:00.0, ", "", "has none"),
    ("model: h100-sxm5-80", "model: h100-sxm-80", "did you mean h100-sxm5-80"),
    ("model: l40s", "model: mlx5-ib-vf", "stands in the sriov field"),
    ("model: l40s", "model: l40s, rdma: mlx5_9", "a device of kind gpu has no rdma"),
    ("model: l40s", "model: l40s, index: 1", None),
    ("model: l40s", "model: l40s, index: -1", "index: -1 isn't between 0 and"),
    ("model: l40s", "model: l40s, minor: -7", "minor: -7 isn't between 0 and"),
    ("model: l40s", "model: l40s, minor: 0", "minor: 0000:03:00.0 already has minor 0"),
    ("model: l40s", "model: l40s, minor: 5", None),
    ("memoryMiB: 65536\ndriver", "memoryMiB: 0\ndriver", "memoryMiB: 0 isn't between 1 and"),
    ("memoryMiB: 65536\ndriver", "memoryMiB: 100000000000000000\ndriver", "isn't between 1 and"),
    ("sockets: 1", "sockets: -1", "cpu.sockets: -1 isn't between 1 and"),
    ('"0-7", memoryMiB: 65536', '"0-7", memoryMiB: -5', "numa[0].memoryMiB: -5 isn't between 1 and"),
    ("distances: [10]", "distances: [-10]", "numa[0].distances[0]: -10 isn't between 10 and 255"),
    ("total: 2", "total: -1", "sriov.total: -1 isn't between 0 and"),
    ("model: l40s", "model: l40s, mig: [{profile: 1g.10gb, start: 0}]", 'l40s has no MIG profile "1g.10gb"'),
    ("model: h100-sxm5-80", "model: h100-sxm5-80, mig: [{profile: 3g.40gb, start: 2}]", "only at 0, 4"),
    (
        "model: h100-sxm5-80",
        "model: h100-sxm5-80, mig: [{profile: 4g.40gb, start: 0}, {profile: 1g.10gb, start: 3}]",
        "mig[1]: overlaps an instance before it",
    ),
    (
        "model: h100-sxm5-80",
        "model: h100-sxm5-80, mig: [{profile: 1g.10gb+me, start: 0}, {profile: 1g.10gb+me, start: 1}]",
        "mig[1]: at most 1 instances of 1g.10gb+me",
    ),
    ("model: mlx5-ib-vf", "model: l4", 'sriov.model: there is no virtual function "l4"'),
    ("total: 2", "total: 0", "sriov.functions: has 1 functions, but total is 0"),
    ('["0000:05:00.1"]', '["0000:03:00.0"]', "sriov.functions[0]: 0000:03:00.0 is already at"),
    ("[[0, 1]]", "[[0, 2]]", "links[0].between[0]: there are 2 nvidia GPUs"),
    ("[[0, 1]]", "[[0, 0]]", "two different GPUs"),
    ("[[0, 1]]", "[[0, 1], [1, 0]]", "links[0].between[1]: these GPUs are linked already"),
    ("kind: nvlink", "kind: xgmi", "there are no amd GPUs"),
    ("count: 4", "count: 0", "at least one link"),
    ("cpu: {model", "cpu: {brand: x, model", "cpu.brand: unknown field"),
    ("links:", "links: 3\nother:", "links: must be a list"),
    ("cpu: {model", "models: {a: {kind: gpu}}\ncpu: {model", "models.a: misses vendor, product, pci"),
]


@pytest.mark.parametrize(("old", "new", "problem"), CHANGES)
def test_one_mistake_is_one_problem_with_its_place(old: str, new: str, problem: str | None) -> None:
    """Each rule, broken by one change to a good profile; None: the change is allowed."""
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1)
    if problem is None:
        profiles.parse(text.encode(), source="lab.yaml")
        return
    problems = refused(text)
    assert any(problem in line for line in problems), problems
    assert all(line.startswith("lab.yaml:") for line in problems)


def test_all_problems_come_at_once() -> None:
    """Five mistakes, five lines, in one refusal."""
    text = GOOD
    for old, new in (
        ("numaNode: 0", "numaNode: 7"),
        ("distances: [10]", "distances: [11]"),
        ("sources: [made up for this test]", "sources: []"),
        ("total: 2", "total: 0"),
        ("count: 4", "count: -1"),
    ):
        text = text.replace(old, new, 1)
    assert len(refused(text)) == 5


def test_all_problems_of_shape_come_at_once() -> None:
    """Unknown keys and wrong types don't hide each other either."""
    text = GOOD.replace("sockets: 1", "sockets: one, cache: big").replace("count: 4", "count: [4]")
    assert len(refused(text)) == 3


def test_a_hopeless_profile_is_refused_with_a_bounded_text() -> None:
    """Thousands of mistakes are counted; a hundred are shown, and of these alone the places are looked up."""
    text = GOOD + "".join(f"x{number}: 1\n" for number in range(3000))
    with pytest.raises(ProfileError) as caught:
        profiles.parse(text.encode(), source="lab.yaml")
    assert str(caught.value).count("\n") == 101
    assert str(caught.value).endswith("  and 2900 more")
    problems = caught.value.problems
    assert all(re.match(r"lab.yaml:\d+:\d+: ", problem) for problem in problems[:100])
    assert set(problems[100:]) == {f'lab.yaml: x{number}: unknown field "x{number}"' for number in range(100, 3000)}


def test_gpus_and_accelerators_of_one_vendor_stay_apart() -> None:
    """They are counted apart, so their numbers are equal and their identities aren't."""
    text = (
        GOOD.partition("links:")[0].replace("model: l40s", "model: other")
        + """\
models:
  other:
    kind: accelerator
    vendor: nvidia
    product: X
    uuid: nvidia
    pci: {vendor: "0x10de", device: "0x0001", class: "0x120000"}
"""
    )
    gpu, other, *_ = SimulatedProvider(profiles.parse(text.encode(), source="lab.yaml")).inventory().devices
    assert (gpu.index, other.index) == (0, 0)
    assert gpu.id != other.id
    assert not gpu.conflicts(other)
    assert not set(gpu.device_nodes) & set(other.device_nodes)


def test_asymmetric_numa_distances_are_refused() -> None:
    """The way back is as long as the way there."""
    two = "  - {id: 0, distances: [10, 20]}\n  - {id: 1, distances: [30, 10]}\n"
    text = GOOD.replace('  - {id: 0, cpus: "0-7", memoryMiB: 65536, distances: [10]}\n', two)
    assert refused(text) == ("lab.yaml:10:24: numa[1].distances: 1 to 0 is 30, but back it is 20",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has 0 documents"),
        (b"a: 1\n---\nb: 2\n", "has 2 documents"),
        (b"[]", "must be a mapping"),
        (b"\x00\x01\xff", "not readable"),
        (b"a: [1", "not readable"),
        (b"&a [*a]", "contains it"),
        (b"x: " + b"[" * 5000, "nest"),
        (b"a: " + b"x" * (9 << 20), "more than"),
        (b"a: &a [1,1,1,1,1,1,1,1,1,1]\n" + b"".join(
            b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 10)) for c in range(ord("b"), ord("j"))
        ), "expands to more"),
    ],
)  # fmt: skip
def test_what_is_no_profile_at_all_is_refused_in_a_line(data: bytes, words: str) -> None:
    """Binary text, bombs, empty files: a sentence, not a traceback."""
    with pytest.raises(ProfileError) as caught:
        profiles.parse(data, source="lab.yaml")
    assert any(words in problem for problem in caught.value.problems), caught.value.problems


def test_a_file_is_a_profile_too(tmp_path: Path) -> None:
    """What has a slash or ends in .yaml is a path; own models stand beside the shipped ones."""
    model = (
        "models:\n  npu: {kind: accelerator, vendor: acme, product: NPU 1,"
        ' pci: {vendor: "0x1234", device: "0x0001", class: "0x120000"}}\n'
    )
    path = tmp_path / "lab.yaml"
    path.write_text(model + GOOD.replace("model: l40s", "model: npu").replace("links:", "x:").split("x:")[0])
    assert profiles.load(path).models["npu"].product == "NPU 1"
    assert profiles.load(str(path)).name == "lab"


@pytest.mark.parametrize(
    ("name", "words", "hint"),
    [
        ("dgx-h10", "did you mean dgx-h100", "use one of dgx-a100-80"),
        ("", "there is no machine profile", "use one of"),
        ("./missing.yaml", "No such file", "path of a readable file"),
        ("/", "directory", "path of a readable file"),
    ],
)
def test_an_unknown_profile_has_a_hint(name: str, words: str, hint: str) -> None:
    """Names that look like it, and the list."""
    with pytest.raises(UnknownProfileError) as caught:
        profiles.load(name)
    assert words in str(caught.value)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("table", mig.TABLES)
def test_mig_tables_are_consistent(table: str) -> None:
    """Placements stay on the GPU, as many fit as the table says, and a larger profile has no less memory."""
    entries = mig.TABLES[table]
    assert len({entry.id for entry in entries}) == len(entries)
    for entry in entries:
        assert all(0 <= start <= mig.MEMORY_SLICES - entry.memory_slices for start in entry.starts)
        free = [start for start in entry.starts if start % entry.memory_slices == 0]
        assert entry.most == (1 if entry.name.endswith("+me") else len(free))
        assert mig.units("g", entry.starts[0], entry.memory_slices) < mig.units("g") | {"whole"}
    memory = [entry.memory_mib for entry in entries if entry.memory_mib is not None]
    assert memory == sorted(memory)
