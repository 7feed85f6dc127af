"""Random questions whose answer is hidden late in the search, or missing by one: the solution is drawn first.

A random question is rarely hard: its first try succeeds, or nothing can. Here the devices of a solution are chosen
first, far from where the search begins; selectors, constraints, counters and capacities are then made so that this
solution is valid and little else is. Half of the time one amount or device is taken away again, and the search has to
try everything.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["planted"]

Object = dict[str, Any]

DRIVER = "gpu.example.com"
HERE = f'device.attributes["{DRIVER}"]'


def planted(rng: random.Random, features: dict[str, bool]) -> Object:
    """A question with a hidden solution."""
    return _Planted(rng).case(features)


class _Planted:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.devices: list[Object] = []
        self.sets: list[Object] = []
        self.shares: dict[int, int] = {}
        """Amount that the solution takes of each shared device."""

    def case(self, features: dict[str, bool]) -> Object:
        rng = self.rng
        count = rng.choice([4, 5, 6, 7, 8, 9, 10, 11])
        sharing, partitions = rng.random() < 0.3, rng.random() < 0.35
        groups = rng.choice([2, 3, 4])
        self.devices = [self.device(index, groups) for index in range(count)]
        counts = self.counts(count, sharing)
        chosen = self.solution(counts, sharing, groups)
        requests = [self.request(f"r{index}", devices) for index, devices in enumerate(chosen)]
        if sharing:
            self.share(requests, chosen)
        if partitions:
            self.partition(chosen)
        if rng.random() < 0.3:
            self.add_alternatives(requests, chosen)
        claims = self.claims(requests, chosen)
        if rng.random() < 0.5:
            self.take_away(claims)
        if rng.random() < 0.3:
            rng.shuffle(claims)
        return {
            "features": features,
            "slices": self.slices(),
            "classes": [{"metadata": {"name": "any"}, "spec": {}}],
            "allocatedClaims": [],
            "nodes": [{"metadata": {"name": "node-0"}}],
            "claims": claims,
            "on": ["node-0"],
        }

    def device(self, index: int, groups: int) -> Object:
        rng = self.rng
        attributes = {
            "index": {"int": index},
            "group": {"string": f"g{rng.randrange(groups)}"},
            "numa": {"int": index * 2 // 9},
            "slot": {"int": rng.randrange(4)},
        }
        if rng.random() < 0.15:
            attributes["group"] = {"strings": [f"g{number}" for number in rng.sample(range(groups), rng.randint(1, 2))]}
        return {"name": f"d{index}", "attributes": attributes}

    def counts(self, devices: int, sharing: bool) -> list[int]:
        """How many devices each request takes; together nearly all."""
        rng = self.rng
        left = rng.randint(max(2, devices - 2), devices) + (rng.randint(0, 2) if sharing else 0)
        counts: list[int] = []
        while left > 0 and len(counts) < 5:
            counts.append(min(left, devices, rng.choice([1, 1, 2, 2, 3, 4])))
            left -= counts[-1]
        return counts

    def solution(self, counts: list[int], sharing: bool, groups: int) -> list[list[int]]:
        """Devices for each request: the first requests get the late ones."""
        rng = self.rng
        order = sorted(range(len(self.devices)), key=lambda index: -index + rng.choice([0, 0, 3, 9]))
        if rng.random() < 0.4:
            wanted = f"g{rng.randrange(groups)}"
            for index in order:
                if rng.random() < 0.8:
                    self.devices[index]["attributes"]["group"] = {"string": wanted}
        chosen = []
        position = 0
        for count in counts:
            if sharing and rng.random() < 0.6:
                chosen.append(sorted(rng.sample(order, count)))
                continue
            # Devices that run out are reused: without sharing, such a question has no solution, which is fair, too.
            chosen.append(sorted({order[(position + step) % len(order)] for step in range(count)}))
            position += count
        return chosen

    def request(self, name: str, devices: list[int]) -> Object:
        """A request that admits the solution's devices; the later it comes, the less else it admits."""
        rng = self.rng
        everything = range(len(self.devices))
        width = rng.choice([0, 0, 1, 2, 9]) if name != "r0" else rng.choice([2, 9, 9])
        allowed = sorted({*devices, *rng.sample(everything, min(width, len(everything)))})
        exact: Object = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": len(devices)}
        if len(allowed) < len(everything):
            listed = ", ".join(map(str, allowed))
            exact["selectors"] = [{"cel": {"expression": f"{HERE}.index in [{listed}]"}}]
        return {"name": name, "exactly": exact}

    def share(self, requests: list[Object], chosen: list[list[int]]) -> None:
        """Let devices be shared, each with exactly the capacity that the solution needs, or a little more."""
        rng = self.rng
        for request, devices in zip(requests, chosen, strict=True):
            amount = rng.choice([1, 2, 3, 5])
            request["exactly"]["capacity"] = {"requests": {"memory": f"{amount}Gi"}}
            for index in devices:
                self.shares[index] = self.shares.get(index, 0) + amount
        dedicated = {index for devices in chosen for index in devices if rng.random() < 0.1}
        for index, device in enumerate(self.devices):
            total = self.shares.get(index, rng.choice([1, 2, 3]))
            device["capacity"] = {"memory": {"value": f"{total + rng.choice([0, 0, 0, 1])}Gi"}}
            if index not in dedicated:
                device["allowMultipleAllocations"] = True

    def partition(self, chosen: list[list[int]]) -> None:
        """Let devices draw on shared counters that hold what the solution needs, or a little more."""
        rng = self.rng
        size = rng.choice([2, 3])
        used = {index for devices in chosen for index in devices}
        need = {index: rng.choice([1, 1, 2, 3]) for index in range(len(self.devices))}
        for first in range(0, len(self.devices), size):
            members = range(first, min(first + size, len(self.devices)))
            total = sum(need[index] for index in members if index in used)
            counters = {"slices": {"value": str(total + rng.choice([0, 0, 0, 1]))}}
            self.sets.append({"name": f"gpu-{first}", "counters": counters})
            for index in members:
                use: Object = {"counterSet": f"gpu-{first}", "counters": {"slices": {"value": str(need[index])}}}
                if rng.random() < 0.2:
                    use["compatibilityGroups"] = rng.sample(["c0", "c1"], rng.randint(1, 2))
                self.devices[index]["consumesCounters"] = [use]

    def add_alternatives(self, requests: list[Object], chosen: list[list[int]]) -> None:
        """Put a tempting alternative before what the solution uses."""
        rng = self.rng
        for index, request in enumerate(requests):
            if rng.random() < 0.5:
                continue
            meant = request.pop("exactly")
            tempting = {
                "deviceClassName": "any",
                "allocationMode": "ExactCount",
                "count": max(1, len(chosen[index]) + rng.choice([-1, 0, 1])),
            }
            if "capacity" in meant:
                tempting["capacity"] = meant["capacity"]
            alternatives = [tempting, meant] if rng.random() < 0.8 else [meant, tempting]
            request["firstAvailable"] = [{"name": f"s{number}", **each} for number, each in enumerate(alternatives)]

    def claims(self, requests: list[Object], chosen: list[list[int]]) -> list[Object]:
        """The requests in one claim or in several, with constraints that the solution meets."""
        rng = self.rng
        borders = sorted(rng.sample(range(1, len(requests)), rng.randint(0, min(2, len(requests) - 1))))
        claims = []
        for begin, end in zip([0, *borders], [*borders, len(requests)], strict=True):
            devices: Object = {"requests": requests[begin:end]}
            constraints = [
                constraint
                for _ in range(rng.randint(0, 3))
                if (constraint := self.constraint(requests, chosen, begin, end))
            ]
            if constraints:
                devices["constraints"] = constraints
            name = f"claim-{begin}"
            claims.append({"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}})
        return claims

    def constraint(self, requests: list[Object], chosen: list[list[int]], begin: int, end: int) -> Object | None:
        """A constraint over some requests that holds for the solution."""
        rng = self.rng
        about = sorted(rng.sample(range(begin, end), rng.randint(1, end - begin)))
        attribute = rng.choice(["group", "group", "numa", "slot", "index"])
        values = [str(self.devices[index]["attributes"][attribute]) for number in about for index in chosen[number]]
        found: Object = {}
        if len(set(values)) == 1:
            found = {"matchAttribute": f"{DRIVER}/{attribute}"}
        elif len(set(values)) == len(values) or rng.random() < 0.1:
            found = {"distinctAttribute": f"{DRIVER}/{attribute}"}
        if found and len(about) < end - begin:
            found["requests"] = [requests[number]["name"] for number in about]
        return found or None

    def take_away(self, claims: list[Object]) -> None:
        """Make the solution impossible by little."""
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0 and self.sets:
            counters = rng.choice(self.sets)["counters"]
            counters["slices"] = {"value": str(max(0, int(counters["slices"]["value"]) - 1))}
        elif kind == 1 and self.shares:
            device = self.devices[rng.choice(list(self.shares))]
            device["capacity"]["memory"]["value"] = f"{int(device['capacity']['memory']['value'][:-2]) - 1}Gi"
        elif kind == 2:
            request = rng.choice(rng.choice(claims)["spec"]["devices"]["requests"])
            exact = request.get("exactly") or request["firstAvailable"][-1]
            exact["count"] += 1
        else:
            device = rng.choice(self.devices)
            device["attributes"]["group"] = {"string": "lonely"}

    def slices(self) -> list[Object]:
        rng = self.rng
        border = rng.randint(1, len(self.devices)) if rng.random() < 0.4 else len(self.devices)
        parts = [part for part in (self.devices[:border], self.devices[border:]) if part]
        specs: list[Object] = [{"devices": part, "nodeName": "node-0"} for part in parts]
        if self.sets:
            specs.append({"sharedCounters": self.sets, "nodeName": "node-0"})
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": len(specs)}
        return [
            {"metadata": {"name": f"slice-{index}"}, "spec": {"driver": DRIVER, "pool": pool, **spec}}
            for index, spec in enumerate(specs)
        ]
