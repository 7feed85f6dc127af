"""CDI specs written down: the many forms a text may have, oddities in it, and damage to its bytes.

Owns the step from a value of ``cdi_cases`` to bytes. Everything comes from one `random.Random`, so a seed is a text.
"""

from __future__ import annotations

import json
import random
from typing import Any

from cdi_cases import Value
from draht.api import yaml

__all__ = ["mutate", "spec_text"]


class Raw(str):
    """A scalar that is written as it stands, with its quotes, tags and mistakes."""

    __slots__ = ()


ODD_SCALARS = (
    *("~", "null", "Null", "", "yes", "No", "on", "true", "TRUE", "y", "'yes'", '"true"', "''", '""', "!!bool yes"),
    *("0", "-0", "+5", "007", "08", "0o17", "0O17", "0x1F", "0X1f", "0b101", "-0b101", "0b-11", "0o-7", "-0o7", "0b+1"),
    *("1_000", "_1", "1__0", "0x_1F", "1.0", "1.9", "-1.9", "-0.5", ".5", "5.", "1e3", "1E3", "1e400", ".1_0", "+.5"),
    *("4294967295", "4294967296", "-1", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
    *("-9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e18", "1e19", "1e20", "-1e20", "-1e19"),
    *(".inf", "-.inf", "+.Inf", ".nan", "1:30", "2020-01-01", "2020-1-1T1:1:1Z", "2001-12-14 21:59:43", "12e03", "."),
    *('"1"', "'1'", "!!int '7'", '!!int "0x7"', "!!int 7.5", "!!float 7", "!!float 7.9", "!!str 7", "! 7", "! '7'"),
    *("!!null ''", "!!null ~", "!!null x", "!!null 1", "!!timestamp 2020-01-01", "!custom 7", "!!binary NQ==", "!!str"),
    *(
        "!!binary aGk=",
        "!!binary a",
        "!!binary aGk",
        "!!binary ''",
        "!!binary //4=",
        "!!merge <<",
        "<<",
        "'<<'",
        "=",
        "!",
    ),
    *("!!str null", "!!str ~", "!!map x", "!!seq x", "&a x", "*a", "a: b", "a #b", "a#b", "'it''s'", '"\\x41\\u00e9"'),
    *('"\\ud83d\\ude00"', '"\\/"', '"\\q"', '"\\e"', '"a\\\n  b"', "- x", "? x", "%x", "@x", "`x", "|", ">", "é", "🙂"),
    *("[]", "{}", "[x]", "{x: y}", "[[]]", "[~]", "{~: x}", "{<<: {}}", "*unknown", "!!set {x}", "[x, ]", "{x}", "{,}"),
)


def spec_text(rng: random.Random, value: Value) -> bytes:
    """A spec in one of the many forms that a text may have."""
    form = rng.random()
    if form < 0.25:
        return json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 0, 2, 4))).encode()
    if form < 0.4:
        return json.dumps(value, separators=(",", ":")).encode()
    if form < 0.6:
        return yaml.dump(value, explicit_start=rng.random() < 0.5).encode()
    if rng.random() < 0.45:
        value = with_oddities(rng, value)
    text = _Writer(rng).document(value).encode("utf-8", "surrogatepass")
    if rng.random() < 0.02:
        text = rng.choice((text.decode().encode("utf-16"), b"\xef\xbb\xbf" + text, text.replace(b"\n", b"\r\n")))
    return text


def with_oddities(rng: random.Random, value: Value) -> Value:
    """A value with one part replaced by something odd, doubled, or moved to another level."""
    places: list[tuple[Any, Any]] = []

    def walk(part: Value) -> None:
        for key in part if isinstance(part, dict) else range(len(part)):
            places.append((part, key))
            if isinstance(part[key], (dict, list)):
                walk(part[key])

    value = json.loads(json.dumps(value))
    walk(value)
    for _ in range(rng.randint(1, 2)):
        if not places:
            break
        part, key = rng.choice(places)
        if rng.random() < 0.75:
            part[key] = Raw(rng.choice(ODD_SCALARS))
        elif isinstance(part, dict):
            change = rng.choice((str.upper, lambda k: k + " ", lambda _: Raw("~"), lambda k: Raw(f"!!str {k}"), repr))
            part[change(key)] = part.get(key)
            if rng.random() < 0.7:
                part.pop(key, None)
    return value


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A text with a few bytes changed, taken away, doubled or put elsewhere."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((1, 1, 2, 8, 30)))
        action = rng.randrange(6)
        if action == 0:
            del text[at:to]
        elif action == 1:
            text[at:at] = rng.choice(
                (b" ", b"\n", b"\t", b'"', b"'", b":", b": ", b"- ", b",", b"#", b" #", b"{", b"]", b"&a ")
            )
        elif action == 2:
            text[at:at] = rng.choice(
                (b"*a", b"!!int ", b"! ", b"|\n", b">-\n", b"<<: ", b"%", b"---\n", b"...\n", b"? ", b"~")
            )
        elif action == 3:
            text[at:to] = bytes((rng.choice((0, 7, 0x20, 0x7F, 0x80, 0xC3, 0xFF, rng.randrange(256))),))
        elif action == 4:
            text[at:at] = text[at:to]
        else:
            text[at:to] = str(rng.choice(ODD_SCALARS)).encode()
    return bytes(text)


