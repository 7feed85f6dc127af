"""CDI requests in container annotations: how a Kubernetes device plugin tells the runtime what to inject.

Owns the two text forms: a key ``cdi.k8s.io/<plugin>_<device id>`` and a value of qualified names joined by commas. The
rules are those of the Go library's ``pkg/cdi/annotations.go`` v1.1.2, which reads annotations in no particular order;
here they are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from draht.cdi.errors import AnnotationError, DeviceNameError
from draht.cdi.names import is_qualified_name, parse_qualified_name

__all__ = [
    "ANNOTATION_PREFIX",
    "AnnotatedDevices",
    "annotation_key",
    "annotation_value",
    "parse_annotations",
    "update_annotations",
]

ANNOTATION_PREFIX = "cdi.k8s.io/"
"""What the key of every CDI request starts with."""

_MAX_NAME = 63
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")


class AnnotatedDevices(NamedTuple):
    """The requests found in annotations.

    Attributes:
        keys: The keys that hold requests, sorted.
        devices: The requested names, in the order of the keys and within a value as written; repeated if asked twice.
    """

    keys: tuple[str, ...]
    devices: tuple[str, ...]


def annotation_key(plugin: str, device_id: str) -> str:
    """The key for one allocation of a plugin (by convention ``vendor.class``); ``/`` in the id becomes ``_``.

    Raises:
        AnnotationError: Either is empty, together they are longer than 63 bytes, or a character isn't allowed.
    """
    if not plugin or not device_id:
        raise AnnotationError(f"the {'device id' if plugin else 'plugin'} is empty")
    name = f"{plugin}_{device_id.replace('/', '_')}"
    if len(name.encode()) > _MAX_NAME:
        raise AnnotationError(f"{name!r} is longer than {_MAX_NAME} characters", hint="use a shorter device id")
    if _NAME.fullmatch(name) is None:
        raise AnnotationError(
            f"{name!r} can't be part of an annotation key",
            hint="it starts and ends with a letter or digit, and has letters, digits, '_', '-', '.' between",
        )
    return ANNOTATION_PREFIX + name


def annotation_value(devices: Iterable[str]) -> str:
    """The value that requests these devices.

    Raises:
        AnnotationError: One is not a qualified name.
    """
    names = list(devices)
    for name in names:
        try:
            parse_qualified_name(name)
        except DeviceNameError as error:
            raise AnnotationError(error.message, hint=error.hint) from None
    return ",".join(names)


def update_annotations(
    annotations: Mapping[str, str] | None, plugin: str, device_id: str, devices: Iterable[str]
) -> dict[str, str]:
    """A copy of the annotations with one more request.

    Raises:
        AnnotationError: As `annotation_key` and `annotation_value`, or the key is there already.
    """
    key = annotation_key(plugin, device_id)
    updated = dict(annotations or {})
    if key in updated:
        raise AnnotationError(f"the annotation {key} is there already", hint="use another device id")
    updated[key] = annotation_value(devices)
    return updated


def parse_annotations(annotations: Mapping[str, str]) -> AnnotatedDevices:
    """All requests in a container's annotations; other annotations are ignored.

    Raises:
        AnnotationError: A request holds something that isn't a qualified name; then none of them counts.
    """
    keys = sorted(key for key in annotations if key.startswith(ANNOTATION_PREFIX))
    devices: list[str] = []
    for key in keys:
        for name in annotations[key].split(","):
            if not is_qualified_name(name):
                raise AnnotationError(
                    f"{name!r} is not a qualified device name",
                    where=key,
                    hint="write names as vendor/class=name, separated by commas without blanks",
                )
            devices.append(name)
    return AnnotatedDevices(tuple(keys), tuple(devices))
