"""Does `tidegate explain` say why, for every way a request can end, also after kill -9?"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import WAIT_S, Running, serving, tidegate
from tests.acceptance.worlds import (
    ADMIN_KEY,
    Upstream,
    begin,
    call,
    chat,
    configuration,
    explained,
    request_id,
    scripted,
    write,
)
from tidegate.records import Record, as_json, find

SMALL_KEY = "-".join(("small", "tenant", "of", "the", "tests"))
MAIL = "@".join(("jane", "example.com"))


def file(url: str) -> dict[str, Any]:
    tree = configuration(
        url,
        server={"port": 0, "admin": {"port": 0}, "caps": {"llm_body_bytes": 50_000}},
        providers={name: {"base_url": f"{url}/v1"} for name in ("first", "spare")},
        limits=[
            {"name": "small", "match": {"tenants": ["small"]}, "per": "tenant", "tokens": 1000}
        ],
    )
    route = tree["routes"][0] | {"candidates": [{"provider": "first"}, {"provider": "spare"}]}
    block = {"request": "enforce", "detectors": {"email": {"action": "block"}}}
    strict = {"name": "strict", "model": "strict*", "redaction": block}
    tree["routes"] = [route | strict, route]
    small = {"key": SMALL_KEY, "principal": "sam", "tenant": "small", "roles": ["tenant"]}
    tree["identity"]["keys"].append(small)
    return tree


async def one_of_each(gateway: Running, upstream: Upstream) -> dict[str, str]:
    """A request of each kind; the kind -> its id."""
    ids: dict[str, str] = {}

    async def note(kind: str, asking: Any, status: int) -> None:
        answer = await asking
        assert answer.status == status, kind
        ids[kind] = request_id(answer)

    await note("ok", chat(gateway), 200)
    await note("admitted", chat(gateway, key=SMALL_KEY, max_tokens=900), 200)
    await note("over", chat(gateway, key=SMALL_KEY, max_tokens=970), 429)
    await note("beyond", chat(gateway, key=SMALL_KEY, max_tokens=2000), 413)
    await note("large", chat(gateway, content="x" * 60_000), 413)
    await note("failover", chat(gateway, "flaky"), 200)
    await note("rejected", chat(gateway, "400"), 400)
    await note("down", chat(gateway, "503"), 502)
    await note("blocked prompt", chat(gateway, "strict", content=f"mail {MAIL}"), 400)
    upstream.says = f"Her address is {MAIL}, as you asked."
    await note("blocked answer", chat(gateway, "strict"), 400)
    await note("masked", chat(gateway), 200)
    upstream.says = "Hello from the model."
    await note("tool", call(gateway, "ask"), 200)
    await note("denied", call(gateway, "admin_reset"), 200)
    await note("allowed", call(gateway, "admin_reset", key=ADMIN_KEY), 200)
    cut = await begin(gateway, "cut")
    await cut.rest()
    ids["cut"] = cut.request_id
    left = await begin(gateway, "stuck")
    left.client.abort()
    ids["left"] = left.request_id
    return ids


WHY = {
    "ok": "",
    "admitted": "",
    "over": "Limit small (per tenant) was full: 43 of 1000 used, 975 more asked for."
    " There is room again after ",
    "beyond": "of limit small, which never allows more than 1000",
    "large": "The request body is larger than this gateway accepts.",
    "failover": "spare answered after first server error (HTTP 500).",
    "rejected": "first (HTTP 400) refused the request as invalid",
    "down": "No target could serve it: first server error (HTTP 503), spare server error",
    "blocked prompt": "Detector email blocks what it found in the request.",
    "blocked answer": "Detector email blocks what it found in the answer.",
    "masked": "",
    "tool": "",
    "denied": "Rule mcp.rules[0] denies tool admin_reset.",
    "allowed": "",
    "cut": "first (HTTP 200) broke off after the answer had begun to leave.",
    "left": "The client left before its answer was complete.",
}
TOOK = re.compile(r", [0-9.]+ m?s(?=\))")
"""How long an attempt took; the sentences are compared without it."""
STEPS = {
    "ok": ("route", "limits", "attempt"),
    "masked": ("email x1",),
    "tool": ("allow", "mcp.rules[1]", "tool ask", "intent committed"),
    "denied": ("deny", "mcp.rules[0]", "tool admin_reset"),
    "failover": ("server_error", "provider first", "provider spare"),
    "cut": ("error_event", "interrupted", "settle"),
}


@pytest.mark.full
def test_every_end_is_explained_in_words_and_as_json_after_the_server_was_killed(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        upstream = Upstream()
        async with scripted(upstream) as server:
            write(tmp_path, file(server.url))
            async with serving(tmp_path) as gateway:
                ids = await one_of_each(gateway, upstream)
                async with asyncio.timeout(WAIT_S):
                    while not await asyncio.to_thread(has_ended, tmp_path, ids["left"]):
                        pass
                running = explained(tmp_path, ids["ok"])
                await gateway.kill()
        assert set(ids) == set(WHY)
        for kind, identifier in ids.items():
            told = as_json(known(tmp_path, identifier))
            assert told["state"] == "ended", kind
            assert bool(told["why"]) is bool(WHY[kind]), kind
            assert WHY[kind] in TOOK.sub("", str(told["why"])), kind
            text = explained(tmp_path, identifier)
            assert str(told["why"]) in text
            for word in STEPS.get(kind, ()):
                assert word in text, kind
        assert running == explained(tmp_path, ids["ok"])
        check_the_command(tmp_path, ids["failover"])

    asyncio.run(body())


def has_ended(folder: Path, identifier: str) -> bool:
    """Whether the records know the end of it."""
    record = find(folder / "records.db", identifier)
    return record is not None and as_json(record)["state"] == "ended"


def known(folder: Path, identifier: str) -> Record:
    record = find(folder / "records.db", identifier)
    assert record is not None
    return record


def check_the_command(folder: Path, identifier: str) -> None:
    """The command says the same, in a process of its own."""
    shown = tidegate(folder, "explain", identifier)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == explained(folder, identifier)
    shown = tidegate(folder, "explain", "--json", identifier)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout) == as_json(known(folder, identifier))
    shown = tidegate(folder, "explain", "0" * 32)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert f"No record of the request '{'0' * 32}'" in shown.stderr
