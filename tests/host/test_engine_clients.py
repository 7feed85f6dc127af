"""What the adapters make of podman's and docker's answers, those of other machines and broken ones included."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from draht.host.engine import CommandError, ContainerRequest, EngineError, Node, NoSuchContainerError, RequestError
from draht.host.engines.command import Command, first_sentence
from draht.host.engines.docker import Docker
from draht.host.engines.podman import Podman
from draht.host.machine import Machine
from fake_client import FakeClient

PLAIN = Machine(
    cgroups="v2",
    cgroups_writable=True,
    effective_capabilities=(1 << 41) - 1,
    nofile=None,
    nproc=None,
    pid_max=4194304,
    systemd=True,
)
SMALL = dataclasses.replace(
    PLAIN, cgroups="hybrid", effective_capabilities=0, nofile=20_000, nproc=96_365, pid_max=32_768, systemd=False
)


def podman_info(version: str = "5.4.2", **host: Any) -> dict[str, Any]:
    """What ``podman info`` says."""
    given = {"cgroupManager": "systemd", "ociRuntime": {"name": "crun"}, "security": {"rootless": False}, **host}
    return {"host": given, "version": {"Version": version}}


@pytest.fixture
def client(tmp_path: Path) -> FakeClient:
    """A fake podman that knows itself."""
    fake = FakeClient(tmp_path, "podman")
    return fake.answer("info", podman_info()).answer("--help", "--cdi-spec-dir path").answer("rm")


def podman(client: FakeClient, machine: Machine = PLAIN, *, runc: bool = True) -> Podman:
    """The adapter over the fake."""
    return Podman(str(client.path), machine=machine, which=lambda name: f"/usr/sbin/{name}" if runc else None)


def request(**fields: Any) -> ContainerRequest:
    """A request for an image."""
    return ContainerRequest(**{"hold": "h1", "name": "draht-h1", "image": "busybox", "command": ("true",), **fields})


@pytest.mark.parametrize(
    ("version", "reads"),
    [
        ("4.0.2", None),
        ("4.3.1", "0.5.0"),
        ("4.9.3-dev", "0.6.0"),
        ("5.4.2", "0.8.0"),
        ("6.7.0", "1.1.0"),
        ("", "0.4.0"),
    ],
)
def test_podman_s_version_says_what_it_reads(client: FakeClient, version: str, reads: str | None) -> None:
    """Too old is unusable, unknown is taken as the oldest that reads CDI."""
    client.answer("info", podman_info(version))
    info = podman(client).info()
    assert (info.cdi_version, info.usable) == (reads, reads is not None)
    assert [problem.kind for problem in info.problems] == ([] if reads else ["engine-without-cdi"])


def test_podman_that_knows_the_option_is_told_where_specs_are(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer podman reads /etc/cdi alone unless told; older has no option and reads both default directories."""
    monkeypatch.setenv("DRAHT_CDI_DIR", "/somewhere/cdi")
    assert podman(client).info().spec_directories == ("/etc/cdi", "/somewhere/cdi")
    client.answer("image exists").answer("create", "c0ffee\n").answer("init")
    podman(client).create(request())
    (call,) = client.calls("create")
    assert call[:4] == ["--cdi-spec-dir", "/etc/cdi", "--cdi-spec-dir", "/somewhere/cdi"]
    client.answer("--help", "nothing of interest")
    assert podman(client).info().spec_directories == ("/etc/cdi", "/var/run/cdi")


