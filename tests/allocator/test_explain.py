"""What an explanation says: for every cause one example with its numbers, its next step and what is blamed."""

from __future__ import annotations

from typing import Any

import pytest

from draht.allocator import Features, Limits, Snapshot
from draht.allocator.explain import Dominant, Explanation, explain, question
from draht.allocator.fit import find
from draht.api.reader import read_text
from draht.api.resource import DeviceClass, ResourceClaim, ResourceSlice

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "x.com"'}}]}
"""
ROOTS = ("a", "a", "b", "b")


def pool(node: str, count: int, *, memory: str = "80Gi", name: str = "", total: int = 1, extra: str = "") -> str:
    """A slice of equal GPUs of one node; the first two hang on root a, the next two on root b, and so on."""
    devices = "".join(
        f"\n    - {{name: d{number}, attributes: {{root: {{string: {ROOTS[number % 4]}}}, model: {{string: H}}}}, "
        f"capacity: {{memory: {{value: {memory}}}}}{extra}}}"
        for number in range(count)
    )
    return (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
        f"metadata: {{name: {name or node}}}\nspec:\n  driver: x.com\n  nodeName: {node}\n"
        f"  pool: {{name: {node}, resourceSliceCount: {total}}}\n  devices:{devices or ' []'}\n"
    )


def claim(requests: str = "{name: r, exactly: {%s}}", more: str = "", *, name: str = "want", status: str = "") -> str:
    """A claim; ``%s`` stands for what every request begins with."""
    text = requests.replace("%s", "deviceClassName: gpu, allocationMode: ExactCount, count: 1")
    return (
        f"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}, namespace: team}}\n"
        f"spec: {{devices: {{requests: [{text}]{more}}}}}\n{status}"
    )


def holding(name: str, *devices: str, node: str = "n1", at: str = "2026-01-01T00:00:00Z") -> str:
    """A claim that holds devices of a node."""
    results = ", ".join(f"{{request: r, driver: x.com, pool: {node}, device: {device}}}" for device in devices)
    status = f"status: {{allocation: {{allocationTimestamp: '{at}', devices: {{results: [{results}]}}}}}}\n"
    return claim(name=name, status=status)


def exactly(**fields: Any) -> str:
    """One request with these fields."""
    given = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1} | fields
    return "{name: r, exactly: {" + ", ".join(f"{key}: {value}" for key, value in given.items()) + "}}"


def selecting(*expressions: str) -> str:
    """Selectors of a request."""
    return "[" + ", ".join(f"{{cel: {{expression: '{each}'}}}}" for each in expressions) + "]"


def ask(*texts: str, **options: Any) -> Explanation:
    """Explain the last claim of the texts."""
    read = read_text("---\n".join((CLASS, *texts)))
    assert not read.problems, read.problems
    objects = [each.object for each in read.objects]
    claims = [each for each in objects if isinstance(each, ResourceClaim)]
    features = options.pop("features", None)
    snapshot = Snapshot.of(
        slices=[each for each in objects if isinstance(each, ResourceSlice)],
        classes=[each for each in objects if isinstance(each, DeviceClass)],
        claims=claims,
        **({} if features is None else {"features": features}),
    )
    return explain(snapshot, claims[-1:], **options)


MEMORY = 'device.capacity["x.com"].memory'
MODEL = 'device.attributes["x.com"].model'
TAINTED = ", taints: [{key: broken, value: fan, effect: NoSchedule}]"
COUNTED = ", consumesCounters: [{counterSet: s, counters: {c: {value: 6}}}]"
SET = (
    "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: set}\nspec:\n  driver: x.com\n"
    "  nodeName: n1\n  pool: {name: n1, resourceSliceCount: 2}\n"
    "  sharedCounters: [{name: s, counters: {c: {value: 10}}}]\n"
)
SHARED = ", allowMultipleAllocations: true"


@pytest.mark.parametrize(
    ("texts", "cause", "summary", "evidence", "step"),
    [
        pytest.param(
            [pool("n1", 2), holding("late", "d0", at="2026-02-02T00:00:00Z"), holding("early", "d1"), claim()],
            Dominant.HELD,
            "what would do is held by others",
            "2 of 2 devices match; all 2 are held, the earliest by claim team/early",
            "wait for claim team/early to end",
            id="held",
        ),
        pytest.param(
            [pool("n1", 4), holding("one", "d0", "d1", "d2"), claim(exactly(count=3))],
            Dominant.HELD,
            "what would do is held by others",
            "4 of 4 devices match; 3 of them are held, the earliest by claim team/one",
            "ask for 1 instead of 3: that fits now",
            id="some-held",
        ),
        pytest.param(
            [pool("n1", 4), claim(exactly(selectors=selecting(f'{MEMORY}.compareTo(quantity("100Gi")) >= 0')))],
            Dominant.SELECTOR,
            "none of 4 devices of class gpu meet the request's selectors",
            '0 of 4 devices have `memory.compareTo(quantity("100Gi")) >= 0`; the largest is 80Gi',
            "relax `memory",
            id="selector-quantity",
        ),
        pytest.param(
            [pool("n1", 3), claim(exactly(selectors=selecting(f'{MODEL} == "A" && device.driver == "x.com"')))],
            Dominant.SELECTOR,
            "none of 3 devices",
            '0 of 3 devices have `model == "A"`; there are "H" (3)',
            'relax `model == "A"`',
            id="selector-text",
        ),
        pytest.param(
            [pool("n1", 2), claim(exactly(selectors=selecting('device.attributes["x.com"].nope == 1')))],
            Dominant.ERROR,
            "no such key: nope (device x.com/n1/d0)",
            "found on node n1",
            "has(device.attributes",
            id="selector-error",
        ),
        pytest.param(
            [pool("n1", 2), claim(exactly(deviceClassName="nope"))],
            Dominant.ERROR,
            "device class nope doesn't exist",
            "found on node n1",
            "create the class",
            id="no-class",
        ),
        pytest.param(
            [pool("n1", 2, total=3), claim(exactly(allocationMode="All", count=0))],
            Dominant.INCOMPLETE_POOL,
            "x.com/n1",
            "found on node n1",
            "",
            id="incomplete-pool",
        ),
        pytest.param(
            [pool("n1", 2, total=3), claim()],
            Dominant.INCOMPLETE_POOL,
            "2 devices of class gpu are in pools whose slices aren't all there",
            "waiting for slices of pool x.com/n1",
            "wait until the driver has published all slices",
            id="incomplete-pool-for-some",
        ),
        pytest.param(
            [pool("n1", 1, total=2), pool("n1", 1, total=2, name="again"), claim()],
            Dominant.INVALID_POOL,
            "no solution without the invalid pool x.com/n1",
            "found on node n1",
            "",
            id="invalid-pool",
        ),
        pytest.param([claim()], Dominant.NO_NODE, "there is no node", "no slice names a node", "add the", id="no-node"),
        pytest.param(
            [pool("n1", 2).replace("x.com", "other.com"), claim()],
            Dominant.NO_DEVICES,
            "no device of class gpu is there",
            "2 devices are published, by other.com",
            "start the driver",
            id="no-devices",
        ),
        pytest.param(
            [pool("n1", 3, extra=TAINTED), claim()],
            Dominant.TAINT,
            "3 devices that would do have taints that the request doesn't tolerate",
            "broken=fan:NoSchedule on 3",
            "mend what the taint broken=fan:NoSchedule is about",
            id="taint",
        ),
        pytest.param(
            [pool("n1", 3, extra=SHARED), claim(exactly(capacity="{requests: {memory: 90Gi}}"))],
            Dominant.CAPACITY,
            "no device can give memory 90Gi",
            "the largest memory is 80Gi",
            "ask for less: 3 devices would do",
            id="capacity",
        ),
        pytest.param(
            [pool("n1", 2, total=2, extra=COUNTED), SET, claim(exactly(count=2))],
            Dominant.COUNTERS,
            "partitions of the same devices exclude each other",
            "2 devices match, but each uses counters that the others need",
            "ask for fewer or smaller partitions",
            id="counters",
        ),
        pytest.param(
            [pool("n1", 2, total=2, extra=COUNTED.replace("6", "12")), SET, claim()],
            Dominant.COUNTERS,
            "each device that would do needs more of its counters than there is, even alone",
            "2 of 2 devices do: ",
            "have the driver's counters mended",
            id="counters-alone",
        ),
        pytest.param(
            # Either of the two would do with something else gone, so none of the causes is indispensable.
            [
                pool("n1", 1, memory="40Gi", total=3),
                pool("n1", 1, name="n1-b", total=3, extra=COUNTED.replace("6", "12")).replace("d0", "d1"),
                SET.replace("Count: 2", "Count: 3"),
                claim(exactly(count=2, capacity="{requests: {memory: 80Gi}}")),
            ],
            Dominant.CAPACITY,
            "no device can give memory 80Gi",
            "1 of 2 devices can't",
            "ask for less",
            id="two-causes",
        ),
        pytest.param(
            [pool("n1", 2), pool("n2", 3), claim(exactly(count=4))],
            Dominant.TOPOLOGY,
            "4 devices are needed on one node, at most 3 are to be had on one",
            "5 devices match on 2 nodes; n2 has 3",
            "ask for at most 3",
            id="topology",
        ),
        pytest.param(
            [pool("n1", 4), claim(exactly(count=3), ", constraints: [{matchAttribute: x.com/root}]")],
            Dominant.CONSTRAINT,
            "no combination of devices has the same x.com/root",
            "on node n1, devices by x.com/root: a: 2 for r; b: 2 for r",
            "drop or widen the constraint: without it the claims fit",
            id="match",
        ),
        pytest.param(
            [pool("n1", 4), claim(exactly(count=3), ", constraints: [{distinctAttribute: x.com/root}]")],
            Dominant.CONSTRAINT,
            "no combination of devices has only different values of x.com/root",
            "a: 2 for r; b: 2 for r",
            "drop or widen the constraint",
            id="distinct",
        ),
        pytest.param(
            [
                pool("n1", 3),
                claim("{name: p, exactly: {%s}}, {name: q, exactly: {%s}}".replace("count: 1", "count: 2")),
            ],
            Dominant.FITS,
            "it fits on node n1",
            "",
            "",
            id="fits",
        ),
        pytest.param(
            [
                pool("n1", 3),
                claim(", ".join(exactly(count=2).replace("name: r", f"name: {name}") for name in ("p", "q"))),
            ],
            Dominant.TOGETHER,
            "every request can be satisfied, but not all of them at once on one node",
            "team/want/p wants 2 of 3; team/want/q wants 2 of 3",
            "ask for less",
            id="together",
        ),
        pytest.param(
            [
                pool("n0", 1),
                pool("n1", 3),
                claim(", ".join(exactly().replace("name: r", f"name: r{number}") for number in range(6))),
            ],
            Dominant.TOGETHER,
            "every request can be satisfied, but not all of them at once on one node",
            "together they want 6 devices; node n1 has 3 that would do for one or more of them",
            "ask for less",
            id="together-total",
        ),
        pytest.param(
            [
                pool("n1", 3),
                claim(", ".join(exactly().replace("name: r", f"name: r{number}") for number in range(6))),
            ],
            Dominant.TOGETHER,
            "every request can be satisfied, but not all of them at once on one node",
            "team/want/r3 wants 1 of 3; and 2 more requests",
            "ask for less",
            id="together-many",
        ),
        pytest.param(
            [pool("n1", 3), claim(exactly(count=33))],
            Dominant.RESULT_LIMIT,
            "more than 32 devices",
            "found on node n1",
            "ask for at most 32 devices in a claim",
            id="result-limit",
        ),
    ],
)
def test_each_cause_is_said_with_its_numbers(
    texts: list[str], cause: Dominant, summary: str, evidence: str, step: str
) -> None:
    """The dominant cause, the evidence behind it, and what would help."""
    found = ask(*texts)
    assert found.cause is cause, found.text()
    assert summary in found.summary
    assert any(evidence in line for line in (*found.evidence, "")), found.text()
    assert any(step in line for line in (*found.next_steps, "")), found.text()


def test_a_node_that_may_not_be_used_is_named() -> None:
    """It fits elsewhere, and where is said; if no node may be used at all, that is the cause."""
    texts = (pool("n0", 1), pool("n1", 1), pool("n2", 4), claim(exactly(count=3)))
    found = ask(*texts, nodes=["n0", "n1"])
    assert (found.cause, found.blame) == (Dominant.NODE_CHOICE, ("n2",))
    assert "it fits on node n2" in found.summary
    assert "on these: 3 devices are needed on one node, at most 1 are to be had on one" in found.evidence
    # Whoever names one node wants to know what is wrong there.
    found = ask(*texts, nodes=["n1"])
    assert found.cause is Dominant.TOPOLOGY
    assert "it fits on node n2, but that node may not be used" in found.evidence
    assert ask(pool("n1", 1), claim(exactly(count=3)), nodes=[]).cause is Dominant.NODE_CHOICE


def test_a_feature_that_is_off_is_named() -> None:
    """Partitions exist, but the release that is asked about doesn't know them."""
    found = ask(pool("n1", 2, total=1, extra=COUNTED), SET.replace("Count: 2", "Count: 1"), claim())
    assert found.cause is not Dominant.FEATURE
    texts = (pool("n1", 2, total=2, extra=COUNTED), SET, claim())
    found = ask(*texts, features=Features.of_kubernetes("1.32"))
    assert (found.cause, found.blame) == (Dominant.FEATURE, ("partitionable_devices",))
    assert ask(*texts, features=Features.of_kubernetes("1.37")).fits


