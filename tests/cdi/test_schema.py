"""The JSON Schema of each CDI version: what it accepts is what that version of a spec may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from cdi_corpus import BROKEN, CORPUS, VALID
from draht import cdi


def _validator(version: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(cdi.json_schema(version))


def _name(entry: dict[str, Any]) -> str:
    return Path(entry["file"]).name


@pytest.mark.parametrize("version", cdi.VERSIONS)
def test_each_version_has_a_proper_schema(version: str) -> None:
    """The schema itself is valid, refuses unknown fields at every level, and survives JSON."""
    schema = cdi.json_schema(version)
    jsonschema.Draft202012Validator.check_schema(schema)
    for definition in (schema, *schema["$defs"].values()):
        assert definition["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


def test_an_unknown_version_is_refused_with_those_there_are() -> None:
    """A version that CDI doesn't have gives an error whose hint lists the others."""
    with pytest.raises(cdi.CDIError) as refused:
        cdi.json_schema("0.5.1")
    assert "1.1.0" in str(refused.value.hint)


@pytest.mark.parametrize("entry", VALID, ids=_name)
def test_valid_files_fit_the_schema_of_their_version(entry: dict[str, Any]) -> None:
    """Every good file of the corpus fits, as written or, where it leaves quotes out, as written by draht."""
    data = (CORPUS / entry["file"]).read_bytes()
    if entry.get("schema") == "canonical":
        data = cdi.encode(cdi.decode(data), format="json")
    assert list(_validator(entry["version"]).iter_errors(yaml.safe_load(data))) == []


@pytest.mark.parametrize("entry", [each for each in VALID if each["minimum"] != "0.3.0"], ids=_name)
def test_a_file_does_not_fit_a_version_below_its_features(entry: dict[str, Any]) -> None:
    """A spec that says a lower version than its features need is refused by the schema of that version."""
    lower = cdi.VERSIONS[cdi.VERSIONS.index(entry["minimum"]) - 1]
    document = json.loads(cdi.encode(cdi.decode((CORPUS / entry["file"]).read_bytes()), format="json"))
    document["cdiVersion"] = lower
    assert not _validator(lower).is_valid(document)
    document["cdiVersion"] = entry["minimum"]
    assert _validator(entry["minimum"]).is_valid(document)


@pytest.mark.parametrize("entry", [each for each in BROKEN if not each["text"]], ids=_name)
def test_broken_files_are_refused_where_a_schema_can_see_it(entry: dict[str, Any]) -> None:
    """What is wrong with the shape is refused; what only a comparison shows is left to the library."""
    document = yaml.safe_load((CORPUS / entry["file"]).read_bytes())
    version = document.get("cdiVersion", "0.5.0")
    schema = _validator(version if version in cdi.VERSIONS else cdi.VERSIONS[-1])
    assert schema.is_valid(document) is not entry["shape"]


_NODE = {"path": "/dev/a"}


