"""Specs rewritten for lower versions: what may be rewritten, what is refused, and that containers see no difference."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from draht import cdi


def spec_of(device: dict[str, Any] | None = None, **top: Any) -> cdi.Spec:
    """A spec for the newest version with one device, whose edits are given."""
    devices = [{"name": "a", "containerEdits": device or {"env": ["A=B"]}}]
    return cdi.decode(msgspec.json.encode({"cdiVersion": "1.1.0", "kind": "v/c", "devices": devices, **top}))


def node(**fields: Any) -> dict[str, Any]:
    """Edits with one device node."""
    return {"deviceNodes": [{"path": "/dev/x", **fields}]}


def mount(**fields: Any) -> dict[str, Any]:
    """Edits with one mount."""
    return {"mounts": [{"hostPath": "/h", "containerPath": "/c", **fields}]}


@pytest.mark.parametrize(
    ("to", "before", "after"),
    [
        ("0.3.0", {"env": ["A=B"]}, {"env": ["A=B"]}),
        ("0.4.0", node(hostPath="/dev/x"), node()),
        ("0.3.0", node(hostPath="/h", type="c", major=1, fileMode=0), node(type="c", major=1, fileMode=0)),
        ("0.3.0", node(hostPath="/h", type="p", fileMode=384), node(type="p", fileMode=384)),
        ("0.5.0", node(hostPath="/h"), node(hostPath="/h")),
        ("0.3.0", mount(type="bind", options=["ro", "bind"]), mount(options=["ro", "bind"])),
        ("0.3.0", mount(type="none", options=["rbind"]), mount(options=["rbind"])),
        ("0.3.0", mount(type="bind", options=["ro"]), mount(options=["ro", "bind"])),
        ("0.3.0", mount(type="bind"), mount(options=["bind"])),
        ("0.4.0", mount(type="tmpfs"), mount(type="tmpfs")),
        ("0.7.0", {"intelRdt": {"schemata": [], "closID": "x"}}, {"intelRdt": {"closID": "x"}}),
    ],
)
def test_spellings_that_change_nothing_are_rewritten(to: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """The lowered spec says the version asked for, is valid for it, and has the edits of the older spelling."""
    for lowered, expected in (
        (cdi.lower(spec_of(before), to), spec_of(after)),
        (cdi.lower(spec_of(containerEdits=before), to), spec_of(containerEdits=after)),
    ):
        assert lowered == msgspec.structs.replace(expected, cdi_version=to)
        assert list(cdi.problems(lowered)) == []
        assert cdi.VERSIONS.index(cdi.minimum_version(lowered)) <= cdi.VERSIONS.index(to)


@pytest.mark.parametrize(
    ("to", "edits", "feature", "path", "version"),
    [
        ("1.0.0", {"netDevices": [{"hostInterfaceName": "a", "name": "b"}]}, "network devices", "netDevices", "1.1.0"),
        ("0.7.0", {"intelRdt": {"schemata": ["x"]}}, "RDT schemata", "intelRdt.schemata", "1.1.0"),
        ("0.7.0", {"intelRdt": {"enableMonitoring": True}}, "RDT monitoring", "intelRdt.enableMonitoring", "1.1.0"),
        ("0.6.0", {"intelRdt": {}}, "Intel RDT", "intelRdt", "0.7.0"),
        ("0.5.0", {"additionalGids": [44]}, "additional group ids", "additionalGids", "0.7.0"),
        ("0.4.0", node(hostPath="/h"), "a device node's host path", "deviceNodes[0].hostPath", "0.5.0"),
        (
            "0.4.0",
            node(hostPath="/h", type="c", major=1),
            "a device node's host path",
            "deviceNodes[0].hostPath",
            "0.5.0",
        ),
        ("0.3.0", mount(type="tmpfs"), "a mount's type", "mounts[0].type", "0.4.0"),
        ("0.7.0", node(permissions="none"), "the permissions 'none'", "deviceNodes[0].permissions", "1.1.0"),
    ],
)
def test_what_would_be_lost_is_refused(to: str, edits: dict[str, Any], feature: str, path: str, version: str) -> None:
    """The error names the feature, the field, the device and the first version that has it, and what to do."""
    for spec, prefix, device in (
        (spec_of(edits), "devices[0].containerEdits", "a"),
        (spec_of(containerEdits=edits), "containerEdits", None),
    ):
        with pytest.raises(cdi.LoweringError) as refused:
            cdi.lower(spec, to)
        error = refused.value
        assert (error.feature, error.path, error.version) == (feature, f"{prefix}.{path}", version)
        assert error.device == device
        assert error.hint


def test_names_and_classes_are_not_changed() -> None:
    """A device name that starts with a digit, or a dot in the class, is what people ask for: it stays or is refused."""
    digits = spec_of(devices=[{"name": "0", "containerEdits": {"env": ["A=B"]}}])
    with pytest.raises(cdi.LoweringError, match="device '0' uses a device name that starts with a digit"):
        cdi.lower(digits, "0.4.0")
    with pytest.raises(cdi.LoweringError, match="the spec uses a dot in the class"):
        cdi.lower(spec_of(kind="v/c.d"), "0.5.0")
    assert cdi.lower(digits, "0.5.0").devices == digits.devices


def test_annotations_go_only_if_asked() -> None:
    """They reach no container, but they are somebody's words: dropping them takes a request."""
    devices = [{"name": "a", "annotations": {"a": "b"}, "containerEdits": {"env": ["A=B"]}}]
    spec = spec_of(annotations={"c": "d"}, devices=devices)
    with pytest.raises(cdi.LoweringError, match="annotations"):
        cdi.lower(spec, "0.5.0")
    assert cdi.lower(spec, "0.5.0", drop_annotations=True) == msgspec.structs.replace(spec_of(), cdi_version="0.5.0")
    assert cdi.lower(spec, "0.6.0", drop_annotations=True).annotations == {"c": "d"}


