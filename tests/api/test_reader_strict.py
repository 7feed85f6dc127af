"""The strict reader: every problem at once, with its place and the next step."""

from __future__ import annotations

import msgspec
import pytest

from draht.api import core, resource
from draht.api.meta import ObjectMeta
from draht.api.reader import Problem, hint, read_text
from draht.api.reader.strict import MAX_PROBLEMS


def problems(text: str) -> list[tuple[str, str, str]]:
    """Code, ``line:column`` and path of each problem."""
    return [(one.code, f"{one.line}:{one.column}", one.path) for one in read_text(text).problems]


def only(text: str) -> Problem:
    """The one problem of a text."""
    (problem,) = read_text(text).problems
    return problem


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: c
    image: example.com/train
"""

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus}
spec:
  devices:
    requests:
    - name: gpu
"""


def test_everything_wrong_is_reported_at_once() -> None:
    """One reading finds the unknown field, the duplicate, the wrong types, the missing field and the bad amount."""
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: a, lables: {}}
spec:
  hostNetwork: "true"
  hostNetwork: true
  priority: 4294967296
  tolerations: {key: x}
  containers:
  - image: x
    env:
    - {name: PORT, value: 8080}
    resources: {limits: {memory: 16GB}}
"""
    assert problems(text) == [
        ("unknown-field", "3:21", "metadata.lables"),
        ("wrong-type", "5:16", "spec.hostNetwork"),
        ("duplicate-field", "6:3", "spec.hostNetwork"),
        ("bad-value", "7:13", "spec.priority"),
        ("wrong-type", "8:16", "spec.tolerations"),
        ("missing-field", "10:5", "spec.containers[0].name"),
        ("wrong-type", "12:27", "spec.containers[0].env[0].value"),
        ("bad-value", "13:34", "spec.containers[0].resources.limits[memory]"),
    ]


SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
spec:
  driver: gpu.example.com
  pool: {name: node, resourceSliceCount: 1}
"""

PATHS = [
    ("  devices: [{name: a}, {name: b, attributes: {index: {int: x}}}]\n", "spec.devices[1].attributes[index].int"),
    ("  devices: [{name: a, capacity: {memory: {value: [1]}}}]\n", "spec.devices[0].capacity[memory].value"),
    ("  nodeName: 1\n", "spec.nodeName"),
]


@pytest.mark.parametrize(("spec", "path"), PATHS)
def test_paths_are_those_of_kubernetes(spec: str, path: str) -> None:
    """Fields stand behind points, items and map keys in brackets."""
    assert only(SLICE + spec).path == path


FLAT = "requests are flat in v1beta1 only: in v1 it belongs under `exactly`"
CLASSIC = "classic DRA ended with Kubernetes 1.32: describe devices with DeviceClass and ResourceClaim"

HINTS = [
    # A pod of 1.30, and claims in the wrong place.
    (POD + "  resourceClaims: [{name: g, source: {}}]\n", "the `source` wrapper ended with Kubernetes 1.31"),
    (POD + "    resourceClaims: [g]\n", "a container names claims under resources.claims"),
    (POD + "    claims: [{name: g}]\n", "it belongs under `resources`"),
    (POD + "    resources: {nvidia.com/gpu: 1}\n", "it belongs under `limits`"),
    # Wrong case, wrong language, wrong letter.
    (POD + "    Command: [x]\n", 'did you mean "command"?'),
    (POD + "    volume_mounts: []\n", 'did you mean "volumeMounts"?'),
    (POD + "  nodeSelectr: {}\n", 'did you mean "nodeSelector"?'),
    (CLAIM + "      exactly: {deviceClassName: c, alocationMode: All}\n", 'did you mean "allocationMode"?'),
    (CLAIM + "      alocationMode: All\n", 'did you mean "allocationMode" under `exactly`?'),
    # v1beta1 written as v1, and the other way round.
    (CLAIM + "      deviceClassName: gpu.nvidia.com\n", FLAT),
    (CLAIM.replace("/v1", "/v1beta1") + "      exactly: {deviceClassName: c}\n", "v1beta1 has no `exactly`"),
    (SLICE + "  devices: [{name: a, basic: {}}]\n", "`basic` is v1beta1's"),
    (SLICE.replace("/v1", "/v1beta1") + "  devices: [{name: a, taints: []}]\n", "in v1beta1 it belongs under `basic`"),
    (CLAIM.replace("  devices:\n    requests:\n    - name: gpu\n", "  requests: []\n"), "it belongs under `devices`"),
    # Kinds and versions.
    ("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\n", CLASSIC),
    ("apiVersion: resource.k8s.io/v1alpha2\nkind: PodSchedulingContext\n", CLASSIC),
    ("apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceClaim\n", "write apiVersion: resource.k8s.io/v1"),
    ("apiVersion: resource.k8s.io/v2\nkind: ResourceSlice\n", "write apiVersion: resource.k8s.io/v1"),
    ("apiVersion: v1\nkind: ResourceClaim\n", "write apiVersion: resource.k8s.io/v1"),
    ("apiVersion: v1\nkind: pod\n", 'did you mean apiVersion v1, kind "Pod"?'),
    ("apiVersion: resource.k8s.io/v1\nkind: DeviceClas\n", 'apiVersion resource.k8s.io/v1, kind "DeviceClass"?'),
    ("kind: DeviceClass\n", "write apiVersion: resource.k8s.io/v1"),
    ("apiversion: v1\nkind: Pod\n", 'did you mean it by "apiversion"?'),
    ("cdiVersion: 1.0.0\nkind: nvidia.com/gpu\n", "this is a CDI spec: use `draht cdi validate`"),
    # Scalars.
    (POD + "    env: [{name: A, value: yes}]\n", 'put it in quotes: "yes"'),
    (POD + "    env: [{name: A, value: 012}]\n", 'put it in quotes: "012"'),
    (POD + "  hostPID: 'true'\n", "remove the quotes"),
    (POD + "  priority: '7'\n", "remove the quotes"),
    (POD + "    resources: {limits: {memory: 16gib}}\n", "write 16Gi"),
    (POD + "    resources: {limits: {memory: 16 GB}}\n", "write 16Gi, or 16G for the decimal unit"),
    (POD.replace("- name: c\n    image: example.com/train", "  name: c"), 'start each item with "- "'),
]


