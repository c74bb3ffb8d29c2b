"""Whom does a token name, for every way in which it can be wrong?"""

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.identity.tokens import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    SETTINGS,
    algorithms_here,
    assembled,
    claims,
    jwk,
    jwks,
    packed,
    private,
    token,
)
from tidegate.config.shapes import is_who
from tidegate.identity.jwt import claimed, verified
from tidegate.identity.jwt_keys import SigningKey
from tidegate.identity.jwt_text import MOST_BYTES, TokenRefused
from tidegate.policy import Principal


def published(*names: str) -> tuple[SigningKey, ...]:
    return algorithms_here().keys(jwks(*map(jwk, names)))


def judged(text: bytes, *names: str, now_s: float = NOW_S, **changed: Any) -> Principal:
    """The principal, by the published keys of these names."""
    wanted = replace(SETTINGS, **changed)
    asked = claimed(text, {wanted.issuer: wanted})
    return verified(asked, published(*(names or ("ec",))), algorithms_here(), now_s)


def reason(text: bytes, *names: str, **changed: Any) -> str:
    with pytest.raises(TokenRefused) as caught:
        judged(text, *names, **changed)
    return caught.value.reason


@pytest.mark.parametrize(
    ("key", "algorithm"), [("rsa", "RS256"), ("rsa", "PS256"), ("ec", "ES256"), ("ed", "EdDSA")]
)
def test_a_good_token_names_its_caller_under_each_algorithm(key: str, algorithm: str) -> None:
    text = token(claims(client_id="desk"), key=key, algorithm=algorithm)
    found = judged(text, "rsa", "ec", "ed")
    assert (found.name, found.tenant, found.roles) == ("vera", "acme", ("viewer",))
    assert (found.issuer, found.client) == (ISSUER, "desk")
    assert len(found.key_id) == 8


def test_an_unsigned_token_is_refused_however_it_spells_none() -> None:
    for spelling in ("none", "None", "NONE", "nOnE", ""):
        header = packed(json.dumps({"alg": spelling, "kid": "ec"}).encode())
        body = packed(json.dumps(claims()).encode())
        for signature in (b"", b"AA"):
            found = reason(header + b"." + body + b"." + signature)
            assert found in ("algorithm", "token_form")


