"""Random device classes and claims for the allocator's questions."""

from __future__ import annotations

import random
from typing import Any

from allocator_profiles import Knobs, Range

__all__ = ["Requests", "between"]

GPU = 'device.attributes["gpu.example.com"]'
NIC = 'device.attributes["nic.example.com"]'

SELECTORS = (
    "true",
    "true",
    'device.driver.endsWith("example.com")',
    f"{GPU}.?index.orValue(0) >= 1",
    f"{GPU}.?index.orValue(0) != 0",
    'device.driver == "gpu.example.com"',
    f'{GPU}.?model.orValue("") == "A"',
    f'"model" in {GPU} && {GPU}.model == "B"',
    f"has({GPU}.ecc) && {GPU}.ecc",
    f"{GPU}.?index.orValue(9) < 3 || {NIC}.?index.orValue(9) < 2",
    'device.capacity["gpu.example.com"].?memory.orValue(quantity("0")).compareTo(quantity("40Gi")) >= 0',
    f'{GPU}.?driverVersion.orValue(semver("0.0.1")).isGreaterThan(semver("1.9.0"))',
    f'{GPU}.?uuid.orValue("").matches("[02468]$") || device.driver.startsWith("nic")',
)
RISKY = (
    f'{GPU}.model == "A"',
    f"{GPU}.ecc || {GPU}.index > 1",
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("20Gi"))',
    f'{GPU}.driverVersion.isLessThan(semver("1.9.0"))',
    f"{GPU}.numa == 0",
    "device.allowMultipleAllocations == true",
    f'{GPU}.tag == "x"',
)
FAILING = (
    "1 / 0 == 1",
    f"{GPU}.index / 0 == 1 || {GPU}.index == 2",
    f"{GPU}.absent == 1",
    "device.absent",
    "1",
    'device.driver == 1 || true"',
    f"{GPU}.?index.orValue(0) == 1 ? 1 / 0 == 1 : true",
)
COMMON_ATTRIBUTES = (
    "resource.kubernetes.io/pcieRoot",
    "resource.kubernetes.io/pcieRoot",
    "gpu.example.com/numa",
    "gpu.example.com/model",
    "gpu.example.com/driverVersion",
    "gpu.example.com/ecc",
)
RARE_ATTRIBUTES = (
    "gpu.example.com/uuid",
    "gpu.example.com/tag",
    "gpu.example.com/absent",
    "nic.example.com/numa",
    "other.example.com/numa",
    "numa",
)
DERIVED = (
    f"{GPU}.?numa.orValue(7)",
    f"{GPU}.?index.orValue(0) / 2",
    f'{GPU}.?model.orValue("none")',
    f"{GPU}.?ecc.orValue(false)",
    "device.driver",
    f"[{GPU}.?index.orValue(0) / 2, {GPU}.?index.orValue(0) % 2]",
    f"{GPU}.?index.orValue(0) > 1 ? ['a', 'b'] : ['b', 'c']",
    f'{GPU}.?driverVersion.orValue(semver("1.0.0"))',
)
DERIVED_FAILING = (f"{GPU}.index / 0", f"{GPU}.numa", "device", "[]", "1.5", f"{GPU}.absent")
DERIVED_NAMES = ("gpu.example.com/numa", "derived.example.com/group", "resource.kubernetes.io/pcieRoot")
REQUESTED = ("10Gi", "12Gi", "25Gi", "30Gi", "40Gi", "40960Mi", "42949672960", "80Gi", "1")
REQUESTED_CORES = ("100m", "500m", "700m", "1", "1300m", "1500m", "1.5", "2")
REQUESTED_BADLY = ("-5", "1e19", "9223372036854775807", "9223372036854775", "1n", "1500u", "8Ei")

Object = dict[str, Any]


def between(rng: random.Random, limits: Range) -> int:
    """A number of a range."""
    return rng.randint(*limits)


