"""The syntax of expressions: from text to tree.

Owns the grammar of CEL and what of it is decided before types are known: literals, reserved names, macros, the balanced
trees of ``&&`` and ``||``. It accepts and makes what cel-go v0.29 accepts and makes (``parser/parser.go``), with its
limits: 250 levels of each rule of the grammar, 250 operators within each other, 100,000 code points. It doesn't know
types, nor which names exist.

The parser is a loop over tokens with a stack of its own, so no text can exhaust Python's. A `_Frame` is an open
bracket; what stands inside is held, one value per precedence, until an operator that binds less tightly comes. After an
error it goes on behind the next comma or closing bracket of the same frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from draht.cel import hints
from draht.cel.ast import (
    Call,
    Expr,
    Field,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
)
from draht.cel.errors import CompileError, Issue
from draht.cel.lexer import MOST_ISSUES, Token, shown, tokenize
from draht.cel.literals import LiteralError, bytes_value, double_value, int_value, string_value, uint_value
from draht.cel.macros import ANY_NUMBER, Builder, Macro, MacroError, Numbering
from draht.cel.numbers import UInt
from draht.cel.source import Source

__all__ = ["MOST_CODE_POINTS", "MOST_DEPTH", "Macros", "Parsed", "parse", "parse_text"]

MOST_CODE_POINTS: Final = 100_000
MOST_DEPTH: Final = 250
"""How deep rules of the grammar, and operators, may be nested; upstream's number."""
_MOST_RECOVERIES: Final = 30

Macros = Mapping[tuple[str, int, bool], Macro]

# fmt: off
_RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
})
# fmt: on
_MULTIPLICATIONS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_ADDITIONS: Final = {"+": "_+_", "-": "_-_"}
_RELATIONS: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">=": "_>=_",
    ">": "_>_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
}
_UNARY: Final = {"!": "!_", "-": "-_"}
_OPENERS: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSERS: Final = frozenset(_OPENERS.values())
_LITERALS: Final = frozenset({"int", "uint", "double", "string", "bytes", "true", "false", "null"})


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree and where its nodes stand.

    Args:
        expr: The tree.
        source: The text.
        ranges: Id of a node that was written, or that a macro's call became, → offsets of its text.
    """

    expr: Expr
    source: Source
    ranges: Mapping[int, tuple[int, int]]

    def text_of(self, expr: Expr) -> str:
        """The text of a node as it was written; for a node that only an expansion has, an empty text."""
        start, end = self.ranges.get(expr.id, (0, 0))
        return self.source.text[start:end]


def parse(text: str, macros: Macros) -> Expr:
    """The tree of an expression.

    Args:
        text: The expression.
        macros: The macros of the environment: (name, number of arguments, called on a receiver) → macro.

    Raises:
        CompileError: The text is no expression; the error holds every issue that was found.
    """
    return parse_text(text, macros).expr


def parse_text(text: str, macros: Macros) -> Parsed:
    """The tree of an expression, and where each node stands.

    Raises:
        CompileError: The text is no expression; the error holds every issue that was found.
    """
    source = Source(text)
    _refuse_unfit(source)
    tokens, issues, incomplete = tokenize(source)
    if incomplete:
        raise CompileError(text, tuple(issues))
    parser = _Parser(source, tokens, issues, macros)
    expr = parser.run()
    if parser.issues or expr is None:
        found = sorted(parser.issues, key=lambda issue: (issue.line, issue.column))
        raise CompileError(text, tuple(found[:MOST_ISSUES]))
    return Parsed(expr, source, parser.ranges)


def _refuse_unfit(source: Source) -> None:
    text = source.text
    if len(text) > MOST_CODE_POINTS:
        message = f"the expression has {len(text)} code points; {MOST_CODE_POINTS} are allowed"
        raise CompileError(text, (Issue(message, 1, 1),))
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = "half of a surrogate pair is no character"
            raise CompileError(text, (Issue(message, *source.place(error.start)),)) from None


class _Operand(NamedTuple):
    """A part of the tree that is done."""

    expr: Expr
    height: int
    """How many operators that upstream counts are within each other."""
    start: int
    end: int


@final
class _Frame:
    """An open bracket, or the whole text, and the expression being read inside it."""

    __slots__ = (
        "and_ops",
        "and_terms",
        "calc",
        "choices",
        "expr",
        "head",
        "items",
        "key",
        "kind",
        "name",
        "negation",
        "opening",
        "optional",
        "or_ops",
        "or_terms",
        "pending",
        "relation",
        "relations",
        "start",
        "sum",
    )

    def __init__(self, kind: str, opening: Token, start: int) -> None:
        self.kind = kind
        self.opening = opening
        self.start = start
        self.name = ""
        self.head: _Operand | None = None
        self.items: list[_Operand] = []
        self.key: list[tuple[Token, _Operand | str]] = []
        self.optional: set[int] = set()
        # How deep upstream's rules are nested where this frame opens.
        self.expr = self.relations = self.calc = 0
        self.begin()

    def begin(self) -> None:
        """Start the next expression of the frame."""
        self.choices: list[tuple[_Operand, Token, _Operand | None]] = []
        self.or_terms: list[_Operand] = []
        self.or_ops: list[Token] = []
        self.and_terms: list[_Operand] = []
        self.and_ops: list[Token] = []
        self.relation: tuple[_Operand, Token] | None = None
        self.sum: tuple[_Operand, Token] | None = None
        self.pending: tuple[_Operand, Token] | None = None
        self.negation: tuple[Token, bool] | None = None

    @property
    def closer(self) -> str:
        return _OPENERS.get(self.opening.text, "end")

    @property
    def has_begun(self) -> bool:
        """Whether something of the current expression has been read."""
        return bool(
            self.choices
            or self.or_ops
            or self.and_ops
            or self.relation
            or self.sum
            or self.pending
            or self.negation
            or len(self.items) in self.optional
        )

    @property
    def wants_colon(self) -> bool:
        return bool(self.choices) and self.choices[-1][2] is None

    def depths(self) -> tuple[int, int, int]:
        """How deep upstream's rules expr, relation and calc are nested at an operand that comes now."""
        choices = len(self.choices) - self.wants_colon
        return (
            self.expr + 1 + choices,
            self.relations + 1 + (self.relation is not None),
            self.calc + 1 + (self.sum is not None) + (self.pending is not None),
        )


