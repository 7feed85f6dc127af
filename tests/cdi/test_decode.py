"""Decoding a spec's text: what the Go library accepts, refuses and makes of it, without needing Go to be there."""

from __future__ import annotations

import codecs

import pytest

from draht import cdi
from draht.cdi.decode import decode_nodes

HEAD = "cdiVersion: 1.1.0\nkind: vendor.com/device\ndevices:\n- name: dev\n  containerEdits:\n"


def edits_of(text: str) -> cdi.ContainerEdits:
    """The edits of the only device of a spec, given as YAML below ``containerEdits``."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    return cdi.decode((HEAD + lines).encode()).devices[0].container_edits


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1", 1),
        ("+5", 5),
        ("-0", 0),
        ("007", 7),
        ("0o17", 15),
        ("0O17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("0b-11", -3),
        ("-0o7", -7),
        ("1_000", 1000),
        ("1__", 1),
        ("0x_1F", 31),
        ("08", 8),
        ("1.9", 1),
        ("-1.9", -1),
        ("-0.5", 0),
        (".5", 0),
        ("1e3", 1000),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("-.inf", -(2**63)),
        ("!!int '7'", 7),
        ("!!float 7.9", 7),
        ("! 7", 7),
        ("~", 0),
        ("", 0),
        ("!!null ''", 0),
    ],
)
def test_an_integer_field_reads_what_go_reads(scalar: str, value: int) -> None:
    """An int64 field takes every spelling of a number, cuts fractions, and is left alone by null."""
    assert edits_of(f"deviceNodes:\n- {{path: /dev/x, major: {scalar}}}").device_nodes[0].major == value


@pytest.mark.parametrize(
    "scalar",
    [
        *("'1'", '"1"', "1:30", "2020-01-01", "true", "x", "9223372036854775808", ".inf", ".nan", "1e400", "!!str 7"),
        *("!!int 7.5", "!!int x", "!!bool 1", "[1]", "{a: 1}", "_", "0x", "!!timestamp 1"),
    ],
)
def test_an_integer_field_refuses_what_go_refuses(scalar: str) -> None:
    """Quoted numbers, sexagesimals, dates, texts, and numbers out of range are refused with their place."""
    with pytest.raises(cdi.SpecError) as refused:
        edits_of(f"deviceNodes:\n- {{path: /dev/x, major: {scalar}}}")
    assert refused.value.where is not None
    assert refused.value.where.startswith("<spec>:7:")


@pytest.mark.parametrize(
    ("scalar", "value"),
    [("0", 0), ("4294967295", 2**32 - 1), ("4294967296", None), ("-1", None), ("-0.5", 0), ("1e20", None)],
)
def test_an_unsigned_field_has_its_own_range(scalar: str, value: int | None) -> None:
    """A uint32 field refuses negative and large numbers."""
    if value is None:
        with pytest.raises(cdi.SpecError, match="not between 0 and 4294967295"):
            edits_of(f"additionalGids: [{scalar}]")
    else:
        assert edits_of(f"additionalGids: [{scalar}]").additional_gids == (value,)


@pytest.mark.parametrize(
    ("scalar", "text"),
    [
        ("1.0", "1.0"),
        ("0x10", "0x10"),
        ("yes", "yes"),
        ("2020-01-01", "2020-01-01"),
        ("!!int 5", "5"),
        ("!!binary aGk=", "hi"),
        ("!!str ~", "~"),
        ("'null'", "null"),
        ("!custom x", "x"),
        ("|\n      a\n      b\n", "a\nb\n"),
        (">-\n      a\n      b\n", "a b"),
        ('"\\x41\\u00e9"', "Aé"),
    ],
)
def test_a_text_field_keeps_the_source_text(scalar: str, text: str) -> None:
    """A text field gets what is written, whatever it looks like; only ``!!binary`` is decoded."""
    assert edits_of(f"mounts:\n- hostPath: {scalar}").mounts[0].host_path == text


@pytest.mark.parametrize(
    "scalar", ["!!int x", "!!bool yes", "!!float x", "!!null x", "!!binary a", "!!binary //4=", "[a]", "{a: b}"]
)
def test_a_text_field_refuses_contradictions(scalar: str) -> None:
    """A text that contradicts its own tag, and what is no scalar, is refused."""
    with pytest.raises(cdi.SpecError):
        edits_of(f"mounts:\n- hostPath: {scalar}")


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", True),
        ("'on'", True),
        ("n", False),
        ("~", False),
        ("!!binary eWVz", True),
    ],
)
def test_a_truth_field_takes_old_spellings(scalar: str, value: bool) -> None:
    """A bool field takes the truth values of YAML 1.1 too, even quoted."""
    rdt = edits_of(f"intelRdt: {{enableMonitoring: {scalar}}}").intel_rdt
    assert rdt is not None
    assert rdt.enable_monitoring is bool(value)


@pytest.mark.parametrize("scalar", ["'true'", "1", "!!bool yes", "yEs", "[]"])
def test_a_truth_field_refuses_the_rest(scalar: str) -> None:
    """Numbers, a quoted true and odd capitals are no truth values."""
    with pytest.raises(cdi.SpecError):
        edits_of(f"intelRdt: {{enableMonitoring: {scalar}}}")


def test_null_leaves_fields_and_drops_items() -> None:
    """Null means "not said": a field keeps its default, an item of a list of texts disappears."""
    edits = edits_of("env: [~, A=B]\nmounts: ~\nintelRdt: {schemata: [~]}\nadditionalGids: [null, 1]\nhooks: null")
    assert edits == cdi.ContainerEdits(env=("A=B",), intel_rdt=cdi.IntelRdt(schemata=()), additional_gids=(1,))


@pytest.mark.parametrize("field", ["deviceNodes", "netDevices", "hooks", "mounts"])
def test_null_in_a_list_of_objects_is_refused(field: str) -> None:
    """A null where the Go library would hold a nil pointer, which can crash it, is refused with its place."""
    with pytest.raises(cdi.SpecError, match="an item of this list is null"):
        edits_of(f"{field}: [~]")


def test_a_null_device_disappears() -> None:
    """Devices aren't pointers in Go, so a null among them is dropped as it is among texts."""
    assert len(cdi.decode(b"devices: [~, {name: a}]").devices) == 1