class Requests:
    """Draws classes and claims."""

    def __init__(self, rng: random.Random, knobs: Knobs) -> None:
        self.rng = rng
        self.knobs = knobs

    def chance(self, probability: float) -> bool:
        """True as often as the knob says."""
        return self.rng.random() < probability

    def selector(self) -> Object:
        """A selector: mostly one that never fails, sometimes one that needs an attribute, rarely a broken one."""
        rng = self.rng
        if self.chance(self.knobs.failing_selector):
            return {"cel": {"expression": rng.choice(FAILING)}}
        risky = self.chance(self.knobs.risky_selector)
        return {"cel": {"expression": rng.choice(RISKY if risky else SELECTORS)}}

    def configs(self) -> list[Object]:
        """Opaque parameters, which the allocator carries to the driver unread."""
        count = self.rng.choice([1, 1, 2])
        return [
            {"opaque": {"driver": "gpu.example.com", "parameters": {"mode": self.rng.randrange(9)}}}
            for _ in range(count)
        ]

    def classes(self) -> list[Object]:
        """Three classes: any device, and two that may have selectors and parameters."""
        found = []
        for name in ("any", "one", "two"):
            spec: Object = {}
            if name != "any" and self.chance(self.knobs.class_selectors):
                spec["selectors"] = [self.selector()]
            if self.chance(self.knobs.configs):
                spec["config"] = self.configs()
            found.append({"metadata": {"name": name}, "spec": spec})
        return found

    def claim(self, name: str, classes: list[Object]) -> Object:
        """A claim."""
        rng, knobs = self.rng, self.knobs
        requests = [self.request(f"r{index}", classes) for index in range(between(rng, knobs.requests))]
        devices: Object = {"requests": requests}
        if self.chance(knobs.constraints):
            devices["constraints"] = [self.constraint(requests) for _ in range(between(rng, knobs.constraint_count))]
        if self.chance(knobs.configs):
            devices["config"] = [
                config | ({"requests": self.names(requests)} if rng.random() < 0.75 else {})
                for config in self.configs()
            ]
        if self.chance(knobs.bad_claim):
            self.spoil(devices)
        return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}}

    def names(self, requests: list[Object]) -> list[str]:
        """Some requests, some by an alternative's full name."""
        rng = self.rng
        chosen = []
        for request in rng.sample(requests, rng.randint(1, len(requests))):
            alternatives = request.get("firstAvailable", [])
            if alternatives and rng.random() < 0.6:
                some = rng.sample(alternatives, rng.randint(1, len(alternatives)))
                chosen += [f"{request['name']}/{alternative['name']}" for alternative in some]
            else:
                chosen.append(request["name"])
        return chosen

    def constraint(self, requests: list[Object]) -> Object:
        """What the devices must share, or must not."""
        rng, knobs = self.rng, self.knobs
        kind = "distinctAttribute" if self.chance(knobs.distinct) else "matchAttribute"
        attribute = rng.choice(COMMON_ATTRIBUTES if rng.random() < 0.9 else RARE_ATTRIBUTES)
        if kind == "distinctAttribute" and rng.random() < 0.5:
            attribute = "gpu.example.com/uuid"
        if self.chance(knobs.derived):
            attribute = rng.choice(DERIVED_NAMES)
        found: Object = {kind: attribute}
        if self.chance(knobs.scoped_constraint):
            found["requests"] = self.names(requests)
        return found

    def request(self, name: str, classes: list[Object]) -> Object:
        """A request, or a list of alternatives."""
        rng, knobs = self.rng, self.knobs
        if self.chance(knobs.first_available):
            alternatives = [
                {"name": f"s{index}", **self.exact(classes)} for index in range(between(rng, knobs.subrequests))
            ]
            return {"name": name, "firstAvailable": alternatives}
        exact = self.exact(classes)
        if self.chance(knobs.admin):
            exact["adminAccess"] = rng.random() < 0.8
        return {"name": name, "exactly": exact}

    def exact(self, classes: list[Object]) -> Object:
        """Which devices, how many, and how much of each."""
        rng, knobs = self.rng, self.knobs
        found: Object = {
            "deviceClassName": (rng.choice(classes) if rng.random() < 0.6 else classes[0])["metadata"]["name"]
        }
        if self.chance(knobs.selectors):
            found["selectors"] = [self.selector() for _ in range(rng.choice([1, 1, 1, 2]))]
        if self.chance(knobs.early_only):
            last = rng.randint(0, 3)
            expression = f"{GPU}.?index.orValue(0) <= {last}"
            found["selectors"] = [{"cel": {"expression": expression}}]
        if self.chance(knobs.all_mode):
            found["allocationMode"] = "All"
        else:
            found |= {
                "allocationMode": "ExactCount",
                "count": min(between(rng, knobs.counts), between(rng, knobs.counts)),
            }
        if self.chance(knobs.tolerations):
            found["tolerations"] = [self.toleration() for _ in range(rng.choice([1, 1, 2]))]
        if self.chance(knobs.capacity_requests):
            found["capacity"] = {"requests": self.amounts()}
        if self.chance(knobs.derived):
            found["derivedAttributes"] = [
                {
                    "name": name,
                    "expression": rng.choice(DERIVED_FAILING if self.chance(knobs.derived_failing) else DERIVED),
                }
                for name in rng.sample(DERIVED_NAMES, rng.choice([1, 1, 2]))
            ]
        return found

    def toleration(self) -> Object:
        """A toleration of one taint or of many."""
        rng = self.rng
        found: Object = {"operator": rng.choice(["Exists", "Exists", "Equal", ""])}
        if rng.random() < 0.7:
            found["key"] = rng.choice(["sick", "old"])
        if found["operator"] != "Exists":
            found["value"] = rng.choice(["", "yes"])
        if rng.random() < 0.4:
            found["effect"] = rng.choice(["NoSchedule", "NoExecute"])
        if rng.random() < 0.1:
            found["operator"] = "Future"
        if found.get("effect") == "NoExecute" and rng.random() < 0.5:
            found["tolerationSeconds"] = 60
        return found

    def amounts(self) -> Object:
        """How much of which capacity."""
        rng = self.rng
        found: Object = {}
        if rng.random() < 0.8:
            found["memory"] = rng.choice(REQUESTED)
        if rng.random() < 0.35:
            found["cores"] = rng.choice(REQUESTED_CORES)
        if rng.random() < 0.05:
            found["other.example.com/bandwidth"] = "1G"
        if self.chance(self.knobs.bad_capacity * 3):
            found[rng.choice(["memory", "cores"])] = rng.choice(REQUESTED_BADLY)
        return found

    def spoil(self, devices: Object) -> None:
        """Something that admission refuses or that a newer API server accepts."""
        rng = self.rng
        request = rng.choice(devices["requests"])
        exact = request.get("exactly") or rng.choice(request["firstAvailable"])
        kind = rng.randrange(7)
        if kind == 0:
            exact["deviceClassName"] = "unknown"
        elif kind == 1:
            exact["deviceClassName"] = ""
        elif kind == 2:
            exact["allocationMode"] = rng.choice(["", "Some"])
        elif kind == 3:
            exact["selectors"] = [*exact.get("selectors", []), {}]
        elif kind == 4:
            devices.setdefault("constraints", []).append({})
        elif kind == 5:
            exact["allocationMode"], exact["count"] = "ExactCount", rng.choice([0, 33, 2**62, -1])
        else:
            devices["requests"] = []
            devices.pop("config", None)
            devices.pop("constraints", None)
