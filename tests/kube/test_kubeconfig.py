"""Which server and who one is: the order of files, merging, and what a person is told when it doesn't fit."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from draht.api import yaml
from draht.kube import Config, ConfigError
from draht.kube.credentials import Fixed, TokenFile


def config(name: str = "one", server: str = "https://one.example.com:6443", /, **user: Any) -> dict[str, Any]:
    """A kubeconfig with one of each, all of one name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def write(path: Path, content: dict[str, Any] | str) -> Path:
    """A file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.dump(content))
    return path


def token(found: Config) -> str:
    """The token that the next request carries."""
    return asyncio.run(found.credentials.login()).headers["Authorization"].removeprefix("Bearer ")


def test_the_order_is_that_of_kubectl(tmp_path: Path) -> None:
    """The named file wins over KUBECONFIG, that over the home directory, that over the pod's service account."""
    named = write(tmp_path / "named", config("named"))
    listed = write(tmp_path / "listed", config("listed"))
    write(tmp_path / "home/.kube/config", config("home"))
    account = tmp_path / "account"
    write(account / "token", "secret\n")
    write(account / "namespace", "team\n")
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    environ = {"KUBECONFIG": str(listed), "HOME": str(tmp_path / "home"), **pod}

    def load(environ: dict[str, str], **options: Any) -> Config:
        return Config.load(environ=environ, in_cluster_root=account, **options)

    assert load(environ, kubeconfig=named).context == "named"
    assert load(environ).context == "listed"
    assert load({**environ, "KUBECONFIG": ""}).context == "home"
    inside = load({**environ, "KUBECONFIG": "", "HOME": str(tmp_path)})
    assert (inside.server, inside.namespace, token(inside)) == ("https://[fd00::1]:443", "team", "secret")
    with pytest.raises(ConfigError, match="no cluster is configured") as raised:
        load({"HOME": str(tmp_path)})
    assert "--kubeconfig" in (raised.value.hint or "")
    (account / "token").unlink()
    with pytest.raises(ConfigError, match="no service account token"):
        load(pod)


def test_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    """A later file's entry counts only where no earlier file has one of its name; missing files are passed over."""
    one = config("shared", "https://first.example.com", token="a")
    one["current-context"] = ""
    two = config("shared", "https://second.example.com", token="b")
    two["contexts"].append({"name": "other", "context": {"cluster": "shared", "user": "shared", "namespace": "ns"}})
    two["current-context"] = "other"
    paths = [tmp_path / "missing", write(tmp_path / "one", one), write(tmp_path / "two", two)]
    found = Config.load(environ={"KUBECONFIG": ":".join(map(str, paths)) + ":"})
    assert (found.context, found.namespace, found.server) == ("other", "ns", "https://first.example.com")
    assert token(found) == "a"
    assert Config.load(environ={"KUBECONFIG": ":".join(map(str, paths))}, context="shared").namespace == "default"


