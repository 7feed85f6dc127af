"""What can be written in a device selector: one rule for each operator, function and macro, with the types it joins.

Owns the table. A rule's text holds ``$(type)`` for an operand and ``$x``, ``$y`` for variables that a macro declares;
``$(bool|x:A)`` is an operand that may use ``$x`` of type A. One upper-case letter stands for any type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["RULES", "Operand", "Rule", "TypeTerm", "parse_type"]

TypeTerm = tuple[str, tuple["TypeTerm", ...]]
"""A type: its name and its parameters."""

COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
CALL, UNARY, PRODUCT, SUM, RELATION, AND, OR, CONDITION = 8, 7, 6, 5, 4, 3, 2, 1


@dataclass(frozen=True, slots=True)
class Operand:
    """A place for an operand: its type, the kind of text that suits, the variables it sees, how tightly it binds."""

    type: TypeTerm
    kind: str | None
    declares: tuple[tuple[str, TypeTerm], ...]
    binding: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to write a value of ``result``; ``parts`` are texts, operands and variables (as ``$x``)."""

    result: TypeTerm
    parts: tuple[str | Operand, ...]
    binding: int
    weight: float


def parse_type(text: str) -> TypeTerm:
    """Reads ``map(string, list(A))``."""
    tokens = re.findall(r"[\w.]+|[(),]", text)

    def one(at: int) -> tuple[TypeTerm, int]:
        name = tokens[at]
        at += 1
        parameters: list[TypeTerm] = []
        if at < len(tokens) and tokens[at] == "(":
            while tokens[at] != ")":
                term, at = one(at + 1)
                parameters.append(term)
            at += 1
        return (name, tuple(parameters)), at

    return one(0)[0]


PLACE: Final = re.compile(r"\$\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)|\$([a-z])")


def _rule(result: str, text: str, binding: int = CALL, weight: float = 1.0) -> Rule:
    parts: list[str | Operand] = []
    at = 0
    places = 0
    for place in PLACE.finditer(text):
        if place.start() > at:
            parts.append(text[at : place.start()])
        at = place.end()
        if place[2]:
            parts.append("$" + place[2])
            continue
        body, *scope = place[1].split("|")
        name, _, kind = body.partition("/")
        declares = tuple(
            (item.split(":")[0], parse_type(item.split(":")[1])) for item in "".join(scope).split(";") if item
        )
        after = text[place.end() : place.end() + 1]
        if binding < CALL:
            tight = binding if places == 0 and binding not in {UNARY, CONDITION} else min(binding + 1, CALL)
            tight = UNARY if binding == UNARY else tight
        else:
            tight = CALL if after in {".", "["} and place.start() == 0 else CONDITION
        places += 1
        parts.append(Operand(parse_type(name), kind or None, declares, tight))
    if at < len(text):
        parts.append(text[at:])
    return Rule(parse_type(result), tuple(parts), binding, weight)


