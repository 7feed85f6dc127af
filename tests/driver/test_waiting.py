from __future__ import annotations

import itertools
import random
from pathlib import Path

import msgspec
import pytest

from draht.driver import audit, waiting
from draht.driver.database import Database
from draht.driver.process import Condition, ProcessIdentity
from draht.driver.waiting import Demand, Ticket, blocker, grant
from holding import myself

GPUS = tuple(frozenset({f"gpu{number}"}) for number in range(4))


def ticket(number: int, *demands: Demand) -> Ticket:
    """A ticket of a living process."""
    return Ticket(number=number, demands=demands, uid=0, user="ada", process=myself(), since=0, deadline=None)


def units(*numbers: int) -> frozenset[str]:
    """The units of some of the GPUs."""
    return frozenset(f"gpu{number}" for number in numbers)


@pytest.mark.parametrize(
    ("demands", "taken", "granted"),
    [
        ([Demand(2, GPUS)], units(0), units(1, 2)),
        ([Demand(4, GPUS)], units(0), None),
        ([Demand(1, GPUS[2:3]), Demand(1, GPUS[2:])], units(), units(2, 3)),
        ([Demand(1, GPUS[2:3]), Demand(1, GPUS[2:3])], units(), None),
        ([Demand(2, (frozenset({"a", "b"}), frozenset({"b"}), frozenset({"c"})))], set(), frozenset({"a", "b", "c"})),
        ([], units(0, 1, 2, 3), frozenset()),
    ],
)
def test_grant(demands: list[Demand], taken: set[str], granted: frozenset[str] | None) -> None:
    """All demands at once, from what is free, no unit twice."""
    assert grant(demands, taken) == granted


@pytest.mark.parametrize(
    ("choice", "earlier", "taken", "blocks"),
    [
        pytest.param(
            units(3), [ticket(1, Demand(4, GPUS))], units(0), 1, id="a small request can't starve a large one"
        ),
        pytest.param(units(3), [ticket(1, Demand(2, GPUS))], units(0), None, id="enough is left for the earlier one"),
        pytest.param(units(3), [ticket(1, Demand(3, GPUS))], units(0), 1, id="the last one belongs to the earlier one"),
        pytest.param(units(3), [ticket(1, Demand(1, GPUS[:1]))], units(0), None, id="different devices"),
        pytest.param(
            units(3), [ticket(1, Demand(1, GPUS)), ticket(2, Demand(1, GPUS))], units(0), None, id="enough for both"
        ),
        pytest.param(
            units(3), [ticket(1, Demand(2, GPUS)), ticket(2, Demand(1, GPUS))], units(0), 2, id="not enough for both"
        ),
        pytest.param(units(3), [], units(0, 1, 2), None, id="nobody before"),
    ],
)
def test_fairness(choice: frozenset[str], earlier: list[Ticket], taken: frozenset[str], blocks: int | None) -> None:
    """Passing an earlier ticket is fair only where it costs that ticket nothing."""
    found = blocker(choice, earlier, taken)
    assert (found.number if found else None) == blocks


@pytest.mark.parametrize("seed", range(20))
def test_nobody_starves(seed: int) -> None:
    """In any sequence of ends and looks, in any order, every ticket is served, and waits for earlier ones at most."""
    chance = random.Random(seed)
    queue = [ticket(number, Demand(chance.choice([1, 1, 2, 4]), GPUS)) for number in range(30)]
    running: list[frozenset[str]] = []
    served: list[int] = []
    for _ in itertools.repeat(None, 2000):
        if not queue:
            break
        one = chance.choice(queue)
        taken = frozenset().union(*running)
        free = [candidate for candidate in GPUS if candidate.isdisjoint(taken)]
        wanted = one.demands[0].wanted
        if len(free) >= wanted:
            choice = frozenset().union(*chance.sample(free, wanted))
            if blocker(choice, [other for other in queue if other.number < one.number], taken) is None:
                running.append(choice)
                served.append(one.number)
                queue.remove(one)
                first = min((other.number for other in queue), default=one.number)
                # Whoever passed the head of the queue left enough for it.
                left = frozenset().union(*running)
                head = next((other for other in queue if other.number == first), None)
                assert head is None or head.number > one.number or grant(head.demands, left) is not None, f"seed {seed}"
        if running and chance.random() < 0.3:
            running.pop(chance.randrange(len(running)))
    assert not queue, f"seed {seed}"


class TestTickets:
    @pytest.fixture
    def database(self, tmp_path: Path) -> Database:
        return Database(tmp_path, clock=lambda: 1000.0)

    def draw(self, database: Database, deadline: float | None = None) -> Ticket:
        with database.transaction() as tx:
            return waiting.draw(tx, [Demand(2, GPUS)], command=["train"], user="ada", deadline=deadline)

    def test_order(self, database: Database) -> None:
        """Numbers grow, also over tickets that are gone, and a ticket is read as it was drawn."""
        first, second = self.draw(database), self.draw(database)
        with database.transaction() as tx:
            waiting.withdraw(tx, second, "changed their mind")
            waiting.withdraw(tx, second, "a second time does nothing")
        third = self.draw(database)
        assert first.number < second.number < third.number
        with database.reading() as tx:
            assert waiting.tickets(tx) == [first, third]

    def test_a_number_of_another_database_is_not_withdrawn(self, database: Database) -> None:
        """Numbers begin anew after a loss: who withdraws an old ticket must not hit a stranger's."""
        mine = self.draw(database)
        stranger = msgspec.structs.replace(mine, process=ProcessIdentity(pid=1, started=1, boot_id="b"))
        with database.transaction() as tx:
            waiting.withdraw(tx, stranger, "it gave up")
            assert waiting.tickets(tx) == [mine]

    def test_expiry(self, database: Database) -> None:
        """The dead and those past their deadline go with a reason; the stopped stay but don't count."""
        alive, dead, stopped = (self.draw(database) for _ in range(3))
        late = self.draw(database, deadline=990.0)
        patient = self.draw(database, deadline=996.0)
        with database.transaction() as tx:
            for number, pid in ((dead.number, 2), (stopped.number, 3)):
                tx.connection.execute("UPDATE waiting SET pid = ? WHERE ticket = ?", (pid, number))

            def judge(process: ProcessIdentity) -> Condition:
                return "dead" if process.pid == 2 else "stopped" if process.pid == 3 else "alive"

            assert [one.number for one in waiting.expire(tx, judge=judge)] == [alive.number, patient.number]
            assert [one.number for one in waiting.tickets(tx)] == [alive.number, stopped.number, patient.number]
            withdrawn = [entry.detail for entry in audit.entries(tx) if entry.event == "withdrawn"]
        assert withdrawn == [
            f"ticket {dead.number}: its process is gone",
            f"ticket {late.number}: its deadline has passed",
        ]


def test_demand_json_is_stable() -> None:
    """What is stored for a demand can be read by every later draht of this schema version."""
    stored = b'[{"wanted":1,"candidates":[["a"]]}]'
    assert msgspec.json.decode(stored, type=tuple[Demand, ...]) == (Demand(1, (frozenset({"a"}),)),)
    assert msgspec.json.encode((Demand(1, (frozenset({"a"}),)),)) == stored
