"""The corpus of CDI specs in ``tests/data/cdi``: its manifest, and the imaginary host that has all its devices."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from draht.cdi import HostNode

__all__ = ["BROKEN", "CORPUS", "PLACED", "VALID", "CorpusHost"]

CORPUS = Path(__file__).parent / "data" / "cdi"

_MANIFEST: dict[str, Any] = yaml.safe_load((CORPUS / "manifest.yaml").read_text(encoding="utf-8"))
_NODES: dict[str, list[Any]] = yaml.safe_load((CORPUS / "host.yaml").read_text(encoding="utf-8"))

VALID: list[dict[str, Any]] = _MANIFEST["valid"]
"""Entries of files that can be used."""

BROKEN: list[dict[str, Any]] = _MANIFEST["broken"]
"""Entries of files that can't."""

PLACED: list[dict[str, Any]] = _MANIFEST["placed"]
"""Situations: good and bad files in directories."""


class CorpusHost:
    """The device nodes of ``host.yaml``, as `draht.cdi.HostNodes`."""

    def __init__(self, missing: Collection[str] = ()) -> None:
        self.nodes = {path: HostNode(*row[:4]) for path, row in _NODES.items() if path not in missing}

    def node(self, path: str) -> HostNode:
        """The node at a path."""
        if path not in self.nodes:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.nodes[path]