@pytest.mark.parametrize(
    ("machine", "host", "runc", "options", "limits", "problems"),
    [
        (PLAIN, {}, True, [], [], []),
        (
            SMALL,
            {},
            True,
            ["--runtime", "/usr/sbin/runc", "--cgroup-manager", "cgroupfs"],
            ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=32768:32768"],
            [
                ("crun-on-hybrid-cgroups", "note"),
                ("cgroup-manager-without-systemd", "note"),
                ("small-limits", "note"),
            ],
        ),
        (
            dataclasses.replace(SMALL, systemd=True, nofile=None, nproc=None),
            {},
            False,
            [],
            [],
            [("crun-on-hybrid-cgroups", "broken")],
        ),
        (SMALL, {"ociRuntime": {"name": "runc"}, "cgroupManager": "cgroupfs", "security": {"rootless": True}}, True,
         [], [], []),
        (dataclasses.replace(SMALL, cgroups="v1", systemd=True, effective_capabilities=1 << 24), {}, True, [], [], []),
    ],
    ids=["ordinary", "small-hybrid", "hybrid-without-runc", "rootless", "capable"],
)  # fmt: skip
def test_podman_gets_the_options_that_the_machine_needs(
    client: FakeClient,
    machine: Machine,
    host: dict[str, Any],
    runc: bool,
    options: list[str],
    limits: list[str],
    problems: list[tuple[str, str]],
) -> None:
    """Nobody is asked: crun on hybrid cgroups, no systemd and small limits are seen and said."""
    client.answer("info", podman_info(**host)).answer("--help", "").answer("image exists")
    client.answer("create", "c0ffee\n").answer("init")
    adapter = podman(client, machine, runc=runc)
    adapter.create(request())
    (call,) = client.calls("create")
    assert call[: call.index("create")] == options
    assert [word for pair in _pairs(call, "--ulimit") for word in ("--ulimit", pair)] == limits
    assert [(problem.kind, problem.severity) for problem in adapter.info().problems] == problems


def test_limits_of_the_user_are_left_alone(client: FakeClient) -> None:
    """Only the limit that the user didn't choose is added."""
    client.answer("image exists").answer("create", "c0ffee").answer("init")
    podman(client, SMALL).create(request(engine_args=("--ulimit", "nofile=10:10")))
    assert sorted(_pairs(client.calls("create")[0], "--ulimit")) == ["nofile=10:10", "nproc=32768:32768"]


def test_a_request_becomes_options_of_create(client: FakeClient) -> None:
    """Every field arrives, and what the user adds comes before the image."""
    client.answer("create", "c0ffee").answer("init").answer("image exists")
    asked = request(
        command=("sh", "-c", "exit 1"),
        cdi_names=("nvidia.com/gpu=0", "nvidia.com/gpu=1"),
        labels={"team": "vision"},
        env={"A": "b c"},
        additional_gids=(44, 109),
        interactive=True,
        tty=True,
        network="host",
        engine_args=("--volume", "/data:/data"),
    )
    assert podman(client).create(asked) == "c0ffee"
    (call,) = client.calls("create")
    assert _pairs(call, "--device") == ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]
    assert _pairs(call, "--label") == [
        "team=vision", "draht.dev/hold=h1", "draht.dev/cdi=nvidia.com/gpu=0,nvidia.com/gpu=1"
    ]  # fmt: skip
    assert _pairs(call, "--env") == ["A=b c"]
    assert _pairs(call, "--group-add") == ["44", "109"]
    assert _pairs(call, "--network") == ["host"]
    assert {"--interactive", "--tty"} <= set(call)
    assert call[-8:] == ["--volume", "/data:/data", "--pull", "never", "busybox", "sh", "-c", "exit 1"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"image": None}, "needs either an image or a root file system"),
        ({"rootfs": "/"}, "needs either an image or a root file system"),
        ({"image": "--privileged"}, "is not the name of an image"),
        (
            {"image": None, "rootfs": "/no/such/directory"},
            "/no/such/directory: the root file system is not a directory",
        ),
    ],
)
def test_what_no_engine_can_make_is_refused_before_it_is_asked(
    client: FakeClient, fields: dict[str, Any], message: str
) -> None:
    """No container is created, no image pulled."""
    with pytest.raises(RequestError, match=message):
        podman(client).prepare(request(**fields))
    assert client.calls("create") == []


def test_podman_takes_no_root_file_system_with_a_colon(client: FakeClient, tmp_path: Path) -> None:
    """It would take what follows for an option."""
    (tmp_path / "a:b").mkdir()
    with pytest.raises(RequestError, match="colon in its path"):
        podman(client).prepare(request(image=None, rootfs=str(tmp_path / "a:b")))


def test_a_missing_image_is_pulled_before_devices_are_held(client: FakeClient) -> None:
    """And a failed pull is an error, not a container."""
    client.answer("image exists", status=1).answer("pull busybox")
    podman(client).prepare(request())
    assert client.calls("pull") == [["--cdi-spec-dir", "/etc/cdi", "--cdi-spec-dir", "/var/run/cdi", "pull", "busybox"]]
    client.answer("pull busybox", status=125)
    with pytest.raises(EngineError, match="podman can't pull the image busybox"):
        podman(client).prepare(request())


