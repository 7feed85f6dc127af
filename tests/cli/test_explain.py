"""``draht explain``: the cause with its numbers, what is placed before, and what can't be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cdi_command import Outcome, run
from cli_cluster import CLAIM, CLASS, HOLDER, NODE_1, PODS, RULE, SLICES, as_list

SHARED = """
apiVersion: v1
kind: Pod
metadata: {name: user, namespace: team-a}
spec: {nodeName: node-1, resourceClaims: [{name: a, resourceClaimName: holder}], containers: [{name: main}]}
"""
UNFINISHED = NODE_1.replace("resourceSliceCount: 1", "resourceSliceCount: 2")


def explain(text: str, *options: str) -> Outcome:
    """The command with manifests on standard input."""
    return run("explain", "-f", "-", *options, stdin=text.encode())


def documents(*texts: str) -> str:
    """Several texts as one file."""
    return "\n---\n".join(texts)


def test_what_fits_is_one_line() -> None:
    """With the node, and status 0."""
    assert explain(documents(SLICES, CLAIM), "pair") == (0, "ResourceClaim default/pair fits on node node-2\n", "")


def test_the_cause_comes_with_numbers_and_next_steps() -> None:
    """Who holds what would do, what each node has, and what would help; status 1."""
    outcome = explain(documents(SLICES, HOLDER, CLAIM), "pair")
    assert outcome.status == 1
    assert outcome.lines == [
        "ResourceClaim default/pair doesn't fit: what would do is held by others",
        "  about: claim default/pair, request gpu",
        "  because: 2 of 3 devices match; 1 of them is held, the earliest by claim team-a/holder",
        "  node node-2: 1 of 2 devices usable (1 in-use)",
        "  node node-1: 0 of 1 devices usable (1 selector)",
        "  next: wait for claim team-a/holder to end",
        "  next: ask for 1 instead of 2: that fits now",
    ]


def test_programs_get_the_same_as_fields() -> None:
    """The cause is a stable name; json and yaml say the same."""
    text = documents(SLICES, HOLDER, CLAIM)
    found = json.loads(explain(text, "pair", "-o", "json").stdout)
    assert found == yaml.safe_load(explain(text, "pair", "-o", "yaml").stdout)
    assert (found["for"], found["fits"], found["cause"]) == ("ResourceClaim default/pair", False, "held")
    assert found["nextSteps"][0] == "wait for claim team-a/holder to end"
    assert found["groups"][0] == {
        "nodes": 1,
        "example": "node-2",
        "devices": 2,
        "usable": 1,
        "causes": {"in-use": 1},
    }
    fits = json.loads(explain(documents(SLICES, CLAIM), "pair", "-o", "json").stdout)
    assert fits == {"for": "ResourceClaim default/pair", "fits": True, "node": "node-2"}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (documents(SLICES, CLAIM, RULE), "taint"),
        (documents(SLICES, CLAIM.replace("A100", "H100")), "selector"),
        (documents(SLICES, CLAIM.replace("count: 2", "count: 3")), "topology"),
        (documents(CLASS, CLAIM), "no-node"),
        (documents(SLICES, CLAIM.replace("deviceClassName: gpu", "deviceClassName: nope")), "error"),
        (documents(SLICES, CLAIM.replace(".model ==", ".model.odd() ==")), "error"),
        (documents(UNFINISHED, CLASS, CLAIM.replace("count: 2", "allocationMode: All")), "incomplete-pool"),
    ],
)
def test_each_cause_has_a_next_step(text: str, cause: str) -> None:
    """And numbers or a place behind it."""
    outcome = explain(text, "pair", "-o", "json")
    found = json.loads(outcome.stdout)
    assert (outcome.status, found["cause"]) == (1, cause)
    assert found["evidence"]
    assert found["nextSteps"]
    assert json.loads(explain(as_list(text), "pair", "-o", "json").stdout) == found


def test_what_stands_before_is_placed_first() -> None:
    """As `draht allocate` does it; ``--alone`` asks about the pod on what is held already."""
    text = documents(SLICES, PODS)
    assert "the earliest by claim default/first-gpus" in explain(text, "second").stdout
    assert explain(text, "first").status == 0
    assert explain(text, "second", "--alone").stdout == "Pod default/second fits on node node-2\n"


@pytest.mark.parametrize("options", [(), ("--alone",)])
def test_a_claim_that_pods_use_is_explained_by_itself(options: tuple[str, ...]) -> None:
    """What the pods ask of a node plays no part then."""
    pods = SHARED.replace("holder", "pair").replace(", namespace: team-a", "")
    assert explain(documents(SLICES, CLAIM, pods), "claim/pair", *options).status == 0
    assert explain(documents(SLICES, CLAIM, pods), "pod/user", *options).status == 1


def test_a_release_that_lacks_a_feature_is_told_apart() -> None:
    """Kubernetes 1.32 doesn't know taint rules, so it fits there."""
    text = documents(SLICES, CLAIM, RULE)
    assert explain(text, "pair", "--kubernetes", "1.36").status == 1
    assert explain(text, "pair", "--kubernetes", "1.32").status == 0


