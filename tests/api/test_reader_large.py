"""Large texts: lists read item by item say what they would say as one tree, and hostile ones stay bounded."""

from __future__ import annotations

import json
import random
import resource as limits
from pathlib import Path
from typing import Any

import pytest

from draht.api import yaml
from draht.api.reader import ReadResult, files, read_files, read_text

SMALL = 4_000
"""What counts as large in these tests, so that they run in no time."""
FEW = 20_000


def slices(count: int) -> list[dict[str, Any]]:
    """ResourceSlices as programs write them."""
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"slice-{number}", "annotations": {"note": "- a dash\n# and more\n"}},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": f"node-{number}",
                "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"gpu-{index}",
                        "attributes": {"model": {"string": "A"}, "index": {"int": index}, "ok": {"bool": True}},
                        "capacity": {"memory": {"value": "80Gi"}},
                    }
                    for index in range(2)
                ],
            },
        }
        for number in range(count)
    ]


def listed(items: list[Any], kind: str = "List", version: str = "v1") -> dict[str, Any]:
    """A list with its fields in the order in which kubectl prints them."""
    return {"apiVersion": version, "items": items, "kind": kind, "metadata": {"resourceVersion": ""}}


def said(result: ReadResult) -> tuple[Any, ...]:
    """Everything that a result says, places of fields included."""
    fields = ("", "spec.devices[1].name", "spec.devices[1].attributes[index].int", "metadata.name")
    objects = [
        (each.object, each.source, each.line, each.column, each.path, [each.where(field) for field in fields])
        for each in result.objects
    ]
    return objects, result.others, result.problems


def spoiled(chance: random.Random) -> list[Any]:
    """Items of which most have something odd."""
    items: list[Any] = slices(8)
    items[1]["spec"]["devices"][0]["attributes"]["model"]["strin"] = "typo"
    items[2]["spec"]["pool"]["generation"] = chance.choice(["one", 1.5, 1e3, 2**70, None, True])
    items[3]["spec"]["devices"][1]["capacity"]["memory"]["value"] = chance.choice(["80 GB", 7, 1.5, "", None])
    items[4] = chance.choice([None, 5, [], {}, "text", {"kind": "Pod"}, {"apiVersion": "v1", "kind": "Service"}])
    del items[5]["spec"]["driver"]
    items[6] = listed(slices(2))
    items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"creationTimestamp": "yesterday"}})
    items.append(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"a": None}, "deletionTimestamp": None}}
    )
    return items


@pytest.mark.parametrize("seed", range(20))
def test_json_is_read_as_its_nodes_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way for JSON gives the objects, places and problems that the walk over nodes gives."""
    chance = random.Random(seed)
    kind = chance.choice([("List", "v1"), ("ResourceSliceList", "resource.k8s.io/v1"), ("ResourceSlice", "v1")])
    value = chance.choice([listed(spoiled(chance), *kind), *spoiled(chance)[:3]])
    text = json.dumps(value, indent=chance.choice([None, 2, "\t"]))
    if chance.random() < 0.3:
        text = text.replace('"nodeName"', '"driver": "twice", "nodeName"', 1)
    quick = read_text(text, source="f")
    monkeypatch.setattr(files, "scan", lambda _: None)
    assert said(quick) == said(read_text(text, source="f"))


@pytest.mark.parametrize("indent", ["", "  "])
@pytest.mark.parametrize("seed", range(6))
def test_a_large_yaml_list_is_read_as_a_small_one(seed: int, indent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into its items, it has the objects, places and problems that it has as one tree."""
    head, _, tail = yaml.dump(listed(spoiled(random.Random(seed)))).partition("kind: List\n")
    lines = [indent + line if number > 1 else line for number, line in enumerate(head.splitlines())]
    lines.insert(2, f"{indent}# a comment\n")
    text = "# the first line\n" + "\n".join(lines) + "\nkind: List\nodd: field\n" + tail
    whole = said(read_text(f"{text}---\n{text}", source="f"))
    monkeypatch.setattr(yaml, "MAX_BYTES", SMALL)
    assert said(read_text(f"{text}---\n{text}", source="f")) == whole
    assert len(text) > SMALL


def test_a_large_list_of_one_kind_is_read_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its items need no kind of their own, in YAML and in JSON."""
    items = [{key: each[key] for key in ("metadata", "spec")} for each in slices(12)]
    value = listed(items, "ResourceSliceList", "resource.k8s.io/v1")
    monkeypatch.setattr(yaml, "MAX_BYTES", SMALL)
    for text in (yaml.dump(value), json.dumps(value)):
        result = read_text(text)
        assert (len(result.objects), result.problems) == (12, ())


def test_a_broken_item_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item of a large list that isn't YAML is told with its line; the others are read."""
    text = yaml.dump(listed(slices(12))).replace("name: slice-5\n", "name: [slice-5\n")
    monkeypatch.setattr(yaml, "MAX_BYTES", SMALL)
    result = read_text(text, source="f")
    assert len(result.objects) == 11
    (problem,) = result.problems
    line = text[: text.index("[slice-5")].count("\n") + 1
    assert (problem.code, problem.line) == ("syntax", line + 1)