def _rules() -> list[Rule]:
    r = _rule
    rules = [
        # operators
        r("bool", "$(bool) && $(bool)", AND, 6),
        r("bool", "$(bool) || $(bool)", OR, 6),
        r("bool", "!$(bool)", UNARY, 3),
        r("A", "$(bool) ? $(A) : $(A)", CONDITION, 1.5),
        r("bool", "$(A) == $(A)", RELATION, 8),
        r("bool", "$(A) != $(A)", RELATION, 3),
        r("bool", "$(A) in $(list(A))", RELATION, 4),
        r("bool", "$(K) in $(map(K, A))", RELATION, 3),
        r("A", "$(list(A))[$(int)]", CALL, 0.4),
        r("A", "$(map(K, A))[$(K)]", CALL, 0.3),
        r("list(A)", "$(list(A)) + $(list(A))", SUM),
        *(r(t, f"$({t}) + $({t})", SUM, 2) for t in ("int", "uint", "double", "string", "bytes", "duration")),
        *(r(t, f"$({t}) {o} $({t})", SUM if o == "-" else PRODUCT) for t in ("int", "uint", "double") for o in "-*/"),
        *(r(t, f"$({t}) % $({t})", PRODUCT) for t in ("int", "uint")),
        *(r(t, f"-$({t})", UNARY) for t in ("int", "double")),
        r("timestamp", "$(timestamp) + $(duration)", SUM),
        r("timestamp", "$(duration) + $(timestamp)", SUM),
        r("timestamp", "$(timestamp) - $(duration)", SUM),
        r("duration", "$(timestamp) - $(timestamp)", SUM),
        r("duration", "$(duration) - $(duration)", SUM),
        # conversions, size, type
        *(r("int", f"int($({t}))") for t in ("int", "uint", "double", "timestamp", "duration")),
        *(r("uint", f"uint($({t}))") for t in ("int", "uint", "double")),
        *(r("double", f"double($({t}))") for t in ("int", "uint", "double")),
        *(r(t, f"{t}($(string/number))") for t in ("int", "uint", "double", "bool")),
        *(r("string", f"string($({t}))") for t in (*COMPARABLE, "ip", "cidr")),
        r("bool", "bool($(bool))", CALL, 0.3),
        r("bytes", "bytes($(string))"),
        r("bytes", "bytes($(bytes))", CALL, 0.3),
        r("dyn", "dyn($(A))", CALL, 0.5),
        r("type", "type($(A))"),
        r("timestamp", "timestamp($(string/timestamp))", CALL, 4),
        r("timestamp", "timestamp($(int))", CALL, 2),
        r("timestamp", "timestamp($(timestamp))", CALL, 0.3),
        r("duration", "duration($(string/duration))", CALL, 4),
        r("duration", "duration($(duration))", CALL, 0.3),
        *(r("int", f"size($({t}))") for t in ("string", "bytes", "list(A)", "map(K, A)")),
        *(r("int", f"$({t}).size()") for t in ("string", "bytes", "list(A)", "map(K, A)")),
        # timestamps and durations
        *(
            r("int", f"$(timestamp).get{part}({zone})", CALL, 0.4)
            for part in (
                "FullYear",
                "Month",
                "DayOfYear",
                "DayOfMonth",
                "Date",
                "DayOfWeek",
                "Hours",
                "Minutes",
                "Seconds",
            )
            for zone in ("", "$(string/zone)")
        ),
        r("int", "$(timestamp).getMilliseconds()", CALL, 0.4),
        r("int", "$(timestamp).getMilliseconds($(string/zone))", CALL, 0.4),
        *(r("int", f"$(duration).get{part}()", CALL, 0.5) for part in ("Hours", "Minutes", "Seconds", "Milliseconds")),
        # strings
        *(r("bool", f"$(string).{f}($(string))", CALL, 2) for f in ("startsWith", "endsWith", "contains")),
        r("bool", "$(string).matches($(string/regex))", CALL, 3),
        r("bool", "matches($(string), $(string/regex))"),
        r("string", "$(string).charAt($(int))"),
        *(r("int", f"$(string).{f}($(string))") for f in ("indexOf", "lastIndexOf")),
        *(r("int", f"$(string).{f}($(string), $(int))") for f in ("indexOf", "lastIndexOf")),
        *(r("string", f"$(string).{f}()") for f in ("lowerAscii", "upperAscii", "trim")),
        r("string", "$(string).replace($(string), $(string))"),
        r("string", "$(string).replace($(string), $(string), $(int))"),
        r("list(string)", "$(string).split($(string))"),
        r("list(string)", "$(string).split($(string), $(int))"),
        r("string", "$(string).substring($(int))"),
        r("string", "$(string).substring($(int), $(int))"),
        r("string", "$(list(string)).join()"),
        r("string", "$(list(string)).join($(string))"),
        r("string", "$(string/printf).format([$(A)])", CALL, 0.4),
        *(
            r("string", f"'{clause}'.format([$({t})])", CALL, 0.3)
            for clauses, types in (
                (("%s", "<%s>"), (*COMPARABLE, "null", "type", "list(A)", "map(K, A)", "dyn")),
                (("%d", "%d%%"), ("int", "uint", "double", "dyn")),
                (("%f", "%.2f", "%e", "%.9e", "%.0f"), ("double", "int", "uint", "dyn")),
                (("%x", "%X", "%o", "%b"), ("int", "uint", "bool", "string", "bytes", "dyn")),
            )
            for clause in clauses
            for t in types
        ),
        r("string", "'%s, %s'.format([$(A), $(B)])", CALL, 0.5),
        r("string", "$(dyn).format([$(A)])", CALL, 0.2),
        r("string", "$(string/printf).format($(list(A)))", CALL, 0.5),
        r("string", "strings.quote($(string))"),
        r("string", "$(string).find($(string/regex))"),
        r("list(string)", "$(string).findAll($(string/regex))"),
        r("list(string)", "$(string).findAll($(string/regex), $(int))"),
        # lists and sets
        *(r("bool", f"$(list({t})).isSorted()", CALL, 0.4) for t in COMPARABLE),
        *(r(t, f"$(list({t})).{f}()", CALL, 0.6) for t in COMPARABLE for f in ("min", "max")),
        *(r(t, f"$(list({t})).sum()", CALL, 0.6) for t in ("int", "uint", "double", "duration")),
        *(r("int", f"$(list(A)).{f}($(A))") for f in ("indexOf", "lastIndexOf")),
        r("list(A)", "$(list(A)).slice($(int), $(int))"),
        r("list(A)", "$(list(list(A))).flatten()"),
        r("list(dyn)", "$(list(dyn)).flatten($(int))"),
        *(r(f"list({t})", f"$(list({t})).sort()", CALL, 0.4) for t in COMPARABLE),
        *(r("list(A)", f"$(list(A)).sortBy($x, $({t}|x:A))", CALL, 0.3) for t in COMPARABLE),
        r("list(int)", "lists.range($(int/small))"),
        r("list(A)", "$(list(A)).reverse()"),
        r("list(A)", "$(list(A)).distinct()"),
        *(r("bool", f"sets.{f}($(list(A)), $(list(A)))") for f in ("contains", "equivalent", "intersects")),
        r("bool", "$(A).includes($(B))", CALL, 1.5),
        r("bool", "$(list(A)).includes($(A))", CALL, 1.5),
        # macros
        *(r("bool", f"$(list(A)).{f}($x, $(bool|x:A))", CALL, 2) for f in ("all", "exists", "exists_one")),
        r("bool", "$(list(A)).existsOne($x, $(bool|x:A))", CALL, 0.1),
        *(r("bool", f"$(map(K, A)).{f}($x, $(bool|x:K))") for f in ("all", "exists", "exists_one")),
        r("list(B)", "$(list(A)).map($x, $(B|x:A))", CALL, 2),
        r("list(B)", "$(list(A)).map($x, $(bool|x:A), $(B|x:A))"),
        r("list(B)", "$(map(K, A)).map($x, $(B|x:K))"),
        r("list(A)", "$(list(A)).filter($x, $(bool|x:A))", CALL, 2),
        r("list(K)", "$(map(K, A)).filter($x, $(bool|x:K))"),
        *(
            r("bool", f"$({c}).{f}($x, $y, $(bool|x:{k};y:A))")
            for c, k in (("list(A)", "int"), ("map(K, A)", "K"))
            for f in ("all", "exists", "existsOne", "exists_one")
        ),
        *(
            rule
            for c, k in (("list(A)", "int"), ("map(K, A)", "K"))
            for rule in (
                r("list(B)", f"$({c}).transformList($x, $y, $(B|x:{k};y:A))"),
                r("list(B)", f"$({c}).transformList($x, $y, $(bool|x:{k};y:A), $(B|x:{k};y:A))"),
                r(f"map({k}, B)", f"$({c}).transformMap($x, $y, $(B|x:{k};y:A))"),
                r(f"map({k}, B)", f"$({c}).transformMap($x, $y, $(bool|x:{k};y:A), $(B|x:{k};y:A))"),
                r("map(L, B)", f"$({c}).transformMapEntry($x, $y, $(map(L, B)|x:{k};y:A))"),
                r("map(L, B)", f"$({c}).transformMapEntry($x, $y, $(bool|x:{k};y:A), $(map(L, B)|x:{k};y:A))"),
            )
        ),
        r("B", "cel.bind($x, $(A), $(B|x:A))", CALL, 0.6),
        # optionals
        r("optional(A)", "optional.of($(A))", CALL, 2),
        r("optional(A)", "optional.ofNonZeroValue($(A))"),
        r("optional(A)", "optional.none()"),
        r("optional(A)", "$(optional(A)).or($(optional(A)))"),
        r("A", "$(optional(A)).orValue($(A))", CALL, 0.5),
        r("A", "$(optional(A)).value()", CALL, 0.2),
        r("bool", "$(optional(A)).hasValue()", CALL, 2),
        r("optional(A)", "$(list(A))[?$(int)]"),
        r("optional(A)", "$(map(K, A))[?$(K)]"),
        r("optional(A)", "$(optional(list(A)))[?$(int)]", CALL, 0.4),
        r("optional(A)", "$(optional(list(A)))[$(int)]", CALL, 0.4),
        r("optional(A)", "$(optional(map(K, A)))[?$(K)]", CALL, 0.4),
        r("optional(A)", "$(optional(map(K, A)))[$(K)]", CALL, 0.4),
        *(r("optional(A)", f"$(list(A)).{f}()") for f in ("first", "last")),
        r("optional(B)", "$(optional(A)).optMap($x, $(B|x:A))"),
        r("optional(B)", "$(optional(A)).optFlatMap($x, $(optional(B)|x:A))"),
        r("list(A)", "[$(A), ?$(optional(A))]"),
        r("list(A)", "optional.unwrap($(list(optional(A))))", CALL, 0.5),
        r("list(A)", "$(list(optional(A))).unwrapOpt()", CALL, 0.5),
        r("map(K, A)", "{$(K): $(A), ?$(K): $(optional(A))}"),
        # what may be anything
        r("bool", "$(dyn) == $(A)", RELATION, 2),
        r("bool", "$(A) == $(dyn)", RELATION),
        r("bool", "$(dyn) in $(list(A))", RELATION),
        r("bool", "$(A) in $(dyn)", RELATION),
        *(
            r("bool", f"$(dyn) {o} $({t})", RELATION, 0.2)
            for t in ("int", "string", "dyn")
            for o in ("<", "<=", ">", ">=")
        ),
        *(r("dyn", f"$(dyn) {o} $(dyn)", SUM if o in "+-" else PRODUCT) for o in "+-*/%"),
        r("dyn", "-$(dyn)", UNARY),
        r("bool", "!$(dyn)", UNARY, 0.5),
        r("dyn", "$(dyn)[$(dyn)]"),
        r("dyn", "$(dyn).field"),
        r("optional(dyn)", "$(dyn)[?$(dyn)]"),
        r("optional(dyn)", "$(dyn).?field"),
        r("bool", "has($(dyn).field)"),
        r("bool", "has($(map(string, A)).a)"),
        r("A", "$(map(string, A)).a", CALL, 0.1),
        r("optional(A)", "$(map(string, A)).?a"),
        r("optional(A)", "$(optional(map(string, A))).a"),
        r("bool", "has($(optional(map(string, A))).a)"),
        r("bool", "has($(map(string, A)).?a.b)"),
        r("dyn", "$(bool) ? $(dyn) : $(A)", CONDITION),
        r("bool", "$(dyn).all($x, $(bool|x:dyn))"),
        r("dyn", "$(dyn).map($x, $(A|x:dyn))"),
        r("dyn", "$(dyn).filter($x, $(bool|x:dyn))"),
        r("dyn", "$(dyn).transformList($x, $y, $(A|x:dyn;y:dyn))"),
        r("dyn", "$(dyn).transformMap($x, $y, $(A|x:dyn;y:dyn))"),
        # messages and the authorizer, which the environment has without use for them
        *(
            r(t, f"google.protobuf.{name}Value{{value: $({t})}}", CALL, 0.1)
            for name, t in (
                *(("Int64", "int"), ("Int32", "int"), ("UInt64", "uint"), ("UInt32", "uint"), ("Double", "double")),
                *(("Float", "double"), ("Bool", "bool"), ("String", "string"), ("Bytes", "bytes")),
            )
        ),
        r("timestamp", "google.protobuf.Timestamp{seconds: $(int/small)}", CALL, 0.1),
        r("timestamp", "google.protobuf.Timestamp{seconds: $(int/small), nanos: $(int)}", CALL, 0.1),
        r("duration", "google.protobuf.Duration{seconds: $(int), nanos: $(int)}", CALL, 0.1),
        r("duration", "google.protobuf.Duration{?seconds: $(optional(int))}", CALL, 0.1),
        r("dyn", "google.protobuf.Value{number_value: $(double)}", CALL, 0.1),
        r("dyn", "google.protobuf.Value{string_value: $(string)}", CALL, 0.1),
        r("dyn", "google.protobuf.ListValue{values: $(list(dyn))}", CALL, 0.1),
        r("dyn", "google.protobuf.Struct{fields: $(map(string, dyn))}", CALL, 0.1),
        r("dyn", "kubernetes.DRADevice{driver: $(string)}", CALL, 0.1),
        r("bool", "$(dyn).path($(string)).check($(string)).allowed()", CALL, 0.1),
        r("dyn", "$(dyn).group($(string)).resource($(string)).fieldSelector($(string))", CALL, 0.1),
        # quantities and versions
        r("quantity", "quantity($(string/quantity))", CALL, 6),
        r("bool", "isQuantity($(string/quantity))"),
        r("int", "sign($(quantity))", CALL, 0.3),
        r("int", "$(quantity).sign()", CALL, 0.3),
        r("int", "$(quantity).asInteger()"),
        r("bool", "$(quantity).isInteger()"),
        r("double", "$(quantity).asApproximateFloat()"),
        *(r("quantity", f"$(quantity).{f}($({t}))", CALL, 0.7) for f in ("add", "sub") for t in ("quantity", "int")),
        *(
            r("bool", f"$({t}).{f}($({t}))", CALL, 2)
            for t in ("quantity", "semver")
            for f in ("isGreaterThan", "isLessThan")
        ),
        *(r("int", f"$({t}).compareTo($({t}))") for t in ("quantity", "semver")),
        r("semver", "semver($(string/semver))", CALL, 6),
        r("semver", "semver($(string/semver), $(bool))", CALL, 3),
        r("bool", "isSemver($(string/semver))"),
        r("bool", "isSemver($(string/semver), $(bool))"),
        *(r("int", f"$(semver).{f}()") for f in ("major", "minor", "patch")),
        # networks
        r("ip", "ip($(string/ip))", CALL, 5),
        r("ip", "$(cidr).ip()"),
        *(r("bool", f"{f}($(string/ip))", CALL, 0.6) for f in ("isIP", "ip.isCanonical")),
        r("int", "$(ip).family()"),
        *(
            r("bool", f"$(ip).{f}()", CALL, 0.5)
            for f in ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast")
        ),
        r("cidr", "cidr($(string/cidr))", CALL, 5),
        r("cidr", "$(cidr).masked()"),
        r("bool", "isCIDR($(string/cidr))"),
        r("int", "$(cidr).prefixLength()"),
        r("bool", "$(cidr).containsIP($(ip))"),
        r("bool", "$(cidr).containsIP($(string/ip))"),
        r("bool", "$(cidr).containsCIDR($(cidr))"),
        r("bool", "$(cidr).containsCIDR($(string/cidr))"),
        r("type", "net.IP", CALL, 0.2),
        r("type", "net.CIDR", CALL, 0.2),
        *(
            r("type", t, CALL, 0.2)
            for t in ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type")
        ),
        *(r("type", t, CALL, 0.2) for t in ("type", "google.protobuf.Timestamp", "google.protobuf.Duration")),
        r("url", "url($(string/url))", CALL, 5),
        r("bool", "isURL($(string/url))"),
        *(r("string", f"$(url).get{f}()", CALL, 0.5) for f in ("Scheme", "Host", "Hostname", "Port", "EscapedPath")),
        r("map(string, list(string))", "$(url).getQuery()"),
        # named formats
        r("optional(format)", "format.named($(string/format))", CALL, 4),
        *(
            r("format", f"format.{f}()", CALL, 0.5)
            for f in ("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix")
        ),
        *(
            r("format", f"format.{f}()", CALL, 0.5)
            for f in (
                "dns1123SubdomainPrefix",
                "dns1035LabelPrefix",
                "labelValue",
                "uri",
                "uuid",
                "byte",
                "date",
                "datetime",
            )
        ),
        r("optional(list(string))", "$(format).validate($(string/formatted))", CALL, 4),
    ]
    numbers = ("int", "uint", "double")
    rules.extend(
        r("bool", f"$({a}) {o} $({b})", RELATION, 0.35)
        for a in numbers
        for b in numbers
        for o in ("<", "<=", ">", ">=")
    )
    rules.extend(
        r("bool", f"$({t}) {o} $({t})", RELATION, 0.35) for t in COMPARABLE[3:] for o in ("<", "<=", ">", ">=")
    )
    return rules


RULES: Final = _rules()