@pytest.mark.parametrize(
    ("version", "edits", "fits"),
    [
        pytest.param("0.3.0", {"env": ["A=b"]}, True, id="env"),
        pytest.param("0.3.0", {"env": ["A"]}, False, id="env-no-value"),
        pytest.param("0.3.0", {"env": ["=b"]}, False, id="env-no-name"),
        pytest.param("0.3.0", {"env": []}, False, id="nothing-changed"),
        pytest.param("0.3.0", {"deviceNodes": [_NODE]}, True, id="node"),
        pytest.param("0.3.0", {"deviceNodes": [{}]}, False, id="node-without-path"),
        pytest.param("0.3.0", {"deviceNodes": [{"path": ""}]}, False, id="node-with-empty-path"),
        pytest.param("0.4.0", {"deviceNodes": [{**_NODE, "hostPath": "/dev/b"}]}, False, id="host-path-0.4.0"),
        pytest.param("0.5.0", {"deviceNodes": [{**_NODE, "hostPath": "/dev/b"}]}, True, id="host-path-0.5.0"),
        pytest.param("0.3.0", {"deviceNodes": [{**_NODE, "permissions": "none"}]}, True, id="permissions-none"),
        pytest.param("0.3.0", {"deviceNodes": [{**_NODE, "permissions": "rx"}]}, False, id="permissions-rx"),
        pytest.param("0.3.0", {"deviceNodes": [{**_NODE, "type": "d"}]}, False, id="type-d"),
        pytest.param("0.3.0", {"deviceNodes": [{**_NODE, "uid": -1}]}, False, id="uid-negative"),
        pytest.param("0.3.0", {"deviceNodes": [{**_NODE, "uid": 2**32}]}, False, id="uid-too-large"),
        pytest.param("0.3.0", {"deviceNodes": [{**_NODE, "major": 2**63}]}, False, id="major-too-large"),
        pytest.param("0.3.0", {"mounts": [{"hostPath": "/a", "containerPath": "/b"}]}, True, id="mount"),
        pytest.param(
            "0.3.0", {"mounts": [{"hostPath": "/a", "containerPath": "/b", "type": "bind"}]}, False, id="type-0.3.0"
        ),
        pytest.param("0.6.0", {"additionalGids": [44]}, False, id="groups-0.6.0"),
        pytest.param("0.7.0", {"additionalGids": [44]}, True, id="groups-0.7.0"),
        pytest.param("0.6.0", {"intelRdt": {}}, False, id="rdt-0.6.0"),
        pytest.param("0.7.0", {"intelRdt": {}}, True, id="rdt-0.7.0"),
        pytest.param("0.7.0", {"intelRdt": {"closID": "/"}}, True, id="root-class"),
        pytest.param("0.7.0", {"intelRdt": {"closID": ".."}}, False, id="class-dots"),
        pytest.param("0.7.0", {"intelRdt": {"closID": "..."}}, True, id="class-three-dots"),
        pytest.param("0.7.0", {"intelRdt": {"closID": "a/b"}}, False, id="class-with-slash"),
        pytest.param("1.0.0", {"intelRdt": {"schemata": []}}, False, id="schemata-1.0.0"),
        pytest.param("1.1.0", {"intelRdt": {"schemata": []}}, True, id="schemata-1.1.0"),
        pytest.param("1.0.0", {"netDevices": [{"hostInterfaceName": "a", "name": "b"}]}, False, id="net-1.0.0"),
        pytest.param("1.1.0", {"netDevices": [{"hostInterfaceName": "a", "name": "b"}]}, True, id="net-1.1.0"),
        pytest.param("1.1.0", {"netDevices": [{"hostInterfaceName": "a"}]}, False, id="net-without-name"),
    ],
)
def test_schema_and_library_agree_about_edits(version: str, edits: dict[str, Any], fits: bool) -> None:
    """For a rule that concerns one place, the schema of a version and the library give the same verdict."""
    document = {"cdiVersion": version, "kind": "v/c", "devices": [{"name": "d", "containerEdits": edits}]}
    assert _validator(version).is_valid(document) is fits
    try:
        cdi.validate(cdi.decode(json.dumps(document).encode()))
    except cdi.CDIError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(
    ("version", "kind", "name", "fits"),
    [
        ("0.3.0", "v/c", "d", True),
        ("0.4.0", "v/c", "0", False),
        ("0.5.0", "v/c", "0", True),
        ("0.5.0", "v/c", "0:1", True),
        ("0.5.0", "v/c", "0:", False),
        ("0.5.0", "v/c", "d\n", False),
        ("0.5.0", "v/c.d", "d", False),
        ("0.6.0", "v/c.d", "d", True),
        ("0.3.0", "v.w/c", "d", True),
        ("0.3.0", "v", "d", False),
        ("0.3.0", "v/", "d", False),
        ("0.3.0", "1/c", "d", False),
        ("0.3.0", "v/c\n", "d", False),
    ],
)
def test_schema_and_library_agree_about_names(version: str, kind: str, name: str, fits: bool) -> None:
    """Vendors, classes and device names follow one grammar, which newer versions loosen."""
    document = {"cdiVersion": version, "kind": kind, "devices": [{"name": name, "containerEdits": {"env": ["A=b"]}}]}
    assert _validator(version).is_valid(document) is fits
    assert (not list(cdi.problems(cdi.decode(json.dumps(document).encode())))) is fits


def test_fields_carry_their_meaning() -> None:
    """An editor that shows the schema's descriptions explains every field."""
    schema = cdi.json_schema(cdi.VERSIONS[-1])
    for definition in (schema, *schema["$defs"].values()):
        for name, field in definition["properties"].items():
            assert field.get("description"), name
