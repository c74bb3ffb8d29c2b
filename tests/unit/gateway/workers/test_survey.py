"""Who answered in time?"""

import asyncio

from tests.wire.listening import turn
from tidegate.gateway.workers.survey import Survey
from tidegate.gateway.workers.words import Ask, Told


def test_answers_come_to_their_questions_and_late_ones_to_nobody() -> None:
    async def body() -> None:
        sent: list[tuple[int, Ask]] = []
        survey = Survey(lambda run, ask: sent.append((run, ask)), wait_s=5.0)
        first = asyncio.create_task(survey.ask([1, 2], "readiness"))
        second = asyncio.create_task(survey.ask([2], "metrics"))
        await turn()
        assert sent == [
            (1, Ask(1, "readiness")),
            (2, Ask(1, "readiness")),
            (2, Ask(2, "metrics")),
        ]
        survey.heard(2, Told(2))
        assert await second == {2: Told(2)}
        survey.heard(2, Told(1, {"n": 2}))
        survey.heard(2, Told(1, {"n": 3}))
        survey.heard(9, Told(1))
        survey.heard(1, Told(0))
        assert not first.done()
        survey.gone(1)
        assert await first == {2: Told(1, {"n": 2})}
        survey.heard(1, Told(1))

    asyncio.run(body())


def test_a_worker_that_hangs_delays_the_answer_by_a_bounded_time_only() -> None:
    async def body() -> None:
        survey = Survey(lambda _run, _ask: None, wait_s=0.01)
        assert await survey.ask([1, 2], "metrics") == {}
        assert await survey.ask([], "metrics") == {}

    asyncio.run(body())
