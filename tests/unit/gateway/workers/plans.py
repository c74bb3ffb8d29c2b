"""What the tests of the plan share: one that serves, and what it said without the notes."""

from collections.abc import Sequence

from tidegate.gateway.workers import words
from tidegate.gateway.workers.actions import Action, Note
from tidegate.gateway.workers.members import Times
from tidegate.gateway.workers.plan import Plan

TIMES = Times(drain_s=40.0, leave_s=7.0)


def serving(workers: int = 2) -> Plan:
    plan = Plan(workers, TIMES)
    plan.begin(0.0)
    for message in (words.Opened(1), words.Accepting()):
        for run in range(1, workers + 1):
            plan.heard(run, message, 0.0)
    return plan


def notes(actions: Sequence[Action]) -> list[str]:
    return [action.event for action in actions if isinstance(action, Note)]


def without_notes(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if not isinstance(action, Note)]


def beats(plan: Plan, count: int, *, answering: Sequence[int] = ()) -> list[Action]:
    """So many times the plan wants a sign of life; all that follows."""
    done: list[Action] = []
    for _ in range(count):
        now_s = plan.due_s
        done += plan.tick(now_s)
        for run in answering:
            done += plan.heard(run, words.Told(0), now_s)
    return done
