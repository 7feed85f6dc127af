"""Random questions for the structured allocator: a cluster, what is held in it, and the claims of one pod.

Owns how clusters are drawn; `allocator_profiles` says how often each feature appears. A case is plain JSON data, the
same for the oracle and for draht: ``{"features", "slices", "classes", "allocatedClaims", "nodes", "claims", "on"}``.
Values come from small sets on purpose: differences hide where devices collide, not where each is unlike the others.

A case depends on nothing but its seed and index, so one line reproduces it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from allocator_planted import planted
from allocator_profiles import PROFILES, Knobs
from allocator_requests import Requests, between

__all__ = ["DRIVERS", "FEATURES", "Generator", "case", "profile_of", "sequence"]

FEATURES = (
    "AdminAccess",
    "CompatibilityGroups",
    "ConsumableCapacity",
    "DerivedAttributes",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "ListTypeAttributes",
    "OptionalNodeOperations",
    "PartitionableDevices",
    "PrioritizedList",
)
DRIVERS = ("gpu.example.com", "nic.example.com")
ZONES = ("a", "b")
AMOUNTS = ("20Gi", "40Gi", "80Gi")
FRACTIONS = ("1", "1500m", "2", "2500m", "4")

Object = dict[str, Any]


def profile_of(index: int) -> str:
    """The profile of a case; each profile has its turn as often as it is listed."""
    return _ORDER[index % len(_ORDER)]


def case(seed: int, index: int, profile: str | None = None) -> Object:
    """The case of a seed and an index."""
    name = profile or profile_of(index)
    return Generator(random.Random(f"{seed}:{index}:{name}"), PROFILES[name]).case()


def sequence(seed: int, index: int, steps: int) -> tuple[Object, list[list[Object]]]:
    """A cluster of several nodes, and the claims of several pods that come one after the other."""
    rng = random.Random(f"{seed}:{index}:sequence")
    name = rng.choice([name for name, knobs in PROFILES.items() if not knobs.planted and name != "limits"])
    knobs = replace(PROFILES[name], nodes=(2, 4), every_node=True, pools=(1, 4), other_node=5, bad_claim=0.0)
    generator = Generator(rng, knobs)
    found = generator.case()
    requests = Requests(rng, knobs)
    pods = [
        [requests.claim(f"claim-{step}-{number}", found["classes"]) for number in range(between(rng, knobs.claims))]
        for step in range(steps)
    ]
    # Pods of one workload: their claims are equal but for the name.
    for step in range(1, steps):
        if rng.random() < 0.5:
            pods[step] = [
                {"metadata": claim["metadata"] | {"name": f"claim-{step}-{number}"}, "spec": claim["spec"]}
                for number, claim in enumerate(pods[rng.randrange(step)])
            ]
    return found, pods


_ORDER = tuple(name for name, knobs in PROFILES.items() for _ in range(knobs.turns))


class Generator:
    """Draws one case."""

    def __init__(self, rng: random.Random, knobs: Knobs) -> None:
        self.rng = rng
        self.knobs = knobs
        self.attributes_of_pool: dict[str, list[str]] = {}

    def chance(self, probability: float) -> bool:
        """True as often as the knob says."""
        return self.rng.random() < probability

    def case(self) -> Object:
        """A whole question."""
        rng, knobs = self.rng, self.knobs
        features = self.features()
        if self.chance(knobs.planted):
            return planted(rng, features)
        nodes = [self.node(index) for index in range(between(rng, knobs.nodes))]
        slices: list[Object] = []
        for driver in DRIVERS[: 2 if self.chance(knobs.second_driver) else 1]:
            for number in range(between(rng, knobs.pools)):
                slices += self.pool(driver, number, [node["metadata"]["name"] for node in nodes])
        rng.shuffle(slices)
        requests = Requests(rng, knobs)
        classes = requests.classes()
        claims = [requests.claim(f"claim-{index}", classes) for index in range(between(rng, knobs.claims))]
        return {
            "features": features,
            "slices": slices,
            "classes": classes,
            "allocatedClaims": self.allocated(slices),
            "nodes": nodes,
            "claims": claims,
            "on": [node["metadata"]["name"] for node in (nodes if knobs.every_node else nodes[:1])],
        }

    def features(self) -> dict[str, bool]:
        """Mostly everything; else what a release had, or anything."""
        on = dict.fromkeys(FEATURES, True)
        if self.chance(self.knobs.gates_off):
            for name in self.rng.sample(FEATURES, self.rng.choice([1, 1, 2, 5, 11])):
                on[name] = False
        if self.knobs.alpha_off and self.chance(self.knobs.alpha_off):
            # Without these, upstream takes its second implementation.
            on |= dict.fromkeys(
                ("CompatibilityGroups", "DerivedAttributes", "ListTypeAttributes", "OptionalNodeOperations"), False
            )
        for name in self.knobs.often_off:
            on[name] = on[name] and self.rng.random() < 0.67
        return on

    def node(self, index: int) -> Object:
        """A node with a few labels, which may lack the ability to skip operations."""
        rng = self.rng
        labels = {"zone": rng.choice(ZONES), "cores": str(rng.choice([8, 64]))}
        if rng.random() < 0.3:
            labels["gpu"] = ""
        status: Object = {}
        if rng.random() < 0.7:
            status["declaredFeatures"] = ["DRAOptionalNodeOperations"]
        return {"metadata": {"name": f"node-{index}", "labels": labels}, "status": status}

    def node_selector(self, nodes: list[str]) -> Object:
        """A selector that a slice may carry; more than one term only where bad input is wanted."""
        rng = self.rng

        def requirement() -> Object:
            operator = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
            if operator in {"Gt", "Lt"}:
                return {"key": "cores", "operator": operator, "values": [str(rng.choice([7, 8, 9, 64]))]}
            key = rng.choice(["zone", "zone", "gpu", "absent"])
            found: Object = {"key": key, "operator": operator}
            if operator in {"In", "NotIn"}:
                found["values"] = rng.sample(["a", "b", "c"], rng.randint(1, 2)) if key == "zone" else [""]
            return found

        def term() -> Object:
            if rng.random() < 0.25:
                field = {"key": "metadata.name", "operator": rng.choice(["In", "NotIn"]), "values": [rng.choice(nodes)]}
                return {"matchFields": [field]} | ({"matchExpressions": [requirement()]} if rng.random() < 0.5 else {})
            return {"matchExpressions": [requirement() for _ in range(rng.choice([1, 1, 2]))]}

        if self.chance(self.knobs.bad_node_selector):
            return rng.choice(
                [
                    {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}
                        ]
                    },
                    {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["x"]}]}
                        ]
                    },
                    {"nodeSelectorTerms": [term(), term()]},
                    {"nodeSelectorTerms": []},
                    {"nodeSelectorTerms": [{}]},
                    {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}
                        ]
                    },
                    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "-bad-", "operator": "Exists"}]}]},
                ]
            )
        if rng.random() < 0.6:
            # All of these match; results merge the equal ones.
            both = rng.choice([["a", "b"], ["b", "a"], ["a", "b", "c"]])
            which: Object = rng.choice([{"operator": "Exists"}, {"operator": "In", "values": both}])
            return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", **which}]}]}
        return {"nodeSelectorTerms": [term()]}

    def place(self, nodes: list[str]) -> Object:
        """Which nodes see a slice or device."""
        rng, knobs = self.rng, self.knobs
        kind = rng.choices(
            ("local", "other", "all", "selector", "none"),
            (knobs.local, knobs.other_node, knobs.all_nodes, knobs.node_selector, knobs.no_place),
        )[0]
        if kind == "local":
            return {"nodeName": "node-0"}
        if kind == "other":
            return {"nodeName": nodes[-1] if rng.random() < 0.7 else "node-9"}
        if kind == "all":
            return {"allNodes": True}
        if kind == "selector":
            return {"nodeSelector": self.node_selector(nodes)}
        return {}

    def pool(self, driver: str, number: int, nodes: list[str]) -> list[Object]:
        """All slices of one pool, sometimes with leftovers of an older generation, missing parts or contradictions."""
        rng, knobs = self.rng, self.knobs
        name = f"pool-{number}" if rng.random() < 0.9 else "pool-0"
        generation = rng.choice([0, 1, 1, 2])
        counter_sets = self.counter_sets() if self.chance(knobs.counters) else []
        place = self.place(nodes)
        slices: list[Object] = []
        offset = 0
        for _ in range(between(rng, knobs.slices)):
            spec: Object = {"driver": driver}
            count = between(rng, knobs.devices)
            spec["devices"] = [self.device(driver, offset + index, counter_sets) for index in range(count)]
            offset += count
            if self.chance(knobs.per_device):
                spec["perDeviceNodeSelection"] = True
                for device in spec["devices"]:
                    device |= self.place(nodes)
            else:
                spec |= place if rng.random() > knobs.mixed_places else self.place(nodes)
            if self.chance(knobs.skip_operations):
                spec["skipNodeOperations"] = rng.choice([["*"], ["NodePrepareResources", "NodeUnprepareResources"]])
            slices.append(spec)
        for sets in self.split_sets(counter_sets):
            where = {"allNodes": True} if rng.random() < 0.4 else place if rng.random() < 0.6 else self.place(nodes)
            slices.append({"driver": driver, "sharedCounters": sets, **where})
        total = len(slices) + (rng.choice([-1, 1]) if self.chance(knobs.incomplete) else 0)
        if self.chance(knobs.duplicate_device):
            self.repeat_a_device(slices)
        if counter_sets and self.chance(knobs.unknown_counter):
            self.name_an_unknown_counter(slices)
        names = rng.sample(range(100), len(slices) + 2)
        found = [self.slice(spec, name, f"s{names.pop():02}", generation, total) for spec in slices]
        if found and self.chance(knobs.generations):
            found = self.with_other_generation(found, nodes)
        if found and self.chance(knobs.odd_slices):
            self.make_odd(found)
        return found

    def make_odd(self, found: list[Object]) -> None:
        """Contradict admission in one slice: a decider meets such objects after an upgrade, or in a file."""
        rng = self.rng
        odd = rng.choice(found)
        spec = odd["spec"]
        kind = rng.randrange(8)
        if kind == 0:
            spec["pool"] = spec["pool"] | {"resourceSliceCount": rng.choice([0, 1, 2])}
        elif kind == 1:
            spec["perDeviceNodeSelection"] = rng.random() < 0.5
        elif kind == 2 and spec.get("devices"):
            rng.choice(spec["devices"])["nodeName"] = rng.choice(["node-0", "node-9"])
        elif kind == 3:
            spec["nodeName"] = ""
        elif kind == 4:
            found.append(odd)
        elif kind == 5:
            spec["allNodes"] = rng.random() < 0.5
        elif kind == 6:
            spec["sharedCounters"] = self.counter_sets()
        else:
            spec["pool"] = spec["pool"] | {"generation": spec["pool"]["generation"] + 1}

    def slice(self, spec: Object, pool: str, name: str, generation: int, total: int) -> Object:
        """The object around a slice's spec."""
        about = {"name": pool, "generation": generation, "resourceSliceCount": total}
        return {
            "metadata": {"name": f"{spec['driver'].split('.')[0]}-{pool}-{name}"},
            "spec": spec | {"pool": about},
        }

    def repeat_a_device(self, slices: list[Object]) -> None:
        """Give two devices of a pool the same name."""
        devices = [device for spec in slices for device in spec.get("devices", [])]
        if len(devices) > 1:
            first, second = self.rng.sample(devices, 2)
            second["name"] = first["name"]

    def name_an_unknown_counter(self, slices: list[Object]) -> None:
        """Let one device consume what no slice declares."""
        uses = [
            use for spec in slices for device in spec.get("devices", []) for use in device.get("consumesCounters", [])
        ]
        if uses:
            use = self.rng.choice(uses)
            if self.rng.random() < 0.5:
                use["counterSet"] = "set-unknown"
            else:
                use["counters"] = {"unknown": {"value": "1"}}

    def with_other_generation(self, found: list[Object], nodes: list[str]) -> list[Object]:
        """Leftovers of an older generation, or the beginning of a newer one, seen by this node or only by another."""
        rng = self.rng
        model = rng.choice(found)
        spec = dict(model["spec"])
        spec["pool"] = spec["pool"] | {"generation": spec["pool"]["generation"] + rng.choice([-1, 1])}
        if rng.random() < 0.5:
            spec["pool"]["resourceSliceCount"] = rng.randint(1, 3)
        for field in ("nodeName", "allNodes", "nodeSelector"):
            spec.pop(field, None)
        spec |= self.place(nodes)
        return [*found, {"metadata": {"name": model["metadata"]["name"] + "x"}, "spec": spec}]

    def counter_sets(self) -> list[Object]:
        """The shared counters of a pool: one set for each physical device, some with two counters."""
        rng = self.rng
        sets = []
        for index in range(between(rng, self.knobs.counter_sets)):
            counters = {"slices": {"value": str(rng.choice([2, 3, 4, 7]))}}
            if rng.random() < 0.5:
                counters["memory"] = {"value": rng.choice(AMOUNTS)}
            sets.append({"name": f"set-{index}", "counters": counters})
        if sets and self.chance(self.knobs.duplicate_device):
            sets.append(sets[0])
        return sets

    def split_sets(self, sets: list[Object]) -> list[list[Object]]:
        """Counter sets over one or two slices."""
        if len(sets) > 1 and self.rng.random() < 0.3:
            return [sets[:1], sets[1:]]
        return [sets] if sets else []

    def device(self, driver: str, index: int, counter_sets: list[Object]) -> Object:
        """One device."""
        rng, knobs = self.rng, self.knobs
        found: Object = {"name": f"dev-{index}"}
        if attributes := self.attributes(driver, index):
            found["attributes"] = attributes
        if counter_sets and self.chance(knobs.consumes):
            found["consumesCounters"] = [
                self.consumption(rng.choice([sets, sets, counter_sets[-1]]))
                for sets in rng.sample(counter_sets, 1 if rng.random() < 0.85 else min(2, len(counter_sets)))
            ]
        if self.chance(knobs.taints):
            found["taints"] = [self.taint() for _ in range(rng.choice([1, 1, 2]))]
        if self.chance(knobs.binding):
            found["bindingConditions"] = rng.sample(["ready", "attached"], rng.randint(1, 2))
            found["bindingFailureConditions"] = ["failed"]
        if self.chance(knobs.binds_to_node):
            found["bindsToNode"] = True
        if self.chance(knobs.shared):
            found["allowMultipleAllocations"] = rng.random() < 0.9
        if self.chance(knobs.capacity):
            found["capacity"] = self.capacity(driver)
        return found

    def attributes(self, driver: str, index: int) -> Object:
        """Attributes with few values, so that devices share them; sometimes missing, of another type, or lists."""
        rng, knobs = self.rng, self.knobs
        found: Object = {"index": {"int": index}, "uuid": {"string": f"{driver[:3]}-{index}"}}
        model: Object = {"string": rng.choice(["A", "B"])}
        group: Object = {"string": rng.choice(["g0", "g1", "g2"][: knobs.groups])}
        numa: Object = {"int": rng.randrange(knobs.groups)}
        if self.chance(knobs.odd_types):
            numa = rng.choice([{"string": "0"}, {"bool": True}, {"version": "1.0.0"}, {"int": 1}])
        if self.chance(knobs.list_attributes):
            group = {"strings": rng.sample(["g0", "g1", "g2", "g3"], rng.choice([1, 2, 2, 3]))}
            if rng.random() < 0.2:
                group = {"versions": rng.sample(["1.0.0", "1.1.0", "2.0.0"], rng.randint(1, 2))}
        if self.chance(knobs.list_attributes):
            numa = {"ints": rng.sample(range(4), rng.randint(1, 3))}
            if rng.random() < 0.2:
                numa = {"bools": rng.choice([[True], [False], [True, False]])}
        found |= {"model": model, "numa": numa, "resource.kubernetes.io/pcieRoot": group}
        found["driverVersion"] = {"version": rng.choice(["1.2.3", "1.10.0", "2.0.0-rc.1"])}
        found["ecc"] = {"bool": rng.random() < 0.5}
        if rng.random() < 0.2:
            found["other.example.com/numa"] = {"int": rng.randrange(2)}
        if rng.random() < 0.15:
            found[f"{driver}/tag"] = {"string": rng.choice(["x", "y"])}
        for name in list(found):
            if self.chance(knobs.missing_attribute):
                del found[name]
        if found and self.chance(knobs.unknown_attribute):
            found[rng.choice(list(found))] = rng.choice([{}, {"version": "1.x"}])
        return found

    def consumption(self, counter_set: Object) -> Object:
        """What a device takes of a counter set."""
        rng = self.rng
        counters = {"slices": {"value": str(rng.choice([1, 1, 2, 3]))}}
        if "memory" in counter_set["counters"] and rng.random() < 0.6:
            counters["memory"] = {"value": rng.choice(["10Gi", "20Gi", "40Gi"])}
        found: Object = {"counterSet": counter_set["name"], "counters": counters}
        if self.chance(self.knobs.compatibility):
            found["compatibilityGroups"] = rng.sample(["c0", "c1", "c2"], rng.randint(1, 2))
        return found

    def taint(self) -> Object:
        """A taint, of an effect that keeps claims away or of one that doesn't."""
        rng = self.rng
        effect = rng.choice(["NoSchedule", "NoSchedule", "NoExecute", "None", "Future"])
        return {"key": rng.choice(["sick", "old"]), "value": rng.choice(["", "yes"]), "effect": effect}

    def capacity(self, driver: str) -> Object:
        """One or two capacities, with or without a policy about what may be requested of them."""
        rng = self.rng
        found: Object = {"memory": self.with_policy({"value": rng.choice(AMOUNTS)}, ("10Gi", "5Gi", "30Gi"))}
        if rng.random() < 0.4:
            found["cores"] = self.with_policy({"value": rng.choice(FRACTIONS)}, ("500m", "250m", "1"))
        if rng.random() < 0.1:
            found["other.example.com/bandwidth"] = {"value": "10G"}
        if self.chance(self.knobs.bad_capacity):
            found["memory"] = {"value": rng.choice(["-1", "10", "20Ei"])}
        if self.chance(self.knobs.bad_capacity * 3):
            # Amounts at the borders of upstream's arithmetic.
            limits: Object = {
                "min": rng.choice(["0", "100u", "1m", "1"]),
                "step": rng.choice(["1u", "1m", "250m", "3"]),
            }
            if rng.random() < 0.5:
                limits["max"] = rng.choice(["1n", "2", "9E", "20E"])
            found["cores"] = {"value": rng.choice(["4", "10E", "20E"]), "requestPolicy": {"validRange": limits}}
        return found

    def with_policy(self, capacity: Object, amounts: tuple[str, str, str]) -> Object:
        """A capacity with a request policy: range with or without step and maximum, list of values, default only."""
        rng = self.rng
        if not self.chance(self.knobs.policies):
            return capacity
        least, step, most = amounts
        kind = rng.choice(["range", "range", "values", "default"])
        policy: Object = {"default": least}
        if kind == "range":
            policy["validRange"] = {"min": least}
            if rng.random() < 0.7:
                policy["validRange"]["step"] = step
            if rng.random() < 0.5:
                policy["validRange"]["max"] = most
        elif kind == "values":
            policy["validValues"] = [least, most]
        if kind != "default" and rng.random() < 0.15:
            del policy["default"]
        elif self.chance(self.knobs.odd_default):
            # Upstream accepts the default before it looks at the rule, if it is written alike.
            policy["default"] = rng.choice(["40Gi", "40960Mi", "7Gi"] if least == "10Gi" else ["1500m", "1.5", "2"])
        return capacity | {"requestPolicy": policy}

    def allocated(self, slices: list[Object]) -> list[Object]:
        """Claims that hold devices of the cluster: whole ones, shares with or without amounts, and admin views."""
        rng, knobs = self.rng, self.knobs
        occupancy = rng.choice([0.0, knobs.occupancy, knobs.occupancy])
        claims: list[Object] = []
        for slice_ in slices:
            spec = slice_["spec"]
            for device in spec.get("devices", []):
                if rng.random() >= occupancy:
                    continue
                result: Object = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"]}
                result["device"] = device["name"]
                results = [result]
                # A device that is dedicated now may have been shared when it was given away, and the other way round.
                if bool(device.get("allowMultipleAllocations")) != (rng.random() < knobs.changed_sharing):
                    results = [result | self.share(device, part) for part in range(rng.choice([1, 1, 2]))]
                elif rng.random() < 0.1:
                    result["adminAccess"] = rng.random() < 0.7
                status = {"allocation": {"devices": {"results": results}}}
                name = f"held-{len(claims)}"
                claims.append({"metadata": {"name": name, "namespace": "default"}, "spec": {}, "status": status})
        return claims

    def share(self, device: Object, part: int) -> Object:
        """One persisted share of a device."""
        rng = self.rng
        found: Object = {"shareID": f"{rng.randrange(16**8):08x}-0000-4000-8000-00000000000{part}"}
        if device.get("capacity") and rng.random() < 0.9:
            found["consumedCapacity"] = {
                name: rng.choice(["250m", "1", "0"] if name == "cores" else ["10Gi", "15Gi", "40Gi", "0"])
                for name in device["capacity"]
            }
        return found