def test_a_spec_that_is_low_enough_stays() -> None:
    """Nothing is rewritten, and no version raised, where the spec's version can be read already."""
    spec = msgspec.structs.replace(spec_of(mount(type="bind")), cdi_version="0.4.0")
    assert cdi.lower(spec, "0.5.0") is spec
    assert cdi.lower(spec, "v0.4.0") is spec


def test_mistakes_of_the_caller() -> None:
    """There must be such a version, and the spec must be valid."""
    with pytest.raises(cdi.CDIError, match=r"there is no CDI version '0\.2\.0'"):
        cdi.lower(spec_of(), "0.2.0")
    with pytest.raises(cdi.ValidationError):
        cdi.lower(cdi.Spec(), "0.5.0")


class _Host:
    """A host on which every path is the same device."""

    def node(self, _path: str) -> cdi.HostNode:
        """The node."""
        return cdi.HostNode("c", 195, 255, 0o666)


@pytest.mark.parametrize(
    ("edits", "to"),
    [
        *(
            (edits, to)
            for to in cdi.VERSIONS
            for edits in (
                node(hostPath="/dev/x"),
                node(hostPath="/h", type="c", major=1, fileMode=0),
                mount(type="none", options=["rbind"]),
                mount(type="bind", options=["bind", "ro"]),
            )
        ),
        *(({"intelRdt": {"schemata": [], "closID": "x"}}, to) for to in cdi.VERSIONS[4:]),
    ],
)
def test_the_container_sees_no_difference(edits: dict[str, Any], to: str) -> None:
    """Injected into the same runtime spec, the lowered edits give the same one (a bind mount's type aside)."""
    spec = spec_of(edits)
    results = []
    for each in (spec, cdi.lower(spec, to)):
        oci: dict[str, Any] = {"linux": {"namespaces": [{"type": "user"}], "uidMappings": [1], "gidMappings": [1]}}
        cdi.apply(each.devices[0].container_edits, oci, _Host())
        for made in oci.get("mounts", []):
            made.pop("type", None)
        results.append(json.dumps(oci, sort_keys=True))
    assert results[0] == results[1]
