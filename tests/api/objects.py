"""Generated objects and comparisons that several topics of this folder use."""

from __future__ import annotations

import json
import os
import random
import re
from typing import Any

from draht.api.kinds import KINDS, LISTS
from oracle_client import Oracle

__all__ = ["EVERY_KIND", "cases", "dumps", "filled", "go_canonical", "go_path", "meant", "mutated"]

EVERY_KIND = sorted([*KINDS, *LISTS])


def cases(default: int) -> int:
    """How many generated cases a test runs; a long run sets ``DRAHT_FUZZ_CASES``."""
    return int(os.environ.get("DRAHT_FUZZ_CASES", default))


def filled(oracle: Oracle, kind: tuple[str, str], *, seeds: range, density: int) -> list[Any]:
    """Objects made by the oracle from the Go type alone, one for each seed."""
    many = [{"apiVersion": kind[0], "kind": kind[1], "seed": seed, "density": density} for seed in seeds]
    return oracle.call_many("resource.fill", many)


def go_canonical(oracle: Oracle, kind: tuple[str, str], texts: list[bytes]) -> list[Any]:
    """What Go makes of each text, as it would write it again; it must accept the texts."""
    answers = oracle.call_many("resource.decode", [{"json": text} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        assert not answer["error"], f"{kind}: {answer['error']}\n{text.decode()}"
        assert not answer["strict"], f"{kind}: {answer['strict']}\n{text.decode()}"
    return [answer["object"] for answer in answers]


def go_path(path: str) -> str:
    """A field path as Go's strict decoder writes it: map keys behind a point, indexes in brackets."""
    return re.sub(r"\[(?!\d+\])([^\]]*)\]", r".\1", path)


def meant(value: Any) -> Any:
    """A value of Go without the two differences that mean nothing.

    A required list that isn't there is null to Go and empty to draht. Three required fields are pointers to Go; where
    a server's object lacks one, which its validation refuses, draht has zero.
    """
    if isinstance(value, list):
        return [meant(item) for item in value]
    if not isinstance(value, dict):
        return value
    pointers = {"min", "quantity", "priority"}
    return {
        key: meant(item)
        for key, item in value.items()
        if item not in (None, []) and not (key in pointers and item in ("0", 0))
    }


class Pairs(list[tuple[str, Any]]):
    """A JSON object that may hold a key twice."""


def dumps(value: Any) -> str:
    """JSON text of values with `Pairs` among them."""
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{dumps(item)}" for key, item in value) + "}"
    if isinstance(value, dict):
        return dumps(Pairs(value.items()))
    if isinstance(value, list):
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value)


def mutated(value: Any, chance: random.Random) -> Any:
    """The object with one to three places made wrong, or made differently right."""
    value = _paired(value)
    for _ in range(chance.randint(1, 3)):
        _mutate(value, chance)
    return value


def _paired(value: Any) -> Any:
    if isinstance(value, dict):
        return Pairs((key, _paired(item)) for key, item in value.items())
    if isinstance(value, list):
        return [_paired(item) for item in value]
    return value


_RAW = {"parameters", "data", "fieldsV1"}
"""Go keeps these as bytes and overlooks duplicates in them; draht reports them."""


def _mutate(value: Any, chance: random.Random) -> None:
    """Walk to a random depth and change what is there."""
    while True:
        if isinstance(value, Pairs) and value:
            index = chance.randrange(len(value))
            key, below = value[index]
            if isinstance(below, list) and below and key not in _RAW and chance.random() < 0.8:
                value = below
                continue
            if key in ("apiVersion", "kind"):
                return
            match chance.randrange(5):
                case 0:
                    value.insert(index, (chance.choice(["surplus", key.upper(), key + "s", "x.y/z"]), below))
                case 1:
                    value.insert(index, (key, below))
                case 2:
                    value[index] = (key, None)
                case _:
                    value[index] = (key, _other(chance))
            return
        if isinstance(value, list) and value:
            index = chance.randrange(len(value))
            if isinstance(value[index], list) and value[index] and chance.random() < 0.8:
                value = value[index]
                continue
            value[index] = _other(chance)
        return


def _other(chance: random.Random) -> Any:
    choices: list[Any] = ["", "text", "12", "true", 0, 7, -1, 2**31, 2**63, 1.5, True, False, [], Pairs(), ["a"], [1]]
    choices += ["2026-01-31T10:00:00Z", "2026-02-30T10:00:00Z", "2026-01-31T10:00:00.000000Z", Pairs([("a", "b")])]
    return chance.choice(choices)
