"""All nodes of a cluster by what a plan mentions, so that a question about all of them is asked once for each kind.

Owns: `Fleet`, the nodes of a snapshot in order with their rows, what is held on them, and lists of columns by node; and
`Grouping`, the numbering of nodes by (columns that some plan mentions, what is held). Nodes of equal kind get the
same answer. Lists are made when a plan first mentions something, and kept.

A fleet that belongs to a snapshot never changes, but for what it learns. `Fleet.copy` gives one that its owner may
change, node by node; a journal says which nodes changed.

Doesn't know: problems, searches, claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from draht.allocator.judging import Judge, verdict_of
from draht.allocator.tabulation import tabulate
from draht.allocator.usage import EMPTY_POOL, Usage, edit

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from draht.allocator.plan import Plan
    from draht.allocator.row import Row
    from draht.api.resource import AllocationResult

__all__ = ["Fleet", "Grouping", "held_on", "mentions"]

Key = tuple[str, Any]
"""What a plan mentions: a kind of column and its name."""


def mentions(plan: Plan, unique: frozenset[str] = frozenset()) -> tuple[Key, ...]:
    """The columns of `Plan.key`, in its order; verdicts in place of attributes that are unique to a device."""
    keys: list[Key] = [("frame", None)]
    if plan.needs_capacity:
        keys.append(("capacities" if plan.asks_amounts else "amounts", None))
    judged = bool(unique) and (plan.everything or not unique.isdisjoint(plan.attributes))
    if judged and any(alternative.derived for alternative in plan.alternatives):
        judged = False
    if judged:
        expressions = {test.expression: None for each in plan.alternatives for test in each.tests}
        keys += [
            ("verdict", expression)
            for expression in expressions
            if expression.everything or not unique.isdisjoint(expression.attributes)
        ]
    elif plan.everything:
        keys.append(("contents", None))
    keys += [("attribute", name) for name in plan.attributes if not judged or name not in unique]
    keys += [("capacity", name) for name in plan.capacities]
    keys += [("pattern", (name, plan.features.list_type_attributes)) for name in plan.patterns]
    return tuple(keys)


_MANY = 256
_KEPT_GROUPINGS = 64
_KEPT_KINDS = 16384
_KEPT_JOURNAL = 65536

_READERS: dict[str, Callable[[Row, Any], Hashable]] = {
    "frame": lambda row, _: row.frame,
    "capacities": lambda row, _: row.capacities(),
    "amounts": lambda row, _: row.amounts(),
    "contents": lambda row, _: row.contents(),
    "attribute": lambda row, name: row.attribute(name),
    "capacity": lambda row, name: row.capacity(name),
    "pattern": lambda row, key: row.pattern(*key),
    "verdict": verdict_of,
}


def held_on(row: Row, usage: Usage) -> Hashable:
    """What is held of the devices of a row, by position: all that a `State` can depend on besides the problem.

    A bit set of devices where nothing else is held; else with shares, and with what devices of the same pools on other
    nodes consume of counters.
    """
    used = 0
    shares: list[Hashable] = []
    pools = usage.pools
    for pool, start in zip(row.usable, row.starts, strict=True):
        taken = pools.get(pool.id, EMPTY_POOL)
        if taken is EMPTY_POOL:
            continue
        for name in taken.whole:
            offset = pool.offset(name)
            if offset is not None:
                used |= 1 << start + offset
        for name, share in taken.shares.items():
            offset = pool.offset(name)
            if offset is not None:
                shares.append((start + offset, frozenset(share.consumed.items())))
        if pool.others:
            shares.append(
                tuple([device.consumes_counters and str(device) for device in pool.others if taken.holds(device.name)])
            )
    # Of a device that is shared no longer its capacity tells whether what is left suffices.
    return (used, row.capacities(), *shares) if shares else used


@final
class Grouping:
    """Nodes numbered by their columns (groups), and by columns and what is held (kinds).

    Numbers are only ever added, so that what was computed for one stays right.

    Attributes:
        groups: For each node the number of its group.
        mentions: What the plans mention, in the order of columns.
        columns: For each group its columns.
        rows: For each group the row of one of its nodes.
        kinds: For each node the number of its kind.
        table: For each kind its group and what is held.
    """

    __slots__ = ("_group_numbers", "_kind_numbers", "columns", "groups", "kinds", "mentions", "rows", "table")

    def __init__(
        self,
        mentions: tuple[Key, ...],
        keys: Sequence[tuple[Hashable, ...]],
        rows: Sequence[Row],
        held: Sequence[Hashable],
    ) -> None:
        self.mentions = mentions
        self.rows: list[Row] = []
        self.table: list[tuple[int, Hashable]] = []
        self._group_numbers: dict[Hashable, int] = {}
        self._kind_numbers: dict[tuple[int, Hashable], int] = {}
        first = dict(zip(reversed(keys), reversed(rows), strict=True))
        self._group_numbers = {key: number for number, key in enumerate(first)}
        self.columns = list(first)
        self.rows = list(first.values())
        self.groups = list(map(self._group_numbers.__getitem__, keys))
        pairs = list(zip(self.groups, held, strict=True))
        self.table = list(dict.fromkeys(pairs))
        self._kind_numbers = {pair: number for number, pair in enumerate(self.table)}
        self.kinds = list(map(self._kind_numbers.__getitem__, pairs))

    def copy(self) -> Grouping:
        """One that can be changed without changing this one."""
        new = object.__new__(Grouping)
        new.groups = self.groups.copy()
        new.kinds = self.kinds.copy()
        new.mentions = self.mentions
        new.columns = self.columns.copy()
        new.rows = self.rows.copy()
        new.table = self.table.copy()
        new._group_numbers = self._group_numbers.copy()
        new._kind_numbers = self._kind_numbers.copy()
        return new

    def move(self, node: int, key: tuple[Hashable, ...], row: Row, held: Hashable) -> None:
        """A node has another row."""
        number = self._group_numbers.get(key)
        if number is None:
            number = self._group_numbers[key] = len(self.rows)
            self.columns.append(key)
            self.rows.append(row)
        self.groups[node] = number
        self.hold(node, held)

    def hold(self, node: int, held: Hashable) -> None:
        """Something else is held on a node."""
        pair = (self.groups[node], held)
        number = self._kind_numbers.get(pair)
        if number is None:
            number = self._kind_numbers[pair] = len(self.table)
            self.table.append(pair)
        self.kinds[node] = number


@final
class Fleet:
    """All nodes of a snapshot.

    Attributes:
        features: Of the snapshot.
        names: Of the nodes, in order.
        rows: For each node what it reaches.
        held: For each node what is held there; see `held_on`.
        usage: What is held in the cluster.
        journal: Nodes that changed since this fleet can be changed, in order.
        fits: What is known about plans, kept here by `draht.allocator.fit`.
    """

    __slots__ = (
        "_columns",
        "_groupings",
        "_judge",
        "_numbers",
        "_sharers",
        "_unique",
        "fits",
        "held",
        "journal",
        "names",
        "rows",
        "usage",
    )

    def __init__(self, names: Sequence[str], rows: list[Row], usage: Usage) -> None:
        self.names = names
        self.rows = rows
        self.usage = usage
        self.held: list[Hashable] = [held_on(row, usage) for row in rows] if usage.pools else [0] * len(rows)
        self.journal: list[int] = []
        self.fits: dict[Any, Any] = {}
        self._columns: dict[Key, list[Hashable]] = {}
        self._groupings: dict[tuple[Key, ...], Grouping] = {}
        self._numbers: dict[str, int] | None = None
        self._sharers: dict[tuple[str, str], list[int]] | None = None
        # Attributes in which hardly two nodes are equal, and who evaluates expressions that mention them.
        self._unique: frozenset[str] = frozenset()
        self._judge: Judge | None = None

    # Reading

    def number(self, name: str) -> int | None:
        """The index of a node by its name."""
        if self._numbers is None:
            self._numbers = {name: index for index, name in enumerate(self.names)}
        return self._numbers.get(name)

    def column(self, key: Key) -> list[Hashable]:
        """What each node has in a column, as unique objects."""
        column = self._columns.get(key)
        if column is None:
            kind, name = key
            if kind == "verdict" and len(self.rows) >= _MANY:
                if self._judge is None:
                    self._judge = Judge(self.rows.copy())
                column = self._judge.verdicts(name)
            else:
                read = _READERS[kind]
                column = [read(row, name) for row in self.rows]
            self._columns[key] = column
        return column

    def tabulate(self, *, lists: bool) -> None:
        """Make all columns now that can be made for all nodes together."""
        columns, unique = tabulate(self.rows, lists=lists)
        self._unique |= unique
        for key, column in columns.items():
            self._columns.setdefault(key, column)
        self.column(("frame", None))
        if unique and self._judge is None and len(self.rows) >= _MANY:
            self._judge = Judge(self.rows.copy())
            self._judge.prepare(sorted(unique))

    def grouping(self, plan: Plan) -> Grouping:
        """Nodes by what a plan mentions."""
        keys = mentions(plan, self._unique)
        known = self._groupings.get(keys)
        if known is None:
            if len(self._groupings) >= _KEPT_GROUPINGS:
                self._drop(next(iter(self._groupings)))
            columns = [self.column(key) for key in keys]
            known = self._groupings[keys] = Grouping(keys, list(zip(*columns, strict=True)), self.rows, self.held)
        return known

    def _drop(self, keys: tuple[Key, ...]) -> None:
        """Forget a grouping, and what only it was good for."""
        grouping = self._groupings.pop(keys)
        self.fits = {plan: fit for plan, fit in self.fits.items() if not fit.uses(grouping)}
        for key in keys:
            if key[0] == "verdict" and not any(key in others for others in self._groupings):
                del self._columns[key]

    def sharers(self, pool: tuple[str, str]) -> Sequence[int]:
        """The nodes that reach a pool."""
        if self._sharers is None:
            self._sharers = {}
            for index, row in enumerate(self.rows):
                for each in row.pools:
                    self._sharers.setdefault(each.id, []).append(index)
        return self._sharers.get(pool, ())

    # Changing

    def copy(self) -> Fleet:
        """One that its owner may change."""
        new = object.__new__(Fleet)
        new.names = self.names
        new.rows = self.rows.copy()
        new.held = self.held.copy()
        new.usage = Usage(dict(self.usage.pools), self.usage.shared)
        new.journal = []
        new.fits = {}
        new._columns = {key: column.copy() for key, column in self._columns.items()}
        new._groupings = {keys: grouping.copy() for keys, grouping in self._groupings.items()}
        new._numbers = self._numbers
        new._sharers = self._sharers
        new._unique = self._unique
        new._judge = self._judge
        return new

    def learn(self, other: Fleet) -> None:
        """Take over what another fleet, from which this one was copied, knows about plans; changes since are seen."""
        for plan, fit in other.fits.items():
            copied = fit.copy(self)
            if copied is not None:
                self.fits[plan] = copied

    def replace(self, node: int, row: Row) -> None:
        """A node reaches something else."""
        self.rows[node] = row
        held = self.held[node] = held_on(row, self.usage)
        for (kind, name), column in self._columns.items():
            column[node] = _READERS[kind](row, name)
        for keys, grouping in self._groupings.items():
            grouping.move(node, tuple([self._columns[key][node] for key in keys]), row, held)
        self._sharers = None
        self._judge = None
        self.journal.append(node)

    def hold(self, allocations: Iterable[AllocationResult], *, release: bool = False) -> None:
        """Allocations hold devices now, or no longer do."""
        pools = self.usage.pools
        assert isinstance(pools, dict)
        for pool in edit(pools, allocations, -1 if release else 1, shared=self.usage.shared):
            for node in self.sharers(pool):
                self.look(node)

    def look(self, node: int) -> None:
        """See what is held on a node now."""
        held = held_on(self.rows[node], self.usage)
        if held == self.held[node]:
            return
        self.held[node] = held
        for keys, grouping in list(self._groupings.items()):
            grouping.hold(node, held)
            if len(grouping.table) > _KEPT_KINDS + len(self.rows):
                # Kinds that no node is of any more have piled up.
                self._drop(keys)
        self.journal.append(node)
        if len(self.journal) > _KEPT_JOURNAL:
            for fit in self.fits.values():
                fit.trimmed(len(self.journal))
            self.journal.clear()
