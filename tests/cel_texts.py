"""Literals for generated expressions: extreme numbers, odd strings, and texts that the libraries read.

Owns the pools only; which literal goes where is the generator's choice. All texts are synthetic.
"""

from __future__ import annotations

import random
from typing import Final

__all__ = ["KINDS", "STRICT", "literal", "text_literal"]

INTS: Final = (
    ["0", "1", "2", "3", "5", "7", "10", "47", "48", "49", "100", "-1", "-2", "-7", "0x1F", "-0x10", "1000000"] * 3
    + ["9223372036854775807", "-9223372036854775808", "-9223372036854775807", "4611686018427387904"]
    + ["2147483648", "4294967296", "9007199254740993", "-9007199254740993", "253402300800", "-62135596801"]
)
UINTS: Final = ["0u", "1u", "2u", "3u", "7u", "10u", "0x1Fu", "100U"] * 3 + [
    "18446744073709551615u",
    "9223372036854775808u",
    "9223372036854775807u",
    "9007199254740993u",
]
DOUBLES: Final = (
    ["0.0", "1.0", "2.0", "0.5", "-0.5", "1.5", "3.0", "10.0", "-1.0", "100.25", ".5", "1e3", "1E-3", "2.5e+2"] * 2
    + ["-0.0", "1e308", "-1e308", "1e-320", "5e-324", "9223372036854775807.0", "9223372036854775808.0", "1e19"]
    + ["9007199254740993.0", "0.1", "0.30000000000000004", "123456789.987654321", "1e21", "1e20", "1e-7"]
    + ["-9223372036854775808.0", "-9223372036854777856.0", "18446744073709551615.0", "2.5", "3.5", "-2.5"]
)
WORDS: Final = ["", "a", "b", "ab", "abc", "A", "x1", "fish", "bird", "H100", "gpu", "A100-SXM4", "some_value"]
ODD: Final = [
    "é",
    "日本",
    "😀a",
    "ÄÖ",
    " a ",
    "\t",
    "a,b,c",
    "a b",
    "x.y-z",
    "\u00a0",
    "ß",
    "e\u0301",
    "%",
    "%s",
    '"',
    "'",
    "\\",
    "\n",
    "a\x00b",
    "\ufeff",
    "\U0010ffff",
    "\u0130",
    "\u017f",
    "\u2028",
]
NUMERIC: Final = ["0", "1", "-1", "+1", "007", "1.5", "-0", "1e3", "0x10", " 1", "1 ", "NaN", "Inf", "-inf", "Infinity"]
NUMERIC_LONG: Final = [
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1_0",
]
BOOLEANS: Final = ["true", "false", "True", "TRUE", "t", "f", "T", "0", "1", "yes", "tRue", "False"]

