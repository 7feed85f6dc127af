"""Errors against those that the API server's own code gave, recorded once.

The records are captured from ``rest.BeforeCreate`` of k8s.io/kubernetes v1.37.2 with objects that are synthetic.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from draht.api.kinds import KINDS
from draht.api.reader import read_object
from draht.validation import ALL, DEFAULT, validate
from validation_objects import GOOD, NAMES, random_object

BY_NAME = dict(zip(NAMES, GOOD, strict=True))
LINES = (
    (Path(__file__).parents[1] / "data" / "validation" / "judged.jsonl").read_text(encoding="utf-8").splitlines()[1:]
)


def _changed(good: Any, changes: list[tuple[list[Any], Any]]) -> Any:
    obj = json.loads(json.dumps(good))
    for (*path, last), value in changes:
        parent = obj
        for key in path:
            parent = parent[key]
        if value == "REMOVE":
            del parent[last]
        else:
            parent[last] = value
    return obj


@pytest.mark.parametrize("first", range(0, len(LINES), 50))
def test_errors_are_those_of_the_server(first: int) -> None:
    """Each recorded object has the same kinds of errors at the same paths, no more and no fewer."""
    for number, line in enumerate(LINES[first : first + 50], first + 2):
        case = json.loads(line)
        obj = _changed(BY_NAME[case["good"]], case["set"])
        read = read_object(json.dumps(obj).encode(), KINDS[obj["apiVersion"], obj["kind"]])
        errors = validate(read, gates=ALL if case["gates"] == "all" else DEFAULT)
        found = sorted(f"{error.kind} {error.path}" for error in errors)
        assert found == case["errors"], f"judged.jsonl:{number}: {case['set']}"


def test_every_kind_of_object_and_error_is_recorded() -> None:
    """The records have good and bad objects of every kind, and every kind of error that rules give."""
    cases = [json.loads(line) for line in LINES]
    assert {case["good"] for case in cases} == set(NAMES)
    assert {case["good"] for case in cases if not case["errors"]} == set(NAMES)
    kinds = {error.partition(" ")[0] for case in cases for error in case["errors"]}
    assert kinds == {"Required", "Invalid", "NotSupported", "NotFound", "Duplicate", "Forbidden", "TooLong", "TooMany"}


def test_a_thousand_changed_objects_are_judged() -> None:
    """Whatever is changed in an object, judging it ends with errors that have a path in it and a message."""
    rng = random.Random(53)
    for _ in range(1_000):
        obj = random_object(rng)
        read = read_object(json.dumps(obj).encode(), KINDS[obj["apiVersion"], obj["kind"]])
        for error in validate(read, gates=ALL):
            assert error.path.startswith(("metadata", "spec", "status")), str(error)
            assert error.text, json.dumps(obj)
