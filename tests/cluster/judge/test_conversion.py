"""What is created in one version and read in another is what `draht.api.conversion` makes of it."""

from __future__ import annotations

import json
import os
import random
from typing import Any, TypeAlias, cast

import msgspec
import pytest

from cluster.judge.server import Server
from cluster.judge.verdicts import read
from draht.api.conversion import Version, from_v1, to_v1
from draht.api.meta import Object, ObjectMeta
from draht.api.reader import read_text
from draht.manifests.defaults import defaulted
from draht.validation.equality import same
from validation_mutations import Case, doubles, goods, sample, singles

pytestmark = pytest.mark.cluster

Json: TypeAlias = Any
SEED = int(os.environ.get("DRAHT_JUDGE_SEED", "20261130"))
FACTOR = int(os.environ.get("DRAHT_JUDGE_FACTOR", "1"))
VERSIONS: dict[str, tuple[Version, ...]] = {
    "DeviceTaintRule": ("v1", "v1beta2", "v1alpha3"),
    "ResourceClaim": ("v1", "v1beta2", "v1beta1"),
}
GROUP = "resource.k8s.io"


def _versions(kind: str) -> tuple[Version, ...]:
    return VERSIONS.get(kind, VERSIONS["ResourceClaim"])


def _cases(version: Version, rng: random.Random) -> list[Case]:
    """Good objects, and changed ones: those that are still good are what is wanted."""
    found: list[Case] = []
    for good in goods(version):
        found.append(good.changed())
        found += sample(rng, good, singles(good), 20 * FACTOR)
        found += doubles(good, rng, 5 * FACTOR)
    return found


def _same_but_metadata(left: Object, right: Object) -> bool:
    """Whether all but metadata is the same; the server writes amounts in their shortest form."""
    bare = ObjectMeta()
    return same(msgspec.structs.replace(left, metadata=bare), msgspec.structs.replace(right, metadata=bare))


def _without_clock(obj: Json) -> Json:
    """JSON without the moment that the server gives a taint that has none."""
    if isinstance(obj, dict):
        return {key: _without_clock(each) for key, each in obj.items() if key != "timeAdded"}
    return [_without_clock(each) for each in obj] if isinstance(obj, list) else obj


def _written(value: Json) -> Json:
    """JSON without what says nothing: null, and objects and lists that are empty."""
    if isinstance(value, dict):
        found = {key: _written(each) for key, each in value.items() if key != "managedFields"}
        return {
            key: each
            for key, each in found.items()
            # v1beta1 writes the class of a request that has alternatives instead.
            if each not in (None, {}, []) and (key, each) != ("deviceClassName", "")
        }
    return [_written(each) for each in value] if isinstance(value, list | tuple) else value


def _judged(server: Server, sent: Json) -> list[str] | None:
    """What draht gets wrong about an object, in all versions; None if the server doesn't take it."""
    sent = json.loads(json.dumps(sent))
    sent["metadata"].pop("generateName", None)
    sent["metadata"].pop("finalizers", None)
    created = server.create(sent, dry=False)
    if created.code != 201:
        return None
    stored: dict[Version, Json] = {}
    for version in _versions(sent["kind"]):
        stored[version] = server.get(created.body, f"{GROUP}/{version}")
    server.delete(created.body)
    wrong = []
    newest = read(stored["v1"])
    for version, obj in stored.items():
        current = read(obj)
        if to_v1(current) != newest:
            wrong.append(f"{version} to v1")
        if from_v1(newest, version) != current:
            wrong.append(f"v1 to {version}")
        if _written(msgspec.to_builtins(current)) != _written(obj):
            wrong.append(f"{version} isn't written as it was read")
        if problems := read_text(json.dumps(obj)).problems:
            wrong.append(f"{version} isn't read strictly: {problems[0]}")
    expected = defaulted(cast("Object", to_v1(read(_without_clock(sent)))))
    if not _same_but_metadata(expected, read(_without_clock(stored["v1"]))):
        wrong.append("defaults")
    return wrong


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1", "v1alpha3"])
def test_every_version_holds_what_conversion_makes(alpha_judge: Server, version: Version) -> None:
    """Each object that the server takes is read in every version, and is what draht converts it to."""
    rng = random.Random(f"{SEED} conversion {version}")
    named = _cases(version, rng)
    for number, case in enumerate(named):
        case.obj["metadata"] = {**case.obj["metadata"], "name": f"c{number}"} if case.obj.get("metadata") else {}

    def judge(case: Case) -> tuple[Case, list[str] | None]:
        return case, _judged(alpha_judge, case.obj)

    results = alpha_judge.each(judge, named)
    assert [f"{case}: {wrong}" for case, wrong in results if wrong] == []
    assert sum(wrong is not None for _, wrong in results) >= (10 if version == "v1alpha3" else 50)
