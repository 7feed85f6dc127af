"""``draht doctor --node`` on nodes of a real Kubernetes: nothing is found where all is well, and what breaks is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import claiming_pod, get, template, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

PLACES = {"cdi-directory-unusual"}
"""A node of the test cluster has its directories elsewhere, and says so."""


def doctor(agent: Agent, kubeconfig: Path) -> dict[str, str]:
    """Kind → message of what is found on the node of an agent."""
    words = ["--node-name", agent.node.name, "--profile", "l4-x4", "--kubeconfig", str(kubeconfig)]
    words += ["--kubelet-root", str(agent.node.kubelet_root), "--cdi-dir", str(agent.node.cdi_directory)]
    command = [sys.executable, "-m", "draht", "doctor", "--node", *words]
    done = subprocess.run(
        [*command, "--state-dir", str(agent.state_directory), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ},
    )
    found = json.loads(done.stdout)
    assert done.returncode == int(found["broken"]), done.stderr
    return {each["kind"]: each["message"] for each in found["findings"] if each["kind"] not in PLACES}


def test_what_breaks_is_found_and_what_is_well_is_not(
    dra: Cluster, serve: Callable[..., Agent], namespace: str
) -> None:
    """A running pod; then its spec vanishes, the agent dies, and another pod waits for it."""
    node = dra.node_names[0]
    agent = serve(node, "--profile", "l4-x4")
    for each in (template("gpu"), claiming_pod("first", "gpu")):
        dra.apply({**each, "metadata": {**each["metadata"], "namespace": namespace}})
    until(lambda: get(dra, namespace, "pods", "first")["status"]["phase"] == "Running", "the pod doesn't run")
    assert doctor(agent, dra.kubeconfig) == {}

    (spec,) = agent.node.cdi_directory.glob("*claim*")
    content = spec.read_bytes()
    spec.unlink()
    assert set(doctor(agent, dra.kubeconfig)) == {"claim-files-missing"}
    spec.write_bytes(content)

    agent.stop(kill=True)
    past = claiming_pod("past", "gpu", node=node)
    for each in (claiming_pod("second", "gpu"), past):
        dra.apply({**each, "metadata": {**each["metadata"], "namespace": namespace}})
    # The kubelet gives a plugin that is gone half a minute before it removes its slices.
    found = doctor(agent, dra.kubeconfig)
    assert {"driver-not-served", "plugin-socket-dead"} <= set(found)
    waiting = {"driver-not-registered", "claim-not-allocated"}
    until(lambda: waiting <= set(doctor(agent, dra.kubeconfig)), "the waiting pods aren't found")
    dra.kubectl("delete", "pod", "past", "-n", namespace, "--force", "--grace-period=0")
    agent.start()
    until(lambda: get(dra, namespace, "pods", "second")["status"]["phase"] == "Running", "the second pod doesn't run")
    assert doctor(agent, dra.kubeconfig) == {}


def test_the_agents_own_identity_may_ask_what_it_may_see(dra: Cluster, serve: Callable[..., Agent]) -> None:
    """With the permissions of ``deploy/``: pods and events are told as unseen, and nothing is broken."""
    node = dra.node_names[0]
    agent = serve(node, "--profile", "l4-x4")
    deploy = Path(__file__).resolve().parents[2] / "deploy/agent"
    dra.kubectl("apply", "-f", str(deploy / "namespace.yaml"))
    try:
        dra.kubectl("apply", "-f", str(deploy / "service-account.yaml"), "-f", str(deploy / "permissions.yaml"))
        token = dra.service_account_token("draht-system", "draht-node", node=node)
        found = doctor(agent, dra.kubeconfig_for(token=token))
        assert set(found) == {"not-looked-at"}, found
    finally:
        dra.kubectl("delete", "clusterrole,clusterrolebinding", "draht-node", "--ignore-not-found")
        dra.kubectl("delete", "namespace", "draht-system", "--timeout=60s")
