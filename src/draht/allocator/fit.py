"""Which nodes fit: one answer about a whole cluster.

Owns: `Fit`, the answer (a bit set over the nodes, what the first one gives, errors by node), and `PlanFit`, what is
known about one plan on a fleet: a verdict for each kind of node, so that a cluster of equal nodes is searched once, and
a verdict for each node, so that after a change only the nodes that changed are looked at.

Answers are upstream's for each node on its own. That upstream's scheduler gives up at the first error is its caller's
business; here errors are told beside the nodes that fit.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, final

from draht.allocator.allocation import node_error
from draht.allocator.errors import AllocatorError, BudgetError, Failure
from draht.allocator.outcome import Outcome, outcome_of, state_of
from draht.allocator.outline import easy_outlined, outlined
from draht.allocator.policy import Policy, View, preferred
from draht.allocator.projection import Fleet, Grouping
from draht.allocator.result import results, unjoined
from draht.allocator.search import NO_LIMITS, Limits, Solution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from draht.allocator.plan import Plan
    from draht.allocator.problem import Problem, State
    from draht.allocator.prune.easy import Easy
    from draht.allocator.row import Row
    from draht.allocator.snapshot import Snapshot
    from draht.api.resource import AllocationResult, ResourceClaim

__all__ = ["Fit", "PlanFit", "find"]

NONE: Final = 0
"""Verdict: the claims don't fit on the node."""
FITS: Final = 1
"""Verdict: they fit."""
FAILED: Final = 2
"""Verdict: there is an error instead of an answer."""
UNKNOWN: Final = 3
"""Verdict: nobody has looked, see `PlanFit.of`."""

_LOOK: Final = re.compile(b"[^\0]")
_KEPT_PLANS: Final = 64
_CATCH_UP: Final = 512
"""More changed nodes than that are judged by kind, all at once."""


class Unasked(Enum):
    """Stands for an outcome of which only the verdict is known."""

    UNASKED = "unasked"


_UNASKED: Final = Unasked.UNASKED


