"""What leaves for a provider: address, credential, headers and the same bytes."""

import json

import pytest

from tidegate.providers import Provider
from tidegate.providers.openai import (
    asking_for_usage,
    chat_request,
    refuses_usage,
    usage_wish,
)
from tidegate.routing import Target

BODY = b'{ "model":"gpt", "messages":[],"unknown":{"model":"gpt"}, "n":1e2 }'
PRIMARY = Provider("primary", "https://a.example/v1", credentials=("key-a0", "key-a1"))
BACKUP = Provider("backup", "https://b.example/v1", credentials=("key-b",))


def headers(provider: Provider, target: Target, *, stream: bool = False) -> dict[str, str]:
    request = chat_request(provider, target, BODY, model="gpt", stream=stream)
    found = dict(request.headers)
    assert len(found) == len(request.headers)
    return found


@pytest.mark.parametrize(
    ("base_url", "query", "url"),
    [
        ("https://a.example/v1", {}, "https://a.example/v1/chat/completions"),
        ("https://a.example/v1/", {}, "https://a.example/v1/chat/completions"),
        ("http://127.0.0.1:9201", {}, "http://127.0.0.1:9201/chat/completions"),
        (
            "https://a.example/openai/deployments/x",
            {"api-version": "2026-01-01"},
            "https://a.example/openai/deployments/x/chat/completions?api-version=2026-01-01",
        ),
        (
            "https://a.example/v1?tier=a",
            {"b": "c d&e"},
            "https://a.example/v1/chat/completions?tier=a&b=c+d%26e",
        ),
        ("https://a.example/v1?tier=a", {}, "https://a.example/v1/chat/completions?tier=a"),
    ],
)
def test_the_address_is_the_configured_one(base_url: str, query: dict[str, str], url: str) -> None:
    provider = Provider("primary", base_url, query=query, proxy="http://proxy.example")
    request = chat_request(provider, Target("primary"), BODY, model="gpt", stream=False)
    assert (request.method, request.url, request.proxy) == ("POST", url, "http://proxy.example")


def test_the_body_is_untouched_without_an_alias() -> None:
    for models in ({}, {"*": None}, {"gpt": None, "*": "other"}, {"gpt": "gpt"}, {"x": "y"}):
        provider = Provider("primary", "https://a.example/v1", models=models)
        request = chat_request(provider, Target("primary"), BODY, model="gpt", stream=False)
        assert request.body is BODY


@pytest.mark.parametrize(
    ("models", "target_model", "sent"),
    [
        ({"gpt": "gpt-upstream"}, None, "gpt-upstream"),
        ({"*": "all"}, None, "all"),
        ({"gpt": "one", "*": "all"}, None, "one"),
        ({"gpt": "one"}, "pinned", "pinned"),
    ],
)
def test_an_alias_changes_the_top_level_model_only(
    models: dict[str, str | None], target_model: str | None, sent: str
) -> None:
    provider = Provider("primary", "https://a.example/v1", models=models)
    target = Target("primary", upstream_model=target_model)
    request = chat_request(provider, target, BODY, model="gpt", stream=False)
    assert request.body == BODY.replace(b'"gpt"', json.dumps(sent).encode(), 1)


def test_a_request_without_a_model_gets_the_providers_own() -> None:
    provider = Provider("primary", "https://a.example/v1", models={"*": "all"})
    request = chat_request(provider, Target("primary"), b'{"n":1}', model=None, stream=False)
    assert request.body == b'{"model":"all","n":1}'


def test_a_key_travels_only_with_its_provider() -> None:
    assert headers(PRIMARY, Target("primary", 0))["authorization"] == "Bearer key-a0"
    assert headers(PRIMARY, Target("primary", 1))["authorization"] == "Bearer key-a1"
    assert headers(BACKUP, Target("backup"))["authorization"] == "Bearer key-b"
    with pytest.raises(ValueError, match="another provider"):
        headers(BACKUP, Target("primary"))


def test_an_upstream_without_keys_gets_none() -> None:
    assert "authorization" not in headers(Provider("local", "http://l.example"), Target("local"))


@pytest.mark.parametrize(
    ("stream", "accept"), [(True, "text/event-stream"), (False, "application/json")]
)
def test_the_headers_are_ours_alone(*, stream: bool, accept: str) -> None:
    assert headers(BACKUP, Target("backup"), stream=stream) == {
        "accept": accept,
        "accept-encoding": "gzip, br",
        "content-type": "application/json",
        "authorization": "Bearer key-b",
    }


