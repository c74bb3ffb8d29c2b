"""Is what the documentation lets a user of Redis do enough?"""

import asyncio
import re
from pathlib import Path

import pytest
import redis

from tests.contract.shelf.shelves import SMALL, WAIT_S
from tests.redis_server import shared_server
from tidegate.mcp.shelf_redis import RedisShelf

DOCS = Path(__file__).parents[3] / "docs" / "limits.md"


@pytest.mark.full
def test_the_rights_that_the_documentation_names_are_enough() -> None:
    found = re.search(r"^user gate on >PASSWORD (.*)$", DOCS.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    server, password = shared_server(), "-".join(("of", "the", "test"))
    admin = redis.Redis.from_url(server.url)
    admin.execute_command("ACL", "SETUSER", "gate", "on", f">{password}", *found[1].split())
    url = server.url.replace("redis://", f"redis://gate:{password}@")

    async def body() -> None:
        shelf = RedisShelf(url, deadline_s=WAIT_S)
        shelf.start()
        mark = (await shelf.news(SMALL, None)).mark
        for number in range(8):  # more than there is room for
            await shelf.put(SMALL, f"key {number}", b"1", f"group {number % 4}")
        assert await shelf.touch(SMALL, "key 7")
        assert await shelf.drop(SMALL, "key 7")
        assert await shelf.get(SMALL, "key 6") == b"1"
        assert dict(await shelf.group(SMALL, "group 2")) == {"key 6": b"1"}
        assert (await shelf.news(SMALL, mark)).changed
        await shelf.close()

    try:
        asyncio.run(body())
    finally:
        admin.execute_command("ACL", "DELUSER", "gate")
        admin.delete(*admin.scan_iter("tidegate:shelf:small:*"))
        admin.close()