def test_merge_keys_lose_against_the_mapping_and_earlier_merges() -> None:
    """``<<`` brings fields that are not there yet; in a list of mappings the first one wins."""
    spec = cdi.decode(
        b"devices:\n- &a {name: a, containerEdits: {env: [A=1]}}\n- &b {name: b, annotations: {x: y}}\n"
        b"- name: c\n  <<: [*a, *b]\n- <<: {<<: *a, name: d}\n"
    )
    c, d = spec.devices[2:]
    assert (c.name, c.annotations, c.container_edits.env) == ("c", {"x": "y"}, ("A=1",))
    assert (d.name, d.container_edits.env) == ("d", ("A=1",))


def test_a_merged_annotation_overrides_a_number_like_key() -> None:
    """Merging compares resolved keys: ``1`` is a number there and doesn't stop the merged text ``1``."""
    spec = cdi.decode(b"annotations: {1: mine, a: mine, <<: {1: merged, a: merged}}")
    assert spec.annotations == {"1": "merged", "a": "mine"}


def test_anchors_may_be_defined_twice() -> None:
    """An alias stands for the last definition before it."""
    assert cdi.decode(b"annotations: {a: &x one, b: *x , c: &x two, d: *x }").annotations == {
        "a": "one",
        "b": "one",
        "c": "two",
        "d": "two",
    }