class _SyntaxError(Exception):
    """The token doesn't fit; reading goes on elsewhere."""


class _Stop(Exception):  # noqa: N818 - it isn't an error but the end of reading
    """Nothing after this can be judged."""


@final
class _Parser:
    """One reading of one text."""

    def __init__(self, source: Source, tokens: Sequence[Token], issues: list[Issue], macros: Macros) -> None:
        self.source = source
        self.issues = issues
        self.ranges: dict[int, tuple[int, int]] = {}
        self._tokens = tokens
        self._macros = macros
        self._numbering = Numbering()
        self._at = 0
        self._recoveries = 0
        self._frames = [_Frame("text", tokens[-1], 0)]

    def run(self) -> Expr | None:
        """The tree; None where an issue is the reason that there is none."""
        operand: _Operand | None = None
        broken = False
        try:
            while True:
                try:
                    if broken:
                        broken = False
                        operand = self._recover()
                    elif operand is None:
                        operand = self._begin_operand()
                    else:
                        done, operand = self._go_on(operand)
                        if done is not None:
                            return done.expr
                except _SyntaxError:
                    broken = True
        except _Stop:
            return None
        except MacroError as error:
            self._report(error.at, error.message, error.hint)
            return None

    # Errors

    def _report(self, at: int, message: str, hint: str | None = None) -> None:
        place = self.source.place(at)
        if any((issue.line, issue.column) == place for issue in self.issues):
            return
        self.issues.append(Issue(message, *place, hint))
        if len(self.issues) >= MOST_ISSUES:
            raise _Stop

    def _fail(self, token: Token, message: str, hint: str | None = None) -> _SyntaxError:
        self._report(token.start, message, hint)
        return _SyntaxError()

    def _recover(self) -> _Operand | None:
        """Behind the next comma of the innermost frame, or behind its closing bracket.

        Returns:
            A stand-in for the frame, or None behind a comma.
        """
        self._recoveries += 1
        if self._recoveries > _MOST_RECOVERIES:
            raise _Stop
        frame = self._frames[-1]
        if frame.kind == "text":
            raise _Stop
        open_closers: list[str] = []
        while True:
            token = self._tokens[self._at]
            if token.kind == "end":
                raise _Stop
            self._at += 1
            if token.kind in _OPENERS:
                open_closers.append(_OPENERS[token.kind])
            elif token.kind in _CLOSERS:
                if not open_closers and token.kind == frame.closer:
                    self._frames.pop()
                    return self._stand_in(frame.start, token.end)
                if not open_closers or open_closers.pop() != token.kind:
                    raise _Stop
            elif token.kind == "," and not open_closers and frame.kind not in ("group", "index"):
                frame.begin()
                del frame.key[len(frame.items) :]
                self._begin_item(frame)
                return None

    def _stand_in(self, start: int, end: int) -> _Operand:
        return _Operand(Literal(self._numbering.next(start), start, None), 0, start, end)

    # Nodes

    def _made(self, expr: Expr, height: int, start: int, end: int) -> _Operand:
        if height > MOST_DEPTH:
            self._report(expr.at, f"operators are nested deeper than {MOST_DEPTH} levels", "split the expression")
            raise _Stop
        self.ranges[expr.id] = (start, end)
        return _Operand(expr, height, start, end)

    def _call(self, function: str, token: Token, *args: _Operand, deeper: int) -> _Operand:
        expr = Call(self._numbering.next(token.start), token.start, function, None, tuple(arg.expr for arg in args))
        height = max(arg.height for arg in args) + deeper
        return self._made(expr, height, args[0].start, args[-1].end)

    def _called(
        self, function: str, opening: Token, target: _Operand | None, args: Sequence[_Operand], start: int, end: int
    ) -> _Operand:
        """A call, or what a macro makes of it."""
        member = target is not None
        receiver = target.expr if target is not None else None
        values = tuple(arg.expr for arg in args)
        height = max((arg.height for arg in args), default=0)
        if target is not None:
            height = max(height, target.height) + 1
        macro = self._macros.get((function, len(args), member)) or self._macros.get((function, ANY_NUMBER, member))
        if macro is not None and not self._recoveries:
            if height > MOST_DEPTH:
                raise MacroError(opening.start, f"operators are nested deeper than {MOST_DEPTH} levels")
            made = self._expanded(macro, opening, receiver, values)
            if made is not None:
                return self._made(made, height, start, end)
        expr = Call(self._numbering.next(opening.start), opening.start, function, receiver, values)
        return self._made(expr, height, start, end)

    def _expanded(self, macro: Macro, opening: Token, receiver: Expr | None, values: tuple[Expr, ...]) -> Expr | None:
        try:
            return macro.expand(Builder(self._numbering, opening.start), receiver, values)
        except MacroError as error:
            self._report(error.at, error.message, error.hint)
            if self._numbering.full:
                raise _Stop from None
            return None

    def _balanced(self, function: str, terms: Sequence[_Operand], ops: Sequence[Token]) -> _Operand:
        """One operator over many terms as a tree of least depth, as upstream builds it."""
        if len(terms) == 1:
            return terms[0]

        def over(low: int, high: int) -> _Operand:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else over(low, middle - 1)
            right = terms[middle + 1] if middle == high else over(middle + 1, high)
            return self._call(function, ops[middle], left, right, deeper=0)

        return over(0, len(ops) - 1)

    # Operands

    def _begin_operand(self) -> _Operand | None:
        """Read an operand, or open a frame that will become one."""
        frame = self._frames[-1]
        token = self._tokens[self._at]
        kind = token.kind
        if kind in _UNARY:
            self._signs(frame, token)
            token = self._tokens[self._at]
            kind = token.kind
        elif frame.kind != "text" and (kind == frame.closer or kind == ","):
            return self._empty(frame, token)
        self._check_depth(frame, token)
        if kind == "identifier" or kind == ".":
            return self._named(token)
        if kind == "(":
            self._open("group", token, token.start)
            return None
        if kind == "[" or kind == "{":
            self._open("list" if kind == "[" else "map", token, token.start)
            return None
        if kind in _LITERALS or kind == "-":
            return self._literal(token)
        expected = "a value is missing" if kind == "end" else f"a value was expected, not {shown(token.text)}"
        raise self._fail(token, expected, hints.instead_of_operand(token.text))

    def _check_depth(self, frame: _Frame, token: Token) -> None:
        if max(frame.depths()) > MOST_DEPTH:
            self._report(token.start, f"the expression is nested deeper than {MOST_DEPTH} levels", "split it")
            raise _Stop

    def _signs(self, frame: _Frame, first: Token) -> None:
        """Any number of ``!`` or of ``-``; a single ``-`` before a number belongs to the number."""
        sign = first.kind
        at = self._at
        while self._tokens[at].kind == sign:
            at += 1
        count = at - self._at
        after = self._tokens[at].kind
        if sign == "-" and count == 1 and after in ("int", "double"):
            return
        if sign == "!" and after == "-":
            # A signed number is the only operand that begins with a minus.
            if self._tokens[at + 1].kind not in ("int", "double"):
                raise self._fail(self._tokens[at], "- can't follow !", "write the negated value in parentheses")
        elif after in _UNARY:
            raise self._fail(self._tokens[at], "! can't follow -", "write the negated value in parentheses")
        frame.negation = (first, count % 2 == 1)
        self._at = at

    def _literal(self, token: Token) -> _Operand:
        start = token.start
        negative = token.kind == "-"
        if negative:
            self._at += 1
            token = self._tokens[self._at]
        self._at += 1
        value: bool | int | UInt | float | str | bytes | None = None
        try:
            match token.kind:
                case "int":
                    value = int_value(token.text, negative=negative)
                case "uint":
                    value = uint_value(token.text)
                case "double":
                    value = double_value(token.text, negative=negative)
                case "string":
                    value = string_value(token.text)
                case "bytes":
                    value = bytes_value(token.text)
                case "true" | "false":
                    value = token.kind == "true"
        except LiteralError as error:
            self._report(start, str(error))
        return self._made(Literal(self._numbering.next(start), start, value), 0, start, token.end)

    def _named(self, token: Token) -> _Operand | None:
        """A variable, the call of a global function, or the fields of a message."""
        start = token.start
        dot = ""
        if token.kind == ".":
            dot = "."
            self._at += 1
            token = self._tokens[self._at]
            if token.kind != "identifier":
                raise self._fail(token, f"a name was expected, not {_shown(token)}")
        message_end = self._message_name_end()
        if message_end is not None:
            names = [each.text for each in self._tokens[self._at : message_end : 2]]
            self._at = message_end
            self._open("message", self._tokens[message_end], start).name = dot + ".".join(names)
            return None
        self._at += 1
        if token.text in _RESERVED:
            message = f"{token.text} is a reserved word and can't name a variable or function"
            self._report(start, message, "another name is needed")
        following = self._tokens[self._at]
        if following.kind == "(":
            self._open("call", following, start).name = dot + token.text
            return None
        identifier = Identifier(self._numbering.next(token.start), token.start, dot + token.text)
        return self._made(identifier, 0, start, token.end)

    def _message_name_end(self) -> int | None:
        """Where the brace of a message literal is, if the dotted name here begins one."""
        at = self._at + 1
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == "identifier":
            at += 2
        return at if self._tokens[at].kind == "{" else None

    # Frames

    def _open(self, kind: str, opening: Token, start: int, head: _Operand | None = None) -> _Frame:
        outer = self._frames[-1]
        frame = _Frame(kind, opening, start)
        frame.expr, frame.relations, frame.calc = outer.depths()
        frame.head = head
        self._frames.append(frame)
        while self._tokens[self._at] is not opening:
            self._at += 1
        self._at += 1
        self._begin_item(frame)
        return frame

    def _begin_item(self, frame: _Frame) -> None:
        """Read what may stand before an element, entry or index: a question mark, or a message's field name."""
        token = self._tokens[self._at]
        if token.kind == "?" and frame.kind in ("list", "map", "message", "index"):
            self._at += 1
            frame.optional.add(len(frame.items))
            token = self._tokens[self._at]
            if token.kind == "," or token.kind == frame.closer:
                raise self._fail(token, f"a value was expected, not {_shown(token)}")
        if frame.kind == "message" and token.kind not in (",", "}"):
            if token.kind not in ("identifier", "escaped"):
                raise self._fail(token, f"a field name was expected, not {_shown(token)}")
            colon = self._tokens[self._at + 1]
            if colon.kind != ":":
                raise self._fail(colon, f"a colon was expected after the field name, not {_shown(colon)}")
            self._at += 2
            frame.key.append((colon, _name(token)))
            following = self._tokens[self._at]
            if following.kind == "," or following.kind == "}":
                raise self._fail(following, f"a value was expected, not {_shown(following)}")

    def _empty(self, frame: _Frame, token: Token) -> _Operand:
        """A closing bracket or comma where an operand could begin: of an empty literal, or after a last comma."""
        if not frame.has_begun:
            literal = frame.kind in ("list", "map", "message")
            empty = not frame.items and not frame.key
            following = self._tokens[self._at + 1]
            if token.kind == "," and literal and empty and following.kind == frame.closer:
                # ``[,]`` and ``{,}`` are empty literals in upstream's grammar.
                self._at += 2
                return self._close(frame, following)
            whole_entries = literal and len(frame.key) in (0, len(frame.items))
            if token.kind != "," and (whole_entries or (empty and frame.kind in ("call", "member"))):
                self._at += 1
                return self._close(frame, token)
        raise self._fail(token, f"a value was expected, not {_shown(token)}")

    def _close(self, frame: _Frame, closing: Token) -> _Operand:
        """What the frame becomes; its expressions are complete."""
        self._frames.pop()
        start, end = frame.start, closing.end
        at = frame.opening.start
        items = frame.items
        height = max((item.height for item in items), default=0)
        match frame.kind:
            case "group":
                return _Operand(items[0].expr, items[0].height, start, end)
            case "call":
                return self._called(frame.name, frame.opening, None, items, start, end)
            case "member":
                return self._called(frame.name, frame.opening, frame.head, items, start, end)
            case "index":
                assert frame.head is not None
                function = "_[?_]" if frame.optional else "_[_]"
                index = self._call(function, frame.opening, frame.head, items[0], deeper=1)
                self.ranges[index.expr.id] = (start, end)
                return index._replace(start=start, end=end)
            case "list":
                elements = tuple(item.expr for item in items)
                made: Expr = ListLiteral(self._numbering.next(at), at, elements, frozenset(frame.optional))
            case "map":
                entries = []
                for position, ((colon, key), value) in enumerate(zip(frame.key, items, strict=True)):
                    assert isinstance(key, _Operand)
                    height = max(height, key.height)
                    number = self._numbering.next(colon.start)
                    optional = position in frame.optional
                    entries.append(MapEntry(number, colon.start, key.expr, value.expr, optional))
                made = MapLiteral(self._numbering.next(at), at, tuple(entries))
            case _:
                fields = []
                for position, ((colon, name), value) in enumerate(zip(frame.key, items, strict=True)):
                    assert isinstance(name, str)
                    number = self._numbering.next(colon.start)
                    fields.append(Field(number, colon.start, name, value.expr, position in frame.optional))
                made = StructLiteral(self._numbering.next(at), at, frame.name, tuple(fields))
        return self._made(made, height, start, end)

    # Behind an operand

    def _go_on(self, operand: _Operand) -> tuple[_Operand | None, _Operand | None]:
        """Read what follows an operand.

        Returns:
            The whole expression at the end of the text, or None; and the operand that is now to the left, or None where
            another one has to come.
        """
        frame = self._frames[-1]
        token = self._tokens[self._at]
        kind = token.kind
        if kind == ".":
            return None, self._selected(operand)
        if kind == "[":
            self._open("index", token, operand.start, operand)
            return None, None
        if frame.negation is not None:
            sign, odd = frame.negation
            frame.negation = None
            if odd:
                operand = self._call(_UNARY[sign.kind], sign, operand, deeper=0)
                operand = operand._replace(start=sign.start)
                self.ranges[operand.expr.id] = (sign.start, operand.end)
        if self._operator(frame, token, operand):
            self._at += 1
            return None, None
        if kind == frame.closer:
            self._finish_item(frame, operand, token)
            self._at += 1
            if frame.kind == "text":
                return frame.items[0], None
            return None, self._close(frame, token)
        if kind == "," and frame.kind not in ("text", "group", "index"):
            self._finish_item(frame, operand, token)
            self._at += 1
            frame.begin()
            self._begin_item(frame)
            return None, None
        if kind == ":" and frame.kind == "map" and len(frame.key) == len(frame.items):
            frame.key.append((token, self._whole(frame, operand, token)))
            self._at += 1
            frame.begin()
            return None, None
        raise self._unexpected(frame, token, operand)

    def _unexpected(self, frame: _Frame, token: Token, operand: _Operand) -> _SyntaxError:
        before = operand.expr.name if isinstance(operand.expr, Identifier) else None
        hint = hints.after_operand(token.text, before)
        if token.kind == "end":
            opening = frame.opening
            self._report(opening.start, f"{opening.text} is never closed", f"close it with {frame.closer}")
            raise _Stop
        if token.kind in _CLOSERS:
            message = f"{token.text} closes nothing" if frame.kind == "text" else f"{frame.closer} was expected here"
            return self._fail(token, message, hint)
        return self._fail(token, f"an operator was expected, not {_shown(token)}", hint)

    def _selected(self, operand: _Operand) -> _Operand | None:
        """A dot: a field, an optional field, or a call on the operand."""
        dot = self._tokens[self._at]
        self._at += 1
        token = self._tokens[self._at]
        optional = token.kind == "?"
        if optional:
            self._at += 1
            token = self._tokens[self._at]
        if token.kind not in ("identifier", "escaped"):
            hint = f'write ["{token.text}"] for such a key' if token.kind in ("in", "true", "false", "null") else None
            raise self._fail(token, f"a field name was expected after the dot, not {_shown(token)}", hint)
        self._at += 1
        name = _name(token)
        following = self._tokens[self._at]
        if following.kind == "(" and not optional and token.kind == "identifier":
            self._open("member", following, operand.start, operand).name = name
            return None
        if optional:
            literal = Literal(self._numbering.next(token.start), token.start, name)
            key = self._made(literal, 0, token.start, token.end)
            return self._call("_?._", dot, operand, key, deeper=1)
        select = Select(self._numbering.next(dot.start), dot.start, operand.expr, name)
        return self._made(select, operand.height + 1, operand.start, token.end)

    def _finish_item(self, frame: _Frame, operand: _Operand, token: Token) -> None:
        """The frame's current expression is complete."""
        whole = self._whole(frame, operand, token)
        if frame.kind == "map" and len(frame.key) == len(frame.items):
            raise self._fail(token, "a map has keys and values: a colon was expected", "write {key: value}")
        frame.items.append(whole)

    # Operators

    def _operator(self, frame: _Frame, token: Token, operand: _Operand) -> bool:
        """Put an operator behind what it binds; False if the token is none."""
        kind = token.kind
        if kind in _MULTIPLICATIONS:
            frame.pending = (self._product(frame, operand), token)
        elif kind in _ADDITIONS:
            frame.sum = (self._total(frame, operand), token)
        elif kind in _RELATIONS:
            frame.relation = (self._related(frame, operand), token)
        elif kind == "&&":
            frame.and_terms.append(self._related(frame, operand))
            frame.and_ops.append(token)
        elif kind == "||":
            frame.or_terms.append(self._conjunction(frame, operand))
            frame.or_ops.append(token)
        elif kind == "?" and not frame.wants_colon:
            frame.choices.append((self._disjunction(frame, operand), token, None))
        elif kind == ":" and frame.wants_colon:
            condition, question, _ = frame.choices[-1]
            frame.choices[-1] = (condition, question, self._disjunction(frame, operand))
        else:
            return False
        return True

    def _product(self, frame: _Frame, operand: _Operand) -> _Operand:
        if frame.pending is not None:
            left, token = frame.pending
            frame.pending = None
            operand = self._call(_MULTIPLICATIONS[token.kind], token, left, operand, deeper=1)
        return operand

    def _total(self, frame: _Frame, operand: _Operand) -> _Operand:
        operand = self._product(frame, operand)
        if frame.sum is not None:
            left, token = frame.sum
            frame.sum = None
            operand = self._call(_ADDITIONS[token.kind], token, left, operand, deeper=1)
        return operand

    def _related(self, frame: _Frame, operand: _Operand) -> _Operand:
        operand = self._total(frame, operand)
        if frame.relation is not None:
            left, token = frame.relation
            frame.relation = None
            operand = self._call(_RELATIONS[token.kind], token, left, operand, deeper=1)
        return operand

    def _conjunction(self, frame: _Frame, operand: _Operand) -> _Operand:
        frame.and_terms.append(self._related(frame, operand))
        whole = self._balanced("_&&_", frame.and_terms, frame.and_ops)
        frame.and_terms, frame.and_ops = [], []
        return whole

    def _disjunction(self, frame: _Frame, operand: _Operand) -> _Operand:
        frame.or_terms.append(self._conjunction(frame, operand))
        whole = self._balanced("_||_", frame.or_terms, frame.or_ops)
        frame.or_terms, frame.or_ops = [], []
        return whole

    def _whole(self, frame: _Frame, operand: _Operand, token: Token) -> _Operand:
        """The expression that ends with this operand."""
        if frame.wants_colon:
            question = frame.choices[-1][1]
            hint = "write condition ? value : other"
            raise self._fail(token if token.kind != "end" else question, "the colon of ? is missing", hint)
        operand = self._disjunction(frame, operand)
        while frame.choices:
            condition, question, then = frame.choices.pop()
            assert then is not None
            operand = self._call("_?_:_", question, condition, then, operand, deeper=1)
        return operand


def _name(token: Token) -> str:
    return token.text[1:-1] if token.kind == "escaped" else token.text


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else shown(token.text)
