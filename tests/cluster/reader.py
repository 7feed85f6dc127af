"""Reading objects of a cluster without starting a process, for tests that look again and again.

A ``kubectl get`` costs a fifth of a second of a core; tests that wait for something would spend most of their time, and
that of the cluster which they wait for, on it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cluster.errors import ClusterError

__all__ = ["Reader"]


class Reader:
    """Reads as whoever a kubeconfig of this package is for.

    Args:
        kubeconfig: As `cluster.kubeconfig` writes it, with a client certificate.
    """

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:  # the ssl module takes these from files only
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        self._context = context
        self._server = urlsplit(cluster["server"])

    def __call__(self, path: str) -> dict[str, Any]:
        """What the API server has at a path.

        Raises:
            ClusterError: There is nothing, or no server.
        """
        server = self._server
        connection = http.client.HTTPSConnection(server.hostname or "", server.port, context=self._context, timeout=30)
        try:
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"{path} can't be read: {error}") from None
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise ClusterError(f"{path} can't be read: {text[:500]}")
        found: dict[str, Any] = json.loads(text)
        return found
