"""A client that leaves at any moment at which we wait for a classifier, or for anything else."""

import pytest

from tests.app.chat_upstreams import Script, fails
from tests.app.chat_world import LIMIT, ChatWorld, run
from tests.app.test_chat_classifier import STREAM, WHOLE, knows, world
from tests.app.test_chat_leaving import left_at

KINDS: dict[str, tuple[bool, list[Script]]] = {
    "whole": (False, [knows]),
    "stream": (True, [knows]),
    "failing once": (True, [fails(), knows]),
}


@pytest.mark.parametrize("times", [1, 50])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.full
def test_leaving_at_any_await_leaves_nothing_behind(kind: str, times: int) -> None:
    async def body() -> None:
        stream, scripts = KINDS[kind]
        at, hit = 0, True
        outcomes = set()
        while hit:
            at += 1
            made: ChatWorld = world(
                list(scripts),
                STREAM if stream else WHOLE,
                late="hold",
                deadline_s=2.0,
                masking={"request": "enforce", "vault": True},
            )
            hit, handed = await left_at(made, {"stream": stream}, at, times)
            await made.assert_clean(ends=1)
            outcomes.add(made.records.outcomes[0])
            began = bool(handed) and handed[0]["status"] == 200
            assert began <= ((await made.usage(LIMIT)).used > 0)
        assert at > 6
        assert outcomes == {"cancelled", "ok"}

    run(body())
