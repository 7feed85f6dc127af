"""The syntax of expressions: from text to tree.

Owns the grammar of CEL and what of it is decided before types are known: literals, reserved names, macros, the balanced
trees of ``&&`` and ``||``. It accepts and makes what cel-go v0.29 accepts and makes (``parser/parser.go``), with its
limits: 250 levels of each rule of the grammar, 250 operators within each other, 100,000 code points. It doesn't know
types, nor which names exist.

The parser is a loop over tokens with a stack of its own, so no text can exhaust Python's. After an error it goes on
behind the next comma or closing bracket of the same frame. Brackets are in ``draht.cel.frame``, precedence in
``draht.cel.partial``, the making of nodes in ``draht.cel.tree_builder``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from draht.cel import hints
from draht.cel.ast import Expr, Identifier, Literal, Select
from draht.cel.errors import CompileError, Issue
from draht.cel.frame import OPENERS, Frame
from draht.cel.lexer import MOST_ISSUES, Token, shown, tokenize
from draht.cel.literals import LiteralError, bytes_value, double_value, int_value, string_value, uint_value
from draht.cel.macros import MacroError
from draht.cel.numbers import UInt
from draht.cel.partial import UNARY, PartialExpression
from draht.cel.source import Source
from draht.cel.tree_builder import MOST_DEPTH, Macros, Operand, Stop, TreeBuilder

__all__ = ["MOST_CODE_POINTS", "Parsed", "parse", "parse_text"]

MOST_CODE_POINTS: Final = 100_000
_MOST_RECOVERIES: Final = 30

# fmt: off
_RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
})
# fmt: on
_CLOSERS: Final = frozenset(OPENERS.values())
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
    if parser.build.issues or expr is None:
        found = sorted(parser.build.issues, key=lambda issue: (issue.line, issue.column))
        raise CompileError(text, tuple(found[:MOST_ISSUES]))
    return Parsed(expr, source, parser.build.ranges)


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


class _SyntaxError(Exception):
    """The token doesn't fit; reading goes on elsewhere."""


