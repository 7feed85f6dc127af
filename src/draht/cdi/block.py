"""Plain block YAML, as generators of specs write it, turned into the JSON text of the same meaning.

Owns a reader for a small part of YAML: nested block mappings and sequences, one entry a line, scalars that are plain or
simply quoted. Everything else (comments, anchors, tags, flow collections but the empty ones, text over several lines,
odd indentation, anything that might be null) gives None, and the node decoder reads it. What is left is unambiguous: a
line belongs to the open collection of exactly its indentation, and a scalar's text is all there is to it.

Why: composing nodes takes about four times as long as the Go library takes for the same file, and this about as long.
Of CDI it knows only which fields are numbers; ``quick`` decodes the JSON and finds repeated keys.
"""

from __future__ import annotations

import re

from draht.api.yaml import MAX_DEPTH

__all__ = ["to_json"]

# Plain scalars: no indicator first, and neither ": " nor " #" inside. Groups are atomic so that a line costs the
# same whether it matches or not.
_CHARS = r"[A-Za-z0-9/._+=@%,;()<>^$!?*&~|{}\[\]-]*+"
_LINE = re.compile(
    rf"""^([ ]*+)(?>(-[ ])?)                                   # indentation; start of an item
        (?>(?:([A-Za-z][A-Za-z0-9_./-]{{0,200}}+):(?:[ ]|$))?)  # key
        (?>(?:((?:[A-Za-z0-9/._+]|-(?=[^ \n])){_CHARS}(?>(?:(?::(?=[^ \n])|[ ](?=[^ #:\n])){_CHARS})*))
        |("[^"\\\n]*+"|'[^'"\\\n]*+')                       # quoted without escapes
        |(\{{\}}|\[\]))?)$""",
    re.MULTILINE | re.VERBOSE,
)
_END = ("", "", "", "", "", "")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_NULLS = frozenset(("null", "Null", "NULL", "~"))
_NUMBERS = frozenset(("major", "minor", "fileMode", "uid", "gid", "timeout"))
_NUMBER_LISTS = frozenset(("additionalGids",))
_TRUTHS = frozenset(("enableMonitoring",))


def to_json(text: str) -> str | None:
    """The JSON text of a YAML text, or None if it uses more of YAML than this knows."""
    text = text.removeprefix("---\n")
    lines = _LINE.findall(text)
    if len(lines) != text.count("\n") + 1 or lines.pop() != _END:
        return None
    out: list[str] = []
    outer: list[tuple[int, str, bool]] = []  # what is open around the innermost collection
    indent, close, numbers = -1, "", False  # the innermost: its indentation, its end, whether it is a list of numbers
    pending = ""  # the key whose value begins on the next line
    for spaces, dash, key, plain, quoted, empty in lines:
        at = len(spaces)
        if pending or indent < 0:
            if at < indent or (at == indent and not dash) or (indent < 0 and (at or dash)) or len(outer) > MAX_DEPTH:
                return None  # a null, or a document that isn't a mapping
            outer.append((indent, close, numbers))
            indent, close, numbers = at, "]" if dash else "}", pending in _NUMBER_LISTS
            out.append("[" if dash else "{")
            pending = ""
        else:
            wanted = "]" if dash else "}"
            while indent > at or (indent == at and close != wanted):
                out.append(close)
                indent, close, numbers = outer.pop()
            if indent != at:
                return None
            out.append(",")
        if key:
            if dash:
                outer.append((indent, close, numbers))
                indent, close, numbers = at + 2, "}", False
                out.append("{")
            if key in _NULLS:
                return None
            out.append(f'"{key}":')
        elif not dash:
            return None
        if plain:
            if (key in _NUMBERS) if key else numbers:
                if _INTEGER.fullmatch(plain) is None:
                    return None
                out.append(plain)
            elif plain in _NULLS:
                return None
            else:
                out.append(plain if key in _TRUTHS else f'"{plain}"')
        elif quoted:
            out.append(f'"{quoted[1:-1]}"')
        elif empty:
            out.append(empty)
        elif key:
            pending = key
        else:
            return None
    if pending or indent < 0:
        return None
    out.append(close)
    out.extend(part[1] for part in reversed(outer))
    return "".join(out)