@pytest.mark.parametrize(
    ("text", "problem", "where"),
    [
        ("kind: a/b\nkind: a/b", "the key 'kind' is already there in line 1", "<spec>:2:1"),
        ("annotations: {a: b, 'a': c}", "the key 'a' is already there", "<spec>:1:21"),
        ("annotations: {&k kind: x, b: y}\nkind: a\n*k : b", "the field kind is set twice", "<spec>:3:1"),
        ("CDIVersion: 1.1.0", "there is no field 'CDIVersion' in a Spec", "<spec>:1:1"),
        ("devices: [{nmae: x}]", "there is no field 'nmae' in a Device", "<spec>:1:12"),
        ("devices: x", "a list is wanted here", "<spec>:1:10"),
        ("devices: {}", "a list is wanted here", "<spec>:1:10"),
        ("containerEdits: []", "an object is wanted here", "<spec>:1:17"),
        ("kind: *nobody", "there is no anchor &nobody", "<spec>:1:7"),
        ("kind: &a [*a]", "an alias refers to a value that contains it|contains it", None),
        ("<<: x", "only an object", "<spec>:1:5"),
        ("<<: [x]", "only an object", "<spec>:1:6"),
        ("{kind: a/b", "not readable as YAML or JSON", None),
        ("", "there is no spec in it", "<spec>"),
        ("# nothing", "there is no spec in it", "<spec>"),
        ("~", "there is no spec in it", "<spec>"),
        ("text", "an object is wanted here", "<spec>:1:1"),
        ("[]", "an object is wanted here", "<spec>:1:1"),
        ("%YAML 1.2\n---\nkind: a/b", "%YAML directive", "<spec>:1"),
        ('kind: "a\\/b"', "the escape", "<spec>:1:7"),
        ('{"kind": "\\ud83d\\ude00"}', "not readable as YAML or JSON", None),
        ("\x00", "not readable as YAML or JSON", None),
    ],
)
def test_a_broken_text_says_what_and_where(text: str, problem: str, where: str | None) -> None:
    """Each mistake is one sentence with line and column."""
    with pytest.raises(cdi.SpecError, match=problem) as refused:
        cdi.decode(text.encode())
    assert where is None or refused.value.where == where


def test_a_misspelled_field_gets_a_hint() -> None:
    """Wrong capitals are pointed out; otherwise the fields there are."""
    with pytest.raises(cdi.SpecError) as capitals:
        cdi.decode(b"CDIVersion: 1.1.0")
    with pytest.raises(cdi.SpecError) as unknown:
        cdi.decode(b"version: 1.1.0")
    assert capitals.value.hint == "it is spelled cdiVersion"
    assert unknown.value.hint == "it has cdiVersion, kind, annotations, devices, containerEdits"


@pytest.mark.parametrize(
    "data",
    [
        b"kind: a/b",
        b"---\nkind: a/b\n...\n",
        b"%YAML 1.1\n---\nkind: a/b\n---\nother: document\n",
        b"kind: a/b\n---\n@not yaml",
        b'{"kind": "a/b"}',
        b'{"kind": "a/b"} trailing',
        codecs.BOM_UTF8 + b"kind: a/b",
        "kind: a/b".encode("utf-16"),
        "kind: a/b".encode("utf-16-le").join([codecs.BOM_UTF16_LE, b""]),
        b"kind: a/b\r\n",
        b"~: ignored\nkind: a/b",
        b"!anything {kind: a/b}",
    ],
)
def test_the_first_document_counts(data: bytes) -> None:
    """Documents, byte order marks, line ends and tags around a spec make no difference."""
    assert cdi.decode(data) == cdi.Spec(kind="a/b")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b"a: &a [x, x]\n"
            + b"".join(
                b"b%d: &b%d [%s]\n" % (i, i, b"*a, " * 9 if i == 0 else b"*b%d, " % (i - 1) * 9) for i in range(12)
            ),
            id="alias bomb",
        ),
        pytest.param(b"annotations: {" + b"a: b, " * 2_000_000 + b"}", id="larger than the bound"),
        pytest.param(b"[" * 100_000, id="deep brackets"),
        pytest.param(b"{a: " * 5_000 + b"}" * 5_000, id="deep mappings"),
        pytest.param(
            b"devices:\n- &a0 {name: x}\n" + b"".join(b"- &a%d {<<: *a%d}\n" % (i + 1, i) for i in range(3000)),
            id="chain of merges",
        ),
        pytest.param(bytes(range(256)) * 4096, id="binary"),
        pytest.param(b"kind: " + b"x" * 9_000_000, id="one long text"),
    ],
)
def test_hostile_texts_are_refused_in_one_sentence(data: bytes) -> None:
    """Bombs, garbage and excess of any kind end in a SpecError, soon and without a traceback."""
    with pytest.raises(cdi.SpecError) as refused:
        cdi.decode(data)
    assert "\n" not in str(refused.value)


