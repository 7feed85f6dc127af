"""What a test does to an agent that serves the steered driver (`steered_driver`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.agent import Agent
from cluster.placing import until
from cluster.pods import pod
from cluster.scene import request, template, uses

__all__ = ["CLASS", "DRIVER", "Steering", "died", "steered_pod"]

DRIVER = str(Path(__file__).with_name("steered_driver.py"))
"""For ``--driver``."""
NAME = "steered.example.com"
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": NAME},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{NAME}"'}}]},
}
"""The class of its devices."""
SCRIPT = "echo $STEERED; until test -e /end; do sleep 0.2; done"
"""What its pods do, until somebody makes the file."""


class Steering:
    """The directory that steers.

    Attributes:
        root: The directory; the agent has it as ``$STEERED``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """What the agent needs."""
        return {"STEERED": str(self.root)}

    def wish(self, name: str, text: str = "") -> Path:
        """Make a file that steers."""
        path = self.root / name
        path.write_text(text)
        return path

    @property
    def effects(self) -> list[str]:
        """UIDs of claims that the driver has prepared."""
        return sorted(path.name for path in self.root.glob("effects/*"))


def steered_pod(name: str, kind: str = "plain", **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A template with a device of a kind, and a pod that uses it."""
    entry = [{"name": "device", "resourceClaimTemplateName": name}]
    made = pod(name, SCRIPT, container={"resources": uses("device")}, resourceClaims=entry, **more)
    return template(name, request("device", NAME, selector=f'device.attributes["{NAME}"].kind == "{kind}"')), made


def died(agent: Agent) -> None:
    """Wait until the agent isn't there any more."""
    until(lambda: agent.component.pid is None, lambda: f"it lives:\n{agent.component.log_tail()}")
