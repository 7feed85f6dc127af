"""A JSON Schema per version of CDI, for editors and for drivers in other languages.

Nothing is listed here that another module knows: fields, types and their meaning come from the structs of ``spec``, and
the version that added a field or loosened a rule is found by asking ``version`` about a spec that uses only that. So a
field added there appears here, in the right versions.

A schema sees the shape only: that two devices share a name or that two interfaces of one device clash takes
`draht.cdi.validate`. It is stricter than reading in one way: YAML written by hand may leave the quotes of a string
out (``name: 0``), which CDI accepts and a schema takes for a number.
"""

from __future__ import annotations

import re
import textwrap
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from draht.cdi.errors import CDIError
from draht.cdi.names import DEVICE_NAME, QUALIFIER
from draht.cdi.spec import ContainerEdits, Device, DeviceNode, Hook, IntelRdt, Mount, NetDevice, Spec
from draht.cdi.validate import DEVICE_TYPES, HOOK_NAMES, NO_PERMISSIONS
from draht.cdi.version import VERSIONS, minimum_version, normalize

__all__ = ["json_schema"]

JSONSchema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REQUIRED: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Spec: ("cdiVersion", "kind", "devices"),
    Device: ("name", "containerEdits"),
    DeviceNode: ("path",),
    NetDevice: ("hostInterfaceName", "name"),
    Hook: ("hookName", "path"),
    Mount: ("hostPath", "containerPath"),
}


