"""What can the gateway be seen doing in one minute?

Lives here: three scenes, each a real request through the running gateway, shown as its answer
arrives, with the curl line to repeat it and the line that explains the decision. Does not live
here: the gateway, the upstreams (world), how a terminal is written (stage).
"""

from dataclasses import dataclass

import aiohttp
import msgspec

from tidegate.config.demo_world import TENANT_TOKEN, VIEWER_TOKEN, DemoPorts
from tidegate.demo.leaky_provider import MASKED, fragments
from tidegate.demo.stage import Stage, curl
from tidegate.sse import Decoder

_EVENT_BYTES = 1 << 20
_CHAT = "/v1/chat/completions"
_LEAKY_BODY = (
    '{"model":"leaky","stream":true,'
    '"messages":[{"role":"user","content":"Who owns this account?"}]}'
)
_ADMIN_CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin_reset_key"}}'
_HELLO_BODY = '{"messages":[{"role":"user","content":"hello"}],"max_tokens":100}'


@dataclass(frozen=True, slots=True)
class Theater:
    """Where everything is: the gateway's address, the demo upstreams, the name of our command."""

    gateway: str
    ports: DemoPorts
    command: str = "tidegate"

    @property
    def switch(self) -> str:
        """Where the providers' behavior is set."""
        return f"http://127.0.0.1:{self.ports.providers}/_set"

    @property
    def execution_log(self) -> str:
        """Where the MCP backend shows which tools it ran."""
        return f"http://127.0.0.1:{self.ports.mcp_backend}/_log"


async def play(stage: Stage, theater: Theater) -> bool:
    """All three scenes; whether each was answered as it should be.

    Raises aiohttp.ClientError when the gateway cannot be reached.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        went_well = [
            await masked_stream(stage, theater, session),
            await denied_call(stage, theater, session),
            await failover(stage, theater, session),
        ]
    return all(went_well)


async def masked_stream(stage: Stage, theater: Theater, session: aiohttp.ClientSession) -> bool:
    """A stream whose secrets were cut across events, masked as it arrives."""
    stage.title(1, "A model leaks; every secret is cut across events, and none gets out")
    border = stage.paint("|", "red")
    stage.note("the provider writes, one event between two bars:")
    stage.say("   " + border.join(fragments()))
    stage.note("the client receives:")
    headers = _headers(TENANT_TOKEN)
    url = theater.gateway + _CHAT
    decoder, text, tail = Decoder(_EVENT_BYTES), "", b""
    async with session.post(url, data=_LEAKY_BODY, headers=headers) as answer:
        stage.put("   " if answer.ok else f"   HTTP {answer.status} {await answer.text()}")
        async for piece in answer.content.iter_any():
            tail = (tail + piece)[-512:]
            for delta in (_delta(event.data) for event in decoder.feed(piece)):
                text += delta
                stage.put(stage.paint(delta, "green"))
        stage.say()
        for line in tail.decode(errors="replace").splitlines():
            if line.startswith(": guardrail"):
                stage.say(f"   {line}")
        _try_it(
            stage, theater, answer, curl(url, token=TENANT_TOKEN, body=_LEAKY_BODY, options="-N")
        )
    return text == MASKED


async def denied_call(stage: Stage, theater: Theater, session: aiohttp.ClientSession) -> bool:
    """A viewer's admin call, denied before the backend hears of it."""
    stage.title(2, "A viewer calls an admin tool; the backend never hears of it")
    url = f"{theater.gateway}/mcp"
    async with session.post(url, data=_ADMIN_CALL, headers=_headers(VIEWER_TOKEN)) as answer:
        stage.note(f"HTTP {answer.status}")
        body = (await answer.text()).strip()
        stage.say(f"   {stage.paint(body, 'green')}")
    async with session.get(theater.execution_log) as log:
        stage.note("tools the backend has run:")
        executed = (await log.text()).strip()
        stage.say(f"   {executed}")
    _try_it(stage, theater, answer, curl(url, token=VIEWER_TOKEN, body=_ADMIN_CALL))
    return "-32001" in body and executed == "[]"


async def failover(stage: Stage, theater: Theater, session: aiohttp.ClientSession) -> bool:
    """The primary answers, then fails, and the backup takes over within one request."""
    stage.title(3, "The primary provider fails; the backup answers the same request")
    url = theater.gateway + _CHAT
    await _with_primary("ok", stage, theater, session)
    answer = await _with_primary("429", stage, theater, session)
    stage.note("the primary stays at 429 until it is switched back:")
    stage.command(curl(f"'{theater.switch}?provider=primary&behaviour=ok'", options="-s -X POST"))
    _try_it(
        stage, theater, answer, curl(url, token=TENANT_TOKEN, body=_HELLO_BODY, options="-s -i")
    )
    return answer.ok and answer.headers.get("x-tidegate-provider") == "backup"


async def _with_primary(
    behavior: str, stage: Stage, theater: Theater, session: aiohttp.ClientSession
) -> aiohttp.ClientResponse:
    """Sets the primary's behavior, asks once and shows who answered."""
    query = {"provider": "primary", "behaviour": behavior}
    async with session.post(theater.switch, params=query):
        pass
    headers = _headers(TENANT_TOKEN)
    async with session.post(theater.gateway + _CHAT, data=_HELLO_BODY, headers=headers) as answer:
        await answer.read()
    provider = answer.headers.get("x-tidegate-provider", "-")
    attempts = answer.headers.get("x-tidegate-attempts", "-")
    shown = f"{answer.status} provider={provider} attempts={attempts}"
    stage.say(f"   primary={behavior:<4} -> {stage.paint(shown, 'green')}")
    return answer


def _headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}


def _try_it(
    stage: Stage, theater: Theater, answer: aiohttp.ClientResponse, command: list[str]
) -> None:
    stage.note("try it, and ask why:")
    stage.command(command)
    stage.command([f"{theater.command} explain {answer.headers.get('x-request-id', '-')}"])


def _delta(data: bytes) -> str:
    """The text of choice 0 in one event; an error event as it is."""
    if data == b"[DONE]":
        return ""
    event = msgspec.json.decode(data)
    if "error" in event:
        return data.decode()
    choices = event.get("choices") or [{}]
    text = choices[0].get("delta", {}).get("content")
    return text if isinstance(text, str) else ""