@pytest.mark.parametrize(("text", "hint"), HINTS)
def test_common_old_forms_and_slips_get_the_next_step(text: str, hint: str) -> None:
    """What people write from memory or from old tutorials is answered with what to write instead."""
    assert any(hint in (problem.hint or "") for problem in read_text(text).errors)


WARNINGS = [
    ("nvidia.com/gpus", "nvidia.com/gpu"),
    ("nvidia.com/GPU", "nvidia.com/gpu"),
    ("nvida.com/gpu", "nvidia.com/gpu"),
    ("gpu", "nvidia.com/gpu"),
    ("amd.com/gpus", "amd.com/gpu"),
]


@pytest.mark.parametrize(("name", "meant"), WARNINGS)
def test_misspelt_gpu_resources_are_a_warning(name: str, meant: str) -> None:
    """A resource name close to a known one is pointed out, and the pod is read all the same: the name may exist."""
    result = read_text(POD + f"    resources: {{limits: {{{name}: 1}}}}\n")
    assert [problem.hint for problem in result.warnings] == [f'did you mean "{meant}"?']
    assert not result.errors
    assert len(result.objects) == 1


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "cpu", "x.io/y"])
def test_real_resources_raise_no_warning(name: str) -> None:
    """Names that device plugins do offer pass in silence."""
    assert not read_text(POD + f"    resources: {{limits: {{{name}: 1}}}}\n").problems


def container(text: str) -> core.Container:
    """The container of a pod that reads without a problem."""
    result = read_text(text)
    assert list(map(str, result.problems)) == []
    pod = result.objects[0].object
    assert isinstance(pod, core.Pod)
    return pod.spec.containers[0]


AMOUNTS = [
    ("0.5", "0.5"), ("1", 1), ("'1'", "1"), ("1e3", "1000"), ("0x10", 16), ("010", 8), ("1_000", 1000),
    ("80Gi", "80Gi"), ("100m", "100m"),
    ("1e-3", "0.001"), ("1E3", "1000"), ("1E", "1E"), ("12e6", "12000000"), ("'12e6'", "12e6"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), AMOUNTS)
def test_amounts_are_kept_as_they_reach_the_server(text: str, value: str | int) -> None:
    """A number without quotes becomes the JSON number that kubectl sends, a string stays as it is."""
    found = container(POD + f"    resources: {{limits: {{cpu: {text}}}}}\n").resources.limits["cpu"]
    assert (found, type(found)) == (value, type(value))


TIMES = [
    ("2026-01-31T13:45:00Z", True), ("2026-01-31T13:45:00.123+02:00", True), ("2024-02-29T00:00:00Z", True),
    ("0000-01-01T00:00:00Z", True), ("2026-02-29T00:00:00Z", False), ("2026-01-31", False), ("'now'", False),
    ("2026-01-31t13:45:00z", False), ("2026-01-31 13:45:00Z", False), ("2026-01-31T24:00:00Z", False),
    ("2026-01-31T13:45:60Z", False), ("''", False), ("2026-13-01T00:00:00Z", False), ("2026-01-31T13:45Z", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "good"), TIMES)
