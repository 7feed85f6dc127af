"""Everything that is wrong with one text at once, with line, column and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdi_corpus import BROKEN, CORPUS, VALID
from draht import cdi


def _found(text: str) -> list[tuple[int | None, int | None, str | None]]:
    _, problems = cdi.check(text.encode())
    return [(problem.line, problem.column, problem.field) for problem in problems]


@pytest.mark.parametrize("entry", VALID, ids=lambda entry: entry["file"])
def test_a_valid_text_gives_its_spec(entry: dict[str, str]) -> None:
    """A good file has no problems, and the spec is what decoding gives."""
    data = (CORPUS / entry["file"]).read_bytes()
    assert cdi.check(data) == (cdi.decode(data), ())


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry["file"])
def test_the_first_problem_is_that_of_the_library(entry: dict[str, str]) -> None:
    """The verdict never differs from decoding and validating, and the first problem is the one these raise."""
    data = (CORPUS / entry["file"]).read_bytes()
    with pytest.raises(cdi.CDIError) as refused:
        cdi.validate(cdi.decode(data))
    _, problems = cdi.check(data)
    assert problems[0].message == refused.value.message


def test_mistakes_of_form_are_all_found() -> None:
    """Unknown fields, wrong types and repeated keys are found together, in the order of the text."""
    text = """\
cdiversion: 0.5.0
cdiVersion: 0.5.0
kind: [a, b]
devices:
- name: d
  containerEdits:
    deviceNodes:
    - path: /dev/a
      major: "240"
      hostpath: /dev/b
    - path: /dev/b
      minor: x
      path: /dev/c
    env: A=b
- names: e
"""
    assert _found(text) == [
        (1, 1, "cdiversion"),
        (3, 7, "kind"),
        (9, 14, "devices[0].containerEdits.deviceNodes[0].major"),
        (10, 7, "devices[0].containerEdits.deviceNodes[0].hostpath"),
        (13, 7, "devices[0].containerEdits.deviceNodes[1].path"),
        (12, 14, "devices[0].containerEdits.deviceNodes[1].minor"),
        (14, 10, "devices[0].containerEdits.env"),
        (15, 3, "devices[1].names"),
    ]


def test_positions_in_lists_stay_those_of_the_text() -> None:
    """That an item was left out to read on doesn't shift the numbers of the items behind it."""
    assert _found("devices: [a, {name: b}, c, {x: 1}]") == [
        (1, 11, "devices[0]"),
        (1, 25, "devices[2]"),
        (1, 29, "devices[3].x"),
    ]


def test_a_mapping_and_its_first_key_are_told_apart() -> None:
    """Both begin at the same place; what is wrong with the mapping doesn't hide what is wrong behind it."""
    assert _found("kind:\n  a: 1\ncdiVersion: [x]\n") == [(2, 3, "kind"), (3, 13, "cdiVersion")]


@pytest.mark.parametrize("text", ["", "- a", "[", "a: b: c", "kind: *x", "\x00"])
def test_a_text_that_is_no_spec_at_all_has_one_problem(text: str) -> None:
    """Where there is nothing to read on with, the one mistake is reported."""
    assert len(_found(text)) == 1


def test_mistakes_in_an_anchor_that_is_used_twice() -> None:
    """A wrong value that an alias repeats is one mistake, at the anchor."""
    text = "devices:\n- &a {name: x, nope: 1}\n- *a\n- {nope: 2}\n"
    assert _found(text) == [(2, 16, "devices[0].nope"), (4, 4, "devices[2].nope")]


def test_the_number_of_mistakes_is_bounded() -> None:
    """A text full of mistakes is answered with the first fifty, and a huge one with fewer."""
    assert len(_found("{" + ", ".join(f"k{number}: 1" for number in range(500)) + "}")) == 50
    assert len(_found("{" + ", ".join(f"k{number}: 1" for number in range(100_000)) + "}")) < 10


def test_a_problem_is_one_line(tmp_path: Path) -> None:
    """Its text has file, line, column, field and sentence."""
    path = tmp_path / "a.yaml"
    _, (first, second) = cdi.check(b"kind: a\nnope: 1\ncdiVersion: []\n", source=str(path))
    assert str(first) == f"{path}:2:1: nope: there is no field 'nope' in a Spec"
    assert str(second).startswith(f"{path}:3:13: cdiVersion: ")
