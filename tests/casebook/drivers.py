"""Which requests does a case of kind llm, mcp or http make?

Lives here: from the keys of `input` to exchanges. Does not live here: the gateway around them
(lane), what is right (rules).
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

from tests.casebook import answers, configs, generate
from tests.casebook.answers import Canned
from tests.casebook.bodies import encoded
from tests.casebook.cases import TENANT_KEY
from tests.casebook.client import ask, ask_with_sdk
from tests.casebook.lane import Stage
from tests.casebook.seen import Exchange, Sent
from tests.casebook.upstreams import Conversation
from tests.casebook.waiting import passing

CHAT_PATH = "/v1/chat/completions"
_JSON = ("Content-Type", "application/json")
_DEFAULT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


async def chat(stage: Stage) -> None:
    """Kind llm: one request for each canned answer, or for each generated stream; then variants."""
    given = stage.seen.case.input
    request = dict(given.get("request") or _DEFAULT)
    plans = _plans(given, " ".join(stage.seen.case.sentences))
    stage.seen.credential = configs.PROVIDER_KEY
    for label, canned, secret in plans:
        exchange = await _chat(stage, request, canned, label=label)
        exchange.secret = secret
        stage.seen.exchanges.append(exchange)
    for words in given.get("variants", []):
        headers, changed = _chat_variant(words, request)
        exchange = await _chat(stage, changed, plans[0][1], label=f"variant {words}", more=headers)
        exchange.variant = {"words": words}
        stage.seen.variants.append(exchange)
    await _settled(stage)


def _plans(given: Mapping[str, Any], told: str) -> list[tuple[str, Canned | None, str]]:
    """(label, answer, secret) for each request."""
    slow = bool(given.get("slow"))
    pace = bool(re.search(r"before (the )?upstream has finished|no whole-stream", told))
    upstream = given.get("upstream")
    if upstream is None and "generate" in given:
        return [
            (made.label, answers.streamed(made.texts), made.secret)
            for made in generate.deltas(str(given["generate"]))
        ]
    many = isinstance(upstream, list)
    listed = upstream if isinstance(upstream, list) else [upstream]
    return [
        (
            f"answer {at}" if many else "",
            answers.canned(one, slow=slow, pace=pace) if one else None,
            "",
        )
        for at, one in enumerate(listed, start=1)
    ]


def _chat_variant(
    words: Any, request: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Headers and request of a variant: `header NAME: VALUE`, `FIELD: JSON`, or an object."""
    changed = dict(request)
    if isinstance(words, Mapping):
        headers = {k: v for k, v in words.items() if k[:1].isupper() or "-" in k}
        changed |= {k: v for k, v in words.items() if k not in headers}
        return list(headers.items()), changed
    found = re.fullmatch(r"(?:(?P<header>header) )?(?P<name>[\w-]+): (?P<value>.+)", str(words))
    if found is None:
        raise answers.CannotAnswer(f"variant {words!r}")
    if found["header"]:
        return [(found["name"], found["value"])], changed
    try:
        changed[found["name"]] = json.loads(found["value"])
    except ValueError:
        changed[found["name"]] = found["value"]
    return [], changed


async def _chat(
    stage: Stage,
    request: dict[str, Any],
    canned: Canned | None,
    *,
    label: str = "",
    more: list[tuple[str, str]] | None = None,
) -> Exchange:
    given = stage.seen.case.input
    if canned is not None and canned.stream and "stream" not in request:
        request = request | {"stream": True}
    answer = canned or answers.default(streamed=bool(request.get("stream")))
    stage.upstreams.answer(stage.name, _player(answer))
    made: list[Exchange] = []
    key = configs.key_of(stage.name)
    with stage.noting(made):
        if str(given.get("client", "")).startswith("openai-python"):
            made += await ask_with_sdk(stage.gateway.port, key, request)
        else:
            headers = [("Authorization", f"Bearer {key}"), _JSON]
            headers += [*(given.get("headers") or {}).items(), *(more or [])]
            body = json.dumps(request, ensure_ascii=False).encode()
            sent = Sent("POST", CHAT_PATH, headers, body)
            made.append(await ask(stage.gateway.port, sent))
    exchange = made[-1]
    exchange.label, exchange.canned = label, answer.plain
    return exchange


def _player(canned: Canned) -> Any:
    async def answer(conversation: Conversation) -> None:
        await conversation.play(canned)

    return answer


async def _settled(stage: Stage) -> None:
    """What the requests were charged, if a sentence asks for it.

    The settlement is a task of its own, so it may come a moment after the answer.
    """
    if not re.search(r"settled|usage is", " ".join(stage.seen.case.sentences)):
        return
    for _ in range(100):
        text = await asyncio.to_thread(stage.gateway.metrics)
        for labels, value in re.findall(r"tidegate_tokens_total\{(.*)\} (\S+)", text):
            kind = re.search(r'kind="(\w+)"', labels)
            if kind and f'tenant="{stage.name}"' in labels and float(value):
                stage.seen.settled[kind[1]] = int(float(value))
        if stage.seen.settled:
            return
        await passing(0.05)


