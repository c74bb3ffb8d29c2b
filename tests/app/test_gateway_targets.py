"""What the second listener says of targets, of a gateway as a whole."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tidegate.config import Config, load_config_text
from tidegate.gateway.app import CHAT_PATH, Gateway
from tidegate.testing.asgi import ASGIClient

JSON = ("content-type", "application/json")
ASK = b'{"messages":[{"role":"user","content":"x"}]}'


def configured(folder: Path, *providers: str) -> Config:
    """A gateway in front of ports at which nobody listens; each opens at its first failure."""
    base = f"http://127.0.0.1:{free_port()}/v1"
    tree = {
        "identity": {"anonymous": {"principal": "p", "tenant": "t", "roles": ["tenant"]}},
        "store": {"url": "memory:"},
        "records": {"path": str(folder / "records.db")},
        "providers": {name: {"base_url": base} for name in providers},
        "routes": [
            {
                "name": name,
                "model": "*" if name == providers[-1] else name,
                "candidates": [{"provider": name}],
                "breaker": {"consecutive": 1},
            }
            for name in providers
        ],
    }
    return load_config_text(json.dumps(tree), {})


async def said(gateway: Gateway, path: str) -> Any:
    answer = await ASGIClient(gateway.admin).request("GET", path)
    assert answer.status == 200
    return json.loads(answer.body)


def test_targets_are_there_from_the_start_and_follow_a_reload(tmp_path: Path) -> None:
    async def body() -> None:
        gateway = Gateway(configured(tmp_path, "first"))
        report = await said(gateway, "/targets")
        assert [(row["provider"], row["recent"]) for row in report["targets"]] == [("first", [])]
        assert report["revision"] == gateway.config.revision
        gateway.reload(configured(tmp_path, "other", "first"))
        after = await said(gateway, "/targets")
        assert [row["provider"] for row in after["targets"]] == ["other", "first"]
        assert after["revision"] == gateway.config.revision != report["revision"]

    asyncio.run(body())


def test_a_route_of_which_no_target_may_be_asked_is_named_and_the_gateway_stays_ready(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        gateway = Gateway(configured(tmp_path, "other", "first"))
        await gateway.open()
        try:
            assert (await said(gateway, "/readyz"))["routes"] == {"resting": []}
            answer = await ASGIClient(gateway).request(
                "POST", CHAT_PATH.decode(), headers=[JSON], body=ASK
            )
            assert answer.status == 502
            report = await said(gateway, "/readyz")
            assert report["ready"] is True
            assert report["reasons"] == ["route_resting"]
            assert report["routes"] == {"resting": ["first"]}
            other, first = (await said(gateway, "/targets"))["targets"]
            assert (other["state"], other["wait_s"], other["share"]) == ("closed", 0.0, 1.0)
            assert (first["state"], first["reason"], first["share"]) == ("open", "consecutive", 0.0)
            assert first["recent"] == ["unreachable"]
            numbers = gateway.metrics.render()[1].decode()
            for provider, state in (("other", "0.0"), ("first", "2.0")):
                labels = f'credential="0",model="",provider="{provider}"'
                assert f"tidegate_target_state{{{labels}}} {state}\n" in numbers
        finally:
            await gateway.close()

    asyncio.run(body())
