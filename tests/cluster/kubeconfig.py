"""Kubeconfig files: where the API server is, whom to trust, and who one is. They hold everything, and name no files."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from cluster.certificates import Pair

__all__ = ["write"]


def write(path: Path, server: str, authority: Path, identity: Pair | str) -> Path:
    """Write a kubeconfig, readable for its owner alone.

    Args:
        path: The file; JSON, which every reader of YAML takes.
        server: URL of the API server.
        authority: The certificate to trust.
        identity: A client certificate with its key, or a bearer token.
    """
    if isinstance(identity, str):
        user = {"token": identity}
    else:
        user = {"client-certificate-data": _data(identity.certificate), "client-key-data": _data(identity.key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "draht", "cluster": {"server": server, "certificate-authority-data": _data(authority)}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "draht", "context": {"cluster": "draht", "user": "user"}}],
        "current-context": "draht",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=1))
    return path


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
