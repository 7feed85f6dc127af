"""An open bracket, or the whole text, while its text is read.

Owns what brackets become: parentheses, calls, indices, lists, maps, messages. It doesn't read tokens; the parser puts
in items, keys and question marks as they come.
"""

from __future__ import annotations

from typing import Final, final

from draht.cel.ast import Expr, Field, ListLiteral, MapEntry, MapLiteral, StructLiteral
from draht.cel.lexer import Token
from draht.cel.partial import PartialExpression
from draht.cel.tree_builder import Operand, TreeBuilder

__all__ = ["OPENERS", "Frame"]

OPENERS: Final = {"(": ")", "[": "]", "{": "}"}
"""Opening bracket → the one that closes it."""


@final
class Frame:
    """An open bracket, or the whole text, and what has been read inside it.

    Args:
        kind: ``text group call member index list map message``.
        opening: The bracket; for the whole text its end.
        start: Offset where the text of what the frame becomes begins.
        head: What is called or indexed.
    """

    __slots__ = ("depths", "expression", "head", "items", "keys", "kind", "name", "opening", "optional", "start")

    def __init__(self, kind: str, opening: Token, start: int, head: Operand | None = None) -> None:
        self.kind = kind
        self.opening = opening
        self.start = start
        self.head = head
        self.name = ""
        self.items: list[Operand] = []
        """Elements, arguments, values."""
        self.keys: list[tuple[Token, Operand | str]] = []
        """The colon and the key of each value; of a message, the name of each field."""
        self.optional: set[int] = set()
        """Indices of items with a question mark."""
        self.expression = PartialExpression()
        self.depths = (0, 0, 0)
        """How deep upstream's rules are nested where this frame opens."""

    @property
    def closer(self) -> str:
        """The kind of the token that closes it."""
        return OPENERS.get(self.opening.text, "end")

    @property
    def has_begun(self) -> bool:
        """Whether something of the current item has been read."""
        return not self.expression.is_empty or len(self.items) in self.optional

    def depths_inside(self) -> tuple[int, int, int]:
        """How deep upstream's rules are nested at an operand that comes now."""
        (expr, relation, calc), inner = self.depths, self.expression.depths()
        return (expr + inner[0], relation + inner[1], calc + inner[2])

    def closed(self, build: TreeBuilder, closing: Token) -> Operand:
        """What the frame becomes; its expressions are complete."""
        start, end = self.start, closing.end
        at = self.opening.start
        items = self.items
        height = max((item.height for item in items), default=0)
        match self.kind:
            case "group":
                return Operand(items[0].expr, items[0].height, start, end)
            case "call":
                return build.called(self.name, self.opening, None, items, start, end)
            case "member":
                return build.called(self.name, self.opening, self.head, items, start, end)
            case "index":
                assert self.head is not None
                function = "_[?_]" if self.optional else "_[_]"
                index = build.call(function, self.opening, self.head, items[0], deeper=1)
                build.ranges[index.expr.id] = (start, end)
                return index._replace(start=start, end=end)
            case "list":
                elements = tuple(item.expr for item in items)
                made: Expr = ListLiteral(build.number(at), at, elements, frozenset(self.optional))
            case "map":
                entries = []
                for position, ((colon, key), value) in enumerate(zip(self.keys, items, strict=True)):
                    assert isinstance(key, Operand)
                    height = max(height, key.height)
                    number = build.number(colon.start)
                    optional = position in self.optional
                    entries.append(MapEntry(number, colon.start, key.expr, value.expr, optional))
                made = MapLiteral(build.number(at), at, tuple(entries))
            case _:
                fields = []
                for position, ((colon, name), value) in enumerate(zip(self.keys, items, strict=True)):
                    assert isinstance(name, str)
                    number = build.number(colon.start)
                    fields.append(Field(number, colon.start, name, value.expr, position in self.optional))
                made = StructLiteral(build.number(at), at, self.name, tuple(fields))
        return build.made(made, height, start, end)
