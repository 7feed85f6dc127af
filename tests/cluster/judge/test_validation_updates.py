"""Updates: what is there is changed in every way, and draht lets pass what kube-apiserver lets pass."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import pytest

from cluster.judge.server import Server
from cluster.judge.verdicts import difference
from validation_mutations import Case, Good, doubles, goods, sample, singles, structural
from validation_statuses import RULE_STATUS, STATUS

pytestmark = pytest.mark.cluster

Json: TypeAlias = Any
SEED = int(os.environ.get("DRAHT_JUDGE_SEED", "20261130"))
FACTOR = int(os.environ.get("DRAHT_JUDGE_FACTOR", "1"))
# Which object is updated, and which version of it, is asked before anything is judged.
IDENTITY = frozenset({("metadata", "name"), ("metadata", "generateName"), ("metadata", "uid")})
VERSIONED = IDENTITY | {("metadata", "resourceVersion")}


@contextmanager
def stored(server: Server, obj: Json, status: Json = None) -> Iterator[Json]:
    """An object that is really there, as the server gives it; without who wrote which field."""
    obj = json.loads(json.dumps(obj))
    obj["metadata"].setdefault("name", "updated")
    answer = server.create(obj, dry=False)
    assert answer.code == 201, answer
    if status is not None:
        answer = server.update({**answer.body, "status": status}, status=True, dry=False)
        assert answer.code == 200, answer
    del answer.body["metadata"]["managedFields"]
    try:
        yield answer.body
    finally:
        free = {**answer.body, "metadata": {**answer.body["metadata"], "finalizers": []}}
        assert server.update(free, dry=False).code == 200
        server.delete(obj)


def differences(server: Server, old: Json, cases: Iterable[Case], subresource: Literal["", "status"] = "") -> list[str]:
    """What draht and the server judge differently."""

    def judge(case: Case) -> str | None:
        answer = server.update(case.obj, status=subresource == "status")
        found = difference(case.obj, answer, server.gates, old=old, subresource=subresource, for_people=False)
        return None if found is None else f"{case}: {found}"

    return [found for found in server.each(judge, cases) if found is not None]


def changes(rng: random.Random, good: Good, count: int) -> list[Case]:
    """One field changed, missing or of another type, and two fields changed."""
    return [
        good.changed(),
        *sample(rng, good, singles(good), 3 * count),
        *sample(rng, good, structural(good), count),
        *doubles(good, rng, count),
    ]


@pytest.mark.parametrize("good", goods(), ids=lambda good: str(good.name))
def test_updates_are_judged_alike(alpha_judge: Server, good: Good) -> None:
    """Specs that can't be changed, fields that can't, and what isn't judged again."""
    rng = random.Random(f"{SEED} {good.name}")
    with stored(alpha_judge, good.obj) as old:
        known = Good(good.name, old, VERSIONED)
        assert differences(alpha_judge, old, changes(rng, known, 20 * FACTOR)) == []


CLAIM, RULE = (next(each.obj for each in goods() if each.name == name) for name in ("v1 claim", "v1 rule"))


def test_a_first_allocation_is_judged_alike(alpha_judge: Server) -> None:
    """A claim gets its status: allocation, users, and what drivers say of its devices."""
    rng = random.Random(f"{SEED} first")
    with stored(alpha_judge, CLAIM) as old:
        good = Good("v1 claim", {**old, "status": STATUS}, VERSIONED | {("spec",)})
        assert differences(alpha_judge, old, changes(rng, good, 120 * FACTOR), "status") == []


def test_changes_of_an_allocated_claim_are_judged_alike(alpha_judge: Server) -> None:
    """An allocation stays as it is or goes; users and devices' states come and go."""
    rng = random.Random(f"{SEED} allocated")
    with stored(alpha_judge, CLAIM, STATUS) as old:
        good = Good("v1 claim", old, VERSIONED | {("spec",)})
        cases = [*changes(rng, good, 60 * FACTOR), good.changed((("status", "allocation"), ...))]
        gone = good.changed((("status", "allocation"), ...), (("status", "reservedFor"), ...))
        moved = good.changed(
            (("status", "allocation"), ...), (("status", "reservedFor"), ...), (("status", "devices", 0, "pool"), "q")
        )
        assert differences(alpha_judge, old, [*cases, gone, moved], "status") == []


def test_a_status_of_a_rule_is_judged_alike(alpha_judge: Server) -> None:
    """Conditions of a DeviceTaintRule."""
    rng = random.Random(f"{SEED} rule")
    with stored(alpha_judge, RULE) as old:
        good = Good("v1 rule", {**old, "status": RULE_STATUS}, VERSIONED | {("spec",)})
        assert differences(alpha_judge, old, changes(rng, good, 30 * FACTOR), "status") == []


PARAMETERS = [
    (b'{"a":1,"b":"x"}', True, True),
    (b'{"a": 1}', False, False),
    (b'{"b":1,"a":2}', True, False),
    (b'{"a":"<"}', False, False),
]


@pytest.mark.parametrize(("written", "merge", "strategic"), PARAMETERS, ids=range(len(PARAMETERS)))
def test_a_claim_whose_parameters_are_written_otherwise_takes_no_patch(
    default_judge: Server, written: bytes, merge: bool, strategic: bool
) -> None:
    """Upstream compares parameters byte by byte with what a patch makes of them, even one of labels alone."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "written"},
        "spec": {"devices": {"config": [{"opaque": {"driver": "d", "parameters": "HERE"}}]}},
    }
    body = json.dumps(claim).encode().replace(b'"HERE"', written)
    assert default_judge.ask("POST", default_judge.path(claim), body).code == 201
    try:
        for kind, taken in (("merge", merge), ("strategic-merge", strategic)):
            path = default_judge.path(claim, "written")
            labels = {"metadata": {"labels": {"a": kind}}}
            answer = default_judge.ask("PATCH", path, labels, content_type=f"application/{kind}-patch+json")
            assert (answer.code, answer.causes) == ((200, set()) if taken else (422, {("Invalid", "spec")})), kind
    finally:
        default_judge.delete(claim)
