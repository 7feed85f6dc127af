"""The rules of a spec: each of them, where its mistake is, and that all are found at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from draht import cdi
from draht.cdi.validate import edit_problems

GOOD: dict[str, Any] = {
    "cdiVersion": "1.1.0",
    "kind": "vendor.com/device",
    "devices": [{"name": "dev", "containerEdits": {"env": ["A=B"]}}],
}


def spec_with(**changes: Any) -> cdi.Spec:
    """A good spec with some top-level fields replaced."""
    return cdi.decode(msgspec.json.encode({**GOOD, **changes}))


def edited(**edits: Any) -> cdi.Spec:
    """A good spec with common edits."""
    return spec_with(containerEdits=edits)


def test_a_good_spec_has_no_problems() -> None:
    """Nothing is wrong with a small spec, nor with one that uses everything."""
    everything = edited(
        env=["A=B", "C=D=E"],
        deviceNodes=[
            {"path": "/dev/a", "type": kind, "permissions": permissions}
            for kind in ("", "b", "c", "u", "p")
            for permissions in ("", "r", "rwm", "mmr", "none")
        ],
        netDevices=[{"hostInterfaceName": "eth0", "name": "a"}, {"hostInterfaceName": "eth1", "name": "b"}],
        hooks=[{"hookName": "createContainer", "path": "relative", "env": ["A=B"], "timeout": -1}],
        mounts=[{"hostPath": "relative", "containerPath": "x"}],
        intelRdt={"closID": "/"},
        additionalGids=[0],
    )
    for spec in (spec_with(), everything, spec_with(cdiVersion="v1.1.0"), spec_with(annotations={"no key /": "x"})):
        cdi.validate(spec)
        assert list(cdi.problems(spec)) == []


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (spec_with(cdiVersion=""), "cdiVersion", "the version is missing"),
        (spec_with(cdiVersion="0.2.0"), "cdiVersion", "there is no CDI version '0.2.0'"),
        (spec_with(cdiVersion="0.5.1"), "cdiVersion", "there is no CDI version '0.5.1'"),
        (spec_with(cdiVersion="vv1.1.0"), "cdiVersion", "there is no CDI version"),
        (spec_with(cdiVersion="0.5.0", annotations={"a": "b"}), "annotations", "annotations needs CDI 0.6.0 or later"),
        (spec_with(kind=""), "kind", "the kind is missing"),
        (spec_with(kind="vendor"), "kind", "'vendor' is not a kind"),
        (spec_with(kind="vendor/"), "kind", "is not a kind"),
        (spec_with(kind="1v/c"), "kind", "'1v' is not a vendor"),
        (spec_with(kind="v/c-"), "kind", "'c-' is not a class"),
        (spec_with(kind="v/c/d"), "kind", "'c/d' is not a class"),
        (spec_with(devices=[]), "devices", "at least one device"),
        (spec_with(devices=[{"name": "", "containerEdits": {"env": ["A=B"]}}]), "devices[0].name", "is empty"),
        (spec_with(devices=[{"name": "a b", "containerEdits": {"env": ["A=B"]}}]), "devices[0].name", "'a b' is not"),
        (spec_with(devices=[{"name": "a"}]), "devices[0].containerEdits", "changes nothing"),
        (spec_with(devices=GOOD["devices"] * 2), "devices[1].name", "devices[0] has the name 'dev' already"),
        (edited(env=["A=B", "=x"]), "containerEdits.env[1]", "'=x' is not an environment variable"),
        (edited(env=["novalue"]), "containerEdits.env[0]", "'novalue' is not"),
        (edited(deviceNodes=[{}]), "containerEdits.deviceNodes[0].path", "has no path"),
        (edited(deviceNodes=[{"path": "/x", "type": "x"}]), "containerEdits.deviceNodes[0].type", "'x' is not a type"),
        (edited(deviceNodes=[{"path": "/x", "major": -1}]), "containerEdits.deviceNodes[0].major", "-1 is negative"),
        (edited(deviceNodes=[{"path": "/x", "minor": -1}]), "containerEdits.deviceNodes[0].minor", "-1 is negative"),
        (
            edited(deviceNodes=[{"path": "/x", "permissions": "rx"}]),
            "containerEdits.deviceNodes[0].permissions",
            "'rx' are not permissions",
        ),
        (edited(hooks=[{"hookName": "x", "path": "/x"}]), "containerEdits.hooks[0].hookName", "'x' is not the name"),
        (edited(hooks=[{"hookName": "prestart"}]), "containerEdits.hooks[0].path", "has no path"),
        (
            edited(hooks=[{"hookName": "prestart", "path": "/x", "env": ["x"]}]),
            "containerEdits.hooks[0].env[0]",
            "'x' is not an environment variable",
        ),
        (edited(mounts=[{"containerPath": "/x"}]), "containerEdits.mounts[0].hostPath", "no hostPath"),
        (edited(mounts=[{"hostPath": "/x"}]), "containerEdits.mounts[0].containerPath", "no containerPath"),
        *(
            (edited(intelRdt={"closID": name}), "containerEdits.intelRdt.closID", "is not a class of service")
            for name in (".", "..", "a/b", "//", "a\nb", "x" * 4096, "é" * 2048)
        ),
        (
            edited(netDevices=[{"name": "a"}]),
            "containerEdits.netDevices[0].hostInterfaceName",
            "has no hostInterfaceName",
        ),
        (
            edited(netDevices=[{"hostInterfaceName": "e", "name": "a"}, {"hostInterfaceName": "e", "name": "b"}]),
            "containerEdits.netDevices[1].hostInterfaceName",
            "netDevices[0] has hostInterfaceName 'e' already",
        ),
        (
            edited(netDevices=[{"hostInterfaceName": "e", "name": "a"}, {"hostInterfaceName": "f", "name": "a"}]),
            "containerEdits.netDevices[1].name",
            "netDevices[0] has name 'a' already",
        ),
    ],
)
def test_each_rule_names_the_field(spec: cdi.Spec, path: str, message: str) -> None:
    """A spec that breaks one rule has one problem, which names the field in JSON's terms."""
    (problem,) = cdi.problems(spec)
    assert problem.path == path
    assert message in problem.message
    assert str(problem) == f"{path}: {problem.message}"
    with pytest.raises(cdi.ValidationError, match="^" + path.replace("[", r"\[")):
        cdi.validate(spec)


