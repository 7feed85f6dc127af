"""``draht allocate``: what the claims of manifests get, what keeps them from it, and what can't be read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from unittest import mock

import pytest
import yaml

from cdi_command import Outcome, run, script
from cli_cluster import CLAIM, CLASS, HOLDER, NODE_1, NODE_2, PODS, RULE, SLICES, as_list
from draht.allocator import BudgetError, Limits, Snapshot, fit
from draht.allocator.outcome import outcome_of
from draht.api.reader import read_text
from draht.api.resource import ResourceClaim
from draht.cli.manifest_files import manifests_of
from draht.scheduler import Sequence

OLD_SLICE = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: old}
spec:
  driver: gpu.example.com
  nodeName: node-3
  pool: {name: node-3, generation: 1, resourceSliceCount: 1}
  devices: [{name: old, basic: {attributes: {model: {string: V100}}}}]
"""
OLD_CLAIM = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: old}
spec: {devices: {requests: [{name: gpu, deviceClassName: gpu}]}}
"""
PREFERRED = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: preferred}
spec:
  devices:
    requests:
      - name: gpu
        firstAvailable: [{name: three, deviceClassName: gpu, count: 3}, {name: one, deviceClassName: gpu}]
"""
UNPRUNED = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: unpruned}
spec:
  devices:
    requests:
      - name: some
        firstAvailable: [{name: many, deviceClassName: gpu, count: 32}, {name: one, deviceClassName: gpu}]
      - {name: another, exactly: {deviceClassName: gpu}}
    constraints: [{distinctAttribute: gpu.example.com/model}]