def test_configured_headers_are_added_and_may_replace_ours_but_never_the_framing() -> None:
    provider = Provider(
        "azure",
        "https://z.example",
        headers={"api-key": "k", "Accept": "x", "Host": "evil", "Content-Length": "1"},
    )
    assert headers(provider, Target("azure")) == {
        "accept": "x",
        "accept-encoding": "gzip, br",
        "content-type": "application/json",
        "api-key": "k",
    }


def test_no_secret_shows_in_a_representation() -> None:
    request = chat_request(PRIMARY, Target("primary"), BODY, model="gpt", stream=False)
    assert "key-a" not in repr(PRIMARY) + repr(request)


def test_the_body_cannot_choose_the_destination() -> None:
    body = json.dumps(
        {
            "model": "http://127.0.0.1:9999/m",
            "api_base": "http://127.0.0.1:9999",
            "api_key": "x",
            "extra_headers": {"Authorization": "Bearer x"},
        }
    ).encode()
    request = chat_request(
        BACKUP, Target("backup"), body, model="http://127.0.0.1:9999/m", stream=False
    )
    assert request.url == "https://b.example/v1/chat/completions"
    assert dict(request.headers)["authorization"] == "Bearer key-b"
    assert request.body is body


STREAM = {"stream": True}


@pytest.mark.parametrize(
    ("fields", "wish"),
    [
        ({}, "keep"),
        ({"stream": False}, "keep"),
        ({"stream": 1}, "keep"),
        (STREAM, "add"),
        ({**STREAM, "stream_options": None}, "change"),
        ({**STREAM, "stream_options": {}}, "change"),
        ({**STREAM, "stream_options": {"x": 1}}, "change"),
        ({**STREAM, "stream_options": {"include_usage": False}}, "change"),
        ({**STREAM, "stream_options": {"include_usage": None}}, "change"),
        ({**STREAM, "stream_options": {"include_usage": True}}, "keep"),
        ({**STREAM, "stream_options": {"include_usage": "yes"}}, "keep"),
        ({**STREAM, "stream_options": "usage"}, "keep"),
        ({**STREAM, "stream_options": []}, "keep"),
    ],
)
def test_usage_is_missing_from_streams_that_did_not_ask(
    fields: dict[str, object], wish: str
) -> None:
    assert usage_wish(fields) == wish


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (b'{"stream":true}', b'{"stream_options":{"include_usage":true},"stream":true}'),
        (
            b'{"stream":true, "stream_options": null }',
            b'{"stream":true, "stream_options": {"include_usage":true} }',
        ),
        (
            b'{"stream_options":{},"stream":true}',
            b'{"stream_options":{"include_usage":true},"stream":true}',
        ),
        (
            b'{"stream_options":{"x":{"include_usage":0}},"stream":true}',
            b'{"stream_options":{"include_usage":true,"x":{"include_usage":0}},"stream":true}',
        ),
        (
            b'{"stream_options":{"include_usage": false, "x":1},"stream":true}',
            b'{"stream_options":{"include_usage": true, "x":1},"stream":true}',
        ),
        (
            b'{"stream\\u005foptions":null,"stream":true}',
            b'{"stream\\u005foptions":{"include_usage":true},"stream":true}',
        ),
    ],
)
def test_the_wish_for_usage_is_all_that_is_added(body: bytes, asked: bytes) -> None:
    wish = usage_wish(json.loads(body))
    assert wish != "keep"
    assert asking_for_usage(body, wish) == asked
    assert usage_wish(json.loads(asked)) == "keep"
    request = chat_request(PRIMARY, Target("primary"), body, model=None, stream=True, wish=wish)
    assert request.body == asked


@pytest.mark.parametrize(
    ("status", "body", "refuses"),
    [
        (400, b'{"error":{"message":"Unrecognized request argument: stream_options"}}', True),
        (422, b'{"detail":[{"loc":["body","stream_options","include_usage"]}]}', True),
        (400, b'{"error":{"message":"max_tokens is too large"}}', False),
        (500, b"stream_options", False),
        (200, b"stream_options", False),
    ],
)
def test_a_provider_says_that_it_does_not_know_the_wish(
    status: int, body: bytes, *, refuses: bool
) -> None:
    assert refuses_usage(status, body) is refuses