def test_all_problems_are_found_at_once() -> None:
    """One mistake doesn't hide the next."""
    spec = spec_with(cdiVersion="9", kind="x", containerEdits={"env": ["x"]}, devices=[{"name": "-"}, {"name": "-"}])
    assert [problem.path for problem in cdi.problems(spec)] == [
        "cdiVersion",
        "kind",
        "containerEdits.env[0]",
        "devices[0].name",
        "devices[0].containerEdits",
        "devices[1].name",
        "devices[1].name",
        "devices[1].containerEdits",
    ]


@pytest.mark.parametrize(
    "edits",
    [
        {"env": ["A=B"]},
        {"deviceNodes": [{"path": "/x"}]},
        {"netDevices": [{"hostInterfaceName": "a", "name": "b"}]},
        {"hooks": [{"hookName": "prestart", "path": "x"}]},
        {"mounts": [{"hostPath": "x", "containerPath": "y"}]},
        {"intelRdt": {}},
        {"additionalGids": [0]},
    ],
)
def test_one_edit_of_any_kind_is_enough(edits: dict[str, Any]) -> None:
    """A device needs one edit; even an empty RDT object counts, because it replaces the container's."""
    cdi.validate(spec_with(devices=[{"name": "a", "containerEdits": edits}]))


def test_edits_alone_can_be_checked() -> None:
    """Edits that come from elsewhere are checked without a spec around them."""
    (problem,) = edit_problems(cdi.ContainerEdits(env=("x",)), "mine")
    assert problem.path == "mine.env[0]"
