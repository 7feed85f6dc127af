"""The YAML module: documents, places, bounds."""

from __future__ import annotations

import resource as limits

import pytest

from draht.api import scalar, yaml

FEW = 20_000
"""The bound on values in these tests, so that they run in no time; one test meets the real one."""
MANY = FEW + 10


def only(text: str | bytes) -> yaml.Node:
    """The one document of a text."""
    (root,) = yaml.documents(text)
    return root


def test_documents_come_in_order() -> None:
    """A stream yields one root for each document; JSON is YAML."""
    roots = list(yaml.documents('a: 1\n---\n- x\n---\n{"b": [true]}\n', source="f"))
    assert [type(root) for root in roots] == [yaml.MappingNode, yaml.SequenceNode, yaml.MappingNode]
    assert [yaml.where(root, "f") for root in roots] == ["f:1:1", "f:3:1", "f:5:1"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", b"\xef\xbb\xbf"])
def test_a_text_without_content_has_no_meaning(text: str | bytes) -> None:
    """Nothing, comments and bare markers give no document or an empty one."""
    assert all(root.tag == scalar.NULL for root in yaml.documents(text))


def test_utf16_is_read() -> None:
    """A text in UTF-16 with its byte order mark reads as the same text in UTF-8."""
    assert yaml.size(only("a: [ä, 1]".encode("utf-16"))) == yaml.size(only("a: [ä, 1]"))


def test_tags_follow_kubernetes() -> None:
    """A node's tag is the one Kubernetes resolves, not PyYAML's."""
    tags = [item.tag for item in only("[y, 2026-01-31, 12:30:45, 0o17, '5', !!str 5, x]").value]
    assert tags == [scalar.BOOL, scalar.STR, scalar.STR, scalar.INT, scalar.STR, scalar.STR, scalar.STR]


def test_documents_before_a_broken_one_have_been_yielded() -> None:
    """An error ends the stream and takes nothing back."""
    stream = yaml.documents("a: 1\n---\nb: [1\n", source="f")
    assert isinstance(next(stream), yaml.MappingNode)
    with pytest.raises(yaml.YamlError) as caught:
        next(stream)
    assert (caught.value.line, caught.value.resumable) == (4, True)
    assert str(caught.value).startswith("f:4:1: not readable as YAML or JSON: ")


def bomb() -> str:
    """A text of some hundred bytes that expands to 9**12 values."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 13)]
    return "\n".join(lines)


HOSTILE = {
    "too many bytes": (b" " * (yaml.MAX_BYTES + 1), "more than the 8388608 that are read"),
    "too many values": (b"[" + b"a," * MANY + b"]", "holds more than 20000 values"),
    "too many keys": (b"{" + b"? a\n," * MANY + b"}", "holds more than 20000 values"),
    "too many documents": (b"---\n" * MANY, "holds more than 20000 values"),
    "too many aliases": (b"[&a x" + b",*a" * MANY + b"]", "expands to more than 20000 values"),
    "alias bomb": (bomb().encode(), "expands to more than 20000 values"),
    "cycle": (b"&a [*a]", "an alias refers to a value that contains it"),
    "cycle through a mapping": (b"&a {b: {c: *a}}", "an alias refers to a value that contains it"),
    "deep by brackets": (b"[" * 101 + b"]" * 101, "nested deeper than 100 levels"),
    "very deep by brackets": (b"[" * 1_000_000, "nest"),
    "very deep by dashes": (b"- " * 100_000 + b"a", "nest"),
    "very deep by question marks": (b"? " * 100_000 + b"a", "nest"),
    "deep by indentation": (b"".join(b" " * level + b"a:\n" for level in range(300)), "nested deeper than 100 levels"),
    "deep by aliases": (
        b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 200)),
        "nested deeper than 100 levels",
    ),
    "unknown alias": (b"a: *b", "undefined alias"),
    "NUL": (b"a: b\0", "control characters are not allowed"),
    "binary": (bytes(range(256)) * 100, "not readable as YAML or JSON"),
    "bad UTF-8": (b"a: \xc3\x28", "invalid trailing UTF-8 octet"),
    "half a UTF-16": (b"\xff\xfea", "incomplete UTF-16 character"),
    "lone surrogate": (b'"\\ud800"', "invalid Unicode character escape code"),
    "tab": (b"a:\n\tb: 1", "cannot start any token"),
    "ELF": (b"\x7fELF\x02\x01\x01" + bytes(9), "not readable as YAML or JSON"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused_in_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the text, the answer is one error with its reason, and neither a crash nor a traceback."""
    monkeypatch.setattr(yaml, "MAX_NODES", FEW)
    text, reason = HOSTILE[name]
    with pytest.raises(yaml.YamlError) as caught:
        list(yaml.documents(text, source="f"))
    assert reason in caught.value.message
    assert "\n" not in str(caught.value)


def test_the_largest_text_of_tiny_values_stays_within_memory() -> None:
    """Four million values in 8 MiB are refused before they take the memory they would need."""
    before = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss
    with pytest.raises(yaml.YamlError):
        list(yaml.documents(b"-\n" * (yaml.MAX_BYTES // 2)))
    grown = limits.getrusage(limits.RUSAGE_SELF).ru_maxrss - before
    assert grown < 600 * 1024, f"{grown} KiB"


def test_a_text_with_surrogates_is_no_crash() -> None:
    """Python text that has no UTF-8 form is refused like other unreadable text."""
    with pytest.raises(yaml.YamlError, match="not readable as YAML or JSON"):
        list(yaml.documents("a: \ud800"))


EVENTS = [
    ("a: [1, x]", ["MappingStart", "Scalar", "SequenceStart", "Scalar", "Scalar", "SequenceEnd", "MappingEnd"]),
    ("&a x\n---\nsecond", ["Scalar"]),
    ("[&a x, *a]", ["SequenceStart", "Scalar", "Alias", "SequenceEnd"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "names"), EVENTS)
def test_events_are_those_of_the_first_document(text: str, names: list[str]) -> None:
    """The event stream has the first document's start and its values in order, with aliases as aliases."""
    names = ["DocumentStart", *names] if names else []
    assert [type(event).__name__ for event in yaml.first_document_events(text)] == [f"{name}Event" for name in names]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (bomb(), "holds more than 20000 values, aliases expanded"),
        ("&a [*a]", "an alias refers to a value that contains it"),
        ("&a {b: *a}", "an alias refers to a value that contains it"),
        ("[" * 101, "nested deeper than 100 levels"),
        ("\n".join(["- &a0 [x]", *(f"- &a{n} [*a{n - 1}]" for n in range(1, 200))]), "nested deeper than 100 levels"),
        ("a: [", "not readable as YAML or JSON"),
    ],
)
def test_events_are_bounded(text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event stream stops at the same bounds as the tree."""
    monkeypatch.setattr(yaml, "MAX_NODES", FEW)
    with pytest.raises(yaml.YamlError) as caught:
        list(yaml.first_document_events(text))
    assert reason in caught.value.message


def test_an_anchor_may_be_defined_again() -> None:
    """An alias means the anchor that was defined last before it, also inside the new definition."""
    names = [type(event).__name__ for event in yaml.first_document_events("[&a [x], &a [*b, y], *a]")]
    assert names.count("AliasEvent") == 2


def test_dump_quotes_what_would_read_as_something_else() -> None:
    """Written text reads back as the same values."""
    value = {"a": ["yes", "012", "1e3", "y", "0o7", "08", "2026-01-31", "", "null", True, 1, None, "ä\n"]}
    (root,) = yaml.documents(yaml.dump(value, explicit_start=True))
    texts = [(item.tag, item.value) for item in root.value[0][1].value]
    assert [tag for tag, _ in texts[:9]] == [scalar.STR] * 9
    assert [tag for tag, _ in texts[9:12]] == [scalar.BOOL, scalar.INT, scalar.NULL]
    assert texts[12] == (scalar.STR, "ä\n")
