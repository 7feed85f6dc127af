"""Files, streams and lists: good objects beside bad ones, foreign kinds, hostile files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from draht.api import core, resource
from draht.api.reader import ReadResult, read_files, read_text
from draht.api.reader.strict import MAX_PROBLEMS

CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: {}}}\n"


def names(result: ReadResult) -> list[str]:
    """Names of the objects that were read."""
    return [located.object.metadata.name for located in result.objects]


def test_a_broken_document_hides_no_other() -> None:
    """Objects before and behind a document that isn't YAML are read, and its error has its line in the file."""
    text = "---\n".join([CLASS.format("a"), "b: [1\n", CLASS.format("c"), "d: *nothing\n", CLASS.format("e")])
    result = read_text(text, source="f")
    assert names(result) == ["a", "c", "e"]
    assert [located.line for located in result.objects] == [1, 7, 13]
    assert [(problem.code, problem.where) for problem in result.problems] == [("syntax", "f:6:1"), ("syntax", "f:11:4")]


def test_a_bad_byte_hides_no_document_before_it() -> None:
    """The parser reads ahead; objects before a byte that isn't text are read all the same."""
    text = CLASS.format("a").encode() + b"---\n\x00\xff\n---\n" + CLASS.format("b").encode()
    result = read_text(text, source="f")
    assert names(result) == ["a", "b"]
    assert [problem.where for problem in result.problems] == ["f:5:1"]


def test_a_bad_object_hides_no_other() -> None:
    """An object with a problem is left out; its neighbours in the stream and in a list are not."""
    listed = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: [a]}}\n"
    listed += "- {apiVersion: v1, kind: Namespace, metadata: {name: good}}\n"
    result = read_text("---\n".join([CLASS.format("[x]"), listed, CLASS.format("also")]))
    assert names(result) == ["good", "also"]
    assert [problem.path for problem in result.problems] == ["metadata.name", "items[0].metadata.name"]
    assert [located.path for located in result.objects] == ["items[1]", ""]


def test_typed_lists_are_taken_apart() -> None:
    """Items of a typed list need no kind of their own, and get one."""
    text = "apiVersion: v1\nkind: NamespaceList\nmetadata: {resourceVersion: '7'}\nitems: [{metadata: {name: a}}, {}]\n"
    result = read_text(text)
    assert not result.problems
    assert [located.object for located in result.objects][1] == core.Namespace()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("apiVersion: v1\nkind: NamespaceList\nitems: [{kind: Pod}]", "items[0].kind"),
        ("apiVersion: v1\nkind: NamespaceList\nitems: [{apiVersion: v2}]", "items[0].apiVersion"),
        ("apiVersion: v1\nkind: NamespaceList\nitems: {}", "items"),
        ("apiVersion: v1\nkind: List\nitem: []", "item"),
        ("apiVersion: v1\nkind: List\nitems: [1]", "items[0]"),
        (
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{kind: Pod}]}]",
            "items[0].items[0].apiVersion",
        ),
    ],
)
def test_lists_are_read_strictly(text: str, path: str) -> None:
    """A wrong item, a wrong kind of item and an unknown field of the list are reported at their place."""
    assert [problem.path for problem in read_text(text).problems] == [path]


@pytest.mark.parametrize("text", ["items: null", "items: []", "metadata: {}"])
def test_an_empty_list_is_no_problem(text: str) -> None:
    """A list without items holds nothing, as servers write it."""
    assert read_text(f"apiVersion: v1\nkind: List\n{text}\n") == ReadResult()


def test_foreign_kinds_are_set_aside_with_a_warning() -> None:
    """What draht doesn't read is kept as it was written; the warning names the kinds that it does read."""
    result = read_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n", source="f"
    )
    assert not result.errors
    (foreign,) = result.others
    assert (foreign.api_version, foreign.kind, foreign.line) == ("apps/v1", "Deployment", 1)
    assert foreign.value["spec"] == {"replicas": 3}
    (warning,) = result.warnings
    assert str(warning) == "f:1:1: warning: apps/v1 Deployment is not read by draht"
    assert warning.hint is not None
    assert "ResourceSlice" in warning.hint


@pytest.mark.parametrize(
    "text", ["x", "1", "- a", "[]", '"text"', "{}", "a: b", "apiVersion: 1\nkind: []", "apiVersion: v1"]
)
def test_what_is_no_object_is_a_problem(text: str) -> None:
    """Any YAML that isn't a Kubernetes object is answered with what is missing."""
    result = read_text(text)
    assert result.errors
    assert not result.objects


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n---\n", "null"])
def test_nothing_is_no_problem_in_a_text(text: str) -> None:
    """Empty documents are skipped."""
    assert read_text(text) == ReadResult()


def test_json_is_read(tmp_path: Path) -> None:
    """A JSON file reads like YAML, emoji escapes and tabs included."""
    path = tmp_path / "class.json"
    annotations = {"a": "\U0001f600 é", "b": "x/y"}
    value = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"annotations": annotations}}
    path.write_text(json.dumps(value, indent="\t").replace("x/y", "x\\/y"))
    result = read_files([path])
    assert not result.problems
    assert result.objects[0].object.metadata.annotations == annotations


