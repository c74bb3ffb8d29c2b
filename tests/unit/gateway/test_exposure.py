"""Host, Origin and CORS: the product of listeners, hosts and origins, as pure decisions."""

import itertools

import pytest

from tidegate.errors import Forbidden, InvalidRequest, Misdirected
from tidegate.gateway.exposure import Admitted, Exposure

LOOPBACK = [
    *("127.0.0.1", "127.0.0.1:8080", "127.1.2.3:1", "localhost", "LocalHost:8080", "[::1]"),
    *("[::1]:8080", "app.localhost:8080", "[0:0:0:0:0:0:0:1]:80"),
]
FOREIGN = [
    *("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"),
    *("10.0.0.1", "0.0.0.0:8080", "[::2]:80", "[::]", "127.1", "2130706433", "0x7f000001"),
    *("128.0.0.1", "notlocalhost", "localhost."),
]
NO_HOST = [
    *("x/healthz?", "x/healthz#", "localhost/x", "127.0.0.1@evil", "evil@127.0.0.1", ""),
    *("localhost:80@evil", "127.0.0.1:8080:80", "[::1", "::1]", "[::1]x", "::1", "a b"),
    *("127.0.0.1:eight", "127.0.0.1:", "localhost, evil.example", "127.0.0.1\xb2", "a:123456"),
]


def headers(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in pairs]


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_loopback_listener_answers_to_every_loopback_name(host: str) -> None:
    assert Exposure(loopback=True).judge("POST", headers(("host", host))) == Admitted()


@pytest.mark.parametrize("host", FOREIGN)
def test_a_loopback_listener_answers_to_no_other_name(host: str) -> None:
    exposure = Exposure(loopback=True)
    with pytest.raises(Misdirected):
        exposure.judge("POST", headers(("host", host)))
    assert isinstance(exposure.refusal("POST", headers(("host", host))), Misdirected)


@pytest.mark.parametrize("host", NO_HOST)
@pytest.mark.parametrize("loopback", [True, False])
def test_what_is_no_host_is_400_on_every_listener(host: str, *, loopback: bool) -> None:
    exposure = Exposure(loopback=loopback)
    assert isinstance(exposure.refusal("POST", headers(("host", host))), InvalidRequest)


def test_two_hosts_are_400_and_none_is_for_a_loopback_listener() -> None:
    two = headers(("host", "localhost"), ("host", "localhost"))
    for loopback in (True, False):
        assert isinstance(Exposure(loopback=loopback).refusal("POST", two), InvalidRequest)
    assert isinstance(Exposure(loopback=True).refusal("POST", []), InvalidRequest)


def test_more_names_may_be_allowed_on_loopback() -> None:
    exposure = Exposure(loopback=True, allowed_hosts=["GW.example", "[fd00::1]"])
    for host in ("gw.example", "gw.example:8080", "GW.EXAMPLE", "[fd00::1]:80", "127.0.0.1"):
        assert exposure.refusal("POST", headers(("host", host))) is None
    assert exposure.refusal("POST", headers(("host", "other.example"))) is not None


@pytest.mark.parametrize("host", ["gw.example", "10.0.0.1:80", "[fd00::1]:80", "localhost"])
def test_elsewhere_any_host_is_ours_unless_names_are_given(host: str) -> None:
    assert Exposure(loopback=False).refusal("POST", headers(("host", host))) is None
    named = Exposure(loopback=False, allowed_hosts=["gw.example"])
    ours = named.refusal("POST", headers(("host", host))) is None
    assert ours == (host == "gw.example")


def test_elsewhere_a_health_check_without_host_is_served_unless_names_are_given() -> None:
    assert Exposure(loopback=False).refusal("GET", []) is None
    assert Exposure(loopback=False, allowed_hosts=["gw.example"]).refusal("GET", []) is not None
    # Without a Host no origin can be our own.
    assert Exposure(loopback=False).refusal("GET", headers(("origin", "http://"))) is not None


ORIGINS: list[tuple[str, bool]] = [
    ("http://127.0.0.1:8080", True),
    ("https://127.0.0.1:8080", True),
    ("HTTP://127.0.0.1:8080", True),
    ("https://app.example", True),
    ("http://app.example", False),
    ("https://app.example:8443", False),
    ("https://app.example.evil.example", False),
    ("https://evil.example", False),
    ("http://127.0.0.1", False),
    ("http://127.0.0.1:8081", False),
    ("http://localhost:8080", False),
    ("null", False),
    ("", False),
    ("file://", False),
    ("127.0.0.1:8080", False),
]


@pytest.mark.parametrize(
    ("origin", "method", "loopback"),
    [
        (origin, method, loopback)
        for (origin, _), method, loopback in itertools.product(
            ORIGINS, ["POST", "GET", "OPTIONS", "DELETE"], [True, False]
        )
    ],
)
def test_only_our_own_and_the_listed_origins_may_call(
    origin: str, method: str, *, loopback: bool
) -> None:
    exposure = Exposure(loopback=loopback, allowed_origins=["https://app.example"])
    asked = headers(("host", "127.0.0.1:8080"), ("origin", origin))
    if not dict(ORIGINS)[origin]:
        with pytest.raises(Forbidden):
            exposure.judge(method, asked)
        return
    admitted = exposure.judge(method, asked)
    answer = dict(admitted.headers)
    assert not admitted.preflight
    assert answer[b"access-control-allow-origin"] == origin.lower().encode()
    assert answer[b"vary"] == b"Origin"
    exposed = answer[b"access-control-expose-headers"].split(b", ")
    assert {b"x-request-id", b"x-tidegate-provider", b"x-tidegate-attempts"} <= set(exposed)
    assert {b"retry-after", b"x-ratelimit-remaining-tokens"} <= set(exposed)
    assert b"access-control-allow-credentials" not in answer


def test_two_origins_are_none() -> None:
    exposure = Exposure(loopback=True, allowed_origins=["https://app.example"])
    asked = headers(
        ("host", "localhost"), ("origin", "https://app.example"), ("origin", "https://app.example")
    )
    with pytest.raises(Forbidden):
        exposure.judge("POST", asked)


def test_a_preflight_is_answered_before_any_key_is_asked_for() -> None:
    exposure = Exposure(loopback=True, allowed_origins=["https://app.example"])
    question = (
        ("host", "localhost:8080"),
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type,x-stainless-os"),
    )
    admitted = exposure.judge("OPTIONS", headers(*question))
    assert admitted.preflight
    assert dict(admitted.headers) == {
        b"access-control-allow-origin": b"https://app.example",
        b"vary": b"Origin",
        b"access-control-allow-methods": b"GET, POST, DELETE",
        b"access-control-allow-headers": b"authorization,content-type,x-stainless-os",
        b"access-control-max-age": b"600",
    }
    # The same question from elsewhere gets no answer, and without Origin it is no question.
    with pytest.raises(Forbidden):
        exposure.judge("OPTIONS", headers(question[0], ("origin", "https://evil.example")))
    assert exposure.judge("OPTIONS", headers(question[0], question[2])) == Admitted()
    assert not exposure.judge("POST", headers(*question)).preflight


def test_asked_headers_are_not_repeated_unless_they_are_names() -> None:
    exposure = Exposure(loopback=True, allowed_origins=["https://app.example"])
    base = [("host", "localhost"), ("origin", "https://app.example")]
    for asked in ("", "a\xe9", "a: b", 'x"y', "a;b"):
        question = [("access-control-request-method", "POST")]
        question.append(("access-control-request-headers", asked))
        answer = exposure.judge("OPTIONS", headers(*base, *question)).headers
        assert b"access-control-allow-headers" not in dict(answer)
