"""Who is let in, on whatever address the server is reached?"""

import pytest

from tidegate.tools.doors import Doors, Refusal, is_loopback, media_refusal

TOKEN = "right"  # noqa: S105 - nobody uses it
LOOPBACK = ["127.0.0.1", "127.9.9.9", "::1"]
OTHERS = ["192.0.2.7", "10.0.0.5", "2001:db8::7", None]
NEVER = [
    "evil.example",
    "evil.example:9000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "evil.example#localhost",
    "0x7f000001",
    "127.1.evil",
    "localhost..",
]
ON_LOOPBACK = ["localhost", "LocalHost:9000", "127.0.0.1:1", "[::1]:9000", "[::1]", "a.localhost"]
ON_OTHERS = ["192.0.2.7:9000", "10.0.0.5", "[2001:db8::7]:80", "localhost:9000", "127.0.0.1"]


def refused(
    doors: Doors, server: str | None, *pairs: tuple[str, str], host: str = "localhost"
) -> int | None:
    given = [("host", host), *pairs]
    headers = [(name.encode(), value.encode("latin-1")) for name, value in given]
    refusal = doors.refusal(headers, server)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize("server", [*LOOPBACK, *OTHERS])
@pytest.mark.parametrize("host", NEVER)
def test_a_name_of_somebody_elses_is_no_host_of_ours_on_any_address(
    server: str | None, host: str
) -> None:
    assert refused(Doors(), server, host=host) in (400, 421)


@pytest.mark.parametrize("server", LOOPBACK)
def test_on_loopback_a_host_is_a_loopback_name_or_address(server: str) -> None:
    assert [refused(Doors(), server, host=host) for host in ON_LOOPBACK] == [None] * 6
    assert refused(Doors(), server, host="192.0.2.7:9000") == 421


@pytest.mark.parametrize("server", OTHERS)
def test_elsewhere_a_host_is_an_address_and_never_a_name_unless_it_is_allowed(
    server: str | None,
) -> None:
    assert [refused(Doors(), server, host=host) for host in ON_OTHERS] == [None] * 5
    named = Doors(frozenset({"tools.example", "other.example:9000"}))
    assert refused(named, server, host="Tools.example:1234") is None
    assert refused(named, server, host="other.example:9000") is None
    assert refused(named, server, host="other.example:9001") == 421


@pytest.mark.parametrize("server", [*LOOPBACK, *OTHERS])
def test_no_host_two_hosts_and_no_name_at_all_are_refused(server: str | None) -> None:
    assert Doors().refusal([], server) == Refusal(400, "The request needs exactly one Host")
    assert refused(Doors(), server, ("host", "localhost")) == 400
    for host in ("", " ", "local host", "localhost/", "user@localhost", "localhost:port", "[::1"):
        assert refused(Doors(), server, host=host) == 400


@pytest.mark.parametrize("server", [*LOOPBACK, *OTHERS])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://localhost.evil.example",
        "http://localhost:9001",
        "http://localhost:80.evil.example",
        "ftp://localhost",
        "http://127.0.0.1:9000",
    ],
)
def test_a_foreign_origin_is_refused_on_every_address(server: str | None, origin: str) -> None:
    host = "localhost:9000"
    assert refused(Doors(), server, ("origin", origin), host=host) == 403


@pytest.mark.parametrize("server", [*LOOPBACK, *OTHERS])
def test_its_own_origin_and_an_allowed_one_pass_but_not_two(server: str | None) -> None:
    host = "localhost:9000"
    own, page = ("origin", "http://LOCALHOST:9000"), ("origin", "https://app.example")
    assert refused(Doors(), server, own, host=host) is None
    assert refused(Doors(), server, ("origin", "https://localhost:9000"), host=host) is None
    assert refused(Doors(), server, page, host=host) == 403
    allowed = Doors(origins=frozenset({"https://app.example"}))
    assert refused(allowed, server, page, host=host) is None
    assert refused(allowed, server, page, own, host=host) == 403


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["Bearer"],
        ["Bearer "],
        ["Bearer wrong"],
        ["Basic right"],
        ["right"],
        ["Bearer  right"],
        ["Bearer rightx"],
        ["Bearer r\xefght"],
        ["Bearer right, Bearer right"],
        ["Bearer right", "Bearer right"],
    ],
)
def test_without_the_token_nobody_gets_in(values: list[str]) -> None:
    pairs = [("authorization", value) for value in values]
    assert refused(Doors(token=TOKEN), "10.0.0.5", *pairs) == 401


def test_with_the_token_one_gets_in_and_a_refusal_says_what_is_missing() -> None:
    doors = Doors(token=TOKEN)
    assert refused(doors, "10.0.0.5", ("authorization", "bearer right")) is None
    refusal = doors.refusal([(b"host", b"localhost")], None)
    assert refusal is not None
    assert (refusal.code, refusal.headers) == (-32000, ((b"www-authenticate", b"Bearer"),))


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", None),
        ("Application/JSON", None),
        ("application/json; charset=UTF-8", None),
        ('application/json;charset="utf-8"', None),
        ("application/json;", None),
        ("application/jsonfoo", 415),
        ("application/json-rpc", 415),
        ("application/json; charset=utf-16", 415),
        ("application/json; charset=utf-8; charset=utf-16", 415),
        ("application/json, text/plain", 415),
        ("text/plain", 415),
        ("text/json", 415),
        ("multipart/form-data", 415),
        ("", 415),
        (None, 415),
    ],
)
def test_the_media_type_is_exactly_json(kind: str | None, status: int | None) -> None:
    headers = [] if kind is None else [(b"content-type", kind.encode())]
    refusal = media_refusal(headers, 100)
    assert (None if refusal is None else refusal.status) == status


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("content-length", "100", None),
        ("content-length", "101", 413),
        ("content-length", "9" * 5000, 413),
        ("content-length", "1e9", None),
        ("content-encoding", "identity", None),
        ("content-encoding", "gzip", 415),
        ("content-encoding", "GZIP, identity", 415),
        ("content-type", "application/json", 400),
    ],
)
def test_length_and_coding_are_judged_before_anything_is_read(
    name: str, value: str, status: int | None
) -> None:
    headers = [(b"content-type", b"application/json"), (name.encode(), value.encode())]
    refusal = media_refusal(headers, 100)
    assert (None if refusal is None else refusal.status) == status


def test_what_only_looks_like_loopback_is_not() -> None:
    assert all(map(is_loopback, ["localhost", "x.localhost", "127.0.0.1", "127.8.8.8", "::1"]))
    for name in (
        ".".join("0000"),
        "::",
        "localhost.",
        "10.0.0.1",
        "xlocalhost",
        "",
        "::2",
        "0127.0.0.1",
    ):
        assert not is_loopback(name)