@final
class PlanFit:
    """What is known about one plan on a fleet.

    Attributes:
        plan: The plan.
        verdicts: For each node `NONE`, `FITS` or `FAILED`; or `UNKNOWN`, where somebody asked who needs no more.
    """

    __slots__ = (
        "_codes",
        "_fleet",
        "_grouping",
        "_outcomes",
        "_problems",
        "_seen",
        "_undecided",
        "_unlooked",
        "plan",
        "verdicts",
    )

    def __init__(self, plan: Plan, fleet: Fleet) -> None:
        self.plan = plan
        self._fleet = fleet
        self._grouping = fleet.grouping(plan)
        self._problems: list[Problem | None] = []
        # By kind; None where nobody has looked yet.
        self._codes: list[int] = []
        self._outcomes: list[Outcome | Unasked] = []
        self._seen = -1
        # Whether some verdict is missing for want of time or steps.
        self._undecided = False
        # Whether some verdict is missing because nobody wanted it yet.
        self._unlooked = False
        self.verdicts = bytearray()

    @staticmethod
    def of(plan: Plan, fleet: Fleet, limits: Limits = NO_LIMITS, *, lazy: bool = False) -> PlanFit:
        """What is known about a plan, brought up to date.

        Args:
            plan: The plan.
            fleet: The nodes.
            limits: For each search.
            lazy: Leave nodes whose verdict would need a search `UNKNOWN`; `answered` looks at them when it comes there.
        """
        known = fleet.fits.get(plan)
        if known is None:
            if len(fleet.fits) >= _KEPT_PLANS:
                del fleet.fits[next(iter(fleet.fits))]
            known = fleet.fits[plan] = PlanFit(plan, fleet)
        assert isinstance(known, PlanFit)
        if known._seen != len(fleet.journal) or known._undecided or (known._unlooked and not lazy):
            known._catch_up(limits, lazy=lazy)
        return known

    def copy(self, fleet: Fleet) -> PlanFit | None:
        """The same for a copied fleet, whose journal begins with the copy; None where there was nothing to know."""
        if self._seen != len(self._fleet.journal):
            return None
        new = object.__new__(PlanFit)
        new.plan = self.plan
        new._fleet = fleet
        new._grouping = fleet.grouping(self.plan)
        new._problems = self._problems.copy()
        new._codes = self._codes.copy()
        new._outcomes = self._outcomes.copy()
        new._seen = 0
        new._undecided = self._undecided
        new._unlooked = self._unlooked
        new.verdicts = self.verdicts.copy()
        return new

    def row(self, node: int) -> Row:
        """What a node reaches."""
        return self._fleet.rows[node]

    def outcome(self, node: int, limits: Limits = NO_LIMITS) -> Outcome:
        """How the plan is decided on a node."""
        kind = self._grouping.kinds[node]
        if kind >= len(self._codes) or self._codes[kind] < 0 or self._outcomes[kind] is _UNASKED:
            self._judge(kind, node, limits)
        outcome = self._outcomes[kind]
        assert outcome is None or not isinstance(outcome, Unasked)
        return outcome

    def first(self) -> int | None:
        """The index of the first node on which the claims fit."""
        found = self.verdicts.find(FITS)
        return None if found < 0 else found

    def answered(self, among: int | None, limits: Limits = NO_LIMITS) -> Iterator[tuple[int, int]]:
        """The indexes of the nodes, in order, with their verdict: `FITS` or `FAILED`; others are passed over.

        Looks at a node when it comes there, so whoever takes the first one pays for no other.

        Args:
            among: A number with a byte of ones for each node that counts, the first node's lowest; None for all.
            limits: For each search.
        """
        verdicts, kinds, codes = self.verdicts, self._grouping.kinds, self._codes
        size = len(verdicts)
        asked = (
            bytes(verdicts) if among is None else (int.from_bytes(verdicts, "little") & among).to_bytes(size, "little")
        )
        for found in _LOOK.finditer(asked):
            node = found.start()
            verdict = verdicts[node]
            if verdict == UNKNOWN:
                kind = kinds[node]
                verdict = codes[kind] if kind < len(codes) else -1
                if verdict < 0:
                    verdict = self._judge(kind, node, limits)
                if codes[kind] >= 0:
                    verdicts[node] = verdict
            if verdict != NONE:
                yield node, verdict

    def best(self, policy: Policy) -> int | None:
        """The index of the node that a policy avoids least, among those on which the claims fit."""
        kinds = self._grouping.kinds
        found: tuple[float, int] | None = None
        # Nodes of one kind are avoided alike, so the first of each kind stands for them.
        for node in dict(zip(reversed(kinds), range(len(kinds) - 1, -1, -1), strict=True)).values():
            if self.verdicts[node] == FITS:
                rank = policy.rank(View(self.problem(node), self.row(node), self._state(node)))
                if rank is None:
                    return self.first()
                if found is None or (rank, node) < found:
                    found = (rank, node)
        return None if found is None else found[1]

    def _state(self, node: int) -> State:
        fleet = self._fleet
        return state_of(self.problem(node), fleet.rows[node], fleet.held[node], fleet.usage)

    def trimmed(self, length: int) -> None:
        """The journal, of this length, begins anew."""
        self._seen = 0 if self._seen == length else -1

    def uses(self, grouping: Grouping) -> bool:
        """Whether it numbers nodes by this grouping."""
        return self._grouping is grouping

    def first_error(self, claims: Sequence[ResourceClaim]) -> AllocatorError | None:
        """The error of the first node that has one."""
        found = self.verdicts.find(FAILED)
        return None if found < 0 else self.error(claims, found)

    def results(
        self,
        claims: Sequence[ResourceClaim],
        node: int,
        share_ids: Callable[[], str] | None,
        policy: Policy | None = None,
        limits: Limits = NO_LIMITS,
    ) -> tuple[AllocationResult, ...] | None:
        """What the claims get on a node; None where they don't fit.

        Raises:
            AllocatorError: There is an error on that node.
        """
        outcome = self.outcome(node, limits)
        if isinstance(outcome, Solution):
            problem, row = self.problem(node), self.row(node)
            if policy is not None:
                outcome = preferred(policy, problem, row, self._state(node), outcome, limits)
            return results(claims, row, problem, outcome, share_ids)
        error = self.error(claims, node)
        if error is not None:
            raise error
        return None

    def error(self, claims: Sequence[ResourceClaim], node: int) -> AllocatorError | None:
        """Why there is no answer about a node, None if there is one."""
        row = self.row(node)
        if row.error is not None:
            return row.error
        kind = self._grouping.kinds[node]
        outcome = self._outcomes[kind] if kind < len(self._outcomes) else None
        if not isinstance(outcome, BudgetError):
            outcome = self.outcome(node)
        if isinstance(outcome, Failure):
            return outcome.error(claims, row)
        if isinstance(outcome, BudgetError):
            return outcome
        return node_error(row) if outcome is None and self.problem(node).has_invalid else None

    def frozen(self) -> PlanFit:
        """The same for the present state of a fleet that goes on changing."""
        fleet = self._fleet.copy()
        known = self.copy(fleet)
        assert known is not None
        return known

    def problem(self, node: int) -> Problem:
        """The problem of the plan on a node."""
        return self._problem(self._grouping.groups[node], NO_LIMITS)

    def _problem(self, group: int, limits: Limits) -> Problem:
        problems = self._problems
        while group >= len(problems):
            problems.append(None)
        problem = problems[group]
        if problem is None:
            grouping = self._grouping
            columns = dict(zip(grouping.mentions, grouping.columns[group], strict=True))
            problem = problems[group] = outlined(self.plan, grouping.rows[group], columns, limits.deadline)
        return problem

    def _judge(self, kind: int, node: int, limits: Limits) -> int:
        codes, outcomes = self._codes, self._outcomes
        while kind >= len(codes):
            codes.append(-1)
            outcomes.append(None)
        group, held = self._grouping.table[kind]
        row = self._fleet.rows[node]
        if row.error is not None:
            codes[kind] = FAILED
            return FAILED
        try:
            problem = self._problem(group, limits)
            outcome = outcome_of(problem, row, held, self._fleet.usage, limits)
        except BudgetError as error:
            outcome, problem = error, None
        if isinstance(outcome, Solution) and problem is not None and any(pool.crowded for pool in row.usable):
            # The frames of such rows tell which devices are meant, so the verdict is that of every node of the kind.
            outcome = unjoined(row, problem, outcome) or outcome
        outcomes[kind] = outcome
        if isinstance(outcome, Solution):
            code = FITS
        elif outcome is None:
            assert problem is not None
            code = FAILED if problem.has_invalid else NONE
        else:
            code = FAILED
        if isinstance(outcome, BudgetError):
            # The next question may have more time.
            self._undecided = True
            return code
        codes[kind] = code
        return code

    def _easy(self, group: int, limits: Limits) -> Easy | None:
        """The problem of a group where verdicts can be had without solutions."""
        grouping = self._grouping
        row = grouping.rows[group]
        if row.error is not None or any(pool.crowded for pool in row.usable):
            return None
        columns = dict(zip(grouping.mentions, grouping.columns[group], strict=True))
        try:
            return easy_outlined(self.plan, row, columns, limits.deadline)
        except BudgetError:
            return None

    def _catch_up(self, limits: Limits, *, lazy: bool) -> None:
        journal = self._fleet.journal
        changed = len(journal) - self._seen
        if self._undecided or (self._unlooked and not lazy):
            self._undecided = self._unlooked = False
            self._seen = -1
        if self._seen < 0 or changed > _CATCH_UP:
            self._judge_all(limits, lazy=lazy)
        else:
            kinds, codes, verdicts = self._grouping.kinds, self._codes, self.verdicts
            for node in journal[self._seen :]:
                kind = kinds[node]
                code = codes[kind] if kind < len(codes) else -1
                if code < 0 and lazy:
                    self._unlooked, code = True, UNKNOWN
                verdicts[node] = code if code >= 0 else self._judge(kind, node, limits)
        self._seen = len(journal)

    def _judge_all(self, limits: Limits, *, lazy: bool) -> None:
        kinds, table = self._grouping.kinds, self._grouping.table
        codes, outcomes = self._codes, self._outcomes
        missing = len(table) - len(codes)
        codes += [-1] * missing
        outcomes += [None] * missing
        easies: dict[int, Easy | None] = {}
        hard: list[int] = []
        # In the order of nodes, so that limits are met by the first nodes first.
        asked = dict.fromkeys(kinds)
        for kind in asked:
            if codes[kind] >= 0:
                continue
            group, held = table[kind]
            if group not in easies:
                easies[group] = self._easy(group, limits)
            easy = easies[group]
            if easy is None or not isinstance(held, int):
                hard.append(kind)
                continue
            outcomes[kind] = _UNASKED
            codes[kind] = FITS if easy.fits(held) else NONE
        verdicts = codes
        if hard and lazy:
            self._unlooked = True
            verdicts = codes.copy()
            for kind in hard:
                verdicts[kind] = UNKNOWN
        elif hard:
            verdicts = codes.copy()
            first = dict(zip(reversed(kinds), range(len(kinds) - 1, -1, -1), strict=True))
            for kind in hard:
                verdicts[kind] = self._judge(kind, first[kind], limits)
        if len(asked) == 1:
            self.verdicts = bytearray([verdicts[kinds[0]]]) * len(kinds)
        else:
            self.verdicts = bytearray(map(verdicts.__getitem__, kinds))


