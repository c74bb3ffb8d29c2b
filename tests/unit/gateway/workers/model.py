"""What can happen between a parent and its workers, in any order?

A parent (Plan) and workers (Duty) as they are, joined by queues that keep their order, and a
world that decides what comes next: a message arrives, a store opens or does not, a build works or
does not, a worker dies, a signal comes, time passes. `choices` says what could happen, `after`
what the world is then. What must never be, raises AssertionError on the way.
"""

import pickle
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from tidegate.gateway.workers import words
from tidegate.gateway.workers.actions import (
    Action,
    Adopted,
    Kept,
    Kill,
    Note,
    OfferTo,
    Over,
    Ready,
    Spawn,
    Tell,
)
from tidegate.gateway.workers.duty import (
    Build,
    Duty,
    End,
    Force,
    Forget,
    Listen,
    Open,
    Order,
    Report,
    Say,
    State,
    Swap,
)
from tidegate.gateway.workers.members import Times
from tidegate.gateway.workers.plan import Plan

Choice = tuple[str, int]


@dataclass
class Process:
    """One worker process as the world sees it."""

    slot: int
    duty: Duty = field(default_factory=Duty)
    to_worker: deque[words.ToWorker] = field(default_factory=deque)
    to_parent: deque[words.ToParent] = field(default_factory=deque)
    generation: int = 0
    opening: bool = False
    building: list[int] = field(default_factory=list)
    built: set[int] = field(default_factory=set)
    ending: bool = False
    leaves: bool = False
    """The parent has heard that it does."""
    code: int | None = None
    """Set once the process is gone; the parent hears it after the messages before."""


@dataclass
class Budget:
    """How often the world may do what it could do for ever."""

    deaths: int = 0
    terms: int = 0
    offers: int = 0
    refusals: int = 0
    failed_starts: int = 0
    stops: int = 0
    ticks: int = 0