def test_a_lone_surrogate_in_json_becomes_the_replacement_character() -> None:
    """Half an emoji escape, which Go reads as U+FFFD, doesn't make the file unreadable."""
    text = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"annotations": {"a": "\\ud83d!"}}}'
    assert read_text(text).objects[0].object.metadata.annotations == {"a": "�!"}


def test_standard_input_is_a_file(tmp_path: Path) -> None:
    """``-`` reads standard input among other files, in the order given."""
    path = tmp_path / "a.yaml"
    path.write_text(CLASS.format("a"))
    result = read_files(["-", path], stdin=io.BytesIO(CLASS.format("[b]").encode()))
    assert names(result) == ["a"]
    assert str(result.problems[0]).startswith("<stdin>:3:")


def test_files_that_cant_be_read_hide_no_others(tmp_path: Path) -> None:
    """A missing file, a directory, a loop of links and an impossible name are problems beside a good file's object."""
    good = tmp_path / "good.yaml"
    good.write_text(CLASS.format("good"))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    empty = tmp_path / "empty.yaml"
    empty.touch()
    result = read_files([tmp_path / "gone", tmp_path, loop, "a\0b", "-", empty, good])
    assert names(result) == ["good"]
    assert [problem.message for problem in result.problems] == [
        "there is no such file",
        "it is a directory",
        "it can't be read: too many levels of symbolic links",
        "it can't be read: a file name has no null byte",
        "there is no standard input here",
        "it holds no objects",
    ]
    assert [problem.warning for problem in result.problems] == [False] * 5 + [True]


def test_a_file_that_fails_while_it_is_read_is_a_problem() -> None:
    """An error of the system in the middle of a file is reported with the system's reason."""
    # Address zero of a process is never mapped, so reading it fails for root as well.
    assert read_files(["/proc/self/mem"]).problems[0].message == "it can't be read: input/output error"


FOREIGN = ["events.k8s.io/v1 Event", "longhorn.io/v1beta2 Node", "v1 Service", "v1 ConfigMap", "batch/v1 Job"]
MISSPELT = ["resources.k8s.io/v1 ResourceClaim", "apps/v1 Pod", "v1 Pods", "v1beta1 ResourceSlice", "v2 Pod"]


@pytest.mark.parametrize("kind", [*FOREIGN, *MISSPELT])
def test_foreign_kinds_and_misspelt_ones_are_told_apart(kind: str) -> None:
    """A kind of somebody else's group is a warning, one that was meant to be ours an error."""
    version, _, name = kind.partition(" ")
    result = read_text(f"apiVersion: {version}\nkind: {name}\n")
    assert len(result.errors) == (kind in MISSPELT)
    assert len(result.others) == (kind in FOREIGN)


def test_an_endless_file_is_read_up_to_the_bound() -> None:
    """A device that never ends is refused after the largest text, not read for ever."""
    (problem,) = read_files(["/dev/zero"]).problems
    assert (problem.code, problem.hint) == ("unreadable", "split the file")


def test_binary_garbage_is_answered_in_a_line(tmp_path: Path) -> None:
    """A binary file gives a bounded number of one-line problems."""
    path = tmp_path / "garbage"
    path.write_bytes(bytes(range(256)) * 4000)
    result = read_files([path])
    assert result.errors
    assert all("\n" not in str(problem) for problem in result.problems)


def test_a_file_of_broken_documents_is_bounded() -> None:
    """Thousands of broken documents give the first problems and the number of the others."""
    problems = read_text(b"--- [\n" * 20_000).problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].message.endswith("more problems are not shown")


def test_an_alias_bomb_hides_no_other_document() -> None:
    """A document beyond the bounds is one problem; the objects around it are read."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 13))]
    result = read_text("---\n".join([CLASS.format("a"), "\n".join(lines) + "\n", CLASS.format("b")]))
    assert names(result) == ["a", "b"]
    assert [problem.hint for problem in result.problems] == ["write aliases out"]


def test_fields_are_found_again_by_their_path() -> None:
    """`Located.where` leads from a field path to its line, or to the nearest thing around it that is written."""
    text = (
        "# comment\n---\n"
        "apiVersion: resource.k8s.io/v1\n"
        "kind: ResourceSlice\n"
        "spec:\n"
        "  driver: d\n"
        "  pool: {name: p, resourceSliceCount: 1}\n"
        "  devices:\n"
        "  - name: a\n"
        "    attributes:\n"
        "      example.com/index: {int: 1}\n"
    )
    (located,) = read_text(text, source="f").objects
    assert isinstance(located.object, resource.ResourceSlice)
    assert located.where() == "f:3:1"
    assert located.where("spec.devices[0].name") == "f:9:5"
    assert located.where("spec.devices[0].attributes[example.com/index].int") == "f:11:27"
    assert located.where("spec.devices[0].capacity[memory]") == "f:9:5"
    assert located.where("spec.devices[7].name") == "f:8:3"
    assert located.where("nothing") == "f:3:1"
