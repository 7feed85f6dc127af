"""The lenient reader: new fields pass, one bad item never hides the others, refusals are no empty lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from draht.api import core, resource
from draht.api.reader import ServerError, read_list, read_object


def slice_(name: str, **spec: Any) -> dict[str, Any]:
    """A slice as a server sends it inside a list: without kind."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": name}, "spec": {"driver": "gpu.example.com", "pool": pool, "nodeName": name, **spec}}


def listed(*items: Any, **envelope: Any) -> bytes:
    """A list answer."""
    identity = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSliceList"}
    return json.dumps({**identity, "metadata": {"resourceVersion": "42"}, "items": list(items), **envelope}).encode()


def test_fields_of_newer_servers_are_ignored() -> None:
    """Unknown fields at any depth don't matter."""
    item = slice_("a", shinyNewField={"x": [1]}, devices=[{"name": "gpu-0", "temperature": 40}])
    answer = read_list(listed(item, newListField=True), resource.ResourceSlice)
    assert not answer.problems
    assert answer.metadata.resource_version == "42"
    assert answer.objects[0].spec.devices == (resource.Device(name="gpu-0"),)
    assert answer.objects[0].kind == "ResourceSlice"


def test_one_bad_item_hides_no_other() -> None:
    """An item with wrong types is reported with each of them; the others are there."""
    bad = slice_("b", nodeName=7, devices=[{"name": "x", "attributes": {"index": {"int": "1"}}}])
    answer = read_list(listed(slice_("a"), bad, slice_("c"), 5), resource.ResourceSlice, source="server")
    assert [item.metadata.name for item in answer.objects] == ["a", "c"]
    assert [str(problem) for problem in answer.problems] == [
        "server: items[1].spec.nodeName: expected a string, got 7",
        'server: items[1].spec.devices[0].attributes[index].int: expected an integer, got "1"',
        "server: items[3]: expected an object, got 5",
    ]


def test_null_and_absent_are_zero_as_in_go() -> None:
    """Null anywhere, and required fields that are missing, read as Go reads them."""
    item = {
        "metadata": None,
        "spec": {"driver": None, "devices": [{"attributes": {"a": None}, "capacity": None}, None]},
    }
    (found,) = read_list(listed(item), resource.ResourceSlice).objects
    assert found.spec.driver == ""
    assert found.spec.pool == resource.ResourcePool(name="", resource_slice_count=0)
    assert found.spec.devices[0].attributes == {"a": resource.DeviceAttribute()}
    assert found.spec.devices[1] == resource.Device(name="")


def test_items_that_are_null_are_none() -> None:
    """``items: null`` and no items at all are an empty list."""
    for items in ({"items": None}, {}):
        answer = read_list(json.dumps({"kind": "List", "apiVersion": "v1", **items}).encode(), core.Pod)
        assert (answer.objects, answer.problems) == ((), ())


def test_amounts_that_are_numbers_are_read() -> None:
    """A fractional JSON number as an amount becomes its text."""
    item = slice_("a", devices=[{"name": "x", "capacity": {"memory": {"value": 0.5}, "cores": {"value": 2}}}])
    (found,) = read_list(listed(item), resource.ResourceSlice).objects
    assert {name: capacity.value for name, capacity in found.spec.devices[0].capacity.items()} == {
        "memory": "0.5",
        "cores": 2,
    }


STATUS = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "message": "forbidden"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (STATUS, "expected resource.k8s.io/v1 ResourceSliceList, got v1 Status"),
        ({"apiVersion": "v1", "kind": "PodList", "items": []}, "got v1 PodList"),
        ({"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSliceList"}, "got resource.k8s.io/v1beta1"),
        ({"items": 5}, "it is no list"),
        ([], "it is no list"),
    ],
)
def test_another_answer_is_no_empty_list(answer: object, reason: str) -> None:
    """A refusal, another kind or another version must not look like an empty cluster."""
    with pytest.raises(ServerError) as caught:
        read_list(json.dumps(answer).encode(), resource.ResourceSlice)
    assert reason in caught.value.message


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"items": [}', b"[" * 200_000, b'{"kind": "\\ud800"}', b"nil"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    """Broken bytes give one error, however deep they nest."""
    for read in (read_list, read_object):
        with pytest.raises(ServerError) as caught:
            read(data, resource.ResourceSlice)
        assert caught.value.hint


def test_an_object_with_a_wrong_type_says_where() -> None:
    """A single object that can't be read raises with the path of the first problem and carries all."""
    item = {"kind": "ResourceSlice", **slice_("a", nodeName=1, allNodes="yes")}
    with pytest.raises(ServerError) as caught:
        read_object(json.dumps(item).encode(), resource.ResourceSlice, source="watch")
    assert str(caught.value) == "watch: spec.nodeName: expected a string, got 1"
    assert [problem.path for problem in caught.value.problems] == ["spec.nodeName", "spec.allNodes"]


def test_an_object_of_another_kind_is_refused() -> None:
    """A pod is no slice, whatever fields it has."""
    with pytest.raises(ServerError, match='kind: expected "ResourceSlice", got "Pod"'):
        read_object(b'{"apiVersion": "resource.k8s.io/v1", "kind": "Pod"}', resource.ResourceSlice)