def test_times_have_rfc3339_form(text: str, good: bool) -> None:
    """A moment is checked as Go checks it, down to the days of the month."""
    result = read_text(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: team, creationTimestamp: {text}}}\n")
    assert [problem.code for problem in result.problems] == ([] if good else ["bad-value"])


def test_null_is_absent() -> None:
    """A field that is null is one that isn't there, as in ``kubectl create --dry-run`` output."""
    metadata = "{name: team, creationTimestamp: null, labels: {a: }}"
    result = read_text(f"apiVersion: v1\nkind: Namespace\nmetadata: {metadata}\nspec:\nstatus: {{}}\n")
    assert not result.problems
    assert result.objects[0].object == core.Namespace(metadata=ObjectMeta(name="team", labels={"a": ""}))


def test_a_required_field_that_is_null_is_missing() -> None:
    """Null doesn't stand for a field that the API requires."""
    problem = only(CLAIM + "      exactly: {deviceClassName: }\n")
    assert (problem.code, problem.path) == ("missing-field", "spec.devices.requests[0].exactly.deviceClassName")


def test_merge_keys_fill_in_what_is_not_given() -> None:
    """``<<`` adds the fields of an anchor; fields given explicitly win."""
    text = POD + "    env: [&e {name: A, value: x}, {<<: *e, name: B}, {<<: [{value: z}, *e], name: C}]\n"
    assert [(variable.name, variable.value) for variable in container(text).env] == [("A", "x"), ("B", "x"), ("C", "z")]


def test_a_wrong_merge_is_a_problem() -> None:
    """Only objects can be merged."""
    assert only(POD + "    env: [{<<: 1, name: B}]\n").message == "expected an object to merge, got the integer 1"


def test_parameters_of_drivers_are_kept_as_they_are() -> None:
    """Opaque parameters may hold anything, nulls included, and come out as they went in."""
    parameters = {"apiVersion": "x/v1", "list": [1, 2.5, None, {"a": None}], "big": 2**63, "text": "07"}
    opaque = msgspec.json.encode({"driver": "d", "parameters": parameters}).decode()
    result = read_text(CLAIM + f"    config: [{{opaque: {opaque}}}]\n")
    assert not result.problems
    claim = result.objects[0].object
    assert isinstance(claim, resource.ResourceClaim)
    configuration = claim.spec.devices.config[0].opaque
    assert configuration is not None
    assert configuration.parameters == parameters


def test_keys_that_are_no_strings() -> None:
    """A boolean as a key is read as kubectl reads it, with a warning; what has no name in JSON is refused."""
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {labels: {y: '1', 1.5: a, [x]: b, ~: c}}\n"
    found = [(problem.code, problem.path) for problem in read_text(text).problems]
    path = "metadata.labels"
    assert found == [("surprise", f"{path}[true]"), ("wrong-type", path), ("wrong-type", path), ("wrong-type", path)]


def test_numbers_that_json_lacks_are_refused() -> None:
    """Infinity and not-a-number can't reach a server."""
    text = CLAIM + "    config: [{opaque: {driver: d, parameters: {a: .inf, b: .NaN}}}]\n"
    assert [problem.message for problem in read_text(text).problems] == [
        ".inf has no form in JSON",
        ".NaN has no form in JSON",
    ]


def test_explicit_tags_are_honoured() -> None:
    """``!!str`` makes a string of anything; a tag that doesn't fit is a problem."""
    assert container(POD + "    env: [{name: A, value: !!str 8080}]\n").env[0].value == "8080"
    assert only(POD + "    env: [{name: A, value: !!int x}]\n").message == '"x" is no YAML !!int'


def test_the_number_of_problems_is_bounded() -> None:
    """A file of nothing but mistakes is answered with the first ones and a count of the rest."""
    text = POD + "".join(f"    wrong{number}: 1\n" for number in range(MAX_PROBLEMS + 20))
    found = read_text(text).problems
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].message == "20 more problems are not shown"


def test_no_hint_is_looked_for_where_nobody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing names takes time, so half a million unknown fields get hints as far as they are shown."""
    asked = 0

    def unknown_field(*_: object) -> None:
        nonlocal asked
        asked += 1

    monkeypatch.setattr(hint, "unknown_field", unknown_field)
    read_text(POD + "".join(f"    wrong{number}: 1\n" for number in range(MAX_PROBLEMS + 20)))
    assert asked == MAX_PROBLEMS


def test_long_values_are_shown_in_part() -> None:
    """A message stays one readable line, however long the value is."""
    problem = only(POD + f"  priority: '{'9' * 10_000}'\n")
    assert len(str(problem)) < 200


def test_problems_read_as_one_line() -> None:
    """``file:line:column``, the field, the sentence."""
    problem = read_text(POD + "  priority: high\n", source="pod.yaml").problems[0]
    assert str(problem) == 'pod.yaml:9:13: spec.priority: expected an integer, got the string "high"'
