"""What draht says of an object beside what the server says.

Owns the one comparison that all these tests make: accepted or refused, and the same kinds of errors at the same paths.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast

from cluster.judge.server import Answer
from draht.api.kinds import KINDS
from draht.api.meta import Object
from draht.api.reader import read_object, read_text
from draht.validation import Gates, dropped_fields, validate

__all__ = ["difference", "read"]

Json: TypeAlias = Any
_KEYED = {"attributes", "capacity", "counters", "nodeAllocatableResources", "labels", "annotations"}
_FLAT = "deviceClassName|selectors|allocationMode|count|adminAccess|tolerations|derivedAttributes|capacity"
# Declared rules of v1beta1 name fields as v1beta1 has them, those written by hand name them as v1 does.
_V1 = (
    (re.compile(rf"(devices\.requests\[\d+\])\.({_FLAT})\b"), r"\1.exactly.\2"),
    (re.compile(r"(spec\.devices\[\d+\])\.basic\."), r"\1."),
)


def read(obj: Json) -> Object:
    """The object of a JSON value, read as a server reads it."""
    struct = KINDS[obj["apiVersion"], obj["kind"]]
    return read_object(json.dumps(obj).encode(), struct)


def difference(
    obj: Json,
    answer: Answer,
    gates: Gates,
    *,
    old: Json | None = None,
    subresource: Literal["", "status"] = "",
    for_people: bool = True,
) -> str | None:
    """What draht and the server say of an object, if it isn't the same; None if it is.

    Args:
        obj: The object.
        answer: The server's.
        gates: The features that are on.
        old: What is there, for an update.
        subresource: What is updated.
        for_people: Whether the reader for people is asked, too, which takes its time.

    The reader for people refuses two things on purpose that a server takes: null in a list or mapping, and a field left
    out that it requires below one that a server without the feature drops.
    """
    undecodable = answer.code == 400
    problems = []
    if for_people or undecodable:
        problems = [problem for problem in read_text(json.dumps(obj)).problems if not problem.warning]
    hard = [each for each in problems if each.code != "missing-field" and "got null" not in each.message]
    if bool(hard) != undecodable:
        return f"server: {answer.code} {answer.message[:300]}; reader: {[str(each) for each in hard] or 'nothing'}"
    if undecodable:
        return None
    if not answer.accepted and answer.code != 422:
        return f"server: {answer.code} {answer.message[:300]}"
    current = read(obj)
    errors = validate(
        current,
        gates=gates,
        old=None if old is None else read(old),
        subresource=subresource,
        empty=frozenset(_empty_lists(obj)),
    )
    ours = {(str(error.kind), error.path) for error in errors}
    theirs = {(kind, _v1_path(obj, path)) for kind, path in answer.causes}
    if answer.accepted != (not errors) or ours != theirs:
        return f"server alone: {sorted(theirs - ours)}; draht alone: {sorted(ours - theirs)}"
    missing = [each.path for each in problems if each.code == "missing-field"]
    if missing and old is None and answer.accepted:
        dropped = dropped_fields(current, gates=gates)
        if not all(_v1_path(obj, path).startswith(dropped) for path in missing):
            return f"server accepts; reader misses {missing}"
    return None


def _v1_path(obj: Json, path: str) -> str:
    if obj["apiVersion"] == "resource.k8s.io/v1beta1":
        for pattern, replacement in _V1:
            path = pattern.sub(replacement, path)
    return path


def _empty_lists(value: Json, path: str = "", *, keyed: bool = False) -> Iterator[str]:
    """Paths of the lists that are written and empty."""
    if isinstance(value, list):
        if not value:
            yield path
        for index, each in enumerate(value):
            yield from _empty_lists(each, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, each in cast("Mapping[str, Json]", value).items():
            below = f"{path}[{key}]" if keyed else f"{path}.{key}" if path else key
            yield from _empty_lists(each, below, keyed=not keyed and key in _KEYED)
