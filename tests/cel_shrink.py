"""Makes an expression on which draht and upstream differ as small as possible.

Owns the search only: whether a smaller expression still differs is a question that the caller answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from cel_generator import Node, nodes, replaced

__all__ = ["shrunk", "shrunk_text"]

SIMPLEST: Final = {
    "int": ("1", "0"),
    "uint": ("1u",),
    "double": ("1.0",),
    "bool": ("true", "false"),
    "string": ('"a"', '""'),
    "bytes": ('b"a"',),
    "timestamp": ('timestamp("2020-01-01T00:00:00Z")',),
    "duration": ('duration("1s")',),
    "list": ("[]",),
    "map": ("{}",),
    "optional": ("optional.none()",),
    "null": ("null",),
    "dyn": ("dyn(1)",),
    "type": ("int",),
    "semver": ('semver("1.0.0")',),
    "quantity": ('quantity("1")',),
}
MOST_QUESTIONS: Final = 600
TOKENS: Final = re.compile(
    r'[rRbB]*"""(?:\\.|[^\\])*?"""|[rRbB]*"(?:\\.|[^"\\])*"|[rRbB]*\'(?:\\.|[^\'\\])*\'|\w+|\s+|.', re.DOTALL
)


def shrunk(tree: Node, differs: Callable[[str], bool]) -> str:
    """The smallest text found: first by replacing parts of the tree, then by leaving out tokens.

    Args:
        tree: An expression on which the two differ.
        differs: Whether they differ on another expression.
    """
    left = MOST_QUESTIONS
    progress = True
    while progress and left > 0:
        progress = False
        for smaller in sorted(_smaller(tree), key=lambda t: len(str(t))):
            if len(str(smaller)) >= len(str(tree)) or left <= 0:
                break
            left -= 1
            if differs(str(smaller)):
                tree, progress = smaller, True
                break
    return shrunk_text(str(tree), differs)


def _smaller(tree: Node) -> Iterator[Node]:
    for path, node in nodes(tree):
        for text in SIMPLEST.get(node.type[0], ()):
            if len(text) < len(str(node)):
                yield replaced(tree, path, Node(node.type, (text,)))
        for below, child in nodes(node):
            if len(below) == 1 or (below and child.type == node.type):
                yield replaced(tree, path, child)


def shrunk_text(text: str, differs: Callable[[str], bool]) -> str:
    """The smallest text found by leaving out runs of tokens."""
    tokens = TOKENS.findall(text)
    left = MOST_QUESTIONS
    width = max(1, len(tokens) // 2)
    while width and left > 0:
        at = 0
        while at < len(tokens) and left > 0:
            fewer = tokens[:at] + tokens[at + width :]
            left -= 1
            if fewer and differs("".join(fewer)):
                tokens = fewer
            else:
                at += 1
        width //= 2
    return "".join(tokens)
