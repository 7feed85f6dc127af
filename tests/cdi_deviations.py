"""Where `draht.cdi` deliberately differs from the Go library v1.1.2, as data: for the comparisons and for docs/cdi.md.

A difference that none of these explains fails the comparison. `explains` decides from the input and both answers, as
narrowly as it can; it is None where the generated cases can't meet the difference (then it has a test of its own).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from draht.api import yaml
from draht.cdi.nodes import compose
from oracle_client import Oracle

__all__ = ["DEVIATIONS", "Deviation", "explained", "first_document"]


class Deviation(NamedTuple):
    """One deliberate difference.

    Attributes:
        name: Short, for reports.
        ours: What draht does.
        theirs: What the Go library does.
        reason: Why the difference is kept.
        explains: Whether it explains different verdicts on a spec's text.
    """

    name: str
    ours: str
    theirs: str
    reason: str
    explains: Callable[[bytes, Oracle, Callable[[bytes], Any]], bool] | None = None


def first_document(data: bytes) -> bytes | None:
    """A text up to where its first document ends, if there is more after it; None if there is not, or none ends."""
    for cut in (data, *(data[: found.start()] for found in _NOT_TEXT.finditer(data))):
        try:
            if compose(cut, source="") is None:
                continue
        except Exception:  # noqa: BLE001 - whatever is wrong with it, the next cut may be better
            continue
        # The shortest beginning with the same nodes is what both sides are asked about.
        for end in sorted({found.start() for found in _ENDS.finditer(cut)}):
            if 0 < end < len(cut) and data[end:].strip() and _same(cut[:end], cut):
                return cut[:end]
        return cut if len(cut) < len(data) else None
    return None


def _same(part: bytes, whole: bytes) -> bool:
    try:
        return _shape(part) == _shape(whole)
    except Exception:  # noqa: BLE001 - a beginning that is no text at all
        return False


def _shape(data: bytes) -> list[tuple[Any, ...]]:
    return [
        (type(event), getattr(event, "value", None), getattr(event, "tag", None), getattr(event, "anchor", None))
        for event in yaml.first_document_events(data)
    ]


_NOT_TEXT = re.compile(rb"[^\t\n\r\x20-\x7e]")
_ENDS = re.compile(rb"(?<=[\]}\"'])[^\]}]|\n(?=---|\.\.\.|\S)|\Z")


def _text_after(data: bytes, oracle: Oracle, ours: Callable[[bytes], Any]) -> bool:
    document = first_document(data)
    if document is None:
        return False
    return bool(oracle.call("cdi.parse", data=document)["accepted"] == ours(document)["accepted"])


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "text after the first document",
        "is not read; only bytes that are no text at all (control characters, broken UTF-8) within libyaml's buffer "
        "of 16 KiB are still met",
        "is read two tokens and up to 512 bytes ahead, so a mistake there counts or doesn't by its distance",
        "nothing depends on it that a person would call a spec",
        _text_after,
    ),
    Deviation(
        "a tag directly before a comma or bracket in a flow collection",
        "the tag ends there (libyaml since 0.2.5)",
        "the comma or bracket belongs to the tag",
        "no spec carries such a tag; reading it otherwise would take a scanner of our own",
        lambda data, _oracle, _ours: re.search(rb"[\s\[{,:]![^\s]*[,\[\]{}]", data) is not None,
    ),
    Deviation(
        "!!binary that isn't UTF-8",
        "is refused",
        "is decoded to a string of bytes",
        "neither the OCI spec nor an environment variable in it can carry it: JSON is Unicode",
        lambda data, _oracle, ours: "not the base64 of UTF-8" in ours(data).get("error", ""),
    ),
    Deviation(
        "minimum version",
        "counts host paths and mount types of all devices",
        "counts them in the last device only, by a mistake in a loop (specs-go v1.1.1, requiresV040 and requiresV050)",
        "a writer must not claim a version that older readers then fail on; *validation* is as lenient as upstream's",
    ),
    Deviation(
        "null in a list of objects",
        "is refused when the text is decoded, with line and column",
        "is decoded, then refused, or crashes the program where the minimum version is computed",
        "the verdict is the same and nobody crashes",
    ),
    Deviation(
        "an alias to a value that contains it",
        "is refused wherever it is",
        "is only noticed where the value is decoded, not under a null key or a key that a merge passes over",
        "such a value has no meaning anywhere",
        lambda data, _oracle, ours: "refers to a value that contains it" in ours(data).get("error", ""),
    ),
    Deviation(
        "more than 50 unquoted texts inside brackets that end in a colon",
        "are refused: libyaml takes the colon for a mistake, and each is mended by another reading",
        "are texts",
        "a bound on the work for one file",
        lambda data, _oracle, ours: "found unexpected ':'" in ours(data).get("error", ""),
    ),
    Deviation(
        "bounds",
        "texts above 8 MiB, 100 levels or a million values (aliases expanded) are refused",
        "has no bound on size, and on aliases one that grows with the text",
        "bad input must not take memory or time without bound",
    ),
    Deviation(
        "a directory that can't be read",
        "is recorded; the others are read",
        "ends the scan: the directories after it are not read",
        "one broken thing never hides another",
    ),
    Deviation(
        "a FIFO or device named like a spec",
        "is recorded as an error and not opened",
        "is opened, which waits for ever on a FIFO",
        "as above",
    ),
    Deviation(
        "a failed injection",
        "leaves the runtime spec unchanged",
        "leaves it half edited where a device node fails",
        "the caller may go on without the device",
    ),
    Deviation(
        "requests in annotations",
        "come in the order of their keys",
        "come in random order",
        "the same request must give the same container",
    ),
)


def explained(data: bytes, oracle: Oracle, ours: Callable[[bytes], Any]) -> Deviation | None:
    """The deviation that explains different verdicts on a text; None if there is none, or they don't differ."""
    if oracle.call("cdi.parse", data=data)["accepted"] == ours(data)["accepted"]:
        return None
    for deviation in DEVIATIONS:
        if deviation.explains is not None and deviation.explains(data, oracle, ours):
            return deviation
    return None
