"""Certificates: who is trusted, what is shown, and what a person is told when a certificate is over."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster.certificates import Authority, Pair
from draht.kube import Client, Config, ConfigError, UnreachableError
from draht.kube.tls import ClientCertificate, Trust
from fake_apiserver import FakeApiServer
from requirements import require


class Certificates(NamedTuple):
    """What the tests of this page use."""

    authority: Path
    server: Pair
    expired: Pair
    client: Pair
    stranger: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, a server's certificate that is good and one that is over, a client's, and another authority."""
    require(shutil.which("openssl"), "no openssl (Debian package openssl)")
    directory = tmp_path_factory.mktemp("tls") / "ca"
    ours = Authority(directory)
    ours.make()
    other = Authority(directory.parent / "other")
    other.make()
    server = ours.server("server", "server", ("DNS:localhost",))
    return Certificates(
        ours.certificate, server, expired(ours, directory), ours.client("jane", "jane"), other.certificate
    )


def expired(authority: Authority, directory: Path) -> Pair:
    """A certificate for localhost that ended years ago; only ``openssl ca`` takes dates in every version."""
    pair = Pair(directory / "old.crt", directory / "old.key")
    configuration = directory / "sign.cnf"
    configuration.write_text(
        f"[req]\ndistinguished_name = names\n[names]\n[ca]\ndefault_ca = here\n[here]\ndatabase = {directory}/index\n"
        f"serial = {directory}/serial\nnew_certs_dir = {directory}\ndefault_md = sha256\npolicy = any\n"
        "copy_extensions = copy\n[any]\ncommonName = supplied\n"
    )
    (directory / "index").touch()
    (directory / "serial").write_text("01\n")
    common = ["-config", str(configuration)]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(pair.key)]
    request = ["-out", str(directory / "old.csr"), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    dates = ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z", "-out", str(pair.certificate)]
    signed = ["-batch", "-notext", "-in", str(directory / "old.csr"), "-cert", str(authority.certificate)]
    for command in (["req", *common, *key, *request], ["ca", *common, *signed, "-keyfile", str(authority.key), *dates]):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=60)
    return pair


def serving(pair: Pair, *, clients: Path | None = None) -> ssl.SSLContext:
    """A server's side, perhaps one that wants to see a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    if clients is not None:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def ask(context: ssl.SSLContext, trust: Trust, shown: ClientCertificate | None = None) -> str:
    """Ask a server for its version."""
    from draht.kube.credentials import Fixed, Login

    async def main() -> str:
        async with FakeApiServer(tls=context) as server:
            config = Config(server.address, trust=trust, credentials=Fixed(Login({}, shown)))
            async with Client(config, sleep=lambda _: asyncio.sleep(0)) as client:
                return await client.version()

    return asyncio.run(main())


@pytest.mark.parametrize("as_data", [False, True])
def test_files_and_data_are_trusted_and_shown(certificates: Certificates, as_data: bool) -> None:
    """The authority, the certificate and its key may be files or text of the kubeconfig."""
    files = (certificates.authority, certificates.client.certificate, certificates.client.key)
    authority, certificate, key = (path.read_bytes() if as_data else path for path in files)
    context = serving(certificates.server, clients=certificates.authority)
    assert ask(context, Trust(authority), ClientCertificate(certificate, key)) == "v1.0.0-fake"


@pytest.mark.parametrize(
    ("server", "trust", "words"),
    [
        ("expired", lambda c: Trust(c.authority), "the server's certificate isn't trusted: certificate has expired"),
        ("server", lambda c: Trust(c.stranger), "isn't trusted: "),
        ("server", lambda _: Trust(), "isn't trusted: "),
        ("server", lambda c: Trust(c.authority, server_name="elsewhere"), "Hostname mismatch"),
    ],
    ids=["expired", "another authority", "the system's authorities", "another name"],
)
def test_a_server_that_is_not_trusted_is_not_asked(
    certificates: Certificates, server: str, trust: object, words: str
) -> None:
    """The error says why, and that a clock or a proxy may be the reason."""
    made = trust(certificates)  # type: ignore[operator]
    with pytest.raises(UnreachableError) as raised:
        ask(serving(getattr(certificates, server)), made)
    assert words in raised.value.message
    assert "certificate-authority-data" in (raised.value.hint or "")


def test_no_verification_talks_to_anybody(certificates: Certificates) -> None:
    """insecure-skip-tls-verify means it, for a certificate that is over and for another name."""
    assert ask(serving(certificates.expired), Trust(verify=False, server_name="elsewhere")) == "v1.0.0-fake"


def test_a_server_that_wants_a_certificate_and_sees_none(certificates: Certificates) -> None:
    """The person is told that it is about the secure connection."""
    context = serving(certificates.server, clients=certificates.authority)
    with pytest.raises(UnreachableError) as raised:
        ask(context, Trust(certificates.authority))
    assert raised.value.hint is not None


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        (b"no PEM", b"no PEM", "the client certificate and key can't be used"),
        (None, b"", "the client certificate and key can't be used"),
        (None, "stranger", "the client certificate and key can't be used"),
        (None, Path("/nowhere"), "the client key can't be read: no such file"),
    ],
)
def test_a_certificate_that_is_none_is_named(
    certificates: Certificates, certificate: bytes | None, key: bytes | str | Path, words: str
) -> None:
    """A wrong key, an empty one and text that is no PEM are told before anything is sent."""
    if key == "stranger":
        key = certificates.server.key
    assert not isinstance(key, str)
    shown = ClientCertificate(certificate if certificate is not None else certificates.client.certificate, key)
    with pytest.raises(ConfigError, match=words):
        Trust(certificates.authority).context(shown)


def test_an_encrypted_key_asks_nobody(certificates: Certificates, tmp_path: Path) -> None:
    """OpenSSL would ask on the terminal and wait for ever."""
    encrypted = tmp_path / "key"
    files = ["-in", str(certificates.client.key), "-out", str(encrypted)]
    command = ["openssl", "pkcs8", "-topk8", *files, "-passout", "pass:secret"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with pytest.raises(ConfigError, match="the client key is encrypted"):
        Trust(certificates.authority).context(ClientCertificate(certificates.client.certificate, encrypted))


def test_an_authority_that_is_none_is_named(tmp_path: Path) -> None:
    """As a file, as text, and missing."""
    bad = tmp_path / "ca.crt"
    bad.write_text("hello")
    for trust in (Trust(bad), Trust(b"hello"), Trust(b"\xff")):
        with pytest.raises(ConfigError, match="the certificate authority is no PEM certificate"):
            trust.context(None)
    with pytest.raises(ConfigError, match="the certificate authority can't be read: no such file"):
        Trust(tmp_path / "none").context(None)


def test_a_renewed_certificate_is_shown_with_the_next_connection(certificates: Certificates, tmp_path: Path) -> None:
    """A context is kept as long as no file changed, because connections are kept by context."""
    pair = Pair(tmp_path / "c", tmp_path / "k")
    shutil.copy(certificates.client.certificate, pair.certificate)
    shutil.copy(certificates.client.key, pair.key)
    trust = Trust(certificates.authority)
    shown = ClientCertificate(pair.certificate, pair.key)
    first = trust.context(shown)
    assert trust.context(shown) is first
    shutil.copy(certificates.server.certificate, pair.certificate)
    shutil.copy(certificates.server.key, pair.key)
    assert trust.context(shown) is not first
