"""Asking an API server many things at once, in any version and as JSON.

Owns the connections and what an answer is. It doesn't use `draht.kube`, which converts: here the server's own words in
each version are what counts.
"""

from __future__ import annotations

import base64
import http.client
import json
import queue
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

import yaml

from cluster.cluster import Cluster
from draht.validation import Gates

__all__ = ["GATE_NAMES", "Answer", "Server"]

Json: TypeAlias = Any
In = TypeVar("In")
Out = TypeVar("Out")

_PLURALS: Final = {
    "DeviceClass": "deviceclasses",
    "DeviceTaintRule": "devicetaintrules",
    "Node": "nodes",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
}
_NAMESPACED: Final = {"ResourceClaim", "ResourceClaimTemplate"}
_STRICT_DRY: Final = "?dryRun=All&fieldValidation=Strict"
_IN_FLIGHT: Final = 8

GATE_NAMES: Final = {
    "consumable_capacity": "DRAConsumableCapacity",
    "derived_attributes": "DRADerivedAttributes",
    "device_binding_conditions": "DRADeviceBindingConditions",
    "device_compatibility_groups": "DRADeviceCompatibilityGroups",
    "device_taints": "DRADeviceTaints",
    "fractional_capacity_range": "DRAFractionalCapacityRange",
    "list_type_attributes": "DRAListTypeAttributes",
    "node_allocatable_resources": "DRANodeAllocatableResources",
    "optional_node_operations": "DRAOptionalNodeOperations",
    "partitionable_devices": "DRAPartitionableDevices",
    "partitionable_devices_type": "DRAPartitionableDevicesType",
}
"""Fields of `draht.validation.Gates` by the names that Kubernetes has for them."""


@dataclass(frozen=True)
class Answer:
    """What the server said.

    Attributes:
        code: HTTP status.
        body: The object, or a ``Status``.
    """

    code: int
    body: Json

    @property
    def accepted(self) -> bool:
        """Whether validation had nothing against the object.

        Admission plugins come after it; one asks whether the node of a slice has a feature.
        """
        return self.code in (200, 201) or (self.code == 403 and "not found for device" in self.message)

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> set[tuple[str, str]]:
        """Kind and path of everything that validation refused."""
        found = (self.body.get("details") or {}).get("causes") or []
        return {(each.get("reason", "").removeprefix("FieldValue"), each.get("field", "")) for each in found}


class Server:
    """An API server, asked by a member of system:masters.

    Args:
        cluster: Where it runs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        address = urlsplit(cluster.server)
        assert address.hostname is not None
        assert address.port is not None
        self._address = (address.hostname, address.port)
        pair = cluster.client_certificate("judge", ["system:masters"])
        (trusted,) = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))["clusters"]
        authority = base64.b64decode(trusted["cluster"]["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._tls.load_cert_chain(pair.certificate, pair.key)
        self._idle: queue.SimpleQueue[http.client.HTTPSConnection] = queue.SimpleQueue()

    def close(self) -> None:
        """Close the connections."""
        while not self._idle.empty():
            self._idle.get().close()

    def ask(self, method: str, path: str, body: Json = None, *, content_type: str = "application/json") -> Answer:
        """One request.

        A body that is bytes is sent as it is. Others are compact: parameters of drivers are kept as they are written,
        and what isn't written as the server writes it counts as changed when the object comes back.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = http.client.HTTPSConnection(*self._address, context=self._tls, timeout=60)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = Answer(response.status, json.loads(response.read()))
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return answer

    def create(self, obj: Json, *, dry: bool = True) -> Answer:
        """Create an object, or ask what would happen."""
        return self.ask("POST", self.path(obj) + (_STRICT_DRY if dry else "?fieldValidation=Strict"), obj)

    def update(self, obj: Json, *, status: bool = False, dry: bool = True) -> Answer:
        """Replace an object or its status, or ask what would happen."""
        path = self.path(obj, obj["metadata"]["name"]) + ("/status" if status else "")
        return self.ask("PUT", path + (_STRICT_DRY if dry else "?fieldValidation=Strict"), obj)

    def get(self, obj: Json, version: str) -> Json:
        """The object of that kind and name in a version."""
        answer = self.ask("GET", self.path({**obj, "apiVersion": version}, obj["metadata"]["name"]))
        assert answer.code == 200, answer
        return answer.body

    def delete(self, obj: Json) -> None:
        """Remove an object."""
        answer = self.ask("DELETE", self.path(obj, obj["metadata"]["name"]))
        assert answer.code in (200, 202), answer

    @staticmethod
    def path(obj: Json, name: str | None = None) -> str:
        """URL path of an object or of its kind."""
        version, kind = obj["apiVersion"], obj["kind"]
        steps = ["/api" if "/" not in version else "/apis", version]
        if kind in _NAMESPACED:
            steps += ["namespaces", "default"]
        steps.append(_PLURALS[kind])
        return "/".join(steps if name is None else [*steps, quote(name, safe="")])

    @staticmethod
    def each(do: Callable[[In], Out], items: Iterable[In]) -> list[Out]:
        """Do something with each item, several at once."""
        with ThreadPoolExecutor(_IN_FLIGHT) as pool:
            return list(pool.map(do, items))

    @cached_property
    def features(self) -> Mapping[str, tuple[str, bool]]:
        """Stage, empty for general availability, and state of every feature gate, by its name."""
        metrics = self.cluster.kubectl("get", "--raw=/metrics")
        found = re.findall(r'kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} ([01])', metrics)
        return {name: (stage, on == "1") for name, stage, on in found}

    @cached_property
    def gates(self) -> Gates:
        """The gates of draht as they are here."""
        return Gates(**{field: self.features[name][1] for field, name in GATE_NAMES.items()})
