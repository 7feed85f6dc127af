"""Texts that no expression should be: deep, long, broken, or all three. Each has at most 10 KiB."""

from __future__ import annotations

__all__ = ["DEEP", "HOSTILE"]

_LIMIT = 10 * 1024


def _filled(before: str, core: str, after: str) -> str:
    count = (_LIMIT - len(core)) // (len(before) + len(after))
    return before * count + core + after * count


DEEP = {
    "parentheses": "(" * 249 + "1" + ")" * 249,
    "lists": "[" * 249 + "1" + "]" * 249,
    "maps": "{1:" * 249 + "1" + "}" * 249,
    "logic in calls": "!f(a||a&&" * 249 + "a" + ")" * 249,
    "filters in filters": "[1].map(x,true," * 249 + "1" + ")" * 249,
    "filters of filters": "[1]" + ".map(x,x)" * 249,
    "sum": "1" + "+1" * 250,
    "fields": "device" + ".a" * 250,
    "choices": "true?1:" * 249 + "1",
    "optional in optional": "x.optMap(v," * 249 + "1" + ")" * 249,
    "long and": "&&".join(["true"] * 1700),
    "long list": "[" + ",".join(["1"] * 5000) + "]",
    "long map": "{" + ",".join(f"{n}:1" for n in range(1400)) + "}",
    "long string": '"' + "a" * 10_000 + '"',
}
"""As deep and as long as the language allows."""

HOSTILE = {
    **DEEP,
    "only opening": "(" * _LIMIT,
    "only closing": ")" * _LIMIT,
    "too deep": _filled("(", "1", ")"),
    "too deep brackets": _filled("[", "1", "]"),
    "too deep calls": _filled("f(", "1", ")"),
    "too deep maps": _filled("{1:", "1", "}"),
    "mixed opening": "([{" * (_LIMIT // 3),
    "wrong closing": "(]" * (_LIMIT // 2),
    "many nots": "!" * 10_000 + "a",
    "many minuses": "-" * 10_000 + "1",
    "many dots": "." * _LIMIT,
    "many commas": "[" + "," * 10_000 + "]",
    "many question marks": "?" * _LIMIT,
    "many colons": ":" * _LIMIT,
    "many quotes": '"' * _LIMIT,
    "many single quotes": "'" * _LIMIT,
    "many triple quotes": '"""\'' * (_LIMIT // 4),
    "unclosed string": '"' + "a" * 10_000,
    "unclosed triple string": '"""' + '""a' * 3_000,
    "unclosed raw string": "r'" + "\\" * 10_000,
    "backslashes": '"' + "\\" * 10_000 + '"',
    "broken escapes": '"\\q"' * 2_500,
    "many broken lines": "'a\n" * 3_000,
    "back quotes": "`" * _LIMIT,
    "long number": "1" * _LIMIT,
    "long double": "1." + "1" * 10_000,
    "long exponent": "1e" + "9" * 10_000,
    "long hexadecimal": "0x" + "f" * 10_000,
    "long name": "a" * _LIMIT,
    "long sum": "1" + "+1" * 5_000,
    "long relation": "1" + "<1" * 5_000,
    "long fields": "a" + ".a" * 5_000,
    "long indices": "a" + "[0]" * 3_000,
    "long choices": "a?1:" * 2_500 + "1",
    "long thens": "a?" * 5_000 + "1",
    "comments": "//" * 5_000,
    "spaces": " " * _LIMIT,
    "nothing": "",
    "control characters": "".join(map(chr, range(32))) * 300,
    "all bytes": "".join(map(chr, range(256))) * 40,
    "surrogate": 'device.driver == "\ud800"',
    "surrogates": "\udfff" * 10_000,
    "astral": "😀" * 10_000,
    "right to left": "\u202e" * 10_000,
    "zero bytes": "\x00" * _LIMIT,
    "doubling macros": "a" + ".optMap(x,x)" * 240,
    "doubling macros of tests": "a.?b" + ".optFlatMap(x,x.?y)" * 200,
    "errors everywhere": "[" + "=," * 5_000 + "1]",
    "reserved words": "[" + ",".join(["if"] * 3_000) + "]",
    "message names": "a.b.c." * 1_500 + "d{",
    "message in message": "a{b:" * 2_500,
    "operators": "+*/-<>=!&|?:" * 850,
    "keywords": "in true false null " * 500,
    "doubled signs": "a=b" * 3_000,
}