KINDS: Final[dict[str, list[str]]] = {
    "word": WORDS + WORDS + ODD,
    "number": NUMERIC + NUMERIC_LONG + BOOLEANS,
    "quantity": [
        *("1", "0", "-1", "1Ki", "1Mi", "1.5Gi", "80Gi", "1e3", "1E3", "1E", "1k", "1000m", "100m", "1u", "1n", ".5"),
        *("5.", "+1", "0.1", "12e2", "1e-3", "9223372036854775807", "9223372036854775808", "1Ei", "8Ei", "-8Ei"),
        *(
            "1ki",
            "1K",
            "",
            "Mi",
            "1 Mi",
            "1.0.0",
            "0.000000000000001",
            "1e100",
            "--1",
            "1e3Mi",
            "100000000000000000000",
        ),
    ],
    "semver": [
        *("1.0.0", "0.0.1", "1.2.3", "2.0.0", "10.1.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-rc.1", "1.0.0+build"),
        *("v1.0.0", "1.0", "1", "v1", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-0a", "1.2.3.4", "", "a.b.c", " 1.0.0"),
        *("18446744073709551615.0.0", "18446744073709551616.0.0", "9223372036854775808.1.1", "570.86.15", "1.0.0-a+b"),
        *("v01.002.3", "1.0-alpha", "1+b", "1.0.0 ", "1.00.0"),
    ],
    "ip": [
        *("127.0.0.1", "10.0.0.1", "0.0.0.0", "255.255.255.255", "169.254.1.1", "224.0.0.1", "192.168.0.1", "8.8.8.8"),
        *("::1", "::", "fe80::1", "ff02::1", "2001:db8::1", "2001:DB8::abcd", "::ffff:10.0.0.1", "fe80::1%eth0"),
        *("1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "", "localhost", "2001:db8:0:0:0:0:0:1", "::1.2.3.4", "1:2"),
        *("224.0.1.1", "ff01::1", "10.1.2.3", "0:0:0:0:0:ffff:0102:0304"),
    ],
    "cidr": [
        *("10.0.0.0/8", "10.0.0.1/24", "0.0.0.0/0", "192.168.0.0/16", "127.0.0.1/32", "::/0", "2001:db8::/32"),
        *("fe80::/10", "::1/128", "10.0.0.0/33", "10.0.0.0", "10.0.0.0/08", "/8", "", "::ffff:10.0.0.0/104", "a/b"),
        *("2001:db8::1/64", "10.0.0.0/-1", "10.0.0.0/+8", "fe80::1%eth0/64", "10.1.2.3/25"),
    ],
    "url": [
        *(
            "https://example.com",
            "https://example.com:80/path?k=v",
            "http://user@host/p%20q?a=1&a=2&b",
            "/path",
            "path",
        ),
        *("https://[::1]:80/", "https://[::1%25eth0]/", "", "http://", "mailto:a@b", "http://a b", "http://h/?q=%zz"),
        *(
            "HTTP://EXAMPLE.com/A",
            "https://h:port/",
            "file:///x",
            "http://h/a/../b",
            "//h/p",
            "http://h#frag",
            ":x",
            "*",
        ),
        *("http://h/?a=1;b=2", "http://h/%2f%2F?x=%41+b&x", "http://ü.de/ü", "https://example.com/#a?b", "http://h?="),
    ],
    "regex": [
        *(
            "a",
            "[a-z]+",
            "^a.*b$",
            "[^a]?sym",
            "(a|b)*",
            "\\d+",
            "^$",
            "",
            "(?i)H100",
            "a{2,3}",
            ".",
            "\\w+-\\w+",
            "[0-9]*",
        ),
        *(
            "(",
            "[",
            "a**",
            "(?P<n>a)",
            "\\p{L}+",
            "x{1001}",
            "\\bA",
            "(?s).",
            "a+?",
            "\\pN",
            "[[:alpha:]]+",
            "(?=a)",
            "\\1",
        ),
        *("é", "[^\\x00-\\x7f]", "(a+)+$", "\\Qa.b\\E", "\\C", "$^", "(?-i)a|b|"),
    ],
    "duration": [
        *(
            "1s",
            "0s",
            "1h",
            "1m",
            "1h30m",
            "1.5s",
            "-1s",
            "100ms",
            "1us",
            "1ns",
            "1µs",
            "0",
            "+1s",
            "1h1s1m",
            ".5h",
            "1d",
        ),
        *(
            "",
            "s",
            "1",
            "9223372036s",
            "9223372037s",
            "2540400h",
            "-2562047h47m16.854775808s",
            "1.h",
            "87600h",
            "315576000000s",
        ),
    ],
    "timestamp": [
        *(
            "2020-01-01T00:00:00Z",
            "1970-01-01T00:00:00Z",
            "2021-03-28T00:59:59Z",
            "2023-12-31T23:00:00.25Z",
            "2024-02-29T23:59:59.999999999Z",
            "0001-01-01T00:00:00Z",
        ),
        *("9999-12-31T23:59:59Z", "2020-06-15T12:30:45+02:00", "2020-06-15T12:30:45.5-07:30", "0000-01-01T00:00:00Z"),
        *("2020-01-01", "2020-13-01T00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01t00:00:00z", "", "1583020800"),
        *("10000-01-01T00:00:00Z", "2021-02-29T00:00:00Z", "2020-01-01T00:00:60Z", "2020-01-01 00:00:00Z"),
    ],
    # No names of zones but UTC: draht reads no data base of time zones (see test_differential).
    "zone": [
        *("UTC", "+02:00", "-07:30", "02:00", "", "+05:30", "-00:00", "+23:59", "+25:00", "5:30", "-12:00", "+00:01"),
        *("Mars/X", "Z", "+0530", "+1:2", "-1:-5", "+1:2:3", ":", "1:", "x:1", "99999999999999999999:0", "+99:99"),
    ],
    "format": [
        *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "labelValue"),
        *("dns1123SubdomainPrefix", "dns1035LabelPrefix", "uri", "uuid", "byte", "date", "datetime", "nope", ""),
    ],
    "formatted": [
        *(
            "my-label",
            "my.sub.domain",
            "-a",
            "a-",
            "A",
            "a_b",
            "prefix/name",
            "a/b/c",
            "",
            "a" * 64,
            "a" * 63,
            "a.b",
            "1a",
        ),
        *(
            "123e4567-e89b-12d3-a456-426614174000",
            "123E4567E89B12D3A456426614174000",
            "aGVsbG8=",
            "aGVsbG8",
            "2021-01-01",
        ),
        *(
            "2021-13-01",
            "2021-01-01T00:00:00Z",
            "2021-01-01T00:00:00.123+01:00",
            "http://a/b",
            "a b",
            "my-prefix-",
            "é",
            ".",
        ),
        *("2021-1-1", "2021-01-01t00:00:00z", "a..b", "_a", "a=", "====", "AAAA", "AA==", "/x", "a.", "a\n"),
    ],
    "printf": [
        *(
            "%s",
            "%d",
            "%f",
            "%.2f",
            "%e",
            "%x",
            "%X",
            "%b",
            "%o",
            "%%",
            "a%sb",
            "%s-%d",
            "%",
            "%.3e",
            "%.d",
            "%q",
            "%.30f",
        ),
        *("%5s", "%s%s", "", "%.0f", "%.", "%d%%", "é%s", "%.1s", "%-3d"),
    ],
}

STRICT: Final = frozenset({"duration", "timestamp"})
"""Kinds whose bad literals the compiler refuses."""


def literal(rng: random.Random, kind: str) -> str:
    """A literal of an ``int``, ``uint``, ``double``, ``bool``, ``bytes`` or ``null``."""
    match kind:
        case "int":
            return rng.choice(INTS) if rng.random() < 0.995 else "9223372036854775808"
        case "uint":
            return rng.choice(UINTS) if rng.random() < 0.995 else "18446744073709551616u"
        case "double":
            return rng.choice(DOUBLES) if rng.random() < 0.995 else "1e400"
        case "bool":
            return rng.choice(["true", "false"])
        case "bytes":
            return rng.choice(["b", "B"]) + text_literal(rng, "word", octal=True)
        case _:
            return "null"


def text_literal(rng: random.Random, kind: str, *, octal: bool = False) -> str:
    """A string literal: a text of the kind, or of another, in one of the many ways to write it."""
    pool = KINDS[kind] if rng.random() < (0.97 if kind in STRICT else 0.93) else rng.choice(list(KINDS.values()))
    # The good ones come first: a bad one makes an error of everything around it, or is refused at once.
    place = rng.random() ** (14.0 if kind in STRICT else 1.6)
    return _written(rng, pool[int(len(pool) * place)], octal=octal)


def _written(rng: random.Random, text: str, *, octal: bool) -> str:
    style = rng.random()
    quote = rng.choice(['"', '"', "'"])
    if style < 0.05 and quote not in text and not text.endswith("\\") and "\n" not in text and "\r" not in text:
        return rng.choice("rR") + quote + text + quote
    if style < 0.08:
        triple = quote * 3
        escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
        return triple + escaped + triple
    escapes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", quote: "\\" + quote}
    out = []
    for character in text:
        code = ord(character)
        if style < 0.15 and rng.random() < 0.5 and code < 0x110000:
            out.append(_escape(rng, code, octal=octal))
        else:
            out.append(escapes.get(character, character))
    return quote + "".join(out) + quote


def _escape(rng: random.Random, code: int, *, octal: bool) -> str:
    if code < 256 and rng.random() < 0.6:
        return rng.choice([f"\\x{code:02x}", f"\\X{code:02X}", f"\\{code:03o}"])
    if octal and code > 127:
        return chr(code)  # bytes literals have no escapes for code points
    return f"\\u{code:04x}" if code < 0x10000 and rng.random() < 0.8 else f"\\U{code:08x}"
