"""Which version a spec needs, and where it uses what."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from draht import cdi
from draht.cdi.version import FEATURES, enforced_version, uses


def spec_of(device: dict[str, Any] | None = None, **top: Any) -> cdi.Spec:
    """A spec with one device, whose edits are given."""
    devices = [{"name": "a", "containerEdits": device or {"env": ["A=B"]}}]
    return cdi.decode(msgspec.json.encode({"kind": "v/c", "devices": devices, **top}))


TABLE: list[tuple[str, dict[str, Any]]] = [
    ("0.3.0", {"env": ["A=B"], "deviceNodes": [{"path": "/x", "permissions": "none"}]}),
    ("0.3.0", {"mounts": [{"hostPath": "a", "containerPath": "b", "type": ""}], "netDevices": [], "intelRdt": None}),
    ("0.4.0", {"mounts": [{"hostPath": "a", "containerPath": "b", "type": "bind"}]}),
    ("0.5.0", {"deviceNodes": [{"path": "/x", "hostPath": "/x"}]}),
    ("0.7.0", {"additionalGids": [0]}),
    ("0.7.0", {"intelRdt": {}}),
    ("0.7.0", {"intelRdt": {"schemata": None, "enableMonitoring": False}}),
    ("1.1.0", {"intelRdt": {"schemata": []}}),
    ("1.1.0", {"intelRdt": {"enableMonitoring": True}}),
    ("1.1.0", {"netDevices": [{"hostInterfaceName": "a", "name": "b"}]}),
]


@pytest.mark.parametrize(("version", "edits"), TABLE)
def test_the_minimum_version_follows_the_edits(version: str, edits: dict[str, Any]) -> None:
    """A feature counts in a device as well as in the common edits."""
    assert cdi.minimum_version(spec_of(edits)) == version
    assert cdi.minimum_version(spec_of(containerEdits=edits)) == version


@pytest.mark.parametrize(
    ("version", "top"),
    [
        ("0.6.0", {"annotations": {"a": "b"}}),
        ("0.3.0", {"annotations": {}}),
        ("0.6.0", {"kind": "v/c.d"}),
        ("0.3.0", {"kind": "v.w/c"}),
        ("0.5.0", {"devices": [{"name": "0", "containerEdits": {"env": ["A=B"]}}]}),
        ("0.3.0", {"devices": [{"name": "a0", "containerEdits": {"env": ["A=B"]}}]}),
        ("0.6.0", {"devices": [{"name": "a", "annotations": {"a": "b"}, "containerEdits": {"env": ["A=B"]}}]}),
    ],
)
def test_the_minimum_version_follows_names_and_annotations(version: str, top: dict[str, Any]) -> None:
    """Digits first in device names, dots in the class and annotations have their versions."""
    assert cdi.minimum_version(spec_of(**top)) == version


def test_uses_name_every_place() -> None:
    """Each use of a feature has its path and device."""
    spec = spec_of({"intelRdt": {"schemata": []}, "additionalGids": [1]}, annotations={"a": "b"})
    assert [(use.feature.name, use.path, use.device) for use in uses(spec, above="0.6.0")] == [
        ("RDT schemata", "devices[0].containerEdits.intelRdt.schemata", "a"),
        ("Intel RDT", "devices[0].containerEdits.intelRdt", "a"),
        ("additional group ids", "devices[0].containerEdits.additionalGids", "a"),
    ]
    assert [use.path for use in uses(spec)][-1] == "annotations"


def test_features_are_listed_newest_first() -> None:
    """The first feature found decides the minimum version, so the order matters."""
    places = [cdi.VERSIONS.index(feature.version) for feature in FEATURES]
    assert places == sorted(places, reverse=True)


def test_what_engines_overlook_is_let_pass_but_not_written() -> None:
    """Engines look for host paths in the last device only: such a spec is valid, and a writer still says 0.5.0."""
    spec = cdi.decode(
        b'{"cdiVersion": "0.3.0", "kind": "v/c", "devices": ['
        b'{"name": "a", "containerEdits": {"deviceNodes": [{"path": "/x", "hostPath": "/y"}]}},'
        b'{"name": "b", "containerEdits": {"env": ["A=B"]}}]}'
    )
    cdi.validate(spec)
    assert (enforced_version(spec), cdi.minimum_version(spec)) == ("0.3.0", "0.5.0")