"""
"""A claim that may reach the limit of results, so nothing of its search is skipped."""
SHARED = """
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {resourceClaims: [{name: a, resourceClaimName: pair}], containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {resourceClaims: [{name: a, resourceClaimName: pair}], containers: [{name: main}]}
"""


def allocate(text: str, *options: str) -> Outcome:
    """The command with manifests on standard input."""
    return run("allocate", "-f", "-", *options, stdin=text.encode())


def devices(outcome: Outcome) -> dict[str, list[str]]:
    """Whom the table is for → the devices it shows, as ``node/device``."""
    found: dict[str, list[str]] = {}
    for line in outcome.lines[1:]:
        kind, name, node, _, _, _, device = line.split()[:7]
        assert kind in {"Pod", "ResourceClaim"}
        found.setdefault(name, []).append(f"{node}/{device}")
    return found


def documents(*texts: str) -> str:
    """Several texts as one file."""
    return "\n---\n".join(texts)


class TestAnswers:
    def test_what_a_claim_gets_is_a_row_for_each_device(self) -> None:
        """With node, request, driver and pool; the exit status says that everything fits."""
        outcome = allocate(documents(SLICES, CLAIM))
        assert outcome == (0, outcome.stdout, "")
        assert [line.split() for line in outcome.lines] == [
            ["FOR", "NODE", "REQUEST", "DRIVER", "POOL", "DEVICE", "NOTE"],
            ["ResourceClaim", "default/pair", "node-2", "gpu", "gpu.example.com", "node-2", "big-0", "-"],
            ["ResourceClaim", "default/pair", "node-2", "gpu", "gpu.example.com", "node-2", "big-1", "-"],
        ]

    def test_what_does_not_fit_is_told_with_its_reason_beside_what_does(self) -> None:
        """The status is 1; stderr has the reason and where to read more."""
        outcome = allocate(documents(SLICES, PODS))
        assert outcome.status == 1
        assert devices(outcome)["default/first"] == ["node-2/big-0", "node-2/big-1"]
        assert outcome.lines[-1].split() == ["Pod", "default/second", "-", "-", "-", "-", "-", "doesn't", "fit"]
        assert outcome.stderr.splitlines() == [
            "error: Pod default/second: it doesn't fit: what would do is held by others",
            "hint: `draht explain` says more, for pod/second",
        ]

    def test_the_reason_is_the_one_of_its_turn(self) -> None:
        """What a later pod takes isn't blamed for what an earlier one didn't get."""
        elsewhere = SHARED.replace("{name: one}\nspec: {", "{name: one}\nspec: {nodeName: node-1, ")
        outcome = allocate(documents(SLICES, CLAIM, elsewhere))
        assert devices(outcome)["default/other"] == ["node-2/big-0", "node-2/big-1"]
        assert "Pod default/one: it doesn't fit: none of 1 devices of class gpu meet" in outcome.stderr

    @pytest.mark.parametrize("form", ["json", "yaml"])
    def test_programs_get_the_claims_with_their_allocation(self, form: str) -> None:
        """One list of claims that the strict reader takes; what doesn't fit isn't in it, and is still told."""
        outcome = allocate(documents(SLICES, PODS, CLAIM.replace("pair", "unfit")), "-o", form)
        assert outcome.status == 1
        assert (json.loads(outcome.stdout) if form == "json" else yaml.safe_load(outcome.stdout))["kind"] == "List"
        read = read_text(outcome.stdout)
        assert not read.problems
        (only,) = [each.object for each in read.objects]
        assert isinstance(only, ResourceClaim)
        assert only.metadata.name == "first-gpus"
        assert only.status.allocation is not None
        assert [each.device for each in only.status.allocation.devices.results] == ["big-0", "big-1"]
        assert "default/second: it doesn't fit" in outcome.stderr

    def test_what_it_prints_can_be_read_back_as_what_is_held(self, tmp_path: Path) -> None:
        """A second call with the first one's output gives nothing away twice."""
        held = tmp_path / "held.yaml"
        held.write_text(allocate(documents(SLICES, PODS), "-o", "yaml").stdout)
        outcome = allocate(documents(SLICES, CLAIM), "-f", str(held))
        assert outcome.status == 1
        assert devices(outcome) == {
            "default/pair": ["-/-"],
            "default/first-gpus": ["node-2/big-0", "node-2/big-1"],
        }

    def test_a_profile_is_a_node_and_is_labelled(self) -> None:
        """Everywhere that simulated devices are shown, it is said."""
        pod = PODS.replace("Name: gpu,", "Name: gpu.nvidia.com,")
        for form in ("table", "json", "yaml"):
            outcome = allocate(pod, "--profile", "dgx-h100", "-o", form)
            assert outcome.status == 0
            assert outcome.stderr == "simulated: dgx-h100 is a machine profile, its GPUs compute nothing\n"

    def test_partitions_and_shares_of_a_profile_can_be_asked_for(self) -> None:
        """Shares show how much of the device was taken."""
        claim = CLAIM.replace("gpu\n", "mig.nvidia.com\n").partition("          selectors")[0]
        assert allocate(claim, "--profile", "dgx-h100").status == 1
        outcome = allocate(claim, "--profile", "dgx-h100", "--partitions")
        assert all("mig" in device for device in devices(outcome)["default/pair"])
        share = claim.replace("mig.nvidia.com", "gpu.nvidia.com") + "          capacity: {requests: {memory: 10Gi}}\n"
        outcome = allocate(share, "--profile", "dgx-h100", "--shares")
        assert outcome.status == 0
        assert "memory 10Gi" in outcome.lines[1]

    def test_admin_access_is_noted(self) -> None:
        """It takes what others hold, and says so."""
        admin = CLAIM.replace("count: 2", "adminAccess: true\n          count: 2")
        outcome = allocate(documents(SLICES, HOLDER, admin))
        assert outcome.status == 0
        assert [line.endswith("   admin access") for line in outcome.lines] == [False, False, True, True]

    def test_pods_that_want_no_devices_are_passed_over(self) -> None:
        """And a file with nothing to decide says so."""
        pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main}]}\n"
        outcome = allocate(documents(SLICES, pod))
        assert (outcome.status, outcome.stdout) == (0, "")
        assert outcome.stderr.splitlines()[0] == "there is nothing to allocate"

    def test_a_claim_for_nothing_has_its_row(self) -> None:
        """It fits, and nothing of the input goes unmentioned."""
        empty = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: empty}\nspec: {}\n"
        outcome = allocate(documents(SLICES, empty))
        assert outcome.status == 0
        assert outcome.lines[1].endswith("no devices are asked for")


