"""What does the parent do next?

Pure: what happened goes in (a worker said something or ended, the file is new, a signal, time),
what to do comes out. Lives here: the life of the workers from their start to their end, and who
may accept when. Does not live here: doing it (parent), when an ended worker is started again
(restarts), who still answers (pulses), the count of a vote (vote), what a worker makes of its
orders (duty).

A worker accepts only what is in force: one that opened meanwhile is first offered the newer
configuration. In a vote every worker that can answer takes part, also one that opens late. At
the start nobody accepts before all have opened.
"""

from tidegate.gateway.workers import words
from tidegate.gateway.workers.actions import (
    Action,
    Adopted,
    Field,
    Kept,
    Kill,
    Level,
    Note,
    OfferTo,
    Over,
    Ready,
    Spawn,
    Standing,
    Tell,
)
from tidegate.gateway.workers.members import Member, Phase, Stage, Times, standing_of
from tidegate.gateway.workers.pulses import Beat, Pulses
from tidegate.gateway.workers.restarts import Restarts
from tidegate.gateway.workers.vote import Verdict, Vote

FAILED, INTERRUPTED = 1, 130
_NEVER = float("inf")
_NO_ANSWER = "no worker answers"


class Plan:
    """The state of the whole. Every method that says what happened returns what to do."""

    def __init__(self, workers: int, times: Times) -> None:
        self._workers, self._times = workers, times
        self._phase = Phase.STARTING
        self._members: dict[int, Member] = {}
        self._pulses = Pulses(silent_after=times.silent_after, dead_after=times.dead_after)
        self._restarts = Restarts(times.pace)
        self._vote: Vote | None = None
        self._runs = 0
        self._generations = self.in_force = 1
        self._beat_due_s = self._end_due_s = _NEVER
        self._code = 0
        self._over = False
        self._out: list[Action] = []

    def begin(self, now_s: float) -> list[Action]:
        """Start all workers."""
        self._beat_due_s = now_s + self._times.beat_s
        for slot in range(1, self._workers + 1):
            self._spawn(slot, now_s)
        return self._done()

    def heard(self, run: int, message: words.ToParent, now_s: float) -> list[Action]:
        """A worker said something."""
        member = self._members.get(run)
        if member is None or member.killed:
            return self._done()
        if self._pulses.heard(run):
            self._answers_again(member)
        match message:
            case words.Opened():
                self._opened(member)
            case words.Accepting():
                self._accepts(member)
            case words.Willing() | words.Unwilling():
                self._answered(member, message)
            case words.Took():
                self._took(member, message.generation)
            case words.CannotStart():
                self._cannot_start(member, message.problem, now_s)
            case words.Leaving():
                self._leaves(member, now_s)
            case words.Told():
                pass  # a sign of life; who asked takes the answer
        return self._done()

    def ended(self, run: int, code: int, now_s: float) -> list[Action]:
        """The process of a worker is gone; a negative `code` is the signal that ended it."""
        member = self._members.pop(run, None)
        if member is None:
            return self._done()
        self._pulses.remove(run)
        self._not_asked_any_more(run)
        expected = member.killed or (member.leaving and code == 0)
        if self._phase is Phase.SERVING:
            self._replace(member, code, now_s)
        elif self._phase is Phase.STARTING:
            self._note_end(member, code, now_s)
            self._fail(now_s)
        elif not expected and code not in (0, INTERRUPTED) and not self._code:
            self._note_end(member, code, now_s)
            self._code = FAILED
        return self._done()

    def offer(self, now_s: float) -> tuple[int, list[Action]]:
        """There is a new configuration: its generation, and what to do. One at a time."""
        if self._vote is not None:
            self._refuse(self._vote, "a newer one has come")
        self._generations += 1
        self._vote = Vote(self._generations, now_s + self._times.vote_s)
        self._advance_all()
        for run in list(self._vote.waiting):
            if self._pulses.is_silent(run):
                self._vote.forgo(run)
        if self._phase is Phase.DRAINING:
            self._refuse(self._vote, "the gateway is about to end")
        return self._generations, self._done()

    def stop(self, now_s: float) -> list[Action]:
        """A signal to end; the second one means at once."""
        if self._phase is Phase.DRAINING:
            self._code = INTERRUPTED
            self._end_due_s = min(self._end_due_s, now_s + self._times.leave_s)
            self._tell_all(words.Leave())
        else:
            self._drain(words.Drain(), now_s + self._times.drain_s)
        return self._done()

    def fail(self, now_s: float) -> list[Action]:
        """Something that waiting does not mend happened to the parent: end with 1."""
        if self._phase is not Phase.DRAINING:
            self._drain(words.Drain(), now_s + self._times.drain_s)
        self._code = FAILED
        return self._done()

    def tick(self, now_s: float) -> list[Action]:
        """Time has passed; to be called at `due_s` or later."""
        for member in self._members.values():
            if member.stage is Stage.STARTING and now_s >= member.began_s + self._times.start_s:
                self._kill(member, "worker_start_late")
        self._spawn_due(now_s)
        if now_s >= self._beat_due_s:
            self._beat_due_s = now_s + self._times.beat_s
            self._beat(now_s)
        if self._vote is not None and now_s >= self._vote.due_s:
            self._vote_is_late(self._vote, now_s)
        if now_s >= self._end_due_s:
            self._end_due_s = _NEVER
            for member in self._members.values():
                self._kill(member, "worker_drain_late")
        return self._done()

    @property
    def due_s(self) -> float:
        """When `tick` wants to be called."""
        starts = [
            member.began_s + self._times.start_s
            for member in self._members.values()
            if member.stage is Stage.STARTING and not member.killed
        ]
        vote_s = _NEVER if self._vote is None else self._vote.due_s
        return min(self._beat_due_s, self._end_due_s, self._restarts.next_s, vote_s, *starts)

    @property
    def reachable(self) -> dict[int, int]:
        """The processes that can be asked, with their places."""
        return {run: self._members[run].slot for run in self._pulses.lively}

    @property
    def standing(self) -> Standing:
        """How many workers there are, and how they are."""
        draining = self._phase is Phase.DRAINING
        members = self._members.values()
        return standing_of(members, self._pulses, self._restarts, self._workers, draining=draining)

    # What a worker said.

    def _answers_again(self, member: Member) -> None:
        self._note("worker_answers_again", member)
        if self._vote is not None and not member.leaving:
            self._vote.wait_again(member.run)

    def _opened(self, member: Member) -> None:
        member.stage = Stage.OPENED
        self._pulses.add(member.run)
        self._advance_all()

    def _accepts(self, member: Member) -> None:
        member.stage = Stage.ACCEPTING
        if self._phase is Phase.SERVING:
            self._note("worker_started", member, level="info")
        elif self._phase is Phase.STARTING and all(
            other.stage is Stage.ACCEPTING for other in self._members.values()
        ):
            self._phase = Phase.SERVING
            self._out.append(Ready())

    def _answered(self, member: Member, answer: words.Willing | words.Unwilling) -> None:
        generation, vote = answer.generation, self._vote
        if member.offered != generation:
            return  # dropped meanwhile
        if isinstance(answer, words.Unwilling):
            member.offered = None
            if generation == self.in_force:
                # It would go on with what nobody else obeys any more.
                self._kill(member, "worker_refuses")
            elif vote is not None and generation == vote.generation:
                self._refuse(vote, answer.problem)
        elif generation == self.in_force:
            self._tell(member, words.Take(generation))
        elif vote is not None and generation == vote.generation:
            vote.is_willing(member.run)
        else:
            self._drop(member)
        self._advance(member)

    def _took(self, member: Member, generation: int) -> None:
        if member.offered != generation:
            return
        member.offered, member.generation = None, generation
        if self._vote is not None and self._vote.taken:
            self._vote.forgo(member.run)
        self._advance(member)

    def _cannot_start(self, member: Member, problem: str, now_s: float) -> None:
        if self._phase is Phase.DRAINING:
            return
        self._note("worker_cannot_start", member, level="error", problem=problem)
        if self._phase is Phase.STARTING:
            self._fail(now_s)

    def _leaves(self, member: Member, now_s: float) -> None:
        self._not_asked_any_more(member.run)
        if self._phase is Phase.SERVING and not member.leaving:
            self._note("worker_leaves", member)
            self._restarts.at_once(member.slot, now_s)
            self._spawn_due(now_s)
        elif self._phase is Phase.STARTING:
            self._fail(now_s)
        member.leaving = True

    # The way of a worker.

    def _advance_all(self) -> None:
        for member in list(self._members.values()):
            self._advance(member)

    def _advance(self, member: Member) -> None:
        """Send on a worker that has nothing to do, if it may go on."""
        if member.offered is not None or member.killed:
            return
        if member.stage is Stage.STARTING or self._phase is Phase.DRAINING:
            return
        vote = self._vote
        if member.generation != self.in_force:
            # Also one that leaves: on the connections that it has it may still be asked.
            self._offer(member, self.in_force)
        elif member.leaving:
            return
        elif vote is not None and not vote.taken and member.run not in vote.asked:
            vote.ask(member.run)
            self._offer(member, vote.generation)
        elif member.stage is Stage.OPENED and self._all_have_opened():
            member.stage = Stage.CALLED
            self._tell(member, words.Accept())

    def _all_have_opened(self) -> bool:
        return self._phase is Phase.SERVING or (
            len(self._members) == self._workers
            and all(member.stage is not Stage.STARTING for member in self._members.values())
        )

    def _offer(self, member: Member, generation: int) -> None:
        member.offered = generation
        self._out.append(OfferTo(member.run, generation))

    def _drop(self, member: Member) -> None:
        if member.offered is not None:
            self._tell(member, words.Drop(member.offered))
            member.offered = None

    def _spawn(self, slot: int, now_s: float) -> None:
        self._runs += 1
        self._members[self._runs] = Member(slot, self._runs, self.in_force, now_s)
        self._out.append(Spawn(slot, self._runs, self.in_force))

    def _spawn_due(self, now_s: float) -> None:
        for slot in self._restarts.taken_due(now_s):
            self._spawn(slot, now_s)

    def _replace(self, member: Member, code: int, now_s: float) -> None:
        if member.leaving:
            if code != 0:
                self._note_end(member, code, now_s)
            return
        lived_s = now_s - member.began_s
        delay_s = self._restarts.ended(member.slot, lived_s=lived_s, now_s=now_s)
        self._note_end(member, code, now_s, pause_s=delay_s)
        self._spawn_due(now_s)

    def _beat(self, now_s: float) -> None:
        for run, beat in self._pulses.beat():
            member = self._members[run]
            if beat is Beat.ASK:
                self._tell(member, words.Ask(0, "pulse"))
            elif beat is Beat.DEAD:
                self._kill(member, "worker_does_not_answer")
            else:
                self._note("worker_silent", member)
                if self._vote is not None:
                    self._vote.forgo(run)
        for member in self._members.values():
            if now_s - member.began_s >= self._times.pace.short_life_s:
                self._restarts.lasted(member.slot)

    def _weigh(self) -> None:
        vote = self._vote
        if vote is None:
            return
        verdict = vote.verdict
        if verdict is Verdict.CARRIED:
            self.in_force = vote.generation
            for run in vote.take():
                self._out.append(Tell(run, words.Take(vote.generation)))
            self._advance_all()
        elif verdict is Verdict.DONE:
            self._vote = None
            self._out.append(Adopted(vote.generation))
        elif verdict is Verdict.NOBODY:
            self._refuse(vote, _NO_ANSWER)

    def _not_asked_any_more(self, run: int) -> None:
        # Before anything else: whoever is started next gets what is in force then.
        if self._vote is not None:
            self._vote.gone(run)
            self._weigh()

    def _vote_is_late(self, vote: Vote, now_s: float) -> None:
        vote.waiting.clear()
        if vote.verdict is Verdict.OPEN:
            self._refuse(vote, _NO_ANSWER)
        vote.due_s = now_s + self._times.vote_s

    def _refuse(self, vote: Vote, problem: str) -> None:
        self._vote = None
        self._out.append(Kept(vote.generation, problem))
        for member in self._members.values():
            if member.offered == vote.generation:
                self._drop(member)
        self._advance_all()

    def _drain(self, order: words.Drain | words.Leave, end_due_s: float) -> None:
        self._phase = Phase.DRAINING
        self._end_due_s = end_due_s
        self._restarts.none()
        if self._vote is not None and self._vote.taken:
            self._vote.waiting.clear()
        elif self._vote is not None:
            self._refuse(self._vote, "the gateway is about to end")
        self._tell_all(order)

    def _fail(self, now_s: float) -> None:
        self._code = FAILED
        self._drain(words.Leave(), now_s + self._times.leave_s)

    def _kill(self, member: Member, event: str) -> None:
        if not member.killed:
            member.killed = True
            self._pulses.remove(member.run)
            self._note(event, member, level="error")
            self._out.append(Kill(member.run))

    def _tell(self, member: Member, message: words.ToWorker) -> None:
        self._out.append(Tell(member.run, message))

    def _tell_all(self, message: words.ToWorker) -> None:
        for member in self._members.values():
            self._tell(member, message)

    def _note(
        self, event: str, member: Member, *, level: Level = "warning", **fields: Field
    ) -> None:
        self._out.append(Note(event, level, {"worker": member.slot, **fields}))

    def _note_end(self, member: Member, code: int, now_s: float, **fields: Field) -> None:
        fields["reason"] = f"signal:{-code}" if code < 0 else f"exit:{code}"
        fields["seconds"] = round(now_s - member.began_s, 1)  # that it had lived
        self._note("worker_ended", member, level="error", **fields)

    def _done(self) -> list[Action]:
        self._weigh()
        if self._phase is Phase.DRAINING and not (self._members or self._over):
            self._over = True
            self._out.append(Over(self._code))
        done, self._out = self._out, []
        return done


__all__ = ["FAILED", "INTERRUPTED", "Plan"]