def test_too_many_aliases_are_refused_as_by_go() -> None:
    """A text of which nearly everything is read through aliases is refused, though it would fit into memory."""
    lines = b"- &d {name: a, containerEdits: &e {env: &l [" + b"A=B, " * 1000 + b"]}}\n" + b"- *d\n" * 200
    with pytest.raises(cdi.SpecError, match="too much of the text is aliases"):
        cdi.decode(b"devices:\n" + lines)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "a/b", "kind": "c/d"}',
        '{"annotations": {"a": "1", "a": "1"}}',
        '{"kind"\n: "a/b"}',
        '{"kind" : "a/b"}',
        '{"annotations": {"%s": ""}}' % ("k" * 1020),
        '{"annotations": {"%s": ""}}' % ("k" * 1030),
        '{"kind": "\x7f"}',
        '{"kind": "\\u0061"}',
        '{"devices": [{"name": 0}]}',
        '{"containerEdits": {"additionalGids": [1.0, 1.5, 4294967295]}}',
        '{"containerEdits": {"additionalGids": [4294967296]}}',
        '{"containerEdits": {"additionalGids": []}, "devices": []}',
        '{"kind": null}',
        '{"kind": "a/b"',
        "kind: a/b\nkind: c/d\n",
        "kind: a/b\n x: y\n",
        "kind: a\n  b\n",
        "kind: a #b\n",
        "kind: a#b\n",
        "kind: a: b\n",
        "kind: null\n",
        "kind:\n",
        "kind: -\n",
        "kind: - a\n",
        "kind: --a\n",
        "kind: &a b\n",
        "kind: '''a'''\n",
        "kind: a\n# comment\n",
        "kind: a\n\n",
        "devices:\n- name: a\n- name: b\n",
        "devices:\n  - name: a\n    annotations: {}\n",
        "devices:\n  - name: a\n - name: b\n",
        "devices:\n- name: a\n  - name: b\n",
        "devices:\n-  name: a\n",
        "devices:\n- - name: a\n",
        "containerEdits:\n  env:\n  - a\n    b\n",
        "containerEdits:\n  env:\n  - a\n  - null\n  - ~\n  - ''\n",
        "containerEdits:\n  env:\n  - a: b\n",
        "containerEdits:\n  additionalGids:\n  - 1\n  - 0o7\n",
        "containerEdits:\n  additionalGids:\n  - 1\n  - 007\n",
        "containerEdits:\n  deviceNodes:\n  - path: 0\n    major: 5\n    minor: '5'\n",
        "containerEdits:\n  intelRdt:\n    enableMonitoring: true\n",
        "containerEdits:\n  intelRdt:\n    enableMonitoring: yes\n",
        "annotations:\n  <<: b\n",
        "annotations:\n  null: b\n",
        "annotations:\n  yes: b\n  a.b/c: d:e\n",
        "---\nkind: a/b\n---\nkind: c/d\n",
        "---\n---\n",
        "kind: a/b\n...\n",
        "- a\n",
        "kind",
        "kind: %a\n",
        "kind: a%b [c] {d}\n",
        "kind: a  b\n",
        "kind: a \n",
        " kind: a\n",
    ],
)
def test_the_short_cuts_never_differ(text: str) -> None:
    """A text at the edge of what the short cuts take is read as by the node decoder, or refused by both."""
    outcomes: list[object] = []
    for decode in (cdi.decode, decode_nodes):
        try:
            outcomes.append(decode(text.encode()))
        except cdi.SpecError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
