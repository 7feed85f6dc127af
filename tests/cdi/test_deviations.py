"""The deliberate differences from the Go library: each is there, on both sides, and is what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdi_deviations import DEVIATIONS, explained, first_document
from draht import cdi
from draht.api.yaml import MAX_BYTES
from oracle_client import Oracle

HEAD = "cdiVersion: 1.1.0\nkind: v/c\ndevices: [{name: a, containerEdits: {env: [A=B]}}]\n"


def ours(data: bytes) -> dict[str, object]:
    """Draht's verdict in the form of the oracle."""
    try:
        cdi.validate(cdi.decode(data))
    except cdi.CDIError as error:
        return {"accepted": False, "error": str(error)}
    return {"accepted": True}


@pytest.mark.parametrize(
    ("name", "text", "draht_accepts"),
    [
        ("text after the first document", f"{HEAD}---\n@".encode(), True),
        ("text after the first document", f"{HEAD}---\n".encode() + b"- a\n" * 500 + b"\x00", False),
        (
            "a tag directly before a comma or bracket in a flow collection",
            f"{HEAD}containerEdits: {{env: [!!str, A=B]}}".encode(),
            False,
        ),
        ("an alias to a value that contains it", f"{HEAD}~: &a [*a]".encode(), False),
        ("!!binary that isn't UTF-8", f"{HEAD}annotations: {{a: !!binary //4=}}".encode(), False),
    ],
)
def test_a_deviation_explains_its_texts(name: str, text: bytes, draht_accepts: bool, oracle: Oracle) -> None:
    """The verdicts differ, and exactly the deviation of that name explains it."""
    go = oracle.call("cdi.parse", data=text)
    assert (go["accepted"], ours(text)["accepted"]) == (not draht_accepts, draht_accepts), go
    deviation = explained(text, oracle, ours)
    assert deviation is not None
    assert deviation.name == name


def test_a_deviation_explains_nothing_else(oracle: Oracle) -> None:
    """A text on which both sides agree, or that is simply wrong, isn't explained away."""
    for text in (HEAD, HEAD + "unknown: field", "{", HEAD + "annotations: {a: !!binary aGk=}"):
        assert explained(text.encode(), oracle, ours) is None


def test_the_first_document_is_found() -> None:
    """The text that both sides are asked about again ends with the first document."""
    assert first_document(b"a: b\n---\n@") == b"a: b"
    assert first_document(b'{"a": "b"} \x00') is not None
    assert first_document(b"a: b\n") is None
    assert first_document(b"\x00") is None


def test_null_in_a_list_of_objects_crashes_go(oracle: Oracle) -> None:
    """Where Go computes the version it dereferences the null; draht refuses it with its place."""
    text = HEAD.replace("env: [A=B]", "deviceNodes: [~]").encode()
    assert oracle.call("cdi.parse", data=text)["error"].startswith("panic: ")
    assert ours(text) == {"accepted": False, "error": "<spec>:3:52: an item of this list is null"}


def test_bounds_of_ours(oracle: Oracle) -> None:
    """What is far larger than any spec is accepted by Go and refused here."""
    text = (HEAD + f"annotations: {{a: {'x' * MAX_BYTES}}}").encode()
    assert oracle.call("cdi.parse", data=text, deadline=60)["accepted"] is True
    assert ours(text)["accepted"] is False


def test_many_final_colons_are_refused(oracle: Oracle) -> None:
    """Each colon that ends an unquoted text inside brackets costs a reading of its own, so there may be few."""
    for colons, accepted in ((40, True), (60, False)):
        text = (HEAD + f"containerEdits: {{env: [{', '.join(['A=b:'] * colons)}]}}").encode()
        assert oracle.call("cdi.parse", data=text)["accepted"] is True
        assert ours(text)["accepted"] is accepted


def test_an_unreadable_directory_ends_gos_scan(tmp_path: Path, oracle: Oracle) -> None:
    """A file in the place of a directory hides the directories after it from Go, not from draht."""
    (tmp_path / "file").touch()
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "a.yaml").write_text(HEAD)
    directories = [tmp_path / "file", tmp_path / "good"]
    assert oracle.call("cdi.cache", directories=directories)["devices"] == {}
    assert cdi.Cache(directories).devices() == ("v/c=a",)


def test_a_failed_injection_leaves_gos_spec_half_edited(tmp_path: Path, oracle: Oracle) -> None:
    """Go reports the error after it has edited; draht looks everything up first. The path is in both errors."""
    (tmp_path / "a.yaml").write_text(HEAD.replace("env: [A=B]", "env: [A=B], deviceNodes: [{path: /nowhere}]"))
    oci: dict[str, object] = {}
    (go,) = oracle.call("cdi.inject", directories=[tmp_path], requests=[{"oci": oci, "names": ["v/c=a"]}])
    assert "/nowhere" in go["error"]
    with pytest.raises(cdi.HostDeviceError, match="/nowhere"):
        cdi.Cache([tmp_path]).inject(oci, ["v/c=a"])
    assert oci == {}


def test_the_table_is_written_for_people() -> None:
    """Names are unique, and each row says what both do and why."""
    assert len({deviation.name for deviation in DEVIATIONS}) == len(DEVIATIONS)
    assert all(deviation.ours and deviation.theirs and deviation.reason for deviation in DEVIATIONS)