def test_a_container_that_can_t_be_initialised_is_removed(client: FakeClient) -> None:
    """A failed create leaves nothing, and says why in podman's words."""
    client.answer("image exists").answer("create", "c0ffee\n")
    client.answer("init", stderr='Error: runc: unable to start: exec: "nope": not found in $PATH\n', status=127)
    with pytest.raises(EngineError, match='can\'t create the container: unable to start: exec: "nope": not found'):
        podman(client).create(request())
    assert client.calls("rm")[0][-5:] == ["--force", "--volumes", "--time", "0", "c0ffee"]


def test_a_command_that_is_not_in_the_image_is_told_from_a_program_the_engine_misses(client: FakeClient) -> None:
    """127 is the answer to the user's command; that podman lacks a program of its own is podman's failure."""
    client.answer("image exists").answer("create", stderr='Error: exec: "nope": not found in $PATH\n', status=127)
    with pytest.raises(CommandError) as caught:
        podman(client).create(request())
    assert caught.value.status == 127
    missing = 'Error: command required for rootless mode: exec: "newuidmap": executable file not found in $PATH\n'
    client.answer("info", stderr=missing, status=125)
    (problem,) = podman(client).info().problems
    assert problem.severity == "broken"
    assert "/etc/subuid" in problem.fix
    with pytest.raises(EngineError) as refused:
        podman(client).containers()
    assert not isinstance(refused.value, CommandError)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"ps": ("", "Error: database is locked\n", 125)}, "podman can't list containers: database is locked"),
        ({"ps": ("a b", "", 0), "container inspect": ("no json", "", 0)}, "its answer is not JSON"),
        ({"ps": ("a b", "", 0), "container inspect": ("", "Error: out of memory", 125)}, "out of memory"),
    ],
    ids=["refused", "garbage", "failed"],
)
def test_an_engine_that_can_t_be_asked_is_not_an_empty_one(
    client: FakeClient, answers: Mapping[str, tuple[str, str, int]], message: str
) -> None:
    """Holds on it must not be taken for gone."""
    for command, (stdout, stderr, status) in answers.items():
        client.answer(command, stdout, stderr=stderr, status=status)
    with pytest.raises(EngineError, match=message):
        podman(client).containers()


def test_a_container_that_ends_while_it_is_listed_hides_no_other(client: FakeClient) -> None:
    """``inspect`` then fails and prints the rest."""
    client.answer("ps", "aa\nbb\n").answer(
        "container inspect", [{"Id": "aa", "Name": "one"}], stderr="Error: no such container bb", status=125
    )
    assert [found.id for found in podman(client).containers()] == ["aa"]


def test_an_engine_that_hangs_has_a_deadline(client: FakeClient) -> None:
    """And the error names the command that didn't come back."""
    client.answer("ps", sleep=30)
    with pytest.raises(EngineError, match="podman did not answer `ps` within 0 s"):
        Command("podman", str(client.path)).run("ps", deadline=0.2)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"Status": "initialized", "Pid": 12, "StartedAt": "0001-01-01T00:00:00Z"}, ("created", 12, None, None)),
        ({"Status": "running", "Pid": 13, "StartedAt": "2026-01-01T00:00:00Z"},
         ("running", 13, "2026-01-01T00:00:00Z", None)),
        ({"Status": "paused", "Pid": 13}, ("running", 13, None, None)),
        ({"Status": "stopped", "Pid": 0, "ExitCode": 137}, ("exited", None, None, 137)),
        ({"Status": "removing"}, ("unknown", None, None, None)),
        ({"Status": None, "Pid": "x", "ExitCode": "y"}, ("unknown", None, None, None)),
        (None, ("unknown", None, None, None)),
    ],
)  # fmt: skip
def test_states_are_read_from_inspect(client: FakeClient, state: Any, expected: tuple[Any, ...]) -> None:
    """Paused counts as running, and what isn't understood as unknown."""
    client.answer("ps", "aa").answer("container inspect", [{"Id": "aa", "State": state}])
    (found,) = podman(client).containers()
    assert (found.state, found.pid, found.started_at, found.exit_code) == expected