def test_one_node_can_be_asked_about() -> None:
    """The explanation says what is wrong there, and names another one where it would fit."""
    outcome = explain(documents(SLICES, CLAIM), "pair", "--node", "node-1")
    assert outcome.status == 1
    assert "doesn't fit: none of 1 devices of class gpu meet the request's selectors" in outcome.stdout
    assert "because: it fits on node node-2, but that node may not be used" in outcome.stdout


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("nodeSelector: {zone: b}", "0 of 2 nodes have the label zone=b; there are a (1)"),
        ("nodeSelector: {zon: a}", "0 of 2 nodes have the label zon=a; did you mean zone?"),
        ("nodeSelector: {rack: '7'}", "0 of 2 nodes have the label rack=7; none has a label of that name"),
        ("nodeName: node-3", "the pod's node name is node-3, and there is no such node"),
        (
            (
                "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                "[{matchExpressions: [{key: zone, operator: In, values: [c]}]}]}}}"
            ),
            "0 of 2 nodes meet the required node affinity (about zone)",
        ),
    ],
)
def test_a_wish_that_no_node_meets_is_named(wish: str, says: str) -> None:
    """The label, the name or the affinity, with what the nodes have instead."""
    nodes = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1, labels: {zone: a}}\n"
    outcome = explain(
        documents(SLICES, nodes, PODS.replace("name: first}\nspec: {", f"name: first}}\nspec: {{{wish}, ")), "first"
    )
    assert outcome.status == 1
    assert "doesn't fit: no node may be used" in outcome.stdout
    assert f"because: {says}" in outcome.stdout


def test_a_choice_of_nodes_says_what_is_wrong_on_them() -> None:
    """Beside the node that may not be used, the cause on those that may."""
    nodes = "".join(
        f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-{number}, labels: {{zone: {zone}}}}}\n"
        for number, zone in ((1, "a"), (2, "b"), (3, "a"))
    )
    other = NODE_1.replace("node-1", "node-3").replace("slice-1", "slice-3")
    pods = PODS.replace("name: first}\nspec: {", "name: first}\nspec: {nodeSelector: {zone: a}, ")
    outcome = explain(documents(SLICES, other, nodes, pods), "first", "-o", "json")
    found = json.loads(outcome.stdout)
    assert (found["cause"], found["blame"]) == ("node-choice", ["node-2"])
    assert found["evidence"][:2] == ["2 of 3 nodes may be used", "2 of 3 nodes have the label zone=a"]
    assert found["evidence"][2] == "on these: 2 devices are needed on one node, at most 1 are to be had on one"


def test_an_allocated_claim_is_told_as_such() -> None:
    """On its node if that is in the files; there is nothing to explain otherwise."""
    assert "fits on node node-2" in explain(documents(SLICES, HOLDER), "holder", "-n", "team-a").stdout
    outcome = explain(documents(NODE_1, CLASS, HOLDER), "holder", "-n", "team-a")
    assert outcome == (0, "ResourceClaim team-a/holder is allocated already, on another node\n", "")


def test_a_pod_that_may_not_use_its_claims_node_does_not_fit() -> None:
    """Its claim is allocated, but it is kept from the node."""
    outcome = explain(documents(SLICES, HOLDER, SHARED), "pod/user", "-n", "team-a")
    assert outcome.status == 1
    assert "doesn't fit: no node may be used" in outcome.stdout


@pytest.mark.parametrize(
    ("target", "options", "says", "hint"),
    [
        ("nope", (), "there is no Pod or ResourceClaim default/nope in the files", "pod/first, pod/second"),
        ("pod/nope", (), "there is no Pod default/nope in the files", "pod/first, pod/second"),
        ("claim/nope", (), "there is no ResourceClaim default/nope in the files", "claim/pair"),
        ("pair", ("-n", "team-b"), "there is no Pod or ResourceClaim team-b/pair in the files", "-n"),
        ("deployment/first", (), "`deployment/first` names no pod or claim", "pod/NAME"),
        ("first", ("--node", "nope"), "there is no node `nope`", "node-1, node-2"),
        ("first", ("--kubernetes", "2.0"), "Kubernetes '2.0' is not known", "1.37"),
        ("first", ("--profile", "nope"), 'there is no machine profile "nope"', "dgx-h100"),
    ],
)
def test_a_name_that_is_not_known_is_bad_input(target: str, options: tuple[str, ...], says: str, hint: str) -> None:
    """Status 2, and what there is instead."""
    outcome = explain(documents(SLICES, CLAIM, PODS), target, *options)
    assert (outcome.status, outcome.stdout) == (2, "")
    error, told = outcome.stderr.splitlines()
    assert error == f"error: {says}"
    assert told.startswith("hint: ")
    assert hint in told


def test_a_pod_whose_reference_leads_nowhere_is_bad_input() -> None:
    """With the field, and what there is."""
    pod = SHARED.replace(", namespace: team-a", "")
    outcome = explain(documents(SLICES, CLAIM, pod), "user")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.splitlines() == [
        "error: Pod default/user: spec.resourceClaims[0]: there is no ResourceClaim default/holder",
        "hint: there are pair",
    ]


def test_bad_files_beside_good_ones_are_told_and_change_the_status(tmp_path: Path) -> None:
    """The answer is there all the same."""
    (tmp_path / "a.yaml").write_text(documents(SLICES, CLAIM))
    (tmp_path / "b.yaml").write_text(CLAIM)
    (tmp_path / "c.yaml").write_text("spec: [")
    outcome = run("explain", "-f", str(tmp_path), "pair")
    assert (outcome.status, outcome.stdout) == (2, "ResourceClaim default/pair fits on node node-2\n")
    assert f"error: {tmp_path}/b.yaml:4:12: ResourceClaim default/pair is there twice" in outcome.stderr
    assert f"error: {tmp_path}/c.yaml:" in outcome.stderr


def test_a_profile_is_labelled() -> None:
    """It is a simulated machine wherever it is used."""
    outcome = explain(
        CLAIM.replace("deviceClassName: gpu", "deviceClassName: gpu.nvidia.com"), "pair", "--profile", "t4-x1"
    )
    assert outcome.status == 1
    assert outcome.stderr == "simulated: t4-x1 is a machine profile, its GPUs compute nothing\n"