class _Writer:
    """Writes values as YAML in random styles: flow and block, quotes, tags, comments, anchors, merges."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.anchors: list[tuple[str, Value]] = []

    def document(self, value: Value) -> str:
        rng = self.rng
        start = rng.choice(
            ("", "", "---\n", "# comment\n", "%YAML 1.1\n---\n", "--- # x\n", "\n\n", "%YAML 1.2\n---\n")
        )
        end = rng.choice(("", "", "\n", "\n...\n", "\n---\n", "\n---\nx: y\n", "\n...\n# @", " # end", "\n  \n"))
        return start + self.block(value, 0).lstrip("\n") + end

    def block(self, value: Value, indent: int) -> str:
        rng = self.rng
        if not isinstance(value, (dict, list)) or not value or rng.random() < 0.12:
            return " " + self.flow(value) + self.comment()
        pad = " " * indent
        prefix = self.prefix(value)
        lines = [prefix] if prefix else []
        if isinstance(value, list):
            for item in value:
                step = rng.choice((2, 2, 2, 4))
                text = self.block(item, indent + step)
                if step == 2 and rng.random() < 0.8:
                    # The first key on the line of the dash.
                    text = text.replace("\n" + " " * (indent + step), " ", 1) if text.startswith("\n  ") else text
                lines.append(f"{pad}-{text}")
        else:
            for key, item in self.entries(value):
                step = rng.choice((2, 2, 2, 4, 0 if isinstance(item, list) and indent == 0 else 2))
                lines.append(f"{pad}{self.key(key)}:{self.block(item, indent + step)}")
        head = f" {lines.pop(0)}" if prefix else ""
        return head + "\n" + "\n".join(lines)

    def entries(self, value: dict[Any, Value]) -> list[tuple[Any, Value]]:
        entries = list(value.items())
        rng = self.rng
        if rng.random() < 0.03:
            rng.shuffle(entries)
        if len(entries) > 1 and rng.random() < 0.02:
            moved = dict([entries.pop(rng.randrange(len(entries)))])
            entries.insert(rng.randrange(len(entries) + 1), (Raw("<<"), rng.choice((moved, [moved], [moved, {}]))))
        if rng.random() < 0.01:
            entries.append(rng.choice(entries) if entries else (Raw("~"), None))
        maps = [name for name, anchored in self.anchors if isinstance(anchored, dict)]
        if maps and rng.random() < 0.03:
            entries.append((Raw("<<"), Raw(f"*{rng.choice(maps)} ")))
        return entries

    def flow(self, value: Value) -> str:
        rng = self.rng
        for name, anchored in self.anchors:
            if anchored == value and type(anchored) is type(value) and rng.random() < 0.3:
                return f"*{name} "
        prefix = self.prefix(value)
        prefix += " " if prefix else ""
        space = rng.choice(("", " "))
        if isinstance(value, dict):
            inner = ", ".join(f"{self.key(key)}: {self.flow(item)}" for key, item in self.entries(value))
            return f"{prefix}{{{space}{inner}{space}}}"
        if isinstance(value, list):
            return f"{prefix}[{space}{', '.join(map(self.flow, value))}{space}]"
        return prefix + self.scalar(value)

    def prefix(self, value: Value) -> str:
        rng = self.rng
        if rng.random() < 0.04 and not isinstance(value, Raw):
            name = rng.choice("abc")
            self.anchors = [pair for pair in self.anchors if pair[0] != name] + [(name, value)]
            return f"&{name}"
        if rng.random() < 0.01:
            return rng.choice(
                ("!!map", "!!seq", "!!str", "!", "!x", "!!null", "!!int", "!!binary", "!<tag:yaml.org,2002:str>")
            )
        return ""

    def key(self, key: Any) -> str:
        if isinstance(key, Raw):
            return str(key)
        return self.scalar(key) if self.rng.random() < 0.1 else str(key) if key and ":" not in key else json.dumps(key)

    def scalar(self, value: Value) -> str:
        rng = self.rng
        if isinstance(value, Raw):
            return str(value)
        if not isinstance(value, str):
            return json.dumps(value)
        style = rng.random()
        plain = value.replace("/", "").replace("-", "").replace("_", "").replace("=", "").replace(".", "").isalnum()
        if style < 0.5 and plain and value[0] not in "-=":
            return value
        if style < 0.7 and "\n" not in value:
            return "'" + value.replace("'", "''") + "'"
        return json.dumps(value, ensure_ascii=rng.random() < 0.5)

    def comment(self) -> str:
        return self.rng.choice(("", "", "", "", " # comment", "   "))
