"""The models against the Go types of Kubernetes 1.37: every field, every kind, every strict verdict."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import msgspec
import pytest

from api.objects import EVERY_KIND, cases, dumps, filled, go_canonical, go_path, meant, mutated
from draht.api import kinds
from draht.api.reader import Code, read_list, read_object, read_text
from oracle_client import Oracle

IDS = ["-".join(kind) for kind in EVERY_KIND]


def text_of(value: Any) -> bytes:
    """JSON of a plain value."""
    return json.dumps(value).encode()


def test_kinds_are_those_of_the_oracle(oracle: Oracle) -> None:
    """Draht reads exactly the kinds that the oracle compares."""
    assert sorted(map(tuple, oracle.call("resource.kinds"))) == EVERY_KIND


@pytest.mark.parametrize("kind", EVERY_KIND, ids=IDS)
def test_an_object_with_every_field_survives(oracle: Oracle, kind: tuple[str, str]) -> None:
    """An object with all fields of its Go type set reads strictly without a problem and is written identically."""
    for value in filled(oracle, kind, seeds=range(3), density=100):
        result = read_text(text_of(value), source="filled")
        assert list(map(str, result.problems)) == []
        written = [json.loads(msgspec.json.encode(located.object)) for located in result.objects]
        if kind in kinds.LISTS:
            decoded = msgspec.json.decode(text_of(value), type=kinds.LISTS[kind])
            assert json.loads(msgspec.json.encode(decoded)) == {**value, "items": written}
            identity = dict(
                zip(("apiVersion", "kind"), kinds.identity(kinds.item_type(kinds.LISTS[kind])), strict=True)
            )
            assert written == [{**item, **identity} for item in value["items"]]
        else:
            assert written == [value]


@pytest.mark.parametrize("kind", sorted(kinds.KINDS), ids="-".join)
def test_objects_with_some_fields_mean_the_same_to_go(oracle: Oracle, kind: tuple[str, str]) -> None:
    """What the lenient reader makes of an object is, to Go, the same object."""
    values = [
        value
        for density in (0, 30, 70)
        for value in filled(oracle, kind, seeds=range(cases(60) // 3 + 1), density=density)
    ]
    structs = [read_object(text_of(value), kinds.KINDS[kind]) for value in values]
    ours = go_canonical(oracle, kind, [msgspec.json.encode(struct) for struct in structs])
    theirs = go_canonical(oracle, kind, [text_of(value) for value in values])
    for our, their in zip(ours, theirs, strict=True):
        assert meant(our) == meant(their)


@pytest.mark.parametrize("kind", sorted(kinds.LISTS), ids="-".join)
def test_lists_are_read_item_by_item_alike(oracle: Oracle, kind: tuple[str, str]) -> None:
    """The lenient reader returns every item of a list, whether the fast way or the careful one read it."""
    struct = kinds.item_type(kinds.LISTS[kind])
    for value in filled(oracle, kind, seeds=range(4), density=100):
        quick = read_list(text_of(value), struct)
        assert len(quick.objects) == len(value["items"])
        value["items"].append({"metadata": {"name": 7}})
        careful = read_list(text_of(value), struct)
        assert careful.objects == quick.objects
        assert [problem.path for problem in careful.problems] == [f"items[{len(value['items']) - 1}].metadata.name"]


def verdict(text: str) -> tuple[bool, set[tuple[Code | str, str]]]:
    """Whether the strict reader accepts a text, and the unknown and duplicate fields it reports.

    Two deliberate differences are left out: Go's decoder doesn't look for missing fields, the server's validation does;
    and it takes null as a member of a list or a map for zero.
    """
    problems = [
        problem
        for problem in read_text(text).errors
        if problem.code != "missing-field" and not problem.message.endswith("got null")
    ]
    fields: set[tuple[Code | str, str]] = {
        (problem.code, go_path(problem.path))
        for problem in problems
        if problem.code in ("unknown-field", "duplicate-field")
    }
    return not problems, fields


def go_verdict(answer: dict[str, Any]) -> tuple[bool, set[tuple[Code | str, str]]]:
    """The same from an answer of Go's strict decoder."""
    fields: set[tuple[Code | str, str]] = set()
    for error in answer["strict"]:
        code, _, path = error.partition(" field ")
        fields.add((f"{code}-field", json.loads(path)))
    return not answer["error"] and not fields, fields


def outermost(fields: set[tuple[Code | str, str]]) -> set[tuple[Code | str, str]]:
    """The problems that count: Go doesn't count a repeated unknown field, draht doesn't look into a repetition."""
    unknown = {path for code, path in fields if code == "unknown-field"}
    repeated = tuple(f"{path}." for code, path in fields if code == "duplicate-field")
    return {
        (code, path)
        for code, path in fields
        if not (code == "duplicate-field" and path in unknown) and not path.startswith(repeated)
    }


@pytest.mark.parametrize("kind", sorted(kinds.KINDS), ids="-".join)
def test_mutated_objects_have_the_verdict_of_go(oracle: Oracle, kind: tuple[str, str]) -> None:
    """Unknown fields, duplicates and wrong types are refused exactly where Go's strict decoder refuses them."""
    count = cases(80)
    chance = random.Random(f"mutations of {kind}")
    texts = [
        dumps(mutated(value, chance))
        for density in (40, 100)
        for value in filled(oracle, kind, seeds=range(count // 2), density=density)
    ]
    answers = oracle.call_many("resource.decode", [{"json": text.encode()} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        accepted, fields = verdict(text)
        go_accepted, go_fields = go_verdict(answer)
        message = f"Go: {answer['error']} {answer['strict']}\ndraht: {[str(p) for p in read_text(text).errors]}\n{text}"
        assert accepted == go_accepted, message
        if not answer["error"]:
            assert outermost(fields) == outermost(go_fields), message


TIMES = (
    "2026-01-31T13:45:00Z",
    "2024-02-29T23:59:59.123456+02:00",
    "0000-12-31T00:00:00,5Z",
    "1999-11-30T24:60:60-24:60",
)


def test_times_have_the_verdict_of_go(oracle: Oracle) -> None:
    """A text is a moment, or one with microseconds, exactly where Go parses it as one."""
    chance = random.Random("times")
    texts = []
    for field in ("firstTimestamp", "eventTime"):
        for _ in range(cases(1000)):
            letters = list(chance.choice(TIMES))
            for _ in range(chance.randint(0, 2)):
                letters[chance.randrange(len(letters))] = chance.choice("0123456789:-TZtz+., ")
            text = "".join(letters)
            if not re.search("[.,][-+]", text):  # Go takes a sign for the first of six digits; draht doesn't
                texts.append(json.dumps({"apiVersion": "v1", "kind": "Event", field: text}))
    answers = oracle.call_many("resource.decode", [{"json": text.encode()} for text in texts])
    assert sum(not answer["error"] for answer in answers) > len(texts) // 10
    for text, answer in zip(texts, answers, strict=True):
        assert verdict(text)[0] == go_verdict(answer)[0], f"Go: {answer['error'] or 'accepted'}\n{text}"