def test_paths_are_relative_to_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the file itself is named by a relative path, and the working directory changes afterwards."""
    content = config(tokenFile="secret")
    content["clusters"][0]["cluster"]["certificate-authority"] = "../ca.crt"
    write(tmp_path / "kube/config", content)
    write(tmp_path / "kube/secret", "t")
    monkeypatch.chdir(tmp_path)
    found = Config.load(kubeconfig=Path("kube/config"), environ={})
    monkeypatch.chdir("/")
    assert token(found) == "t"
    assert found.trust.authority == tmp_path / "kube/../ca.crt"


def test_data_wins_over_a_path(tmp_path: Path) -> None:
    """As in kubectl; line breaks inside of base64 are no mistake."""
    content = config()
    content["clusters"][0]["cluster"] |= {
        "certificate-authority": "ca.crt",
        "certificate-authority-data": base64.encodebytes(b"PEM" * 40).decode(),
    }
    assert Config.load(kubeconfig=write(tmp_path / "c", content), environ={}).trust.authority == b"PEM" * 40


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (lambda c: c.update({"current-context": "else"}), 'there is no context "else"', "there is: one"),
        (lambda c: c.update({"current-context": ""}), "no current context is set", "use-context`: one"),
        (lambda c: c.update(clusters=[]), 'names the cluster "one", which isn\'t there', "there is: none"),
        (lambda c: c.update(users=[]), 'names the user "one", who isn\'t there', ""),
        (lambda c: c["clusters"][0].update(cluster={}), "the cluster has no server", "https://host:port"),
        (lambda c: c["clusters"][0]["cluster"].update(server="ftp://x"), 'server "ftp://x" is no address', ""),
        (lambda c: c["clusters"][0]["cluster"].update(server="https://x:port"), "is no address", ""),
        (lambda c: c["clusters"][0]["cluster"].update({"proxy-url": "socks5://x:1"}), "no http:// address", "HTTP"),
        (lambda c: c["clusters"][0]["cluster"].update({"certificate-authority-data": "?"}), "no base64", ""),
        (
            lambda c: c["clusters"][0]["cluster"].update(
                {"certificate-authority": "x", "insecure-skip-tls-verify": True}
            ),
            "says not to look at it",
            "remove one",
        ),
        (lambda c: c["users"][0].update(user={"client-certificate": "c"}), "client-key is missing", ""),
        (lambda c: c["users"][0].update(user={"auth-provider": {"name": "gcp"}}), "ended with Kubernetes 1.26", "exec"),
        (lambda c: c["users"][0].update(user={"token": "a\nb"}), "line breaks", ""),
        (lambda c: c["users"][0].update(user={"as-groups": ["g"]}), "need as", ""),
        (lambda c: c["users"][0].update(user={"exec": {"apiVersion": "v7", "command": "x"}}), 'apiVersion "v7"', "v1"),
        (
            lambda c: c["users"][0].update(
                user={
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": "x",
                        "interactiveMode": "Always",
                    }
                }
            ),
            "wants a terminal",
            "",
        ),
        (lambda c: c.update(clusters={}), "expected `array`, got `object` in clusters", "kubectl config view"),
        (lambda c: c["clusters"][0].pop("name"), "missing required field `name` in clusters[0]", ""),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path: Path, change: Any, message: str, hint: str) -> None:
    """One sentence, which file, and what to do."""
    content = config()
    change(content)
    path = write(tmp_path / "config", content)
    with pytest.raises(ConfigError) as raised:
        Config.load(kubeconfig=path, environ={})
    assert message in raised.value.message
    assert str(path) in (raised.value.where or "")
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("clusters: [\nusers: {", ":3:1"),
        ("clusters:\n\t- x", ":2:1"),
        ("- a\n- b\n", ""),
        ("just words", ""),
        ("a: &a [*a]", ":1:4"),
        ("\x00", ""),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_never_passed_over(tmp_path: Path, text: str, where: str) -> None:
    """The next file might lead to another cluster."""
    bad = write(tmp_path / "bad", text)
    good = write(tmp_path / "good", config())
    with pytest.raises(ConfigError) as raised:
        Config.load(environ={"KUBECONFIG": f"{bad}:{good}"})
    assert f"{bad}{where}" in (raised.value.where or "")


def test_files_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    """A missing file that was named, and a directory."""
    with pytest.raises(ConfigError, match="there is no such kubeconfig"):
        Config.load(kubeconfig=tmp_path / "none", environ={})
    with pytest.raises(ConfigError, match="is a directory"):
        Config.load(kubeconfig=tmp_path, environ={})
    with pytest.raises(ConfigError, match='no context "x": no kubeconfig was found'):
        Config.load(environ={}, context="x")


@pytest.mark.parametrize(
    ("server", "written", "environ", "proxy"),
    [
        ("https://a.example.com", "", {}, None),
        ("https://a.example.com", "http://p:1", {"HTTPS_PROXY": "http://q:2"}, "http://p:1"),
        ("https://a.example.com", "", {"HTTPS_PROXY": "q:2"}, "http://q:2"),
        ("https://a.example.com", "", {"https_proxy": "http://q:2"}, "http://q:2"),
        ("https://a.example.com", "", {"HTTP_PROXY": "http://q:2"}, None),
        ("https://127.0.0.1:6443", "", {"HTTPS_PROXY": "q:2"}, None),
        ("https://localhost:6443", "", {"HTTPS_PROXY": "q:2"}, None),
        ("https://a.example.com", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "*"}, None),
        ("https://a.example.com", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "x, .example.com"}, None),
        ("https://a.example.com", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "example.com"}, None),
        ("https://a.example.com", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "ample.com"}, "http://q:2"),
        ("https://a.example.com:1", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "a.example.com:2"}, "http://q:2"),
        ("https://a.example.com:2", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "a.example.com:2"}, None),
        ("https://10.9.8.7", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://11.9.8.7", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "10.0.0.0/8,/"}, "http://q:2"),
        ("https://[fd00::1]", "", {"HTTPS_PROXY": "q:2", "NO_PROXY": "fd00::/8"}, None),
    ],
)
def test_the_proxy_is_the_one_that_kubectl_takes(
    tmp_path: Path, server: str, written: str, environ: dict[str, str], proxy: str | None
) -> None:
    """The kubeconfig's wins; the environment's has exceptions."""
    content = config("one", server)
    if written:
        content["clusters"][0]["cluster"]["proxy-url"] = written
    assert Config.load(kubeconfig=write(tmp_path / "c", content), environ=environ).proxy == proxy


def test_null_is_nothing_and_unknown_fields_are_ignored(tmp_path: Path) -> None:
    """Every tool writes fields of its own, and kubectl writes null for empty lists."""
    content = config(token=None, username="u", password="p")
    content |= {"preferences": {}, "extensions": [{"name": "x", "extension": {"deep": 1}}]}
    content["users"].append({"name": "nobody", "user": None})
    found = Config.load(kubeconfig=write(tmp_path / "c", content), environ={})
    assert asyncio.run(found.credentials.login()).headers == {"Authorization": "Basic dTpw"}
    empty = "clusters: null\ncontexts: null\nusers: null\n"
    with pytest.raises(ConfigError, match="no cluster is configured"):
        Config.load(kubeconfig=write(tmp_path / "empty", empty), environ={})


def test_acting_for_somebody_is_sent_along(tmp_path: Path) -> None:
    """What impersonates is a header of its own for each field."""
    content = config(token="t")
    content["users"][0]["user"] |= {"as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"why": ["x"]}}
    found = Config.load(kubeconfig=write(tmp_path / "c", content), environ={})
    assert found.headers == {
        "Impersonate-User": "jane",
        "Impersonate-Group": ("a", "b"),
        "Impersonate-Extra-why": ("x",),
    }


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    """What is logged for debugging has no token and no password in it."""
    content = config(token="very-secret")
    found = Config.load(kubeconfig=write(tmp_path / "c", content), environ={})
    assert isinstance(found.credentials, Fixed)
    assert "very-secret" not in f"{found} {found.credentials}"


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """A token that was replaced is used with the next request; an empty or missing file is named."""
    path = write(tmp_path / "token", "one\n")
    file = TokenFile(path)
    login = asyncio.run(file.login())
    assert login.headers == {"Authorization": "Bearer one"}
    assert not file.refused(login)
    path.write_text("two")
    assert file.refused(login)
    assert asyncio.run(file.login()).headers == {"Authorization": "Bearer two"}
    for bad in ("", " \n", "a b", "ü"):
        path.write_text(bad)
        with pytest.raises(ConfigError, match="holds no token"):
            asyncio.run(file.login())
    path.unlink()
    with pytest.raises(ConfigError, match=r"token: the token can't be read: no such file"):
        asyncio.run(file.login())