def json_schema(version: str) -> JSONSchema:
    """The JSON Schema (draft 2020-12) of a spec that says ``cdiVersion: <version>``, as builtin values.

    Unknown fields are refused, and so are fields that came after the version.

    Raises:
        CDIError: There is no such version; the hint lists those there are.
    """
    version = normalize(version)
    if version not in VERSIONS:
        raise CDIError(f"there is no CDI version {version!r}", hint=f"one of {', '.join(VERSIONS)}")
    definitions: dict[str, JSONSchema] = {}
    root = _object(Spec, version, definitions)
    return {
        "$schema": _DIALECT,
        "$id": f"urn:draht:cdi:{version}",
        "title": f"CDI spec, version {version}",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def _object(struct: type[msgspec.Struct], version: str, definitions: dict[str, JSONSchema]) -> JSONSchema:
    """The schema of a struct; the structs it holds are added to the definitions."""
    texts = _attribute_texts(struct)
    hints = get_type_hints(struct, include_extras=True)
    properties: dict[str, JSONSchema] = {}
    for field in msgspec.structs.fields(struct):
        if not _has(struct, field.name, version):
            continue
        described: JSONSchema = {"description": texts[field.name]} if field.name in texts else {}
        refined = _refinement(struct, field.encode_name, version)
        properties[field.encode_name] = {**described, **_type(hints[field.name], version, definitions), **refined}
    result: JSONSchema = {"type": "object", "additionalProperties": False, "properties": properties}
    if struct in _REQUIRED:
        result["required"] = list(_REQUIRED[struct])
    return result


def _type(annotation: Any, version: str, definitions: dict[str, JSONSchema]) -> JSONSchema:
    """The schema of a field's type. None stands for "left out", which a schema says by not requiring the field."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        limits = {"minimum": arguments[1].ge, "maximum": arguments[1].le}
        return {**_type(arguments[0], version, definitions), **limits}
    if origin is Union or type(None) in arguments:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _type(inner, version, definitions)
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0], version, definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], version, definitions)}
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        name = annotation.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object(annotation, version, definitions)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": {str: "string", int: "integer", bool: "boolean"}[annotation]}


def _whole(pattern: str) -> JSONSchema:
    # Not `$`: it matches before a last line break in Python, and schemas are read by many languages.
    return {"pattern": rf"^(?:{pattern})(?![\s\S])"}


def _refinement(struct: type[msgspec.Struct], name: str, version: str) -> JSONSchema:
    """What the validator asks of a field beyond its type."""
    match struct.__name__, name:
        case "Spec", "cdiVersion":
            return {"enum": [version, f"v{version}"]}
        case "Spec", "kind":
            qualifier = QUALIFIER.pattern
            class_ = qualifier if _allows(Spec(kind="v/c.c"), version) else qualifier.replace(".", "")
            return _whole(f"(?:{qualifier})/(?:{class_})")
        case "Spec", "devices":
            return {"minItems": 1}
        case "Device", "name":
            digits = _allows(Spec(devices=(Device(name="0"),)), version)
            return _whole(DEVICE_NAME.pattern if digits else f"(?![0-9])(?:{DEVICE_NAME.pattern})")
        case "Device", "containerEdits":
            return {"anyOf": [_used(field.encode_name) for field in _fields(ContainerEdits, version)]}
        case "DeviceNode", "type":
            return {"enum": sorted(DEVICE_TYPES)}
        case "DeviceNode", "permissions":
            return _whole(f"[rwm]*|{NO_PERMISSIONS}")
        case ("DeviceNode", "major") | ("DeviceNode", "minor"):
            return {"minimum": 0}
        case "Hook", "hookName":
            return {"enum": sorted(HOOK_NAMES)}
        case ("ContainerEdits", "env") | ("Hook", "env"):
            return {"items": {"type": "string", "pattern": "^[^=]+="}}
        case "IntelRdt", "closID":
            return {"maxLength": 4095, **_whole(r"/|(?!\.{1,2}(?![\s\S]))[^/\n]*")}
        case "DeviceNode" | "Hook" | "Mount" | "NetDevice", _ if name in _REQUIRED[struct]:
            return {"minLength": 1}
    return {}


def _used(name: str) -> JSONSchema:
    """An object that has this member, and something in it where it is a list."""
    member: JSONSchema = {} if name == "intelRdt" else {"minItems": 1}
    return {"required": [name], "properties": {name: member}}


def _fields(struct: type[msgspec.Struct], version: str) -> list[msgspec.structs.FieldInfo]:
    return [field for field in msgspec.structs.fields(struct) if _has(struct, field.name, version)]


def _allows(spec: Spec, version: str) -> bool:
    return VERSIONS.index(minimum_version(spec)) <= VERSIONS.index(version)


def _has(struct: type[msgspec.Struct], name: str, version: str) -> bool:
    """Whether a version knows a field: whether it allows a spec that uses this field and nothing else."""
    return _allows(_spec_of(struct(**{name: _sample(get_type_hints(struct)[name])})), version)


def _sample(annotation: Any) -> Any:
    """A value of a type that differs from what a field holds when it is left out."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Union or type(None) in arguments:
        return _sample(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return (_sample(arguments[0]),)
    if origin is dict:
        return {"a": "a"}
    return {str: "a", int: 1, bool: True}[annotation] if annotation in (str, int, bool) else annotation()


def _spec_of(part: msgspec.Struct) -> Spec:
    """A spec that holds one struct and is empty otherwise."""
    match part:
        case Spec():
            return part
        case Device():
            return Spec(devices=(part,))
        case ContainerEdits():
            return Spec(container_edits=part)
        case DeviceNode():
            return _spec_of(ContainerEdits(device_nodes=(part,)))
        case NetDevice():
            return _spec_of(ContainerEdits(net_devices=(part,)))
        case Hook():
            return _spec_of(ContainerEdits(hooks=(part,)))
        case Mount():
            return _spec_of(ContainerEdits(mounts=(part,)))
        case IntelRdt():
            return _spec_of(ContainerEdits(intel_rdt=part))
    raise AssertionError(f"{type(part).__name__} is not part of a spec")


def _attribute_texts(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Field name → its sentence in the docstring's ``Attributes:``; nothing where docstrings are stripped."""
    section = textwrap.dedent((struct.__doc__ or "").partition("Attributes:\n")[2])
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?=\w)", "\n" + section):
        name, colon, text = entry.strip().partition(":")
        if colon:
            texts[name] = re.sub(r"\s+", " ", text).replace("`", "").strip()
    return texts
