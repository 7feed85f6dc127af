"""Which version of `resource.k8s.io` a server speaks, and what of a write changes on the way to an older one.

Owns the choice (v1, else v1beta2, v1beta1, and v1alpha3 for taint rules) and the rewriting of partial objects, which
`draht.api.conversion` can't do because it works on whole ones. Everything else of draht sees v1 only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from draht.api.conversion import Version
from draht.api.kinds import KINDS, identity
from draht.kube.errors import KubeError
from draht.kube.kinds import Kind

__all__ = ["GROUP", "candidates", "downgrade", "is_converted", "wire_model"]

GROUP = "resource.k8s.io"
_VERSIONS: tuple[Version, ...] = ("v1", "v1beta2", "v1beta1", "v1alpha3")


def is_converted(kind: Kind[Any]) -> bool:
    """Whether draht converts objects of this kind: those of `GROUP` that are structs of v1."""
    return kind.api_version == f"{GROUP}/v1" and kind.is_struct


def candidates(kind: Kind[Any]) -> tuple[Version, ...]:
    """The versions in which draht knows a kind of `GROUP`, newest first."""
    name = identity(kind.model)[1]
    return tuple(version for version in _VERSIONS if (f"{GROUP}/{version}", name) in KINDS)


def wire_model(kind: Kind[Any], version: str) -> Any:
    """What objects of a kind are decoded to when a server speaks a version of its group."""
    if not is_converted(kind) or version == kind.version:
        return kind.model
    return KINDS[f"{GROUP}/{version}", identity(kind.model)[1]]


def downgrade(kind: Kind[Any], version: str, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A partial object of v1, such as a merge patch, in a version.

    Only v1beta1 has other shapes: requests are flat, and devices wrapped. Lists are replaced as a whole by patches, so
    their items can be rewritten one by one.
    """
    if version != "v1beta1":
        return part
    for steps, rule in _RULES.get(kind.plural, ()):
        part = _at(part, steps, rule)
    return part


def refuse_paths(kind: Kind[Any], version: str, operations: Any) -> None:
    """Check that a JSON patch touches nothing that has another place in a version.

    Raises:
        KubeError: It does.
    """
    if version != "v1beta1":
        return
    for steps, _ in _RULES.get(kind.plural, ()):
        root = "/" + "/".join(steps)
        for operation in operations:
            for pointer in (str(operation.get("path", "")), str(operation.get("from", ""))):
                if pointer and (pointer.startswith(root) or root.startswith(f"{pointer}/")):
                    raise KubeError(
                        f"{pointer} has another place in {GROUP}/{version}, which is what the server speaks",
                        where=kind.plural,
                        hint="use a merge patch",
                    )


_Item = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _request(request: Mapping[str, Any]) -> Mapping[str, Any]:
    exactly = request.get("exactly") or {}
    return {name: value for name, value in request.items() if name != "exactly"} | exactly


def _device(device: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": device.get("name", ""), "basic": {name: value for name, value in device.items() if name != "name"}}


_RULES: dict[str, tuple[tuple[tuple[str, ...], _Item], ...]] = {
    "resourceslices": ((("spec", "devices"), _device),),
    "resourceclaims": ((("spec", "devices", "requests"), _request),),
    "resourceclaimtemplates": ((("spec", "spec", "devices", "requests"), _request),),
}


def _at(part: Mapping[str, Any], steps: tuple[str, ...], rule: _Item) -> Mapping[str, Any]:
    step, *below = steps
    value = part.get(step)
    if not below and isinstance(value, list | tuple):
        return {**part, step: [rule(item) for item in value]}
    if below and isinstance(value, Mapping):
        return {**part, step: _at(value, tuple(below), rule)}
    return part