class TestClusters:
    def test_devices_of_allocated_claims_are_held(self) -> None:
        """They are shown with what they hold, and others don't get it."""
        outcome = allocate(documents(SLICES, HOLDER, CLAIM))
        assert outcome.status == 1
        assert devices(outcome) == {"team-a/holder": ["node-2/big-0"], "default/pair": ["-/-"]}

    def test_an_allocated_claim_needs_no_node(self) -> None:
        """What was decided elsewhere isn't called unfit because its node isn't in the files, or isn't asked about."""
        outcome = allocate(documents(NODE_1, CLASS, HOLDER))
        assert (outcome.status, devices(outcome)) == (0, {"team-a/holder": ["-/big-0"]})
        outcome = allocate(documents(SLICES, HOLDER), "--node", "node-1")
        assert (outcome.status, devices(outcome)) == (0, {"team-a/holder": ["-/big-0"]})

    def test_a_claim_shared_by_pods_is_allocated_once(self) -> None:
        """Both pods are shown with its devices; programs get the claim once."""
        text = documents(SLICES, CLAIM, SHARED)
        found = devices(allocate(text))
        assert found["default/one"] == found["default/other"] == ["node-2/big-0", "node-2/big-1"]
        assert len(json.loads(allocate(text, "-o", "json").stdout)["items"]) == 1

    def test_pods_that_share_a_claim_are_on_its_node(self) -> None:
        """A pod that may only use another node doesn't fit, though its claim is allocated."""
        elsewhere = SHARED.replace("{name: other}\nspec: {", "{name: other}\nspec: {nodeName: node-1, ")
        outcome = allocate(documents(SLICES, CLAIM, elsewhere))
        assert (outcome.status, devices(outcome)["default/other"]) == (1, ["-/-"])
        assert "Pod default/other: it doesn't fit: no node may be used" in outcome.stderr

    def test_one_node_can_be_asked_about(self) -> None:
        """Only what fits there fits."""
        claim = CLAIM.partition("          selectors")[0].replace("count: 2", "count: 1")
        assert devices(allocate(documents(SLICES, claim)))["default/pair"] == ["node-1/small"]
        assert devices(allocate(documents(SLICES, claim), "--node", "node-2"))["default/pair"] == ["node-2/big-0"]
        assert allocate(documents(SLICES, CLAIM), "--node", "node-1").status == 1

    def test_a_policy_prefers_without_deciding_what_fits(self) -> None:
        """Best fit takes the smallest device that is enough."""
        claim = CLAIM.partition("          selectors")[0].replace("count: 2", "count: 1")
        other = NODE_2.replace("big-1", "mid")
        other = other[: other.rindex("80Gi")] + "24Gi" + other[other.rindex("80Gi") + 4 :]
        text = documents(other, CLASS, claim)
        assert devices(allocate(text))["default/pair"] == ["node-2/big-0"]
        assert devices(allocate(text, "--policy", "best-fit"))["default/pair"] == ["node-2/mid"]

    def test_a_taint_rule_counts_in_releases_that_know_it(self) -> None:
        """Kubernetes 1.32 doesn't look at it."""
        text = documents(SLICES, CLAIM, RULE)
        assert "taints" in allocate(text).stderr
        assert allocate(text, "--kubernetes", "1.37").status == 1
        assert allocate(text, "--kubernetes", "1.32").status == 0

    def test_what_a_release_cannot_do_is_told(self) -> None:
        """A prioritized list under 1.32."""
        text = documents(SLICES, PREFERRED)
        assert devices(allocate(text))["default/preferred"] == ["node-1/small"]
        outcome = allocate(text, "--kubernetes", "1.32")
        assert outcome.status == 1
        assert outcome.stderr.startswith("error: claim default/preferred, request gpu: ")
        assert "hint: " in outcome.stderr

    def test_older_versions_and_lists_are_read(self) -> None:
        """As ``kubectl get -o yaml`` and ``-o json`` print them."""
        text = as_list(OLD_SLICE, CLASS, OLD_CLAIM)
        assert devices(allocate(text)) == {"default/old": ["node-3/old"]}
        assert devices(allocate(json.dumps(yaml.safe_load(text)))) == {"default/old": ["node-3/old"]}

    def test_files_directories_and_standard_input_are_one_cluster(self, tmp_path: Path) -> None:
        """In the order they are named; directories in the order of their files' names."""
        (tmp_path / "b.yaml").write_text(SLICES)
        (tmp_path / "a.json").write_text(json.dumps(yaml.safe_load(CLAIM)))
        (tmp_path / "notes.txt").write_text("not a manifest")
        outcome = allocate(PODS, "-f", str(tmp_path))
        assert outcome.status == 1
        assert devices(outcome)["default/first"] == ["node-2/big-0", "node-2/big-1"]
        assert devices(outcome)["default/pair"] == ["-/-"]

    def test_namespaces_keep_claims_apart(self) -> None:
        """A pod sees only its own; the hint to explain names the namespace."""
        pods = PODS.replace("{name: second}", "{name: second, namespace: team-b}")
        outcome = allocate(documents(SLICES, pods))
        assert outcome.status == 2
        assert "there is no ResourceClaimTemplate team-b/two\nhint: there is one in namespace default" in outcome.stderr
        assert devices(outcome)["default/first"] == ["node-2/big-0", "node-2/big-1"]
        claim = CLAIM.replace("{name: pair}", "{name: pair, namespace: team-b}").replace("count: 2", "count: 3")
        assert "for claim/pair -n team-b" in allocate(documents(SLICES, claim)).stderr


