"""Specs as values and as text: what is written is what the Go library reads."""

from __future__ import annotations

import random
from typing import Literal

import msgspec
import pytest

from draht import cdi
from oracle_client import Oracle

ODD_TEXTS = (
    *("", " ", "~", "null", "<<", "=", "yes", "0", "007", "0o7", "1e3", "1_000", "1:30", "2020-01-01", ".inf", "- a"),
    *("a: b", "a #b", "'", '"', "\\", "\\/", "\t", "a\nb", "a\n", " a ", "\r", "\x00", "\x07", "\x7f", "\x80", "\x85"),
    *(
        "é",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "🙂",
        "\U0010ffff",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "{a}",
    ),
    *("x" * 300, "word " * 60, "? a", "a:", "[a", "---", "...", "|", ">", "#a", ",", "\xa0"),
)


def generated(seed: int) -> cdi.Spec:
    """A valid spec with odd texts in every field that takes them."""
    rng = random.Random(seed)

    def text() -> str:
        return "".join(rng.choice(ODD_TEXTS) for _ in range(rng.choice((1, 1, 2, 5))))

    edits = cdi.ContainerEdits(
        env=tuple(f"V{number}={text()}" for number in range(rng.randrange(4))),
        device_nodes=(cdi.DeviceNode(path=text() or "x", host_path=text(), major=rng.randrange(2**63), uid=0),),
        hooks=(cdi.Hook(hook_name="prestart", path=text() or "x", args=(text(), text()), timeout=-1),),
        mounts=(cdi.Mount(host_path=text() or "x", container_path=text() or "x", options=(text(),), type=text()),),
        intel_rdt=cdi.IntelRdt(clos_id="x", l3_cache_schema=text(), schemata=(text(),), enable_monitoring=True),
        additional_gids=(0, 2**32 - 1),
    )
    return cdi.Spec(
        cdi_version="1.1.0",
        kind="vendor.com/device",
        annotations={text(): text(), text(): text()},
        devices=(cdi.Device(name="0", annotations={text(): text()}, container_edits=edits),),
        container_edits=edits,
    )


@pytest.mark.parametrize("format_", ["json", "yaml"])
def test_what_is_written_is_what_go_reads(oracle: Oracle, format_: Literal["json", "yaml"]) -> None:
    """Texts of every kind survive the way through a file, for draht and for Go."""
    specs = [generated(seed) for seed in range(150)]
    texts = [cdi.encode(spec, format=format_) for spec in specs]
    answers = oracle.call_many("cdi.parse", [{"data": text} for text in texts])
    for spec, text, go in zip(specs, texts, answers, strict=True):
        assert cdi.decode(text) == spec, text
        assert go["accepted"], (go, text)
        theirs = go["spec"]
        for edits in (theirs["containerEdits"], theirs["devices"][0]["containerEdits"]):
            edits["mounts"] = [{key: value for key, value in mount.items() if value} for mount in edits["mounts"]]
        assert msgspec.convert(theirs, cdi.Spec) == spec, text


def test_empty_fields_are_not_written() -> None:
    """What isn't said isn't written; zero and an empty list are something that is said."""
    node = cdi.DeviceNode(path="/x", uid=0, file_mode=0)
    edits = cdi.ContainerEdits(device_nodes=(node,), intel_rdt=cdi.IntelRdt(schemata=()))
    spec = cdi.Spec(kind="v/c", devices=(cdi.Device(name="a", container_edits=edits),))
    assert cdi.encode(spec, format="yaml").decode() == (
        "---\nkind: v/c\ndevices:\n- name: a\n  containerEdits:\n    deviceNodes:\n    - path: /x\n      fileMode: 0\n"
        "      uid: 0\n    intelRdt:\n      schemata: []\n"
    )


def test_specs_are_immutable_values() -> None:
    """A spec can't be changed under those who share it, and equal specs are equal."""
    spec = cdi.Spec(kind="v/c")
    with pytest.raises(AttributeError):
        spec.kind = "x/y"  # type: ignore[misc]
    assert spec == cdi.Spec(kind="v/c")
    assert spec.annotations is not cdi.Spec().annotations