def test_podman_s_foreign_containers_show_their_devices(client: FakeClient) -> None:
    """CDI names come from the command that made it, nodes from its configuration."""
    command = [
        "podman",
        "run",
        "--device",
        "nvidia.com/gpu=0",
        "--device=amd.com/gpu=1",
        "--device",
        "/dev/fuse",
        "img",
    ]
    inspected = {
        "Id": "aa",
        "Config": {"CreateCommand": command, "Labels": None},
        "HostConfig": {"Privileged": True, "Devices": [{"PathOnHost": "/dev/nvidia0", "PathInContainer": "/dev/x"}]},
    }
    client.answer("ps", "aa").answer("container inspect", [inspected])
    (found,) = podman(client).containers()
    assert (found.hold, found.privileged) == (None, True)
    assert found.cdi_names == ("nvidia.com/gpu=0", "amd.com/gpu=1")
    assert found.device_nodes == (Node(path="/dev/x", host_path="/dev/nvidia0"),)


@pytest.mark.parametrize("status", [0, 1, 125])
def test_removing_what_is_gone_is_no_error(client: FakeClient, status: int) -> None:
    """Whatever the client returns for it."""
    client.answer("rm", stderr='Error: no container with name or ID "x" found: no such container', status=status)
    podman(client).remove("x")


def test_a_container_that_stays_is_an_error(client: FakeClient) -> None:
    """The hold must not be freed then."""
    client.answer("rm", stderr="Error: cannot remove: device or resource busy", status=1)
    client.answer("container inspect", [{"Id": "x"}])
    with pytest.raises(EngineError, match="can't remove container x: cannot remove: device or resource busy"):
        podman(client).remove("x")


@pytest.mark.parametrize(
    ("inspected", "expected"),
    [
        ([{"Id": "aa", "State": {"Status": "exited", "ExitCode": 125}}], 125),
        ([{"Id": "aa", "State": {"Status": "running", "Pid": 1}}], 9),
    ],
    ids=["its-own", "client-lost"],
)
def test_a_status_that_may_be_the_client_s_is_checked(client: FakeClient, inspected: Any, expected: int) -> None:
    """The container may have ended with 125 itself, or run on after its client failed; then it is waited for."""
    client.answer("start", status=125).answer("container inspect", inspected).answer("wait", "9\n")
    assert podman(client).start("aa", attach=True) == expected


def test_a_start_that_failed_is_an_error(client: FakeClient) -> None:
    """Not an exit status of a container that never ran."""
    client.answer("start", status=125)
    client.answer("container inspect", [{"Id": "aa", "State": {"Status": "created", "Error": "no space left"}}])
    with pytest.raises(EngineError, match="podman can't start the container: no space left"):
        podman(client).start("aa", attach=True)


def test_a_start_of_what_is_gone_says_so(client: FakeClient) -> None:
    """Attached or not."""
    client.answer("start", stderr="Error: no such container aa", status=125)
    client.answer("container inspect", stderr="Error: no such container aa", status=125)
    for attach in (True, False):
        with pytest.raises(NoSuchContainerError):
            podman(client).start("aa", attach=attach)


@pytest.mark.parametrize(
    ("program", "reason"),
    [("#!/no/such/interpreter\n", "no such file"), ("\x7fELF garbage", "exec format error")],
)
def test_an_executable_that_is_none_is_a_broken_engine(tmp_path: Path, program: str, reason: str) -> None:
    """Info never raises; the reason is in the finding."""
    path = tmp_path / "podman"
    path.write_text(program, encoding="latin-1")
    path.chmod(0o755)
    info = Podman(str(path), machine=PLAIN).info()
    (problem,) = info.problems
    assert (info.usable, problem.kind, problem.severity) == (False, "engine-fails", "broken")
    assert reason in problem.message


def docker_info(**fields: Any) -> dict[str, Any]:
    """What ``docker info`` says."""
    return {"ServerVersion": "28.3.3", "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"], "SecurityOptions": [], **fields}


@pytest.fixture
def docker(tmp_path: Path) -> FakeClient:
    """A fake docker whose daemon answers."""
    return FakeClient(tmp_path, "docker").answer("info", docker_info()).answer("version", "1.51\n")