async def tools(stage: Stage) -> None:
    """Kind mcp: each body in turn, each variant of the headers, and other roles if asked for."""
    given = stage.seen.case.input
    stage.seen.credential = configs.SERVICE_KEY
    stage.backend.expect(given.get("upstream"))
    role = str(given.get("as", "viewer"))
    stage.seen.exchanges += await _bodies(stage, role)
    stage.seen.variants += await _variants(stage, role)
    told = " ".join(stage.seen.case.sentences)
    for other in configs.ROLES:
        if other != role and re.search(
            rf"(?:with|for) an? {other}\b|\b{other}(?: token)?:|\b{other} (?:gets|sees|is|has)\b",
            told,
        ):
            stage.seen.others[other] = [
                *await _bodies(stage, other),
                *await _variants(stage, other),
            ]


async def _bodies(stage: Stage, role: str) -> list[Exchange]:
    given = stage.seen.case.input
    bodies = given["body"] if isinstance(given["body"], list) else [given["body"]]
    exchanges: list[Exchange] = []
    for at, body in enumerate(bodies, start=1):
        text = _with_cursor(str(body), exchanges)
        headers = dict(given.get("headers") or {})
        label = f"body {at}" if len(bodies) > 1 else ""
        exchanges.append(await _post(stage, role, text, headers, label))
    return exchanges


def _with_cursor(body: str, before: list[Exchange]) -> str:
    if "$NEXT" not in body:
        return body
    result = (before[-1].rpc if before else {}).get("result")
    cursor = result.get("nextCursor") if isinstance(result, dict) else None
    return body.replace('"$NEXT"', json.dumps(cursor)).replace("$NEXT", str(cursor))


async def _variants(stage: Stage, role: str) -> list[Exchange]:
    """A variant's headers stand in the place of the base's; its `body_` words change the body."""
    given = stage.seen.case.input
    body = given["body"][0] if isinstance(given["body"], list) else given["body"]
    exchanges = []
    for at, variant in enumerate(given.get("variants", []), start=1):
        label = f"variant {at} {json.dumps(variant, ensure_ascii=False)}"
        exchange = await _post(stage, role, str(body), dict(variant), label)
        exchange.variant = dict(variant)
        exchanges.append(exchange)
    return exchanges


async def _post(stage: Stage, role: str, text: str, words: dict[str, Any], label: str) -> Exchange:
    body, headers = encoded(text, words)
    key = configs.key_of(stage.name, role)
    named = {name.lower() for name in headers}
    sent_headers = [("Authorization", f"Bearer {key}"), *headers.items()]
    if "content-type" not in named:
        sent_headers.append(_JSON)
    if "accept" not in named:
        sent_headers.append(("Accept", "application/json, text/event-stream"))
    path = str(words.get("path", "/mcp"))
    value = _loads(text)
    stage.backend.expected_id = value.get("id") if isinstance(value, dict) else None
    made: list[Exchange] = []
    with stage.noting(made):
        method = str(words.get("method", "POST"))
        made.append(await ask(stage.gateway.port, Sent(method, path, sent_headers, body)))
    made[-1].label = label
    return made[-1]


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


async def bare(stage: Stage) -> None:
    """Kind http: each request as it stands; a key unless the case speaks of none."""
    given = stage.seen.case.input
    stage.seen.credential = configs.PROVIDER_KEY
    upstream = given.get("upstream")
    answerer = _player(answers.canned(upstream)) if upstream else _any_path
    stage.upstreams.answer(stage.name, answerer)
    without = bool(re.search(r"without a key|no key", str(given.get("note", ""))))
    for at, request in enumerate(given["requests"], start=1):
        exchange = await _bare(stage, request, keyless=without)
        exchange.label = f"request {at} {exchange.sent.method} {exchange.sent.path}"
        stage.seen.exchanges.append(exchange)
    if any("body is not read" in sentence for sentence in stage.seen.case.sentences):
        stage.seen.others["half a body"] = [
            await _bare(stage, request, keyless=without, declared=1000)
            for request in given["requests"]
        ]


async def _bare(
    stage: Stage, request: Mapping[str, Any], *, keyless: bool, declared: int | None = None
) -> Exchange:
    method = str(request.get("method", "GET"))
    headers = [(n, str(v)) for n, v in (request.get("headers") or {}).items()]
    note = str(request.get("note", ""))
    no_key = keyless or "headers" in request or "no key" in note or "without a key" in note
    key = configs.key_of(stage.name)
    headers = [(n, v.replace(TENANT_KEY, key)) for n, v in headers]
    if not no_key:
        headers.append(("Authorization", f"Bearer {key}"))
    body = b""
    if "json" in request:
        body = json.dumps(request["json"], ensure_ascii=False).encode()
    elif "body" in request:
        body = str(request["body"]).encode()
    elif method == "POST":
        body = json.dumps({k: v for k, v in _DEFAULT.items() if k != "stream"}).encode()
    if body and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(_JSON)
    made: list[Exchange] = []
    with stage.noting(made):
        sent = Sent(method, str(request.get("path", "/")), headers, body[:20] if declared else body)
        made.append(await ask(stage.gateway.port, sent, declared=declared))
    return made[-1]


async def _any_path(conversation: Conversation) -> None:
    wants = conversation.call.json
    streamed = isinstance(wants, dict) and wants.get("stream") is True
    await conversation.play(answers.default(streamed=streamed))


PLAYS = {"llm": chat, "mcp": tools, "http": bare}
