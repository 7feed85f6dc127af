"""A namespace in which a test plays something: pods and claims, and waiting for what becomes of them.

Owns short words for what tests of the agent do again and again. It knows no driver; what is on a node is
`cluster.agent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster.cluster import Cluster
from cluster.errors import CommandError
from cluster.placing import until
from cluster.reader import Reader

__all__ = ["SEEN", "Scene", "claim", "container", "request", "template", "uses"]

SEEN = "env | sed -n 's/^DRAHT_DEVICE_//p' | cut -d= -f1 | sort"
"""Script that prints the devices of draht's own drivers that a container sees."""
KINDS = "pods,resourceclaims,resourceclaimtemplates"


def request(name: str, device_class: str = "gpu.nvidia.com", *, selector: str = "", **exactly: Any) -> dict[str, Any]:
    """A request of a claim."""
    exactly["deviceClassName"] = device_class
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": exactly}


def claim(name: str, *requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    """A ResourceClaim; one GPU if nothing is requested."""
    spec = {"devices": {"requests": list(requests) or [request("gpu")], **devices}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def template(name: str, *requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    """A template of such claims."""
    spec = {"spec": claim(name, *requests, **devices)["spec"]}
    kind = "ResourceClaimTemplate"
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def uses(*entries: str) -> dict[str, Any]:
    """Resources of a container: claims of the pod by name, or ``claim/request``."""
    parts = [entry.partition("/") for entry in entries]
    return {"claims": [{"name": name, **({"request": of} if of else {})} for name, _, of in parts]}


def container(name: str, script: str, image: str, *entries: str, **more: Any) -> dict[str, Any]:
    """A container that runs a shell script and uses claims."""
    return {"name": name, "image": image, "command": ["sh", "-c", script], "resources": uses(*entries), **more}


class Scene:
    """A namespace of a cluster.

    Attributes:
        cluster: The cluster.
        namespace: Its name.
        read: Reads what is at a path of the API server.
    """

    def __init__(self, cluster: Cluster, namespace: str, *, version: str = "v1") -> None:
        """A scene.

        Args:
            cluster: The cluster.
            namespace: The namespace, which is there.
            version: Version of ``resource.k8s.io`` in which objects are read.
        """
        self.cluster = cluster
        self.namespace = namespace
        self.read = Reader(cluster.kubeconfig)
        self._resource_api = f"/apis/resource.k8s.io/{version}"

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """What ``kubectl ARGUMENTS`` writes, in this namespace."""
        return self.cluster.kubectl("--namespace", self.namespace, *arguments, **options)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create or change objects here."""
        self.cluster.apply(
            *({**each, "metadata": {**each["metadata"], "namespace": self.namespace}} for each in objects)
        )

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind in plural: those of the namespace, or slices and nodes."""
        items = self.read(self._path(kind)).get("items", [])
        found: list[dict[str, Any]] = items
        return found

    def object(self, kind: str, name: str) -> dict[str, Any]:
        """An object."""
        return self.read(f"{self._path(kind)}/{name}")

    def _path(self, kind: str) -> str:
        api = self._resource_api if kind.startswith("resource") else "/api/v1"
        return f"{api}/{kind}" if kind in {"resourceslices", "nodes"} else f"{api}/namespaces/{self.namespace}/{kind}"

    def run(self, *objects: dict[str, Any], patience: float = 60.0) -> None:
        """Create objects and wait until the pods among them are ready."""
        self.apply(*objects)
        self.ready(*(each["metadata"]["name"] for each in objects if each["kind"] == "Pod"), patience=patience)

    def ready(self, *pods: str, patience: float = 60.0) -> None:
        """Wait until pods are ready."""
        self.wait("condition=Ready", pods, patience)

    def ended(self, *pods: str, patience: float = 60.0) -> None:
        """Wait until pods have ended well."""
        self.wait("jsonpath={.status.phase}=Succeeded", pods, patience)

    def wait(self, condition: str, pods: Sequence[str], patience: float) -> None:
        """Wait for a condition of pods; what they say otherwise is in the failure."""
        names = [f"pod/{name}" for name in pods]
        try:
            self.kubectl("wait", f"--for={condition}", *names, f"--timeout={patience:.0f}s", timeout=patience + 30)
        except CommandError as error:
            raise AssertionError(f"{error}\n{self.kubectl('describe', *names, check=False)}") from None

    def delete(self, *pods: str, force: bool = False) -> None:
        """Delete pods; forced, they are gone from the server before the node knows."""
        flags = ["--force", "--grace-period=0"] if force else []
        self.kubectl("delete", "pod", *pods, "--timeout=60s", *flags, timeout=90)

    def logs(self, pod: str, container: str = "main", *flags: str) -> str:
        """What a container wrote."""
        return self.kubectl("logs", pod, "--container", container, *flags)

    def inside(self, pod: str, script: str, container: str = "main") -> str:
        """What a script writes that runs in a container."""
        return self.kubectl("exec", pod, "--container", container, "--", "sh", "-c", script)

    def seen(self, pod: str, container: str = "main") -> list[str]:
        """The devices of draht's own drivers that a container sees."""
        return self.inside(pod, SEEN, container).split()

    def started(self, pod: str) -> list[tuple[int, str]]:
        """How often each container of a pod was restarted, and which one runs: the same means undisturbed."""
        statuses = self.object("pods", pod)["status"]["containerStatuses"]
        return [(each["restartCount"], each["containerID"]) for each in statuses]

    def health(self, pod: str) -> list[tuple[str, str]]:
        """How the devices of a pod's first container are, and what is said about it (KEP-4680)."""
        status = self.object("pods", pod)["status"]["containerStatuses"][0]
        resources = [found for each in status.get("allocatedResourcesStatus", []) for found in each["resources"]]
        return [(each["health"], each.get("message", "")) for each in resources]

    def devices(self, *claims: str) -> list[str]:
        """The devices that claims were given; those of all claims if none is named."""
        return [
            result["device"]
            for each in self.objects("resourceclaims")
            if not claims or each["metadata"]["name"] in claims
            for result in each.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        ]

    def told(self, pod: str, text: str, *, patience: float = 60.0) -> str:
        """Wait until an event of a pod says something; the whole message."""

        def look() -> str:
            events = self.objects("events")
            said: list[str] = [each.get("message", "") for each in events if each["involvedObject"].get("name") == pod]
            return next((message for message in said if text in message), "")

        found = until(look, lambda: self.kubectl("describe", "pod", pod), patience=patience)
        return str(found)

    def clear(self) -> None:
        """Delete all pods and claims, and wait until they are gone."""
        self.kubectl("delete", KINDS, "--all", "--timeout=90s", timeout=120)