@pytest.mark.parametrize(
    ("api", "fields", "reads", "kinds"),
    [
        ("1.51", {}, "1.0.0", []),
        ("1.54", {}, "1.1.0", []),
        ("1.99", {}, "1.1.0", []),
        ("1.47", {"CDISpecDirs": ["/etc/cdi"]}, "0.7.0", []),
        ("1.44", {"CDISpecDirs": None}, "0.6.0", ["docker-cdi-off"]),
        ("1.51", {"CDISpecDirs": []}, "1.0.0", ["docker-cdi-off"]),
        ("1.43", {"CDISpecDirs": None}, None, ["engine-without-cdi"]),
        ("?", {}, "0.6.0", []),
    ],
)
def test_docker_s_api_version_says_what_it_reads(
    docker: FakeClient, api: str, fields: dict[str, Any], reads: str | None, kinds: list[str]
) -> None:
    """And a daemon that has CDI off is broken, with the fix."""
    info = Docker(str(docker.answer("info", docker_info(**fields)).answer("version", api).path)).info()
    assert (info.cdi_version, [problem.kind for problem in info.problems]) == (reads, kinds)
    assert info.usable is not bool(kinds)
    assert all(problem.fix for problem in info.problems)


@pytest.mark.parametrize(
    ("answer", "stderr", "kind"),
    [
        ({"ServerErrors": ["Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?"]}, "",
         "docker-daemon-silent"),
        ({"ServerErrors": ["permission denied while trying to connect to the Docker daemon socket"]}, "",
         "docker-not-allowed"),
        ("", "error during connect: no route to host", "docker-daemon-silent"),
        ("<html>", "", "docker-daemon-silent"),
    ],
    ids=["no-daemon", "no-permission", "no-host", "not-docker"],
)  # fmt: skip
def test_a_daemon_that_does_not_answer_is_a_finding(docker: FakeClient, answer: Any, stderr: str, kind: str) -> None:
    """With what to do about it."""
    info = Docker(str(docker.answer("info", answer, stderr=stderr, status=1).path)).info()
    (problem,) = info.problems
    assert (problem.kind, problem.severity, info.cdi_version) == (kind, "broken", None)


def test_docker_s_foreign_containers_show_their_devices(docker: FakeClient) -> None:
    """CDI requests by name, ``--gpus`` in CDI's words: ids as they are, a count as all."""
    requests = [
        {"Driver": "cdi", "DeviceIDs": ["vendor.com/nic=eth0"]},
        {"Driver": "", "Count": 0, "DeviceIDs": ["0", "GPU-1"], "Capabilities": [["gpu"]]},
        {"Driver": "nvidia", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu", "utility"]]},
        {"Driver": "other", "Count": 1, "Capabilities": [["tpu"]]},
        "garbage",
    ]
    inspected = {"Id": "aa", "Name": "/web", "HostConfig": {"DeviceRequests": requests[:4], "Devices": None}}
    docker.answer("ps", "aa").answer("container inspect", [inspected])
    (found,) = Docker(str(docker.path)).containers()
    assert found.name == "web"
    assert found.cdi_names == (
        "vendor.com/nic=eth0", "nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1", "nvidia.com/gpu=all"
    )  # fmt: skip


def test_a_docker_complaint_about_drivers_names_the_switch(docker: FakeClient) -> None:
    """The daemon's own words don't."""
    docker.answer("image inspect").answer(
        "create",
        stderr='Error response from daemon: could not select device driver "cdi" with capabilities: []',
        status=1,
    )
    with pytest.raises(EngineError, match="could not select device driver") as failure:
        Docker(str(docker.path)).create(request())
    assert '{"features": {"cdi": true}}' in str(failure.value.hint)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Error: it broke.\n", "it broke"),
        ('time="2026-01-01T00:00:00Z" level=warning msg="hm"\nError: runc: it broke: EPERM\n', "it broke: EPERM"),
        ('time="2026-01-01T00:00:00Z" level=error msg="it \\"broke\\""\n', 'it "broke"'),
        ("docker: Error response from daemon: it broke.\n\nRun 'docker --help'\n", "it broke"),
        ("first\nlast\n", "last"),
        ("", ""),
        ("Error: " + "x" * 5000, "x" * 600 + " …"),
    ],
)
def test_an_engine_s_words_become_one_sentence(text: str, sentence: str) -> None:
    """Without log prefixes, warnings and the full stop, and bounded."""
    assert first_sentence(text) == sentence


def _pairs(call: list[str], option: str) -> list[str]:
    return [call[position + 1] for position, word in enumerate(call) if word == option]


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's configuration doesn't reach these tests."""
    monkeypatch.delenv("DRAHT_CDI_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
