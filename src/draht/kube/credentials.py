"""Who one is for a server: nothing, a fixed token or certificate, or a token file that is replaced under us.

Owns the `Credentials` protocol and its simple forms; programs that print credentials are `draht.kube.exec_plugin`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from draht.kube.errors import ConfigError
from draht.kube.tls import ClientCertificate

__all__ = ["Credentials", "Fixed", "Login", "TokenFile", "basic"]

_LARGEST_TOKEN = 1 << 20


@dataclass(frozen=True, slots=True)
class Login:
    """What goes along with one request."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: ClientCertificate | None = field(default=None, repr=False)


class Credentials(Protocol):
    """A source of logins."""

    async def login(self) -> Login:
        """What to send with the next request.

        Raises:
            ConfigError: There are none.
        """
        ...

    def refused(self, login: Login) -> bool:
        """Note that the server didn't accept a login; True if the next one may be another."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The same login each time."""

    value: Login = Login()

    async def login(self) -> Login:
        """The login."""
        return self.value

    def refused(self, login: Login) -> bool:  # noqa: ARG002 - the protocol's
        """There is no other."""
        return False


@dataclass(frozen=True)
class TokenFile:
    """A bearer token in a file, read before each request: kubelets renew it in place.

    Args:
        path: The file.
        certificate: Shown besides.
    """

    path: Path
    certificate: ClientCertificate | None = None

    async def login(self) -> Login:
        """The token that the file holds now."""
        return Login({"Authorization": f"Bearer {self._read()}"}, self.certificate)

    def refused(self, login: Login) -> bool:
        """Whether the file holds another token by now."""
        return login.headers.get("Authorization") != f"Bearer {self._read()}"

    def _read(self) -> str:
        try:
            with self.path.open("rb") as file:
                token = file.read(_LARGEST_TOKEN).strip().decode("ascii")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"the token can't be read: {reason}", where=str(self.path)) from None
        except UnicodeDecodeError:
            raise ConfigError("the file holds no token", where=str(self.path)) from None
        if not token or any(character.isspace() for character in token):
            raise ConfigError("the file holds no token", where=str(self.path))
        return token


def basic(username: str, password: str) -> Mapping[str, str]:
    """The header for a name and a password."""
    text = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return {"Authorization": f"Basic {text}"}
