"""The short cuts for specs without surprises; None for everything they can't be sure about.

Owns the proof that a JSON text means the same to a JSON decoder as to the node decoder, which costs about a tenth of
decoding nodes; plain block YAML comes here as JSON by way of ``block``. The proof rests on four observations:

- Without backslashes and with printable ASCII only, a JSON string has one spelling, and it is its own meaning in YAML.
- Every quote then belongs to a key or to a string. The struct, written again, has exactly as many quotes as the text
  if and only if nothing was lost on the way: no key that appears twice, no field that was left out when writing.
- The JSON decoder with these types takes no text for a number, no number for a text, no unknown field and nothing out
  of range. What it refuses is decoded as nodes, which also finds the words for it.
- In YAML a key must be at most 1024 characters long and its colon on the same line; a text with a quote and then blanks
  before a colon, or with a very long key, is left to the node decoder.

``tests/cdi/test_differential.py`` compares both with the node decoder on every generated text.
"""

from __future__ import annotations

import re

import msgspec

from draht.api.yaml import MAX_BYTES
from draht.cdi import block
from draht.cdi.spec import Spec

__all__ = ["decode"]

_PLAIN = bytes(sorted({*range(0x20, 0x7F), 0x0A, 0x0D} - {ord("\\")}))
_DISTANT_COLON = re.compile(rb'"[ \r\n]+:')
_LONG = 1000

_to_spec = msgspec.json.Decoder(Spec).decode
_to_builtins = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes) -> Spec | None:
    """The spec in a JSON or YAML text, if that is certain to be what the node decoder finds."""
    if len(data) > MAX_BYTES or data.translate(None, _PLAIN):
        return None
    if not data.startswith(b"{"):
        text = block.to_json(data.decode("ascii"))
        if text is None:
            return None
        data = text.encode()
    if _DISTANT_COLON.search(data) is not None:
        return None
    try:
        spec = _to_spec(data)
        quotes = data.count(b'"')
        # Fields written out with their default value are lost in the struct, but not in builtin values.
        if _encode(spec).count(b'"') != quotes and _encode(_to_builtins(data)).count(b'"') != quotes:
            return None
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if _has_long_key(spec) else spec


def _has_long_key(spec: Spec) -> bool:
    """Only the keys of annotations can be of any length; those of fields are known."""
    annotations = [spec.annotations, *(device.annotations for device in spec.devices)]
    return any(len(key) > _LONG for part in annotations for key in part)
