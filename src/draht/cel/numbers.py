"""CEL's unsigned integers, which Python has no type for.

Owns `UInt` only. A CEL int is a Python ``int`` and a CEL double a Python ``float``; what overflows is decided where
values are computed.
"""

from __future__ import annotations

from typing import Final, final

__all__ = ["MAX_UINT64", "UInt"]

MAX_UINT64: Final = (1 << 64) - 1


@final
class UInt(int):
    """An unsigned 64-bit integer; told from an int by ``type(x) is UInt``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"
