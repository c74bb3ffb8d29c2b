"""What a provider leaves out of its usage is not free."""

import json

import pytest

from tests.app.chat_upstreams import answers
from tests.app.chat_world import LIMIT, ChatWorld, run


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
