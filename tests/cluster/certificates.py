"""The cluster's certificates: one authority, and what it signs for servers, components and people.

Made with the ``openssl`` command: ``ca-certificates``, which Go needs to fetch modules, brings that package along, so
it is on every machine that could build the cluster; the alternatives are a Python package or a Go program more. Keys
are P-256, because an RSA key takes a hundred times as long to make. All certificates last a year.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cluster.errors import CommandError

__all__ = ["Authority", "Pair"]

LIFE_DAYS = "365"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Pair(NamedTuple):
    """Files of a certificate and its key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a directory.

    Attributes:
        certificate: The file that clients and servers trust.
        key: The file of its key.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._configuration = directory / "openssl.cnf"
        self.certificate = directory / "ca.crt"
        self.key = directory / "ca.key"

    def make(self) -> None:
        """Make the authority's own certificate.

        Raises:
            CommandError: openssl refused.
        """
        self._directory.mkdir(mode=0o700, parents=True)
        # The machine's own configuration adds extensions of its choice.
        self._configuration.write_text("[req]\ndistinguished_name = names\n[names]\n")
        self._request(
            Pair(self.certificate, self.key),
            "/CN=draht test cluster",
            ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,digitalSignature"),
        )

    def client(self, file: str, common_name: str, organizations: Sequence[str] = ()) -> Pair:
        """A certificate for a client; Kubernetes reads the common name as user and organizations as groups.

        Args:
            file: Name of the files, without extension.
            common_name: The user.
            organizations: The groups.

        Raises:
            CommandError: openssl refused.
        """
        parts = [*(f"O={_escaped(name)}" for name in organizations), f"CN={_escaped(common_name)}"]
        return self._signed(file, "/" + "/".join(parts), ("extendedKeyUsage=clientAuth",))

    def server(self, file: str, common_name: str, names: Sequence[str], *, organization: str | None = None) -> Pair:
        """A certificate for a server (that may be a client, too).

        Args:
            file: Name of the files, without extension.
            common_name: Its subject.
            names: ``DNS:`` names and ``IP:`` addresses that it is reached at.
            organization: Its group, if it is also used as a client's.

        Raises:
            CommandError: openssl refused.
        """
        subject = f"/CN={_escaped(common_name)}"
        if organization is not None:
            subject = f"/O={_escaped(organization)}{subject}"
        usage = "extendedKeyUsage=serverAuth,clientAuth"
        return self._signed(file, subject, (usage, f"subjectAltName={','.join(names)}"))

    def signing_key(self, file: str) -> None:
        """A key without certificate, with which tokens of service accounts are signed: ``.key`` and ``.pub``.

        Raises:
            CommandError: openssl refused.
        """
        key, public = (str(self._directory / f"{file}.{extension}") for extension in ("key", "pub"))
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        _openssl("pkey", "-in", key, "-pubout", "-out", public)

    def _signed(self, file: str, subject: str, extensions: Sequence[str]) -> Pair:
        pair = Pair(self._directory / f"{file}.crt", self._directory / f"{file}.key")
        self._request(pair, subject, extensions, "-CA", str(self.certificate), "-CAkey", str(self.key))
        return pair

    def _request(self, pair: Pair, subject: str, extensions: Sequence[str], *more: str) -> None:
        added = [part for extension in extensions for part in ("-addext", extension)]
        files = ("-keyout", str(pair.key), "-out", str(pair.certificate), "-config", str(self._configuration))
        _openssl("req", "-x509", *KEY, *files, "-subj", subject, "-utf8", "-days", LIFE_DAYS, *added, *more)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("/", "\\/")


def _openssl(*arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise CommandError(["openssl", *arguments], done.returncode, done.stdout, done.stderr)
