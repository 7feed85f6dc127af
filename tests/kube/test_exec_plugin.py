"""Programs that print credentials, and all the ways in which they don't."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from draht.kube import NODES, Client, Config, ConfigError
from draht.kube.exec_plugin import ExecPlugin
from draht.kube.kubeconfig import ExecConfig, Variable
from fake_apiserver import FakeApiServer

V1 = "client.authentication.k8s.io/v1"


def printed(**status: str) -> str:
    """What a good program prints."""
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def plugin(directory: Path, script: str, **options: Any) -> ExecPlugin:
    """A plug-in that runs a shell script."""
    program = directory / "login"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    config = ExecConfig(
        api_version=V1,
        command="./login",
        args=("--for", "draht"),
        env=(Variable("ADDED", "yes"),),
        install_hint=options.pop("install_hint", ""),
        provide_cluster_info=options.pop("provide_cluster_info", False),
    )
    environ = {"PATH": os.environ["PATH"]}
    return ExecPlugin(config, "jane", str(directory), {"server": "https://x"}, environ, **options)


def test_its_token_is_kept_until_it_expires(tmp_path: Path) -> None:
    """The program runs once for all requests, and again when its credentials are over or refused."""
    now = [0.0]
    runs = tmp_path / "runs"
    text = printed(token="t", expirationTimestamp="1970-01-01T00:01:00Z")
    login = plugin(tmp_path, f"echo run >> {runs}; echo '{text}'", now=lambda: now[0])

    async def main() -> None:
        logins = await asyncio.gather(*(login.login() for _ in range(5)))
        assert {one.headers["Authorization"] for one in logins} == {"Bearer t"}
        assert runs.read_text().split() == ["run"]
        now[0] = 61.0
        second = await login.login()
        assert len(runs.read_text().split()) == 2
        now[0] = 0.0
        assert login.refused(second)
        await login.login()
        assert len(runs.read_text().split()) == 3
        assert login.refused(second)  # by a request that was sent before: there is a later one already
        await login.login()
        assert len(runs.read_text().split()) == 3

    asyncio.run(main())


def test_its_failure_serves_all_requests_that_waited(tmp_path: Path) -> None:
    """The program runs once for them, and again for the next one."""
    runs = tmp_path / "runs"
    login = plugin(tmp_path, f"echo run >> {runs}; exit 1")

    async def main() -> None:
        for times in (1, 2):
            failures = await asyncio.gather(*(login.login() for _ in range(5)), return_exceptions=True)
            assert [type(failure) for failure in failures] == [ConfigError] * 5
            assert len(runs.read_text().split()) == times

    asyncio.run(main())


def test_requests_that_end_while_it_starts_hang_nowhere(tmp_path: Path) -> None:
    """Whenever they are cancelled, the next one gets its own run of the program."""
    login = plugin(tmp_path, f"echo '{printed(token='t')}'", now=lambda: 0.0)

    async def main() -> None:
        async with asyncio.timeout(20):
            for turns in range(20):
                asking = asyncio.create_task(login.login())
                for _ in range(turns):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                kept = await login.login()
                login.refused(kept)

    asyncio.run(main())


def test_it_learns_what_is_asked_of_it(tmp_path: Path) -> None:
    """Arguments, added variables and the ExecCredential of the request are what the documentation says."""
    script = f'''
        echo "$@ $ADDED" > "{tmp_path}/args"
        echo "$KUBERNETES_EXEC_INFO" > "{tmp_path}/info"
        echo '{printed(token="t")}'
    '''
    asyncio.run(plugin(tmp_path, script, provide_cluster_info=True).login())
    assert (tmp_path / "args").read_text() == "--for draht yes\n"
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no session: run login' >&2; exit 3", "ended with status 3: no session: run login"),
        ("exit 1", "ended with status 1"),
        ("printf '\\033[31mred\\033[0m' >&2; exit 1", "ended with status 1: ·[31mred·[0m"),
        ("kill -9 $$", "ended with status -9"),
        ("echo hello", "printed no ExecCredential"),
        ("true", "printed no ExecCredential"),
        ("echo '[]'", "printed no ExecCredential"),
        ("echo '{}'", "printed something without a kind instead of"),
        (f"echo '{printed()}'", "printed an ExecCredential without token and certificate"),
        (f"echo '{printed(clientCertificateData='x')}'", "printed a client certificate without its key"),
        (
            f"echo '{printed(token='t').replace('/v1', '/v1beta1')}'",
            "printed client.authentication.k8s.io/v1beta1 ExecCredential instead of",
        ),
        (f"echo '{printed(token='t', expirationTimestamp='soon')}'", 'printed "soon" as expiration'),
        ("cat /dev/urandom | head -c 3000000", "printed no ExecCredential"),
    ],
)
def test_a_program_that_does_not_is_named_with_what_it_says(tmp_path: Path, script: str, message: str) -> None:
    """The error has the program, the user's entry, and what the program printed for a person."""
    with pytest.raises(ConfigError) as raised:
        asyncio.run(plugin(tmp_path, script).login())
    assert f"the credential program ./login {message}" in raised.value.message
    assert raised.value.where == "user jane"
    assert "run it yourself" in (raised.value.hint or "")
    assert raised.value.message.isprintable()


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """Nothing of it is left after the bound."""
    login = plugin(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; wait", timeout=0.5)
    with pytest.raises(ConfigError, match=r"printed nothing within 0.5 s"):
        asyncio.run(login.login())
    child = int((tmp_path / "child").read_text())
    status = Path(f"/proc/{child}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_a_program_that_is_not_there_has_its_own_hint(tmp_path: Path) -> None:
    """The kubeconfig's install hint is what helps."""
    login = plugin(tmp_path, "true", install_hint="get it from your administrator")
    (tmp_path / "login").unlink()
    with pytest.raises(ConfigError, match=r"can't be started: no such file") as raised:
        asyncio.run(login.login())
    assert raised.value.hint == "get it from your administrator"


def test_a_refused_token_is_replaced_once(tmp_path: Path) -> None:
    """A token that the server no longer takes is asked for again; if that doesn't help, the error is the server's."""
    counter = tmp_path / "count"
    counter.write_text("")
    text = printed(token="TOKEN").replace("TOKEN", "token-'$(wc -c < count)'")
    login = plugin(tmp_path, f"cd {tmp_path}; printf x >> count; echo '{text}'")
    accepted = {"Bearer token-2"}

    async def main() -> None:
        async with FakeApiServer(authorize=lambda request: request.headers["authorization"] in accepted) as server:
            server.put("nodes", {"metadata": {"name": "n"}})
            async with Client(Config(server.address, credentials=login)) as client:
                assert (await client.get(NODES, "n")).metadata.name == "n"
                assert counter.read_text() == "xx"
                accepted.clear()
                with pytest.raises(Exception, match="Unauthorized") as raised:
                    await client.get(NODES, "n")
                assert "kubectl auth whoami" in (getattr(raised.value, "hint", "") or "")
                assert counter.read_text() == "xxx"

    asyncio.run(main())