def test_a_public_key_is_never_the_secret_of_a_symmetric_signature() -> None:
    public = private("rsa").public_key()
    forms = [
        (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
    ]
    for form in forms:
        secret = public.public_bytes(*form)
        text = assembled({"alg": "HS256", "kid": "rsa"}, json.dumps(claims()).encode(), secret)
        assert reason(text, "rsa") == "algorithm"
        # Even an issuer that were set up for it has no key of that kind.
        assert reason(text, "rsa", algorithms=("HS256", "RS256")) == "unknown_key"


def test_a_symmetric_key_in_the_set_is_passed_over() -> None:
    secret = packed(b"s" * 32).decode()
    keys = algorithms_here().keys(jwks(jwk("ec"), {"kty": "oct", "k": secret, "kid": "sym"}))
    assert [key.kid for key in keys] == ["ec"]


def test_a_key_verifies_only_with_algorithms_of_its_kind() -> None:
    for key, algorithm, named in (
        ("ec", "ES256", "RS256"),
        ("rsa", "RS256", "ES256"),
        ("ed", "EdDSA", "ES256"),
    ):
        good = token(key=key, algorithm=algorithm)
        _, body, signature = good.split(b".")
        header = packed(json.dumps({"alg": named, "kid": key}).encode())
        assert reason(b".".join((header, body, signature)), key) == "unknown_key"
    assert reason(token(key="rsa", algorithm="RS256"), "ec") == "unknown_key"
    narrow = algorithms_here().keys(jwks(jwk("rsa", alg="PS256")))
    asked = claimed(token(key="rsa", algorithm="RS256"), {ISSUER: SETTINGS})
    with pytest.raises(TokenRefused, match="unknown_key"):
        verified(asked, narrow, algorithms_here(), NOW_S)


def test_an_algorithm_that_the_issuer_does_not_use_is_refused() -> None:
    assert reason(token(), algorithms=("RS256",)) == "algorithm"


def test_a_signature_of_another_key_is_refused() -> None:
    assert reason(token(signer=private("ec-other"))) == "signature"
    assert reason(token(key="rsa", algorithm="RS256", signer=private("rsa-other")), "rsa") == (
        "signature"
    )


def test_where_the_header_says_to_find_keys_is_not_read() -> None:
    other = jwk("ec-other")
    for member in ("jwk", "jku", "x5u", "x5c"):
        value = other if member == "jwk" else "https://evil.example/jwks"
        header = {"kid": "ec-other", member: value}
        assert reason(token(header=header, signer=private("ec-other"))) == "unknown_key"
        assert reason(token(header={member: value}, signer=private("ec-other"))) == "signature"
        assert judged(token(header={member: value})).name == "vera"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"iss": None}, "issuer"),
        ({"iss": 5}, "issuer"),
        ({"iss": ISSUER + "/"}, "unknown_issuer"),
        ({"iss": ISSUER.upper()}, "unknown_issuer"),
        ({"aud": None}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": AUDIENCE + "/"}, "audience"),
        ({"aud": "https://other.example"}, "audience"),
        ({"aud": ["https://other.example"]}, "audience"),
        ({"aud": [AUDIENCE, 5]}, "audience"),
        ({"aud": {AUDIENCE: True}}, "audience"),
        ({"aud": [AUDIENCE] * 65}, "audience"),
        ({"exp": None}, "expiry"),
        ({"exp": "never"}, "expiry"),
        ({"exp": True}, "expiry"),
        ({"exp": NOW_S - 30}, "expired"),
        ({"exp": 0}, "expired"),
        ({"nbf": NOW_S + 31}, "not_yet_valid"),
        ({"nbf": "soon"}, "not_yet_valid"),
        ({"iat": NOW_S + 31}, "issued_in_future"),
        ({"sub": None}, "principal_claim"),
        ({"sub": ""}, "principal_claim"),
        ({"sub": 7}, "principal_claim"),
        ({"sub": ["vera"]}, "principal_claim"),
        ({"sub": "vera\n"}, "principal_claim"),
        ({"sub": "v" * 129}, "principal_claim"),
        ({"tenant": None}, "tenant_claim"),
        ({"tenant": "*"}, "tenant_claim"),
        ({"tenant": "a|b"}, "tenant_claim"),
        ({"roles": ["a|b"]}, "roles_claim"),
        ({"tenant": "a b"}, "tenant_claim"),
        ({"tenant": ["acme"]}, "tenant_claim"),
        ({"roles": {"admin": True}}, "roles_claim"),
        ({"roles": 1}, "roles_claim"),
        ({"roles": ["viewer", 1]}, "roles_claim"),
        ({"roles": ["viewer", "*"]}, "roles_claim"),
        ({"roles": ["viewer"] * 65}, "roles_claim"),
        ({"roles": "viewer  admin"}, "roles_claim"),
        ({"client_id": ["desk"]}, "client_claim"),
        ({"azp": 5}, "client_claim"),
    ],
    ids=str,
)
def test_a_claim_that_is_wrong_is_refused(changed: dict[str, object], expected: str) -> None:
    assert reason(token(claims(**changed))) == expected


def test_an_expiry_that_is_no_time_is_refused() -> None:
    assert reason(token(claims(exp=10**400))) == "expiry"
    assert reason(token(claims(exp=-(10**400)))) == "expiry"
    assert reason(token(claims(exp=1e300))) == "expiry"


def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    assert judged(token(claims(exp=NOW_S - 29.9))).name == "vera"
    assert judged(token(claims(nbf=NOW_S + 30, iat=NOW_S + 30))).name == "vera"
    assert reason(token(claims(exp=NOW_S)), leeway_s=0.0) == "expired"
    assert judged(token(claims(nbf=NOW_S, exp=NOW_S + 0.1)), leeway_s=0.0).name == "vera"


@pytest.mark.parametrize(
    ("given_roles", "expected"),
    [
        (None, ()),
        ([], ()),
        ("", ()),
        ("viewer", ("viewer",)),
        ("viewer admin", ("viewer", "admin")),
        (["admin", "viewer", "admin"], ("admin", "viewer")),
    ],
)
def test_roles_come_from_a_list_or_from_one_text(given_roles: object, expected: Any) -> None:
    assert judged(token(claims(roles=given_roles))).roles == expected


def test_every_tenant_and_role_of_a_token_is_one_that_the_file_can_name() -> None:
    for name in ("acme", "a.b", "x@y.example", "A:b/c+d_e-f", "9", "a" * 128):
        assert is_who(name)
        found = judged(token(claims(tenant=name, roles=[name])))
        assert (found.tenant, found.roles) == (name, (name,))
    for name in ("", "-a", ".a", "a b", "a|b", "a*", "a\n", "\u00e9", "a" * 129):
        assert not is_who(name)
        assert reason(token(claims(tenant=name))) == "tenant_claim"
    assert judged(token(claims(sub="auth0|5f7c8ec7"))).name == "auth0|5f7c8ec7"


def test_claims_of_other_names_are_read_where_the_file_says_so() -> None:
    body = {**claims(sub=None, tenant=None, roles=None), "email": "v@x.example", "org": "o"}
    found = judged(
        token({**body, "scope": "read write"}),
        principal_claim="email",
        tenant_claim="org",
        roles_claim="scope",
    )
    assert (found.name, found.tenant, found.roles) == ("v@x.example", "o", ("read", "write"))


