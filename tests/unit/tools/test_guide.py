"""Does the code of the guide and of the example do what the page says?"""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from examples.strict_tool import server as example

from tests.unit.tools.web import ask_modern, play
from tidegate.tools import ToolContext, ToolServer, strict_tool

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "tools.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE, re.S | re.M)


def names_of(first: str) -> dict[str, Any]:
    """What the one-file example defines."""
    names: dict[str, Any] = {"__name__": "my_tools"}
    exec(compile(first, "my_tools.py", "exec"), names)  # noqa: S102 - our own page
    return names


def test_the_one_file_example_is_a_server() -> None:
    names = names_of(BLOCKS[0])
    assert isinstance(names["server"], ToolServer)
    transfer = names["transfer"]
    order = {"source": "ACC-0001", "target": "ACC-0001", "amount": 1}
    with pytest.raises(names["ToolFailure"], match="same account"):
        asyncio.run(transfer(order))
    with pytest.raises(ValueError, match="invalid arguments") as caught:
        transfer.check(order | {"amount": 1.101})
    assert caught.value.faults[0].pointer == "/amount"


def test_what_it_says_about_testing_is_a_test() -> None:
    testing = next(block for block in BLOCKS if "pytest.raises" in block)
    scope = names_of(BLOCKS[0]) | {"asyncio": asyncio, "pytest": pytest}
    exec(compile(testing, "guide", "exec"), scope)  # noqa: S102 - our own page


def test_the_tool_that_reports_runs() -> None:
    scan = next(block for block in BLOCKS if "context.progress" in block)
    scope = names_of(BLOCKS[0]) | {"strict_tool": strict_tool, "ToolContext": ToolContext}
    model = 'class Scan(StrictInput):\n    """Pages."""\n\n    pages: list[str]\n\n'
    exec(compile(model + scan, "guide", "exec"), scope)  # noqa: S102 - our own page
    assert asyncio.run(scope["scan"]({"pages": ["a", "b"]})) == "done"


def test_the_example_answers_what_it_promises() -> None:
    served = example.http_app()

    async def body() -> Any:
        asked = {"name": "stock_of", "arguments": {"product": "tea"}}
        return (await ask_modern(served, "tools/call", asked)).json["result"]

    assert play(served, body)["structuredContent"] == {"product": "tea", "count": 12}