@final
class Fit:
    """Which nodes fit.

    Attributes:
        claims: What was asked for.
        nodes: The names of all nodes, in order.
        verdicts: For each node `NONE`, `FITS` or `FAILED`.
    """

    __slots__ = ("_known", "_limits", "_policy", "_share_ids", "claims", "nodes", "verdicts")

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Sequence[str],
        known: PlanFit,
        verdicts: bytes | bytearray,
        share_ids: Callable[[], str] | None = None,
        policy: Policy | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.claims = claims
        self.nodes = nodes
        self.verdicts = verdicts
        self._known = known
        self._share_ids = share_ids
        self._policy = policy
        self._limits = limits

    @property
    def bits(self) -> int:
        """A bit for each node that fits, bit 0 for the first."""
        return int(self.verdicts[::-1].translate(_BITS), 2) if self.verdicts else 0

    @property
    def first(self) -> int | None:
        """The index of the first node that fits."""
        found = self.verdicts.find(FITS)
        return None if found < 0 else found

    @property
    def best(self) -> int | None:
        """The index of the node that the policy prefers; without a policy, the first that fits."""
        return self.first if self._policy is None else self._known.best(self._policy)

    def __len__(self) -> int:
        return self.verdicts.count(FITS)

    def indexes(self) -> Iterator[int]:
        """The indexes of the nodes that fit, in order."""
        return (index for index, verdict in enumerate(self.verdicts) if verdict == FITS)

    def names(self) -> list[str]:
        """The names of the nodes that fit, in order."""
        return [name for name, verdict in zip(self.nodes, self.verdicts, strict=True) if verdict == FITS]

    def first_results(self) -> tuple[AllocationResult, ...] | None:
        """What the claims get on the first node that fits."""
        first = self.first
        return None if first is None else self.results(first)

    def results(self, node: int) -> tuple[AllocationResult, ...] | None:
        """What the claims get on a node by its index; None where they don't fit.

        Raises:
            AllocatorError: There is an error on that node; see `errors`.
        """
        return self._known.results(self.claims, node, self._share_ids, self._policy, self._limits)

    @property
    def errors(self) -> Mapping[str, AllocatorError]:
        """By name of the node why there is no answer."""
        found: dict[str, AllocatorError] = {}
        node = self.verdicts.find(FAILED)
        while node >= 0:
            error = self._known.error(self.claims, node)
            if error is not None:
                found[self.nodes[node]] = error
            node = self.verdicts.find(FAILED, node + 1)
        return found


_BITS: Final = bytes([49 if code == FITS else 48 for code in range(256)])


def find(
    snapshot: Snapshot,
    claims: Sequence[ResourceClaim],
    *,
    policy: Policy | None = None,
    limits: Limits = NO_LIMITS,
    share_ids: Callable[[], str] | None = None,
) -> Fit:
    """Which nodes of a snapshot the claims fit on, all of them together on one node.

    Args:
        snapshot: The cluster.
        claims: Claims without allocation, in the order in which they are satisfied.
        policy: Which of several solutions to prefer on a node; None for upstream's, the first.
        limits: For each kind of node; where a limit is reached the node is among `Fit.errors`.
        share_ids: Gives UUIDs for shares of multi-allocation devices; None to derive them from claims.
    """
    known = PlanFit.of(snapshot.plan(claims), snapshot.fleet(), limits)
    return Fit(claims, snapshot.fleet().names, known, known.verdicts, share_ids, policy, limits)