def test_a_name_that_stands_twice_is_refused_in_claims_and_in_the_header() -> None:
    body = json.dumps(claims()).encode()
    assert reason(token(body[:-1] + b', "sub": "adam"}')) == "token_json"
    assert reason(token(body[:-1] + b', "x": {"a": 1, "a": 2}}')) == "token_json"
    good = token()
    _, payload, signature = good.split(b".")
    header = packed(b'{"alg": "ES256", "kid": "ec", "alg": "none"}')
    assert reason(b".".join((header, payload, signature))) == "token_json"


@pytest.mark.parametrize(
    "body", [b"[]", b"null", b"", b"{", b'{"exp": NaN}', b'"text"', b"\xff", b"\xef\xbb\xbf{}"]
)
def test_claims_that_are_no_one_object_are_refused(body: bytes) -> None:
    assert reason(token(body)) in ("token_json", "token_form")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"crit": ["exp"]}, "critical_header"),
        ({"crit": []}, "critical_header"),
        ({"b64": False}, "critical_header"),
        ({"typ": "secevent+jwt"}, "token_type"),
        ({"typ": 1}, "token_type"),
        ({"kid": 5}, "key_id"),
        ({"kid": ""}, "key_id"),
        ({"kid": "k" * 257}, "key_id"),
        ({"kid": "EC"}, "unknown_key"),
    ],
    ids=str,
)
def test_a_header_that_asks_for_something_unusual_is_refused(
    header: dict[str, object], expected: str
) -> None:
    assert reason(token(header=header)) == expected


def test_types_of_access_tokens_are_taken_in_any_case_and_may_be_missing() -> None:
    for kind in ("JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", None):
        assert judged(token(header={"typ": kind})).name == "vera"


def test_without_a_key_id_one_key_of_the_kind_is_used_and_two_are_refused() -> None:
    text = token(header={"kid": None})
    assert judged(text, "ec", "rsa").name == "vera"
    assert reason(text, "ec", "ec-other") == "unknown_key"


def test_forms_that_others_may_read_differently_are_refused() -> None:
    good = token()
    header, body, signature = good.split(b".")
    for odd in (
        b"",
        b".",
        b"..",
        b"a.b",
        good + b".",
        good + b".x",
        good + b"=",
        b" " + good,
        good + b"\n",
        b".".join((header + b"=", body, signature)),
        b".".join((header, body + b"A" * 5, signature)),
        b".".join((header, body, b"")),
        good.replace(b"_", b"/") + b"/",
        good[:-1] + (b"B" if good.endswith(b"A") else b"A"),
    ):
        assert reason(odd) in ("token_form", "token_json", "signature")


def test_a_token_beyond_the_cap_is_refused_unread() -> None:
    text = token(claims(note="n" * MOST_BYTES))
    assert len(text) > MOST_BYTES
    assert reason(text) == "token_too_large"
    assert reason(b"a" * 1_000_000) == "token_too_large"


def test_keys_of_one_issuer_say_nothing_about_tokens_of_another() -> None:
    other = replace(SETTINGS, issuer="https://other.example")
    both = {ISSUER: SETTINGS, other.issuer: other}
    asked = claimed(token(claims(iss=other.issuer)), both)
    assert asked.settings is other
    with pytest.raises(TokenRefused, match="unknown_key"):
        verified(asked, published("rsa"), algorithms_here(), NOW_S)


def test_a_refusal_holds_a_word_and_nothing_of_the_token() -> None:
    canary = "canary-" + "x" * 20
    for text in (
        token(claims(sub=canary + " ")),
        token(claims(aud=canary)),
        token(claims(iss=canary)),
        token(header={"kid": canary}),
        token(json.dumps(claims(x=canary)).encode() + b"}"),
    ):
        with pytest.raises(TokenRefused) as caught:
            judged(text)
        assert canary not in repr(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_no_change_of_a_token_names_anybody_else(rnd: random.Random) -> None:
    good = token()
    text = bytearray(good)
    for _ in range(rnd.randint(1, 3)):
        at = rnd.randrange(len(text))
        match rnd.randrange(4):
            case 0:
                text[at] = rnd.choice(b"ABab019-_.=")
            case 1:
                del text[at : at + rnd.randint(1, 4)]
            case 2:
                text[at:at] = bytes(rnd.choices(b"ABab019-_.", k=rnd.randint(1, 4)))
            case _:
                other = rnd.randrange(len(text))
                text[at], text[other] = text[other], text[at]
        if not text:
            break
    if bytes(text) == good:
        return
    with pytest.raises(TokenRefused):
        judged(bytes(text))
