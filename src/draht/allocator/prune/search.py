"""The pruned search: upstream's depth-first search that skips what can't succeed.

Owns: the loop over requests, alternatives and devices in upstream's order, with the rules of this package asked at each
step, and an explicit stack, so that no number of requests or devices meets the interpreter's limit.

Why it is right: it returns the first success in upstream's order, or the first fatal error, because it skips only
subtrees that hold neither (each rule says why in its module).

Doesn't do: problems for which a fact in `model` doesn't hold (see `strict`), results, limits on time (the caller's
`check` is called once per search node and may raise).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from draht.allocator.prune.exact import exact_key
from draht.allocator.prune.memo import relevant
from draht.allocator.prune.model import Choice, Model, Root
from draht.allocator.prune.rules import DEFAULT, Rules
from draht.allocator.prune.state import State, enter_claim, start, take
from draht.allocator.prune.symmetry import Symmetry

__all__ = ["Found", "Outcome", "search"]


@dataclass(frozen=True, slots=True)
class Found:
    """A solution: for each request (over all claims) the chosen alternative and its positions in upstream's order."""

    alternatives: tuple[int, ...]
    positions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search ended: a solution, or None; or the (request, alternative, position) whose error is fatal."""

    found: Found | None
    error: tuple[int, int, int] | None
    visited: int


class _Frame:
    """One search node in progress: a request that tries its alternatives, or a device of one alternative."""

    __slots__ = (
        "alternative",
        "choice",
        "key",
        "looked_at",
        "position",
        "slot",
        "state",
        "taken",
        "todo",
        "tried",
    )

    def __init__(self, slot: int, alternative: int, choice: Choice | None, taken: int, state: State) -> None:
        self.slot = slot
        self.alternative = alternative
        self.choice = choice
        self.taken = taken
        self.state = state
        self.key: tuple[object, ...] | None = None
        self.todo = 0
        self.looked_at = 0
        self.position = -1
        # What rules 1 and 1b compare, of all positions that failed here.
        self.tried: set[Hashable] = set()


_FAILED = None


def search(model: Model, root: Root, rules: Rules = DEFAULT, check: Callable[[int], None] | None = None) -> Outcome:
    """Search for the first solution.

    `check` is called with the number of search nodes visited so far and raises to stop the search.
    """
    return _Search(model, rules, check).run(root)


class _FatalError(Exception):
    """The search reached an error position."""

    def __init__(self, request: int, alternative: int, position: int) -> None:
        super().__init__()
        self.cell = (request, alternative, position)


class _Search:
    def __init__(self, model: Model, rules: Rules, check: Callable[[int], None] | None) -> None:
        self.model = model
        self.rules = rules
        self.check = check
        self.visited = 0
        self.failed: set[tuple[object, ...]] = set()
        self.stack: list[_Frame] = []
        self.partition = self._partition(rules.partition)
        self.states = rules.states(model)
        self.blocks = None if model.admin else rules.blocks
        later = model.memory.relevant
        if later is None:
            later = model.memory.relevant = relevant(model)
        self.later = later

    def _partition(self, rule: Callable[[Model], Symmetry]) -> Symmetry:
        made = self.model.memory.partitions.get(rule)
        if made is None:
            made = self.model.memory.partitions[rule] = rule(self.model)
        return made

    def run(self, root: Root) -> Outcome:
        try:
            outcome: _Frame | bool | None = self._enter(0, start(self.model, root))
            while outcome is not True:
                if isinstance(outcome, _Frame):
                    self.stack.append(outcome)
                elif not self.stack:
                    return Outcome(None, None, self.visited)
                frame = self.stack[-1]
                outcome = self._request(frame) if frame.choice is None else self._device(frame)
                if outcome is _FAILED:
                    if frame.key is not None:
                        self.failed.add(frame.key)
                    self.stack.pop()
        except _FatalError as error:
            return Outcome(None, error.cell, self.visited)
        return Outcome(self._found(), None, self.visited)

    def _found(self) -> Found:
        alternatives = [0] * len(self.model.slots)
        positions: list[list[int]] = [[] for _ in self.model.slots]
        for frame in self.stack:
            if frame.choice is None:
                choice = self.model.slots[frame.slot][frame.alternative]
                alternatives[frame.slot] = frame.alternative
                positions[frame.slot].extend(choice.fixed or ())
            else:
                positions[frame.slot].append(frame.position)
        return Found(tuple(alternatives), tuple(tuple(taken) for taken in positions))

    def _enter(self, slot: int, state: State) -> _Frame | bool | None:
        """Begin a request: a frame that tries its alternatives, True past the last, None if a rule says it fails."""
        model = self.model
        if slot == len(model.slots):
            return True
        if slot and model.claim_of[slot] != model.claim_of[slot - 1]:
            state = enter_claim(model, state, model.claim_of[slot])
        elif state.took:
            state = state._replace(took=0)
        frame = _Frame(slot, -1, None, 0, state)
        return self._judge(frame, 0, self.later[slot], 0)

    def _judge(self, frame: _Frame, begin: int, looked_at: int, ahead: int) -> _Frame | None:
        """The frame, or None if it failed before (rules 0 and 2) or counting shows that it will (rule 3)."""
        self.visited += 1
        if self.check is not None:
            self.check(self.visited)
        rules, state = self.rules, frame.state
        frame.looked_at = looked_at
        if rules.key is not None:
            place = (frame.slot, frame.alternative, frame.taken)
            claim = self.model.claim_of[frame.slot]
            frame.key = rules.key(self.partition, self.states, place, claim, state, looked_at)
        elif rules.exact:
            frame.key = exact_key(frame.slot, frame.alternative, frame.taken, begin, state)
        if frame.key is not None and frame.key in self.failed:
            return _FAILED
        if rules.infeasible is not None and not rules.gate(self.model, frame.slot, frame.choice, state):
            need = frame.choice.count - frame.taken if frame.choice is not None else 0
            if rules.infeasible(self.model, frame.slot, frame.choice, need, ahead, state):
                if frame.key is not None:
                    self.failed.add(frame.key)
                return _FAILED
        return frame

    def _request(self, frame: _Frame) -> _Frame | bool | None:
        """The next alternative of a request that begins."""
        choices = self.model.slots[frame.slot]
        while frame.alternative + 1 < len(choices):
            frame.alternative += 1
            choice = choices[frame.alternative]
            if choice.fixed is not None:
                outcome = self._all(frame, choice)
            elif not choice.count:
                outcome = self._enter(frame.slot + 1, frame.state)
            else:
                outcome = self._device_frame(frame.slot, frame.alternative, choice, 0, frame.state, 0)
            if outcome is not _FAILED:
                return outcome
        return _FAILED

    def _all(self, frame: _Frame, choice: Choice) -> _Frame | bool | None:
        state: State | None = frame.state
        rules = self.model.rules[self.model.claim_of[frame.slot]]
        if not choice.fixed:
            return _FAILED
        for position in choice.fixed:
            assert state is not None
            if (state.mine if choice.admin else state.used) >> position & 1:
                return _FAILED
            state = take(self.model, choice, rules, position, state)
            if state is None:
                return _FAILED
        assert state is not None
        return self._enter(frame.slot + 1, state)

    def _device_frame(
        self, slot: int, alternative: int, choice: Choice, taken: int, state: State, begin: int
    ) -> _Frame | None:
        frame = _Frame(slot, alternative, choice, taken, state)
        free = ~(state.mine if choice.admin else state.used)
        candidates = choice.candidates & free
        for index in choice.rules:
            candidates &= state.allowed[index]
        ahead = -1 << begin
        frame.todo = (candidates | choice.errors & free) & ahead
        if not frame.todo:
            return _FAILED
        looked_at = self.later[slot + 1] | choice.candidates | choice.errors
        if not taken and len(self.model.slots[slot]) == 1:
            # The request's own frame was judged in exactly this state.
            self.visited += 1
            frame.looked_at = looked_at
            return frame
        return self._judge(frame, begin, looked_at, ahead)

    def _device(self, frame: _Frame) -> _Frame | bool | None:
        """The next device for one alternative; what the last one tried failed."""
        choice, state, model = frame.choice, frame.state, self.model
        assert choice is not None
        if frame.position >= 0:
            frame.tried.update(self._likeness(frame, frame.position))
        rules = model.rules[model.claim_of[frame.slot]]
        last = frame.taken + 1 == choice.count
        while frame.todo:
            bit = frame.todo & -frame.todo
            frame.todo ^= bit
            position = bit.bit_length() - 1
            if choice.errors & bit:
                raise _FatalError(frame.slot, frame.alternative, position)
            if frame.tried and not frame.tried.isdisjoint(self._likeness(frame, position)):
                continue
            after = take(model, choice, rules, position, state)
            if after is None:
                continue
            if last:
                outcome = self._enter(frame.slot + 1, after)
            else:
                outcome = self._device_frame(
                    frame.slot, frame.alternative, choice, frame.taken + 1, after, position + 1
                )
            if outcome is not _FAILED:
                frame.position = position
                return outcome
            frame.tried.update(self._likeness(frame, position))
        return _FAILED

    def _likeness(self, frame: _Frame, position: int) -> list[Hashable]:
        """What rules 1 and 1b compare: if one of these failed at this node, the position fails."""
        found: list[Hashable] = []
        rules = self.rules
        if rules.classes is not None and frame.choice is not None:
            found.append(rules.classes(self.partition, frame.choice, frame.state, position))
        if self.blocks is not None:
            claim = self.model.claim_of[frame.slot]
            found.append(self.blocks(self.partition, self.states, position, claim, frame.state, frame.looked_at))
        return found
