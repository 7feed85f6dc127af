"""Whom to trust and which certificate to show, as `ssl` contexts.

Owns contexts made from files or bytes of a kubeconfig. Files are looked at again before each use, because kubelets and
certificate managers replace them under running programs; a context is kept as long as nothing changed.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from draht.kube.errors import ConfigError

__all__ = ["ClientCertificate", "Material", "Trust"]

Material = Path | bytes
"""PEM text, or the file that has it."""

_Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """What a client shows: a certificate, perhaps with its chain, and the key to it."""

    certificate: Material
    key: Material


@dataclass
class Trust:
    """How connections to one server are secured.

    Args:
        authority: Certificates to trust; None for those of the system.
        verify: False to talk to anybody, as ``insecure-skip-tls-verify`` says.
        server_name: Name to expect in the server's certificate instead of the address's.
    """

    authority: Material | None = None
    verify: bool = True
    server_name: str | None = None
    _made: tuple[_Stamp, ssl.SSLContext] | None = field(default=None, init=False, repr=False, compare=False)

    def context(self, shown: ClientCertificate | None) -> ssl.SSLContext:
        """A context for new connections; the same one while no file has changed.

        Raises:
            ConfigError: A file is missing, or what it holds is no certificate or no key for it.
        """
        stamp = (
            _stamp(self.authority, "certificate authority"),
            _stamp(shown.certificate, "client certificate") if shown else None,
            _stamp(shown.key, "client key") if shown else None,
        )
        if self._made is not None and self._made[0] == stamp:
            return self._made[1]
        context = self._make(shown)
        self._made = (stamp, context)
        return context

    def _make(self, shown: ClientCertificate | None) -> ssl.SSLContext:
        try:
            match self.authority:
                case Path() as path:
                    context = ssl.create_default_context(cafile=path)
                case bytes() as data:
                    context = ssl.create_default_context(cadata=data.decode("ascii"))
                case _:
                    context = ssl.create_default_context()
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"the certificate authority is no PEM certificate: {_reason(error)}", where=_place(self.authority)
            ) from None
        # Python 3.13 refuses certificates without key identifiers, which authorities of clusters often lack.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if shown is not None:
            _show(context, shown)
        return context


def _show(context: ssl.SSLContext, shown: ClientCertificate) -> None:
    def passphrase() -> str:
        raise ConfigError(
            "the client key is encrypted", where=_place(shown.key), hint="name a key without passphrase, or a token"
        )

    try:
        with _file(shown.certificate) as certificate, _file(shown.key) as key:
            context.load_cert_chain(certificate, key, password=passphrase)
    except (ssl.SSLError, ValueError, OSError) as error:
        raise ConfigError(
            f"the client certificate and key can't be used: {_reason(error)}",
            where=_place(shown.certificate),
            hint="both are PEM, and the key is the one of the certificate",
        ) from None


@contextmanager
def _file(material: Material) -> Iterator[str]:
    """A path to the text: OpenSSL reads keys from paths only. Bytes never get a name that others could open."""
    if isinstance(material, Path):
        yield str(material)
    elif hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem")
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(material)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:  # mode 0600, removed at the end of the block
            file.write(material)
            file.flush()
            yield file.name


def _stamp(material: Material | None, what: str) -> object:
    if not isinstance(material, Path):
        return material
    try:
        status = material.stat()
    except OSError as error:
        raise ConfigError(
            f"the {what} can't be read: {(error.strerror or str(error)).lower()}", where=str(material)
        ) from None
    return material, status.st_mtime_ns, status.st_size, status.st_ino


def _place(material: Material | None) -> str | None:
    return str(material) if isinstance(material, Path) else None


def _reason(error: Exception) -> str:
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(text).replace("_", " ").lower()
