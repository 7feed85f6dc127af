"""Allocation scenarios written by hand: short YAML, made into the objects of the API.

Owns the shorthand, so that a scenario shows what it is about and nothing else. A case is the same plain data as those
of `allocator_generator`, and upstream is asked about every scenario too: what is written under ``expect`` is what both
say.

A scenario::

    name: a sentence
    kubernetes: "1.36"            # or without: [DeviceTaints]; default: every feature
    nodes: {node-1: {zone: a}}    # labels; default: node-1 without; operations: "yes" declares that feature
    node: node-1                  # the one that is asked about; default: the first
    slices:
      - node: node-1              # or all: true, or zone: a (a selector), or each: true (devices say themselves)
        driver: a.example.com     # defaults: this, pool: <node>, name: <driver>-<pool>, generation and count: 1
        counters: {set: {memory: 40Gi}}
        devices:
          - {name: d1, memory: 80, model: A, ecc: true, firmware: v1.2.3, hosts: [1, 2], capacity: {memory: 80Gi},
             multi: true, consumes: {set: {memory: 10Gi}}, taints: ["key=value:NoSchedule"], binding: [ready]}
    classes: {gpu: ["device.driver == 'a.example.com'"]}     # ``any`` is always there
    held: [node-1/d1, {device: node-1/d2, share: id, consumed: {memory: 10Gi}}]
    claims:
      - requests: {r: 2, s: {class: gpu, all: true, where: ["…"], admin: true, tolerate: [key], amounts: {memory: 1Gi}},
                   t: {first: {big: {count: 2}, small: {}}}}
        match: model              # or distinct; or constraints: [{match: model, requests: [r]}]
        config: [{requests: [r], set: 1}]
    expect: [[r node-1/d1, r node-1/d2]]                     # or none, or the kind of an error
    upstream: panic               # where upstream has no answer
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from allocator_generator import FEATURES
from draht.allocator import Features

__all__ = ["SCENARIOS", "case_of", "expected_of", "scenarios"]

SCENARIOS = Path(__file__).parent / "allocator" / "scenarios"
DRIVER = "a.example.com"
RESERVED = frozenset(
    {"name", "capacity", "multi", "consumes", "groups", "taints", "binding", "failing", "node", "zone"}
)
RESERVED_TOO = frozenset({"all", "binds", "attributes"})

Object = dict[str, Any]


def scenarios() -> Iterator[tuple[str, Object]]:
    """Every scenario with its id: the file and its name."""
    for file in sorted(SCENARIOS.glob("*.yaml")):
        for scenario in yaml.safe_load(file.read_text()):
            yield f"{file.stem}: {scenario['name']}", scenario


def case_of(scenario: Object) -> Object:
    """The scenario as the question for both allocators."""
    claims = [_claim(index, claim) for index, claim in enumerate(scenario.get("claims", [{"requests": {"r": {}}}]))]
    nodes = scenario.get("nodes", {"node-1": {}})
    names = {name: _node(name, labels or {}) for name, labels in nodes.items()}
    return {
        "features": _features(scenario),
        "slices": [_slice(one) for one in scenario.get("slices", [])],
        "classes": [_class(name, one) for name, one in {"any": [], **scenario.get("classes", {})}.items()],
        "allocatedClaims": [_held(index, one) for index, one in enumerate(scenario.get("held", []))],
        "nodes": list(names.values()),
        "claims": claims,
        "on": [scenario.get("node", next(iter(names)))],
    }


def expected_of(scenario: Object) -> Any:
    """What comes out: a list of ``request pool/device`` for each claim, ``none``, or the kind of an error."""
    return scenario["expect"]


def _features(scenario: Object) -> dict[str, bool]:
    if "kubernetes" in scenario:
        chosen = Features.of_kubernetes(scenario["kubernetes"])
        return {name: getattr(chosen, _snake(name)) for name in FEATURES}
    return {name: name not in scenario.get("without", []) for name in FEATURES}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


def _node(name: str, labels: dict[str, str]) -> Object:
    declared = ["DRAOptionalNodeOperations"] if labels.get("operations") else []
    return {"metadata": {"name": name, "labels": labels}, "status": {"declaredFeatures": declared}}


def _selector(zone: str) -> Object:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}


def _where(one: Object) -> Object:
    if "selector" in one:
        return {"nodeSelector": one["selector"]}
    if "zone" in one:
        return {"nodeSelector": _selector(one["zone"])}
    return {"allNodes": True} if one.get("all") else {"nodeName": one["node"]}


def _slice(one: Object) -> Object:
    driver = one.get("driver", DRIVER)
    pool = one.get("pool", one.get("node", "pool"))
    spec: Object = {
        "driver": driver,
        "pool": {"name": pool, "generation": one.get("generation", 1), "resourceSliceCount": one.get("count", 1)},
        "devices": [_device(d if isinstance(d, dict) else {"name": d}) for d in one.get("devices", [])],
        **({"perDeviceNodeSelection": True} if one.get("each") else _where(one)),
    }
    if "counters" in one:
        spec["sharedCounters"] = [{"name": name, "counters": _counters(c)} for name, c in one["counters"].items()]
    if "skip" in one:
        spec["skipNodeOperations"] = one["skip"]
    return {"metadata": {"name": one.get("name", f"{driver}-{pool}")}, "spec": spec}


def _counters(amounts: Object) -> Object:
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


def _device(one: Object) -> Object:
    device: Object = {"name": one["name"]}
    attributes = {k: v for k, v in one.items() if k not in RESERVED | RESERVED_TOO} | one.get("attributes", {})
    device["attributes"] = {name: _attribute(value) for name, value in attributes.items()}
    device["capacity"] = {
        name: amount if isinstance(amount, dict) else {"value": str(amount)}
        for name, amount in one.get("capacity", {}).items()
    }
    if one.get("multi"):
        device["allowMultipleAllocations"] = True
    groups = one.get("groups")
    if "consumes" in one:
        device["consumesCounters"] = [
            {"counterSet": name, "counters": _counters(c), **({"compatibilityGroups": groups} if groups else {})}
            for name, c in one["consumes"].items()
        ]
    if "taints" in one:
        device["taints"] = [_taint(text) for text in one["taints"]]
    if "binding" in one:
        device["bindingConditions"] = one["binding"]
        device["bindingFailureConditions"] = one.get("failing", ["failed"])
    if one.get("binds"):
        device["bindsToNode"] = True
    if "node" in one or "zone" in one or "all" in one:
        device |= _where(one)
    return device


def _attribute(value: Any) -> Object:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        kinds = {"bool": "bools", "int": "ints", "str": "strings"}
        return {kinds[type(value[0]).__name__]: value}
    if isinstance(value, str) and value[:1] == "v" and value[1:2].isdigit():
        return {"version": value[1:]}
    return {{"bool": "bool", "int": "int", "str": "string"}[type(value).__name__]: value}


def _taint(text: str) -> Object:
    key, _, rest = text.partition("=")
    value, _, effect = rest.partition(":")
    return {"key": key, "value": value, "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"}


def _class(name: str, one: Any) -> Object:
    listed = one if isinstance(one, dict) else {"where": one}
    spec: Object = {"selectors": [{"cel": {"expression": text}} for text in listed.get("where", [])]}
    if "config" in listed:
        spec["config"] = [_opaque(value) for value in listed["config"]]
    return {"metadata": {"name": name}, "spec": spec}


def _opaque(value: Any) -> Object:
    return {"opaque": {"driver": DRIVER, "parameters": {"set": value}}}


def _held(index: int, one: Any) -> Object:
    held = one if isinstance(one, dict) else {"device": one}
    pool, _, device = held["device"].rpartition("/")
    result: Object = {"request": "r", "driver": held.get("driver", DRIVER), "pool": pool, "device": device}
    if "share" in held:
        result["shareID"] = held["share"]
        result["consumedCapacity"] = {name: str(amount) for name, amount in held.get("consumed", {}).items()}
    if held.get("admin"):
        result["adminAccess"] = True
    return {
        "metadata": {"name": f"held-{index}", "namespace": "default"},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def _claim(index: int, one: Object) -> Object:
    constraints = list(one.get("constraints", []))
    constraints += [{kind: one[kind]} for kind in ("match", "distinct") if kind in one]
    devices: Object = {
        "requests": [_request(name, request) for name, request in one["requests"].items()],
        "constraints": [_constraint(constraint) for constraint in constraints],
        "config": [{"requests": c.get("requests", []), **_opaque(c["set"])} for c in one.get("config", [])],
    }
    return {"metadata": {"name": f"claim-{index}", "namespace": "default"}, "spec": {"devices": devices}}


def _constraint(one: Object) -> Object:
    found: Object = {"requests": one.get("requests", [])}
    for kind, field in (("match", "matchAttribute"), ("distinct", "distinctAttribute")):
        if kind in one:
            found[field] = one[kind] if "/" in one[kind] else f"{DRIVER}/{one[kind]}"
    return found


def _request(name: str, one: Any) -> Object:
    request: Object = {"count": one} if isinstance(one, int) else one or {}
    if "first" in request:
        return {"name": name, "firstAvailable": [{"name": n, **_asked(r or {})} for n, r in request["first"].items()]}
    return {"name": name, "exactly": _asked(request)}


def _asked(one: Any) -> Object:
    request: Object = {"count": one} if isinstance(one, int) else one
    asked: Object = {
        "deviceClassName": request.get("class", "any"),
        "selectors": [{"cel": {"expression": text}} for text in request.get("where", [])],
    }
    if request.get("all"):
        asked["allocationMode"] = "All"
    else:
        asked |= {"allocationMode": request.get("mode", "ExactCount"), "count": request.get("count", 1)}
    if "admin" in request:
        asked["adminAccess"] = request["admin"]
    if "tolerate" in request:
        asked["tolerations"] = [
            t if isinstance(t, dict) else {"key": t, "operator": "Exists"} for t in request["tolerate"]
        ]
    if "amounts" in request:
        asked["capacity"] = {"requests": {name: str(amount) for name, amount in request["amounts"].items()}}
    if "derived" in request:
        asked["derivedAttributes"] = [
            {"name": attribute, "expression": text} for attribute, text in request["derived"].items()
        ]
    return asked
