"""A plan: claims compiled once, independent of nodes and of what is in use.

Owns what upstream checks about claims and classes before it looks at a device, in upstream's order, and what a search
needs to know of every request. A plan is made from the content of claims, not from their names: claims of one template
share it. What it depends on in a row is `Plan.key`.

Mistakes don't raise here. Upstream interleaves these checks with collecting devices for requests in mode All, so the
first mistake is kept where it was found (`Alternative.failure`, `Request.failure`, `ClaimPlan.failure`) and
`draht.allocator.problem` reports whatever upstream would have met first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from draht.allocator.constraint import Constraint, ConstraintKind
from draht.allocator.errors import Failure, FatalKind
from draht.allocator.expressions import Derivation, Expression, compile_derivation, compile_expression
from draht.allocator.request import Alternative, ClaimPlan, Mode, Request, Test
from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from draht.allocator.features import Features
    from draht.allocator.row import Row
    from draht.api.resource import (
        CapacityRequirements,
        DeviceClass,
        DeviceDerivedAttribute,
        DeviceSelector,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaimSpec,
    )

__all__ = ["Plan"]

_CACHED_VERDICTS = 65536


@final
class Plan:
    """Compiled claims.

    Attributes:
        features: What is switched on.
        claims: In the order in which they are allocated.
        requests: Of all claims, in order.
        alternatives: Of all requests, in order.
        attributes: Fully qualified names of attributes that expressions mention.
        capacities: Likewise of capacities.
        expressions: All selectors, each once.
        derives: Whether there are derived attributes.
        patterns: Attributes that constraints compare.
        everything: Whether an expression looks at a device as a whole.
        needs_capacity: Whether amounts decide (the consumable capacity feature).
        asks_amounts: Whether a request says how much of a capacity it wants.
        straight: Whether every request wants a number of devices in one way: no lists, no mode All.
    """

    __slots__ = (
        "__weakref__",
        "accepted",
        "alternatives",
        "asks_amounts",
        "attributes",
        "capacities",
        "claims",
        "derives",
        "easies",
        "everything",
        "expressions",
        "features",
        "needs_capacity",
        "outlines",
        "patterns",
        "problems",
        "requests",
        "straight",
        "verdicts",
    )

    def __init__(
        self, specs: Sequence[ResourceClaimSpec], classes: Mapping[str, DeviceClass], features: Features
    ) -> None:
        """Compile claims.

        Args:
            specs: Of the claims, in order.
            classes: All device classes by name.
            features: What is switched on.
        """
        builder = _Builder(classes, features)
        for spec in specs:
            builder.add(spec)
        self.features = features
        self.claims = tuple(builder.claims)
        self.requests = tuple(builder.requests)
        self.alternatives = tuple(builder.alternatives)
        attributes: set[str] = set()
        capacities: set[str] = set()
        everything = False
        expressions: list[Expression | Derivation] = [t.expression for a in self.alternatives for t in a.tests]
        expressions += [d for a in self.alternatives for d in (a.derived or {}).values()]
        for expression in expressions:
            attributes |= expression.attributes
            capacities |= expression.capacities
            everything = everything or expression.everything
        self.expressions = tuple(dict.fromkeys(t.expression for a in self.alternatives for t in a.tests))
        self.derives = any(a.derived for a in self.alternatives)
        if self.derives:
            # Own values are compared with derived ones, so a pattern is not enough.
            attributes |= {c.attribute for claim in self.claims for c in claim.constraints}
        self.attributes = tuple(sorted(attributes))
        self.capacities = tuple(sorted(capacities))
        self.everything = everything
        self.patterns = tuple(sorted({c.attribute for claim in self.claims for c in claim.constraints}))
        self.needs_capacity = features.consumable_capacity
        self.asks_amounts = any(a.amounts for a in self.alternatives)
        self.straight = all(
            not r.prioritised and self.alternatives[r.alternatives[0]].mode is Mode.EXACT for r in self.requests
        )
        # Caches: what follows from the plan and a key. Problems by `key` and by outline, verdicts of expressions by
        # what is mentioned of a device, and accepted positions by what is mentioned of a row.
        self.problems: dict[Hashable, Any] = {}
        self.outlines: dict[Hashable, Any] = {}
        self.easies: dict[Hashable, Any] = {}
        self.verdicts: dict[Any, dict[Any, Any]] = {}
        self.accepted: dict[Any, dict[Any, int | None]] = {}

    def verdicts_of(self, expression: Expression | Derivation) -> dict[Any, Any]:
        """What is known that an expression says about devices, to be added to."""
        known = self.verdicts.get(expression)
        if known is None or len(known) > _CACHED_VERDICTS:
            known = self.verdicts[expression] = {}
        return known

    def key(self, row: Row) -> tuple[Hashable, ...]:
        """What the plan depends on in a row: unique objects, so that equal keys mean the same `Problem`.

        The parts are, in this order: `Row.frame`; where `needs_capacity`, `Row.capacities()` or, unless `asks_amounts`,
        `Row.amounts()`; `Row.contents()` where `everything`; `Row.attribute(name)` for `attributes`;
        `Row.capacity(name)` for `capacities`; `Row.pattern(name, lists)` for `patterns`.
        """
        lists = self.features.list_type_attributes
        parts: list[Hashable] = [row.frame]
        if self.needs_capacity:
            parts.append(row.capacities() if self.asks_amounts else row.amounts())
        if self.everything:
            parts.append(row.contents())
        parts += [row.attribute(name) for name in self.attributes]
        parts += [row.capacity(name) for name in self.capacities]
        parts += [row.pattern(name, lists) for name in self.patterns]
        return tuple(parts)


class _Builder:
    """Goes through claims as upstream does before its search."""

    def __init__(self, classes: Mapping[str, DeviceClass], features: Features) -> None:
        self.classes = classes
        self.features = features
        self.claims: list[ClaimPlan] = []
        self.requests: list[Request] = []
        self.alternatives: list[Alternative] = []

    def add(self, spec: ResourceClaimSpec) -> None:
        claim = len(self.claims)
        devices = spec.devices
        constraints, failure = self._constraints(spec, claim)
        indexes: list[int] = []
        for request in devices.requests:
            number = len(self.requests)
            indexes.append(number)
            choices: list[tuple[str, ExactDeviceRequest | DeviceSubRequest | None]]
            if request.first_available:
                choices = [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]
            else:
                choices = [(request.name, request.exactly)]
            alternatives: list[int] = []
            for reference, choice in choices:
                base = Alternative(
                    index=len(self.alternatives),
                    claim=claim,
                    request=number,
                    reference=reference,
                    constraints=tuple(k for k, c in enumerate(constraints) if c.applies(reference)),
                )
                alternatives.append(base.index)
                self.alternatives.append(self._alternative(base, choice))
            self.requests.append(
                Request(
                    index=number,
                    claim=claim,
                    alternatives=tuple(alternatives),
                    prioritised=bool(request.first_available),
                    failure=self._gates(claim, bool(request.first_available), choices),
                )
            )
        self.claims.append(ClaimPlan(tuple(indexes), constraints, failure))

    def _constraints(self, spec: ResourceClaimSpec, claim: int) -> tuple[tuple[Constraint, ...], Failure | None]:
        constraints: list[Constraint] = []
        for number, constraint in enumerate(spec.devices.constraints):
            requests = frozenset(constraint.requests)
            if constraint.match_attribute is not None:
                constraints.append(Constraint(ConstraintKind.MATCH, constraint.match_attribute, requests))
            elif constraint.distinct_attribute is not None:
                constraints.append(Constraint(ConstraintKind.DISTINCT, constraint.distinct_attribute, requests))
            else:
                return tuple(constraints), Failure(
                    FatalKind.CONSTRAINT_EMPTY,
                    f"constraint {number} is empty",
                    claim,
                    hint="give matchAttribute or distinctAttribute; newer kinds need a newer allocator",
                )
        return tuple(constraints), None

    def _gates(
        self,
        claim: int,
        prioritised: bool,
        choices: Sequence[tuple[str, ExactDeviceRequest | DeviceSubRequest | None]],
    ) -> Failure | None:
        if prioritised and not self.features.prioritized_list:
            return _disabled(claim, choices[0][0].partition("/")[0], "firstAvailable", "DRAPrioritizedList")
        if not self.features.consumable_capacity:
            for reference, choice in choices:
                if choice is not None and choice.capacity is not None:
                    return _disabled(claim, reference, "capacity", "DRAConsumableCapacity")
        return None

    def _alternative(self, base: Alternative, choice: ExactDeviceRequest | DeviceSubRequest | None) -> Alternative:
        claim, reference = base.claim, base.reference
        if choice is None:
            return replace(
                base,
                failure=Failure(
                    FatalKind.REQUEST_EMPTY,
                    "the request is empty",
                    claim,
                    reference,
                    hint="give exactly or firstAvailable",
                ),
            )
        if choice.derived_attributes and not self.features.derived_attributes:
            return replace(base, failure=_disabled(claim, reference, "derivedAttributes", "DRADerivedAttributes"))
        for number, selector in enumerate(choice.selectors):
            if selector.cel is None:
                return replace(
                    base,
                    failure=Failure(
                        FatalKind.SELECTOR_UNSUPPORTED,
                        f"selector {number} has no expression",
                        claim,
                        reference,
                        hint="give a cel expression; newer kinds of selectors need a newer allocator",
                    ),
                )
        admin = getattr(choice, "admin_access", None)
        if admin is not None and not self.features.admin_access:
            return replace(base, failure=_disabled(claim, reference, "adminAccess", "DRAAdminAccess"))
        name = choice.device_class_name
        if not name:
            return replace(
                base,
                failure=Failure(
                    FatalKind.CLASS_NAME_MISSING,
                    "the request names no device class",
                    claim,
                    reference,
                    hint="set deviceClassName",
                ),
            )
        device_class = self.classes.get(name)
        if device_class is None:
            return replace(
                base,
                failure=Failure(
                    FatalKind.CLASS_NOT_FOUND,
                    f"device class {name} doesn't exist",
                    claim,
                    reference,
                    hint="create the class, or name one that exists",
                ),
            )
        known = {mode.value: mode for mode in Mode}
        mode = known.get(choice.allocation_mode)
        if mode is None:
            return replace(
                base,
                failure=Failure(
                    FatalKind.ALLOCATION_MODE_UNKNOWN,
                    f"allocation mode {choice.allocation_mode[:40]!r} is not known",
                    claim,
                    reference,
                    hint="use ExactCount or All; the API server fills in ExactCount where nothing is given",
                ),
            )
        return replace(
            base,
            mode=mode,
            count=choice.count if mode is Mode.EXACT else 0,
            admin=bool(admin),
            device_class=device_class,
            tests=self._tests(f"class {name}", device_class.spec.selectors)
            + self._tests(f"request {reference}", choice.selectors),
            tolerations=choice.tolerations,
            amounts=_amounts(choice.capacity),
            derived=self._derived(choice.derived_attributes),
        )

    def _tests(self, origin: str, selectors: Sequence[DeviceSelector]) -> tuple[Test, ...]:
        # Upstream dereferences an empty selector of a class; here it is an expression that doesn't compile.
        return tuple(
            Test(compile_expression(s.cel.expression if s.cel else ""), f"{origin}, selector {number}")
            for number, s in enumerate(selectors)
        )

    def _derived(self, derived: Sequence[DeviceDerivedAttribute]) -> dict[str, Derivation] | None:
        if not derived:
            return None
        return {d.name: compile_derivation(d.expression) for d in derived}


def _amounts(capacity: CapacityRequirements | None) -> dict[str, Quantity] | None:
    if capacity is None:
        return None
    return {name: Quantity.from_wire(amount) for name, amount in capacity.requests.items()}


def _disabled(claim: int, reference: str, field: str, gate: str) -> Failure:
    return Failure(
        FatalKind.FEATURE_DISABLED,
        f"the request uses {field}, but {gate} is off",
        claim,
        reference,
        hint=f"remove {field}, or allocate for a release that has {gate}",
    )
