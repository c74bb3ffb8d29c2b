"""What a provider leaves out of its usage is not free."""

import json

import pytest

from tests.app.chat_upstreams import answers, completion
from tests.app.chat_world import LIMIT, MASKED, ChatWorld, run


@pytest.mark.parametrize("prompt", [{}, {"prompt_tokens": "5"}, {"prompt_tokens": None}])
def test_a_prompt_without_a_figure_is_charged_as_estimated(prompt: dict[str, object]) -> None:
    async def body() -> None:
        answer = {
            "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}],
            "usage": {"completion_tokens": 5, **prompt},
        }
        world = ChatWorld(primary=answers(json.dumps(answer).encode()))
        exchange = await world.post()
        assert exchange.status == 200
        assert (await world.usage(LIMIT)).used > 5
        await world.assert_clean(ends=1)

    run(body())


def test_what_passes_unread_is_counted() -> None:
    async def body() -> None:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        world = ChatWorld(primary=answers(completion("hi")), masking=MASKED)
        await world.post(messages=[{"role": "user", "content": [image]}])
        assert world.metric("unscanned_total", direction="request") == 1
        step = next(s for s in world.records.steps if s.stage == "redact_request")
        assert step.values == {"unscanned": 1}

    run(body())