class TestBadInput:
    def test_a_bad_file_hides_no_good_one(self, tmp_path: Path) -> None:
        """What could be read is decided; what couldn't has its place, and the status is 2."""
        (tmp_path / "good.yaml").write_text(documents(SLICES, CLAIM))
        (tmp_path / "typo.yaml").write_text(CLAIM.replace("count: 2", "cuont: 2").replace("pair", "typo"))
        (tmp_path / "torn.yaml").write_text("{{{")
        outcome = run("allocate", "-f", str(tmp_path), "-f", str(tmp_path / "nowhere.yaml"))
        assert outcome.status == 2
        assert devices(outcome)["default/pair"] == ["node-2/big-0", "node-2/big-1"]
        for said in ("typo.yaml:11:", "torn.yaml:", "nowhere.yaml: "):
            assert f"error: {tmp_path}/{said}" in outcome.stderr

    def test_what_is_there_twice_counts_once(self, tmp_path: Path) -> None:
        """The first one does; the second is told with its place and hides nothing."""
        (tmp_path / "a.yaml").write_text(documents(SLICES, CLAIM))
        (tmp_path / "b.yaml").write_text(documents(CLAIM.replace("count: 2", "count: 1"), CLASS))
        outcome = run("allocate", "-f", str(tmp_path))
        assert outcome.status == 2
        assert devices(outcome)["default/pair"] == ["node-2/big-0", "node-2/big-1"]
        assert outcome.stderr.splitlines() == [
            f"error: {tmp_path}/b.yaml:4:12: ResourceClaim default/pair is there twice",
            "hint: rename one of them or leave it out",
            f"error: {tmp_path}/b.yaml:18:12: DeviceClass gpu is there twice",
            "hint: rename one of them or leave it out",
        ]

    def test_standard_input_may_be_closed_or_empty(self) -> None:
        """Both are told; neither is everything fine."""
        closed = subprocess.run(
            ["bash", "-c", f"{script()} allocate -f - <&-"], capture_output=True, text=True, timeout=60, check=False
        )
        assert (closed.returncode, closed.stdout) == (2, "")
        assert closed.stderr.startswith("error: <stdin>: ")
        assert allocate("").stderr.splitlines() == [
            "warning: <stdin>: it holds no objects",
            "there is nothing to allocate",
            "hint: give files with pods that name claims, or with claims",
        ]

    def test_an_object_without_a_name_has_its_place(self) -> None:
        """It is bad input, and hides no other."""
        outcome = allocate(documents(SLICES, CLAIM.replace("name: pair", "labels: {a: b}")))
        assert outcome.status == 2
        assert outcome.stderr.startswith("error: <stdin>:")
        assert "a ResourceClaim has no name\nhint: write metadata.name" in outcome.stderr

    def test_what_has_only_a_generated_name_is_numbered(self) -> None:
        """A server would draw letters; the names are told once."""
        claim = CLAIM.replace("name: pair", "generateName: pair-").replace("count: 2", "count: 1")
        outcome = allocate(documents(SLICES, claim, claim))
        assert outcome.status == 0
        assert list(devices(outcome)) == ["default/pair-0", "default/pair-1"]
        assert outcome.stderr == (
            "note: ResourceClaim with generateName pair- is called pair-0, and 1 more are numbered likewise\n"
        )

    def test_an_extended_resource_that_no_class_stands_for_is_noted(self) -> None:
        """It plays no part, and that isn't kept quiet; what a node offers, and the node's own resources, are."""
        asks = "resources: {limits: {example.com/fpga: 1, cpu: 2, example.com/plugged: 1}}"
        pods = PODS.replace("image: any}", f"image: any, {asks}}}")
        node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {example.com/plugged: 4}}\n"
        outcome = allocate(documents(SLICES, pods, node))
        assert outcome.stderr.splitlines()[:2] == [
            "note: 2 pods ask for example.com/fpga, for which no class stands; it isn't looked at",
            "hint: a DeviceClass with extendedResourceName: example.com/fpga makes claims of it",
        ]
        assert "plugged" not in outcome.stderr
        assert "cpu" not in outcome.stderr

    def test_a_reference_that_leads_nowhere_is_bad_input(self) -> None:
        """The other pods are placed."""
        text = documents(SLICES, CLAIM, SHARED.replace("resourceClaimName: pair", "resourceClaimName: nope", 1))
        outcome = allocate(text)
        assert outcome.status == 2
        assert devices(outcome)["default/other"] == ["node-2/big-0", "node-2/big-1"]
        assert "Pod default/one: spec.resourceClaims[0]: there is no ResourceClaim default/nope" in outcome.stderr
        assert "hint: there are pair" in outcome.stderr

    @pytest.mark.parametrize(
        ("options", "says", "hint"),
        [
            (("--node", "nope"), "there is no node `nope`", "node-1, node-2"),
            (("--policy", "nope"), "there is no policy 'nope'", "best-fit"),
            (("--kubernetes", "1.99"), "Kubernetes '1.99' is not known", "1.37"),
            (("--profile", "nope"), 'there is no machine profile "nope"', "dgx-h100"),
        ],
    )
    def test_a_name_that_is_not_known_is_bad_input(self, options: tuple[str, ...], says: str, hint: str) -> None:
        """The status isn't that of an answer, and the hint names what there is."""
        outcome = allocate(documents(SLICES, CLAIM), *options)
        assert (outcome.status, outcome.stdout) == (2, "")
        error, told = outcome.stderr.splitlines()
        assert error == f"error: {says}"
        assert told.startswith("hint: ")
        assert hint in told

    def test_no_file_is_misuse(self) -> None:
        """The message names the option."""
        outcome = run("allocate")
        assert outcome.status == 2
        assert "say with -f which manifests to read" in outcome.stderr

    def test_a_directory_without_manifests_is_told(self, tmp_path: Path) -> None:
        """Nothing read isn't everything fine."""
        outcome = run("allocate", "-f", str(tmp_path))
        assert outcome.status == 2
        assert outcome.stderr.startswith(f"error: {tmp_path}: there is no .yaml, .yml or .json file")

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ("model ==", "modell ==", "no such key: modell"),
            ("device.attr", "device.atr", "selector 0 doesn't compile"),
            (".model ==", ".model.odd() ==", "selector 0 doesn't compile"),
            ("deviceClassName: gpu", "deviceClassName: nope", "device class nope doesn't exist"),
        ],
    )
    def test_a_claim_that_is_wrong_has_its_reason_and_hides_no_other(self, old: str, new: str, says: str) -> None:
        """What can't be decided is an answer, too: that claim doesn't fit."""
        wrong = CLAIM.replace("pair", "wrong").replace(old, new)
        outcome = allocate(documents(SLICES, wrong, CLAIM))
        assert outcome.status == 1
        assert devices(outcome)["default/pair"] == ["node-2/big-0", "node-2/big-1"]
        error, hint = outcome.stderr.splitlines()
        assert error.startswith("error: claim default/wrong, request gpu: ")
        assert says in error
        assert hint.startswith("hint: ")

    def test_thousands_that_do_not_fit_are_told_in_few_lines(self) -> None:
        """Each has its row; the reasons of the first ones are enough."""
        claims = [CLAIM.replace("pair", f"c{number}").replace("count: 2", "count: 3") for number in range(40)]
        outcome = allocate(documents(SLICES, *claims))
        assert len(outcome.lines) == 41
        assert len(outcome.stderr.splitlines()) == 21
        assert outcome.stderr.splitlines()[-1] == "30 more don't fit"

    def test_a_search_without_end_is_given_up(self) -> None:
        """After a number of steps, which can be raised."""
        outcome = allocate(documents(NODE_2, CLASS, UNPRUNED, CLAIM), "--steps", "1")
        assert devices(outcome)["default/unpruned"] == ["-/-"]
        assert outcome.status == 1
        assert "no answer after" in outcome.stderr
        assert "hint: allow more steps" in outcome.stderr
        assert "no answer after" not in allocate(documents(NODE_2, CLASS, UNPRUNED)).stderr
        assert allocate(CLAIM, "--steps", "0").status == 2

    def test_a_search_without_end_is_given_up_on_few_nodes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not on each of thousands; a later claim is decided all the same."""
        nodes = [
            NODE_2.replace("node-2", f"node-{number}").replace("slice-2", f"slice-{number}") for number in range(9)
        ]
        manifests = manifests_of(read_text(documents(*nodes, CLASS, UNPRUNED, CLAIM)).objects)
        snapshot = Snapshot.of(slices=manifests.slices.values(), classes=manifests.classes.values())
        searched = mock.Mock(wraps=outcome_of)
        monkeypatch.setattr(fit, "outcome_of", searched)
        placements = Sequence(manifests, snapshot, limits=Limits(steps=1)).place()
        unpruned = next(placements)
        assert isinstance(unpruned.error, BudgetError)
        assert searched.call_count == 3
        pair = next(placements)
        assert (pair.node, pair.error) == ("node-0", None)

    def test_names_in_files_cannot_change_the_terminal(self) -> None:
        """What a file says is shown escaped."""
        claim = CLAIM.replace("pair", '"\\u001b[31mred"')
        for words in (("allocate",), ("explain", "\x1b[31mred")):
            outcome = run(*words, "-f", "-", stdin=documents(SLICES, claim.replace("count: 2", "count: 3")).encode())
            assert outcome.status == 1
            assert "\x1b" not in outcome.stdout + outcome.stderr
            assert "[31mred" in outcome.stdout