class World:
    """One state of everything."""

    def __init__(self, workers: int, budget: Budget) -> None:
        self.workers = workers
        self.budget = budget
        self.plan = Plan(workers, Times())
        self.now_s = 0.0
        self.processes: dict[int, Process] = {}
        self.ready = 0
        self.over: list[int] = []
        self.stops = 0
        self.offered: set[int] = set()
        self.adopted: set[int] = set()
        self.kept: set[int] = set()
        self.taken: set[int] = set()
        self.refused: set[int] = set()
        self.late = False
        """Whether a vote has had its time."""
        self._obey(self.plan.begin(self.now_s))

    # What could happen.

    def choices(self) -> list[Choice]:
        found: list[Choice] = []
        for run, process in self.processes.items():
            if process.code is not None:
                found.append(("hear", run) if process.to_parent else ("reap", run))
                continue
            found += [("hear", run)] if process.to_parent else []
            found += [("deliver", run)] if process.to_worker else []
            found += [("opens", run)] if process.opening else []
            found += [("builds", run)] if process.building else []
            found += [("exits", run)] if process.ending and not process.opening else []
            found += self._misfortunes(run, process)
        if not self.over:
            found += self._from_outside()
        return found

    def _misfortunes(self, run: int, process: Process) -> list[Choice]:
        left = self.budget
        found = [("dies", run)] if left.deaths else []
        found += [("term", run)] if left.terms and process.duty.state is not State.NEW else []
        found += [("fails", run)] if left.failed_starts and process.opening else []
        found += [("refuses", run)] if left.refusals and process.building else []
        return found

    def _from_outside(self) -> list[Choice]:
        left = self.budget
        found: list[Choice] = [("stop", 0)] if left.stops else []
        # The supervisor reads the file again only once all accept, and one at a time.
        pending = self.offered - self.adopted - self.kept
        if left.offers and self.ready and not pending:
            found.append(("offer", 0))
        if left.ticks and self.plan.due_s < float("inf"):
            found.append(("tick", 0))
        return found

    def happens(self, what: str, run: int) -> None:
        getattr(self, f"_{what}")(run)
        self._check()

    def _hear(self, run: int) -> None:
        message = self.processes[run].to_parent.popleft()
        if isinstance(message, words.Unwilling):
            self.refused.add(message.generation)
        if isinstance(message, words.Leaving):
            self.processes[run].leaves = True
        self._obey(self.plan.heard(run, message, self.now_s))

    def _reap(self, run: int) -> None:
        code = self.processes.pop(run).code
        assert code is not None
        self._obey(self.plan.ended(run, code, self.now_s))

    def _deliver(self, run: int) -> None:
        process = self.processes[run]
        self._carry_out(process, process.duty.heard(process.to_worker.popleft()))

    def _opens(self, run: int) -> None:
        process = self.processes[run]
        process.opening = False
        self._carry_out(process, process.duty.opened())

    def _fails(self, run: int) -> None:
        self.budget.failed_starts -= 1
        process = self.processes[run]
        process.opening = False
        self._carry_out(process, process.duty.not_opened("no disk"))
        process.code = 1

    def _builds(self, run: int) -> None:
        process = self.processes[run]
        generation = process.building.pop(0)
        process.built.add(generation)
        self._carry_out(process, process.duty.built(generation))

    def _refuses(self, run: int) -> None:
        self.budget.refusals -= 1
        process = self.processes[run]
        generation = process.building.pop(0)
        self._carry_out(process, process.duty.not_built(generation, "wrong"))

    def _exits(self, run: int) -> None:
        self.processes[run].code = 0

    def _dies(self, run: int) -> None:
        self.budget.deaths -= 1
        self.processes[run].code = -9

    def _term(self, run: int) -> None:
        self.budget.terms -= 1
        process = self.processes[run]
        self._carry_out(process, process.duty.end())

    def _stop(self, _run: int) -> None:
        self.budget.stops -= 1
        self.stops += 1
        self._obey(self.plan.stop(self.now_s))

    def _offer(self, _run: int) -> None:
        self.budget.offers -= 1
        generation, actions = self.plan.offer(self.now_s)
        self.offered.add(generation)
        self._obey(actions)

    def _tick(self, _run: int) -> None:
        self.budget.ticks -= 1
        self.now_s = max(self.now_s, self.plan.due_s)
        vote = self.plan._vote
        self.late = vote is not None and self.now_s >= vote.due_s
        self._obey(self.plan.tick(self.now_s))
        self.late = False

    # What parent and workers do about it.

    def _obey(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Spawn() | Tell() | OfferTo() | Kill():
                    self._to_process(action)
                case Ready():
                    self.ready += 1
                case Adopted(generation=generation):
                    self.adopted.add(generation)
                case Kept(generation=generation, problem=problem):
                    assert generation not in self.taken
                    assert generation in self.refused or problem != "wrong"
                    self.kept.add(generation)
                case Over(code=code):
                    self.over.append(code)
                case Note():
                    pass

    def _to_process(self, action: Spawn | Tell | OfferTo | Kill) -> None:
        run = action.run
        if isinstance(action, Spawn):
            assert not self.over
            assert not self.plan.standing.draining
            assert action.generation == self.plan.in_force
            process = self.processes[run] = Process(action.slot, generation=action.generation)
            process.to_worker.append(words.Begin(action.generation, b"", b""))
        elif isinstance(action, Tell):
            self._tell(run, action.message)
        elif isinstance(action, OfferTo):
            assert action.generation not in self.kept
            assert not self.processes[run].leaves or action.generation == self.plan.in_force
            self.processes[run].to_worker.append(words.Offer(action.generation, b""))
        else:
            self.processes[run].code = -9

    def _tell(self, run: int, message: words.ToWorker) -> None:
        process = self.processes[run]  # never somebody of whom we know that he is gone
        if isinstance(message, words.Take):
            assert message.generation == self.plan.in_force
            assert message.generation not in self.kept
            if message.generation not in self.taken and not self.late:
                self._all_have_answered(message.generation)
            self.taken.add(message.generation)
        if isinstance(message, words.Accept):
            assert process.generation == self.plan.in_force
            assert not self.plan.standing.draining
            if not self.ready:
                states = {p.duty.state for p in self.processes.values() if p.code is None}
                assert states.isdisjoint({State.NEW, State.OPENING})
        process.to_worker.append(message)

    def _all_have_answered(self, generation: int) -> None:
        """Nobody still thinks about it, but those for whom nobody waits."""
        for run, process in self.processes.items():
            if process.code is not None or process.leaves or self.plan._pulses.is_silent(run):
                continue
            offered = [m for m in process.to_worker if isinstance(m, words.Offer)]
            assert generation not in process.building
            assert generation not in {offer.generation for offer in offered}

    def _carry_out(self, process: Process, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Open():
                    process.opening = True
                case Say(message=message):
                    process.to_parent.append(message)
                case Listen():
                    assert not process.ending
                    self._carry_out(process, process.duty.listens())
                case Build(generation=generation):
                    process.building.append(generation)
                case Swap(generation=generation):
                    assert generation in process.built
                    process.built.clear()
                    process.generation = generation
                case Forget(generation=generation):
                    process.built.discard(generation)
                case Report(number=number):
                    process.to_parent.append(words.Told(number))
                case End() | Force():
                    process.ending = True
                case _:
                    raise AssertionError(order)

    # What must always hold.

    def _check(self) -> None:
        assert self.ready <= 1
        assert len(self.over) <= 1
        assert not self.adopted & self.kept
        assert self.adopted <= self.taken
        standing = self.plan.standing
        assert standing.accepting + standing.starting + len(standing.silent) <= self.workers
        if self.over:
            assert self.processes == {}

    def check_rest(self) -> None:
        """Nothing is on its way: then everything has come to its end."""
        if pending := self.offered - self.adopted - self.kept:
            # It waits for a worker, and not for ever.
            assert not self.over
            assert not self.processes
            assert len(pending) == 1
            assert self.plan.due_s < float("inf")
            return
        if self.over or self.plan.standing.draining:
            assert self.over
            return
        assert self.ready == 1
        in_force = self.plan.in_force
        live = [process for process in self.processes.values() if not process.ending]
        states = {(process.duty.state, process.generation) for process in live}
        assert states <= {(State.LISTENING, in_force)}
        assert not any(process.built for process in live)
        # Also who leaves may be asked on the connections that it has.
        assert {process.generation for process in self.processes.values()} <= {in_force}
        assert in_force == max(self.adopted, default=1)
        if self.plan._restarts.next_s == float("inf"):  # nobody waits to be started
            assert sorted(process.slot for process in live) == list(range(1, self.workers + 1))


def explore(world: World, *, most: int) -> tuple[int, int]:
    """Every way the world can go; how many states were seen, and how many of them at rest.

    Stops after `most` states, nearest first.
    """
    first = pickle.dumps(world)
    seen, rest = {hash(first)}, 0
    edge: deque[tuple[bytes, tuple[Choice, ...]]] = deque([(first, ())])
    while edge:
        frozen, path = edge.popleft()
        world = pickle.loads(frozen)  # noqa: S301 - our own
        choices = world.choices()
        if _ON_THE_WAY.isdisjoint(what for what, _ in choices):
            rest += 1
            with told(path):
                world.check_rest()
        for choice in choices:
            world = pickle.loads(frozen)  # noqa: S301 - our own
            with told((*path, choice)):
                world.happens(*choice)
            following = pickle.dumps(world)
            if hash(following) not in seen and len(seen) < most:
                seen.add(hash(following))
                edge.append((following, (*path, choice)))
    return len(seen), rest


def wander(world: World, dice: Random, *, steps: int) -> None:
    """One long way the world can go, and then on until it rests."""
    path: list[Choice] = []
    for step in range(10 * steps):
        choices = world.choices()
        moves = [choice for choice in choices if choice[0] in _ON_THE_WAY]
        if step >= steps:
            if not moves:
                break
            choices = moves
        if not choices:
            break
        # What comes from outside is rarer, or nothing would ever come to an end.
        outside = [choice for choice in choices if choice not in moves]
        pool = outside if outside and (not moves or dice.random() < 0.1) else moves
        path.append(dice.choice(pool))
        with told(tuple(path)):
            world.happens(*path[-1])
    with told(tuple(path)):
        world.check_rest()


@contextmanager
def told(path: tuple[Choice, ...]) -> Iterator[None]:
    """A failure says how the world came there."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"after {path}")
        raise


_ON_THE_WAY = {"hear", "reap", "deliver", "opens", "builds", "exits"}
