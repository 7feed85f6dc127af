"""The manifests in ``deploy/`` fit the program, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import yaml

from draht.api.conversion import from_v1
from draht.api.reader import read_files
from draht.cli.node import node
from draht.driver.vendors.classes import device_classes
from draht.hardware import profiles

DEPLOY = Path(__file__).parents[2] / "deploy"
AGENT = "system:serviceaccount:draht-system:draht-node"


def documents(path: Path) -> list[Mapping[str, Any]]:
    """The YAML documents of a file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def agent() -> Mapping[str, Any]:
    """The pod of the agent."""
    (daemon_set,) = documents(DEPLOY / "agent/daemon-set.yaml")
    spec: Mapping[str, Any] = daemon_set["spec"]["template"]["spec"]
    return spec


def options() -> Iterator[click.Option]:
    """The options of ``draht node``."""
    for parameter in node.params:
        assert isinstance(parameter, click.Option)
        yield parameter


def test_the_classes_are_those_of_the_program() -> None:
    """Name, selectors and extended resource."""
    read = read_files([DEPLOY / "classes/device-classes.yaml"])
    assert not read.problems
    assert tuple(located.object for located in read.objects) == device_classes()


def test_older_servers_get_the_classes_that_they_know() -> None:
    """The same in v1beta1; extended resources of classes came later."""
    read = read_files([DEPLOY / "overlays/older/device-classes.yaml"])
    assert not read.problems
    plain = [
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, extended_resource_name=None))
        for each in device_classes()
    ]
    assert [located.object for located in read.objects] == [from_v1(each, "v1beta1") for each in plain]


def test_the_agent_is_told_what_it_asks_for() -> None:
    """The environment that the manifests set is read by options of the command, and required ones are given."""
    (container,) = agent()["containers"]
    given = {each["name"] for each in container["env"]}
    read = {str(option.envvar): option for option in options() if option.envvar}
    assert given <= read.keys()
    assert {name for name, option in read.items() if option.required} <= given
    assert container["args"] == [node.name]


def test_the_agent_has_every_directory_that_it_writes() -> None:
    """The defaults of the command lie in volumes of the pod."""
    (container,) = agent()["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in agent()["volumes"]}
    defaults = {option.name: option.default for option in options()}
    root = str(defaults["kubelet_root"])
    wanted = {f"{root}/plugins", f"{root}/plugins_registry", f"{root}/device-plugins", str(defaults["metadata_dir"])}
    wanted |= {"/var/run/cdi", "/var/lib/draht"}
    assert wanted <= mounts.keys()
    for path in wanted:
        assert volumes[mounts[path]] == path, "a socket or CDI spec must have the same path inside and outside"


def test_probes_ask_the_port_that_the_agent_listens_on() -> None:
    """And the annotation for Prometheus names it as well."""
    (container,) = agent()["containers"]
    listen = next(str(option.default) for option in options() if option.name == "listen")
    assert container["ports"] == [{"name": "http", "containerPort": int(listen.rpartition(":")[2])}]
    (daemon_set,) = documents(DEPLOY / "agent/daemon-set.yaml")
    annotations = daemon_set["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == listen.rpartition(":")[2]


def test_policies_are_about_the_account_that_the_agent_has() -> None:
    """A renamed account would be free of them."""
    (account,) = documents(DEPLOY / "agent/service-account.yaml")
    name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
    assert f"system:serviceaccount:{namespace}:{name}" == AGENT
    assert agent()["serviceAccountName"] == name
    for file in ("slice-policy.yaml", "node-policy.yaml", "claim-policy.yaml"):
        policy = documents(DEPLOY / "agent" / file)[0]
        assert policy["spec"]["matchConditions"] == [
            {"name": "is-agent", "expression": f'request.userInfo.username == "{AGENT}"'}
        ]
        assert policy["spec"]["failurePolicy"] == "Fail"


@pytest.mark.parametrize("overlay", ["simulated", "older"])
def test_a_simulated_overlay_names_a_machine_that_there_is(overlay: str) -> None:
    """A profile that is shipped, under the variable that the command reads."""
    (kustomization,) = documents(DEPLOY / "overlays" / overlay / "kustomization.yaml")
    (added,) = [change["value"] for patch in kustomization["patches"] for change in _changes(patch["patch"])]
    assert added["name"] in {str(option.envvar) for option in options()}
    assert added["value"] in profiles.names()


def _changes(text: str) -> list[Mapping[str, Any]]:
    changes: list[Mapping[str, Any]] = yaml.safe_load(text)
    return changes


def test_no_manifest_gives_more_than_is_used() -> None:
    """No wildcards, no secrets, no verbs on whole groups."""
    for path in ("agent/permissions.yaml", "controller/permissions.yaml"):
        rules = [rule for each in documents(DEPLOY / path) for rule in each.get("rules", ())]
        assert rules
        for rule in rules:
            words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert "*" not in words
            assert "secrets" not in words
