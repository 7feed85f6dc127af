"""Expressions that call the functions of Kubernetes' libraries with generated arguments.

Owns what is put into the templates. The arguments are chosen near the edges: offsets around the ends of a string, texts
that are almost an address, a URL, a pattern. Everything is a literal, so an expression tells its whole case.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["literal", "make"]

_PLACE: Final = re.compile(r"\{([a-z_0-9]+)\}")
_LETTERS: Final = "aabbcA éß€𝄞\n\"'\\%\u017fK"


def literal(text: str) -> str:
    """A string literal."""
    out = []
    for character in text:
        code = ord(character)
        if character in "'\\":
            out.append("\\" + character)
        elif 0x20 <= code < 0x7F:
            out.append(character)
        else:
            out.append(f"\\U{code:08x}")
    return "'" + "".join(out) + "'"


def make(rng: random.Random, template: str) -> str:
    """An expression of the template with arguments of its own."""
    return _PLACE.sub(lambda match: _MAKERS[match[1]](rng), template)


def _text_of(rng: random.Random, letters: str, most: int) -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, most)))


def _text(rng: random.Random) -> str:
    return literal(_text_of(rng, _LETTERS, 9))


def _part(rng: random.Random) -> str:
    return literal(_text_of(rng, "aabbcé€", 2))


def _space(rng: random.Random) -> str:
    return literal(_text_of(rng, " \t\n\v\f\r\x1c\x1f\x85\xa0\u1680\u2003\u2028\u200b\u3000\ufeff", 3))


def _index(rng: random.Random) -> str:
    if rng.random() < 0.04:
        return rng.choice(["9223372036854775807", "-9223372036854775808", "1000001", "4294967296"])
    return str(rng.randint(-2, 10))


def _integer(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(["9223372036854775807", "-9223372036854775808", "9007199254740993"])
    return str(rng.randint(-5, 1000))


def _double(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(
            ["double('NaN')", "double('inf')", "double('-inf')", "-0.0", "0.0", "1e300", "5e-324", "0.15", "2.5", "0.5"]
        )
    number = rng.choice([rng.uniform(-10, 10), rng.uniform(-1e9, 1e9), 10 ** rng.uniform(-12, 25), rng.randint(-5, 5)])
    return repr(float(number))


_SCALARS: Final[tuple[Callable[[random.Random], str], ...]] = (
    lambda rng: str(rng.randint(-3, 3)),
    lambda rng: f"{rng.randint(0, 3)}u",
    _double,
    lambda rng: rng.choice(["true", "false"]),
    lambda rng: literal(_text_of(rng, "ab", 2)),
    lambda rng: "b" + literal(_text_of(rng, "ab", 2)),
    lambda rng: f"duration('{rng.randint(-3, 3)}s')",
    lambda rng: f"timestamp('000{rng.randint(1, 3)}-01-01T00:00:00Z')",
)


def _value(rng: random.Random) -> str:
    if rng.random() < 0.25:
        return rng.choice(
            [
                "null",
                "int",
                "[]",
                "{}",
                "[1]",
                "{'a': 1}",
                "quantity('1')",
                "quantity('0')",
                "ip('1.1.1.1')",
                "cidr('10.0.0.0/8')",
                "semver('1.0.0')",
                "url('http://a')",
                "format.date()",
                "optional.none()",
                "optional.of(1)",
                "''",
                "b''",
                "'NaN'",
                "'Infinity'",
                "timestamp('2024-02-29T12:34:56.789+01:00')",
                "duration('1h1m1.000000001s')",
            ]
        )
    return rng.choice(_SCALARS)(rng)


def _list(rng: random.Random) -> str:
    scalar = rng.choice(_SCALARS)
    return f"[{', '.join(scalar(rng) for _ in range(rng.randint(0, 5)))}]"


def _keys(rng: random.Random) -> str:
    # No doubles: upstream can't find NaN again, and no bytes: it can't hash them.
    scalar = rng.choice([_SCALARS[0], _SCALARS[1], _SCALARS[3], _SCALARS[4]])
    return f"[{', '.join(scalar(rng) for _ in range(rng.randint(0, 5)))}]"


def _mixed(rng: random.Random) -> str:
    return f"[{', '.join(f'dyn({_value(rng)})' for _ in range(rng.randint(0, 4)))}]"


def _doubles(rng: random.Random) -> str:
    return f"[{', '.join(_double(rng) for _ in range(rng.choice([0, 1, 3, 5, 14, 30])))}]"


def _texts(rng: random.Random) -> str:
    return f"[{', '.join(literal(_text_of(rng, 'abé€', 3)) for _ in range(rng.randint(0, 5)))}]"


def _long_list(rng: random.Random) -> str:
    count = rng.choice([2, 12, 13, 14, 20, 49, 50, 51, 60, 120])
    numbers = [rng.randrange(rng.choice([3, 10, 1000])) for _ in range(count)]
    shape = rng.random()
    if shape < 0.2:
        numbers.sort()
    elif shape < 0.4:
        numbers.sort(reverse=True)
    elif shape < 0.5:
        numbers = sorted(numbers)
        numbers[rng.randrange(count)] = rng.randrange(1000)
    return f"[{', '.join(map(str, numbers))}]"


def _nested(rng: random.Random) -> str:
    scalar = rng.choice(_SCALARS)
    if rng.random() < 0.3:
        return rng.choice(
            ["[[[1]], [[2, 3]]]", "[dyn([1, 2]), dyn(3), dyn([dyn([4]), dyn(5)])]", "[[]]", "[[[]], []]", "[]"]
        )
    inner = (f"[{', '.join(scalar(rng) for _ in range(rng.randint(0, 3)))}]" for _ in range(rng.randint(0, 3)))
    return f"[{', '.join(inner)}]"


def _map(rng: random.Random) -> str:
    key, value = rng.choice([_SCALARS[0], _SCALARS[1], _SCALARS[3], _SCALARS[4]]), rng.choice(_SCALARS)
    if rng.random() < 0.5:
        entries = {f"'{name}'": value(rng) for name in rng.sample("abc", rng.randint(0, 3))}
    else:
        entries = {key(rng): value(rng) for _ in range(rng.randint(0, 2))}
    return f"{{{', '.join(f'{name}: {item}' for name, item in entries.items())}}}"


def _anything(rng: random.Random) -> str:
    return rng.choice([_value, _list, _mixed, _texts, _nested, _map, _text])(rng)


def _clause(rng: random.Random) -> str:
    precision = ""
    if rng.random() < 0.3:
        precision = rng.choice([".", ".0", ".1", ".2", ".10", ".05", ".60", ".256", ".32768", ".65535", ".10000010"])
    return f"%{precision}{rng.choice('sdfebxXo' if rng.random() < 0.9 else '%qgcé')}"


def _format(rng: random.Random) -> str:
    parts = [rng.choice([_clause(rng), "a", "é", "%%"]) for _ in range(rng.randint(0, 4))]
    return literal("".join(parts) + rng.choice(["", "", "", "", "%", "%.", "%.5"]))


def _number_format(rng: random.Random) -> str:
    precision = rng.choice(["", f".{rng.randint(0, 12)}", f".{rng.randint(0, 70000)}"])
    return literal(f"%{precision}{rng.choice('fe')}")


_ATOM_TEXTS: Final = r"""
    a b c é . ^ $ \b \B \A \z \d \D \w \W \s \S \. \_ \x41 \x{e9} \x{110000} \101 \8 \1 \C \Z \é \ \n \q \pL \pN \PL
    \pl \p{Greek} \p{greek} \p{^Lu} \P{^Lu} \p{Letter} \p{LC} \p{ASCII} \P{ascii} \p{Any} \p{Han} \p{
    \p{} \pé \P{a-n_y} [ab] [^a] [a-c] [c-a] []a] [^]a] [a [] [[:alpha:]] [[:^digit:]] [[:nope:]] [\d] [\pL\d]
    [\p{ascii}é] [^\P{LC}] [a-] [-a] [\]] [\Qa\E] [[a] [a&&b] \Qa.b\E \Q( \Q\E (?i) (?s) (?m) (?U) (?i-s) (?-) (?x)
    (?P<n>a) (?<n>b) (?P<é>a) (?<1>a) (?P<>a) (?P<n (?: ( ) (?=a) (?!a) (?P=n) (?>a) | { }
    a{1000} [ab]{1000}
"""
_ATOMS: Final = tuple(_ATOM_TEXTS.split())
_REPEATS: Final = (
    "*", "+", "?", "*?", "+?", "??", "**", "{2}", "{1,}", "{0,2}", "{2,1}", "{1001}", "{,2}", "{2}?",
    "{2}{2}", "{01}", "{0}", "{1,2",
)  # fmt: skip


_PLAIN: Final = 17
"""How many atoms every pattern may have."""
_GREEDY: Final = 6


def _pattern(rng: random.Random) -> str:
    return literal(_regexp(rng, 2))


def _regexp(rng: random.Random, depth: int) -> str:
    plain = rng.random() < 0.7
    parts = []
    for _ in range(rng.randint(0 if depth < 2 else 1, 4)):
        atom = rng.choice(_ATOMS[:_PLAIN] if plain else _ATOMS)
        if depth and rng.random() < 0.25:
            opening = rng.choice(["(", "(?:", "(?i:", "(?P<name>", "(?<name>"])
            atom = f"{opening}{_regexp(rng, depth - 1)}|{_regexp(rng, depth - 1)})"
        if rng.random() < 0.3:
            atom += rng.choice(_REPEATS[:_GREEDY] if plain else _REPEATS)
        parts.append(atom)
    return "".join(parts)


def _subject(rng: random.Random) -> str:
    return literal(_text_of(rng, "aabbcABé€Ω1 \n_\u017fK", 12))


def _mutated(rng: random.Random, text: str, letters: str) -> str:
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(["", rng.choice(letters)]) + text[at + rng.randrange(2) :]
    return text


_ADDRESS_TEXTS: Final = """
    :: ::1 fe80::1 fe80::1%eth0 ::ffff:1.2.3.4 ::1.2.3.4 1::1.2.3.4 ff02::1 ff12::1 2001:db8:: ::ffff:0:0 127.0.0.1
    169.254.1.1 224.0.0.1 224.0.1.1 255.255.255.255 0.0.0.0 febf::1 fec0::1 ff01::1 1:2:3:4:5:6:7:8
    1:2:3:4:5:6:1.2.3.4 10.1.2.3
"""
_ADDRESSES: Final = ("", *_ADDRESS_TEXTS.split())


def _address_text(rng: random.Random) -> str:
    if rng.random() < 0.35:
        text = ".".join(rng.choice(["0", "1", "10", "127", "169", "224", "254", "255", "256", "01"]) for _ in range(4))
    elif rng.random() < 0.4:
        groups = [
            rng.choice(["0", "1", "ff02", "fe80", "FE80", "00a", "abcd", "ffff"]) for _ in range(rng.randint(1, 8))
        ]
        text = ":".join(groups)
        if rng.random() < 0.6:
            at = rng.randint(0, len(groups))
            text = ":".join(groups[:at]) + "::" + ":".join(groups[at:])
    else:
        text = rng.choice(_ADDRESSES)
    return _mutated(rng, text, "0123456789abf:.%/ é") if rng.random() < 0.3 else text


def _prefix_text(rng: random.Random) -> str:
    length = rng.choice(["0", "8", "16", "24", "32", "33", "64", "128", "129", "08", "+8", "-1", "", " 8", "1e1"])
    text = f"{_address_text(rng)}/{length}"
    return _mutated(rng, text, "0123456789/.:") if rng.random() < 0.2 else text


_URLS: Final = (
    "https://example.com:8443/a/b?x=1&y=2#frag",
    "http://user:pa%20ss@host/p%2Fq?a=b;c&d=%zz&e=f+g",
    "http://[::1]:80/",
    "http://[fe80::1%25en0]/x",
    "http://[1.2.3.4]/",
    "http://a:80:90/",
    "custom://a:80:90/",
    "/path/only?q#f",
    "//host/path",
    "///path",
    "mailto:a@b.c",
    "http://",
    "http:",
    "http:/a",
    "http:///a",
    "HTTP://EXAMPLE.com/%41%e2%82%ac",
    "http://ho%41st/",
    "http://h%c3%a9/",
    "http://a/%ff?%ff=%fe",
    "http://a b/",
    "http://a/ b?c d#e f",
    "*",
    "",
    "a:b",
    "1a:b",
    "a/b:c",
    "?",
    "/a?",
    "/a??",
    "http://a?b",
    "http://a#b?c",
    "http://u@/",
    "http://@h",
    "http://u:p:q@h",
    "http://[::1",
    "http://x[::1]",
    "http://a/(b)!'*[c]",
    "http://a/b%",
    "http://a/b%4",
    "http://a/\x7f",
)


def _url(rng: random.Random) -> str:
    return literal(_mutated(rng, rng.choice(_URLS), "%:/?#[]@!$&'()*+,;= <>\"{}|\\^`az09é"))


def _quantity(rng: random.Random) -> str:
    number = rng.choice(["0", "1", "1.5", "1.0", "-3", "+2", "0.001", "9223372036854775807", "80", "1e3", "12E6", ".5"])
    suffix = rng.choice(["", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e2"])
    return literal(_mutated(rng, number + suffix, "0123456789.+-eEkKMGi ") if rng.random() < 0.2 else number + suffix)


def _version(rng: random.Random) -> str:
    text = ".".join(
        rng.choice(["0", "1", "2", "10", "01", "18446744073709551615"]) for _ in range(rng.choice([1, 2, 3, 3, 3]))
    )
    text = rng.choice(["", "", "v"]) + text + rng.choice(["", "", "-rc.1", "-01", "-a", "+b", "-a.b+c"])
    return literal(_mutated(rng, text, "0123456789.-+v ") if rng.random() < 0.2 else text)


_FORMAT_NAMES: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
    "dns1035LabelPrefix", "labelValue", "uuid", "byte", "date", "datetime", "nope",
)  # fmt: skip


def _name(rng: random.Random) -> str:
    text = rng.choice(
        ["a", "a-b", "a.b", "A", "-a", "a-", "1a", "a/b", "a.b/c", "/a", "a/", "a/b/c", "", "é-", "a_b", "."]
    )
    text = text * rng.choice([1, 1, 1, 1, 62, 63, 64, 130])
    return literal(_mutated(rng, text, "aA1-._/ é"))


def _uuid(rng: random.Random) -> str:
    text = rng.choice(["6BA7B810-9dad-11d1-80b4-00c04fd430c8", "6ba7b8109dad11d180b400c04fd430c8", ""])
    return literal(_mutated(rng, text, "0aF-g\u017fK"))


def _base64(rng: random.Random) -> str:
    return literal(_mutated(rng, rng.choice(["", "YQ==", "YWI=", "YWJj", "a+/9", "YWJjYQ=="]), "aZ9+/=-_ \n"))


def _moment(rng: random.Random) -> str:
    date = rng.choice(["2024-02-29", "2023-02-29", "0000-02-29", "2024-12-31", "2024-13-01", "1900-02-29", "24-1-1"])
    time = rng.choice(
        ["", "", "T12:34:56Z", "t23:59:59.5z", "T24:00:00Z", "T12:34:56+01:00", "T12:34:56", "T12:34:56Ztx"]
    )
    return literal(_mutated(rng, date + time, "0129-:TZ.+ "))


_MAKERS: Final[Mapping[str, Callable[[random.Random], str]]] = {
    "text": _text,
    "part": _part,
    "space": _space,
    "index": _index,
    "integer": _integer,
    "double": _double,
    "bool": lambda rng: rng.choice(["true", "false"]),
    "value": _value,
    "list": _list,
    "keys": _keys,
    "mixed": _mixed,
    "doubles": _doubles,
    "texts": _texts,
    "long_list": _long_list,
    "divisor": lambda rng: str(rng.choice([1, 2, 3, 7, 20, 60])),
    "nested": _nested,
    "map": _map,
    "anything": _anything,
    "format": _format,
    "number_format": _number_format,
    "pattern": _pattern,
    "subject": _subject,
    "address": lambda rng: literal(_address_text(rng)),
    "prefix": lambda rng: literal(_prefix_text(rng)),
    "url": _url,
    "quantity": _quantity,
    "version": _version,
    "format_name": lambda rng: literal(rng.choice(_FORMAT_NAMES)),
    "name": _name,
    "uuid": _uuid,
    "base64": _base64,
    "moment": _moment,
}