@final
class _Parser:
    """One reading of one text."""

    def __init__(self, source: Source, tokens: Sequence[Token], issues: list[Issue], macros: Macros) -> None:
        self.build = TreeBuilder(source, issues, macros)
        self._tokens = tokens
        self._at = 0
        self._recoveries = 0
        self._frames = [Frame("text", tokens[-1], 0)]

    def run(self) -> Expr | None:
        """The tree; None where an issue is the reason that there is none."""
        operand: Operand | None = None
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
        except Stop:
            return None
        except MacroError as error:
            self.build.report(error.at, error.message, error.hint)
            return None

    # Errors

    def _fail(self, token: Token, message: str, hint: str | None = None) -> _SyntaxError:
        self.build.report(token.start, message, hint)
        return _SyntaxError()

    def _recover(self) -> Operand | None:
        """Behind the next comma of the innermost frame, or behind its closing bracket.

        Returns:
            A stand-in for the frame, or None behind a comma.
        """
        self._recoveries += 1
        self.build.expands = False
        if self._recoveries > _MOST_RECOVERIES:
            raise Stop
        frame = self._frames[-1]
        if frame.kind == "text":
            raise Stop
        open_closers: list[str] = []
        while True:
            token = self._tokens[self._at]
            if token.kind == "end":
                raise Stop
            self._at += 1
            if token.kind in OPENERS:
                open_closers.append(OPENERS[token.kind])
            elif token.kind in _CLOSERS:
                if not open_closers and token.kind == frame.closer:
                    self._frames.pop()
                    return self.build.stand_in(frame.start, token.end)
                if not open_closers or open_closers.pop() != token.kind:
                    raise Stop
            elif token.kind == "," and not open_closers and frame.kind not in ("group", "index"):
                frame.expression = PartialExpression()
                del frame.keys[len(frame.items) :]
                self._begin_item(frame)
                return None

    # Operands

    def _begin_operand(self) -> Operand | None:
        """Read an operand, or open a frame that will become one."""
        frame = self._frames[-1]
        token = self._tokens[self._at]
        kind = token.kind
        if kind in UNARY:
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

    def _check_depth(self, frame: Frame, token: Token) -> None:
        if max(frame.depths_inside()) > MOST_DEPTH:
            self.build.report(token.start, f"the expression is nested deeper than {MOST_DEPTH} levels", "split it")
            raise Stop

    def _signs(self, frame: Frame, first: Token) -> None:
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
        elif after in UNARY:
            raise self._fail(self._tokens[at], "! can't follow -", "write the negated value in parentheses")
        frame.expression.sign(first, odd=count % 2 == 1)
        self._at = at

    def _literal(self, token: Token) -> Operand:
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
            self.build.report(start, str(error))
        return self.build.made(Literal(self.build.number(start), start, value), 0, start, token.end)

    def _named(self, token: Token) -> Operand | None:
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
            self.build.report(start, message, "another name is needed")
        following = self._tokens[self._at]
        if following.kind == "(":
            self._open("call", following, start).name = dot + token.text
            return None
        identifier = Identifier(self.build.number(token.start), token.start, dot + token.text)
        return self.build.made(identifier, 0, start, token.end)

    def _message_name_end(self) -> int | None:
        """Where the brace of a message literal is, if the dotted name here begins one."""
        at = self._at + 1
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == "identifier":
            at += 2
        return at if self._tokens[at].kind == "{" else None

    # Frames

    def _open(self, kind: str, opening: Token, start: int, head: Operand | None = None) -> Frame:
        outer = self._frames[-1]
        frame = Frame(kind, opening, start, head)
        frame.depths = outer.depths_inside()
        self._frames.append(frame)
        while self._tokens[self._at] is not opening:
            self._at += 1
        self._at += 1
        self._begin_item(frame)
        return frame

    def _begin_item(self, frame: Frame) -> None:
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
            frame.keys.append((colon, _name(token)))
            following = self._tokens[self._at]
            if following.kind == "," or following.kind == "}":
                raise self._fail(following, f"a value was expected, not {_shown(following)}")

    def _empty(self, frame: Frame, token: Token) -> Operand:
        """A closing bracket or comma where an operand could begin: of an empty literal, or after a last comma."""
        if not frame.has_begun:
            literal = frame.kind in ("list", "map", "message")
            empty = not frame.items and not frame.keys
            following = self._tokens[self._at + 1]
            if token.kind == "," and literal and empty and following.kind == frame.closer:
                # ``[,]`` and ``{,}`` are empty literals in upstream's grammar.
                self._at += 2
                return self._close(frame, following)
            whole_entries = literal and len(frame.keys) in (0, len(frame.items))
            if token.kind != "," and (whole_entries or (empty and frame.kind in ("call", "member"))):
                self._at += 1
                return self._close(frame, token)
        raise self._fail(token, f"a value was expected, not {_shown(token)}")

    def _close(self, frame: Frame, closing: Token) -> Operand:
        self._frames.pop()
        return frame.closed(self.build, closing)

    # Behind an operand

    def _go_on(self, operand: Operand) -> tuple[Operand | None, Operand | None]:
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
        operand = frame.expression.signed(self.build, operand)
        if frame.expression.operator(self.build, token, operand):
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
            frame.expression = PartialExpression()
            self._begin_item(frame)
            return None, None
        if kind == ":" and frame.kind == "map" and len(frame.keys) == len(frame.items):
            frame.keys.append((token, self._whole(frame, operand, token)))
            self._at += 1
            frame.expression = PartialExpression()
            return None, None
        raise self._unexpected(frame, token, operand)

    def _unexpected(self, frame: Frame, token: Token, operand: Operand) -> _SyntaxError:
        before = operand.expr.name if isinstance(operand.expr, Identifier) else None
        hint = hints.after_operand(token.text, before)
        if token.kind == "end":
            opening = frame.opening
            self.build.report(opening.start, f"{opening.text} is never closed", f"close it with {frame.closer}")
            raise Stop
        if token.kind in _CLOSERS:
            message = f"{token.text} closes nothing" if frame.kind == "text" else f"{frame.closer} was expected here"
            return self._fail(token, message, hint)
        return self._fail(token, f"an operator was expected, not {_shown(token)}", hint)

    def _selected(self, operand: Operand) -> Operand | None:
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
            literal = Literal(self.build.number(token.start), token.start, name)
            key = self.build.made(literal, 0, token.start, token.end)
            return self.build.call("_?._", dot, operand, key, deeper=1)
        select = Select(self.build.number(dot.start), dot.start, operand.expr, name)
        return self.build.made(select, operand.height + 1, operand.start, token.end)

    def _whole(self, frame: Frame, operand: Operand, token: Token) -> Operand:
        """The expression that ends with this operand, before this token."""
        question = frame.expression.question
        if question is not None:
            hint = "write condition ? value : other"
            raise self._fail(token if token.kind != "end" else question, "the colon of ? is missing", hint)
        return frame.expression.whole(self.build, operand)

    def _finish_item(self, frame: Frame, operand: Operand, token: Token) -> None:
        """The frame's current expression is complete."""
        whole = self._whole(frame, operand, token)
        if frame.kind == "map" and len(frame.keys) == len(frame.items):
            raise self._fail(token, "a map has keys and values: a colon was expected", "write {key: value}")
        frame.items.append(whole)


def _name(token: Token) -> str:
    return token.text[1:-1] if token.kind == "escaped" else token.text


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else shown(token.text)