def test_what_is_larger_than_a_caller_allows_is_refused(tmp_path: Path) -> None:
    """The bound is the caller's, for files and texts."""
    path = tmp_path / "list.json"
    path.write_text(json.dumps(listed(slices(12))))
    assert not read_files([path]).problems
    for result in (read_files([path], max_bytes=SMALL), read_text(path.read_bytes(), max_bytes=SMALL)):
        (problem,) = result.problems
        assert problem.message == "the text has more than the 4000 bytes that are read"
        assert not result.objects


HOSTILE = {
    "one large object": ("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + "x" * SMALL, "must be a list"),
    "a large list of another form": ("{apiVersion: v1, kind: List, items: [" + "{}, " * SMALL + "]}", "must be a list"),
    "a list that is none": ("kind: Lost\napiVersion: v1\nitems:\n" + "- a\n" * SMALL, "must be a list"),
    "aliases from item to item": (
        "kind: List\napiVersion: v1\nitems:\n- &a {}\n" + "- *a\n" * SMALL,
        "undefined alias",
    ),
    "a quoted text at the margin": (
        'kind: List\napiVersion: v1\nitems:\n- "a\n' + "- b\n" * SMALL + '- c"\n',
        "unexpected end of stream",
    ),
    "an item that is too large": (
        "kind: List\napiVersion: v1\nitems:\n- {}\n- a: " + "x" * SMALL * 2 + "\n",
        "bytes, more than the 4000 that are read",
    ),
    "an alias bomb in an item": (
        "kind: List\napiVersion: v1\nitems:\n- a0: &a0 [x]\n"
        + "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 13))
        + "- {}\n" * SMALL,
        "expands to more than 20000 values",
    ),
    "more items than are read": (
        "kind: List\napiVersion: v1\nitems:\n" + "- {apiVersion: v1, kind: Namespace}\n" * SMALL,
        "holds more than 20000 values",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_lists_are_refused_in_sentences(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the text, the answer is a bounded number of problems."""
    monkeypatch.setattr(yaml, "MAX_BYTES", SMALL)
    monkeypatch.setattr(yaml, "MAX_NODES", FEW)
    monkeypatch.setattr(files, "MAX_VALUES", FEW)
    text, reason = HOSTILE[name]
    problems = read_text(text).problems
    assert any(reason in problem.message for problem in problems), problems[:3]
    assert len(problems) <= 501
    assert all("\n" not in str(problem) for problem in problems)


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "v1", "kind": "List", "items": [' + "[" * 100_000 + "]" * 100_000 + "]}",
        '{"apiVersion": "v1", "kind": "List", "items": [' + "{}," * 2_000,
        '{"apiVersion": "v1", "kind": "List", "items": [NaN]}' + " " * 5_000,
        '{"apiVersion": "v1", "kind": "List", "items": [{},]}' + " " * 5_000,
        '{"apiVersion": "v1", "kind": "List", "items": []} {}' + " " * 5_000,
        '{"apiVersion": "v1", "kind": "List", "items": [' + "9" * 5_000 + "]}",
        '{"apiVersion": "v1", "kind": "List", "items": ["\\ud800' + "x" * 5_000 + '"]}',
    ],
)
def test_hostile_json_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What isn't plain JSON is read as YAML or refused, and never a crash."""
    monkeypatch.setattr(yaml, "MAX_BYTES", SMALL)
    result = read_text(text)
    assert result.errors
    assert not result.objects


def test_many_tiny_values_of_json_stay_within_memory() -> None:
    """Millions of empty objects are refused before they take the memory they would need."""
    before = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss
    text = b'{"apiVersion": "v1", "kind": "List", "items": [' + b"[]," * 9_000_000 + b"[]]}"
    assert read_text(text).errors
    grown = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300 * 1024, f"{grown} KiB"


def test_objects_that_are_not_read_are_told_once_for_each_kind(tmp_path: Path) -> None:
    """A cluster's thousand Services don't fill the screen, and hide no error."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("---\n".join(["a: b\n", *[service] * 900]))
    second.write_text("---\n".join([service, service.replace("Service", "ConfigMap")]))
    result = read_files([first, second])
    assert len(result.others) == 902
    assert [problem.message for problem in result.warnings] == [
        "v1 Service is not read by draht, nor are 900 more of them",
        "v1 ConfigMap is not read by draht",
    ]
    assert [problem.where for problem in result.warnings] == [f"{first}:3:1", f"{second}:5:1"]
    assert len(result.errors) == 2