def test_a_search_that_is_stopped_is_said_to_be() -> None:
    """No answer isn't taken for a no."""
    requests = ", ".join(exactly().replace("name: r", f"name: r{number}") for number in range(20))
    roots = ", constraints: [{distinctAttribute: x.com/root}]"
    found = ask(pool("n1", 24), claim(requests, roots), limits=Limits(steps=1))
    assert found.cause is Dominant.BUDGET
    assert found.next_steps


def test_alternatives_are_explained_one_by_one() -> None:
    """The first one dominates; the others are beside it."""
    subs = (
        "{name: r, firstAvailable: [{name: many, deviceClassName: gpu, allocationMode: ExactCount, count: 5}, "
        "{name: other, deviceClassName: nope2, allocationMode: ExactCount, count: 1}]}"
    )
    nope = CLASS.replace("name: gpu", "name: nope2").replace("x.com", "y.com")
    found = ask(nope, pool("n1", 2), claim(subs))
    assert found.cause is Dominant.TOPOLOGY
    assert found.request == "claim team/want, request r/many"
    assert any("alternative other: no device of class nope2 is there" in line for line in found.evidence)


def test_equal_nodes_are_told_as_a_group() -> None:
    """How many they are, an example, and what is against their devices."""
    texts = [pool(f"n{number}", 2, memory="40Gi") for number in range(5)] + [pool("big", 1)]
    found = ask(*texts, claim(exactly(selectors=selecting(f'{MEMORY}.isGreaterThan(quantity("90Gi"))'))))
    groups = {group.example: group for group in found.groups}
    assert groups["n0"].nodes == 5
    assert groups["n0"].causes == {"selector": 2}
    assert "5 nodes like n0: 0 of 2 devices usable (2 selector)" in found.text()


def test_hundreds_of_conditions_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that most devices fail are; a condition that is written twice is one."""
    asked = 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return find(*arguments, **options)

    monkeypatch.setattr(question, "find", counted)
    terms = " && ".join(f'{MEMORY}.isGreaterThan(quantity("{100 + number}Gi"))' for number in range(100))
    found = ask(pool("n1", 2), claim(exactly(selectors=selecting(terms, terms))))
    assert found.cause is Dominant.SELECTOR
    assert found.next_steps == ("relax the selectors of the request: the nearest device meets 0 of 100 conditions",)
    assert asked < 60
