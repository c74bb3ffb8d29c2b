"""What does a test of tokens need: keys made at run time, tokens of any shape, key sets."""

import base64
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import algorithms
from jwt.api_jws import PyJWS

from tidegate.identity.jwt_claims import IssuerSettings
from tidegate.identity.jwt_keys import Algorithms

ISSUER = "https://id.example"
AUDIENCE = "https://gateway.example/mcp"
NOW_S = 1_800_000_000.0
SETTINGS = IssuerSettings(
    issuer=ISSUER,
    audience=AUDIENCE,
    jwks_url="https://id.example/jwks",
    algorithms=("RS256", "PS256", "ES256", "EdDSA"),
)


@cache
def algorithms_here() -> Algorithms:
    """One for all tests."""
    return Algorithms()


@cache
def private(name: str) -> Any:
    """A private key by a name that begins with its kind: "rsa", "ec", "ec384", "ed"."""
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, 1024 if "short" in name else 2048)
    if name.startswith("ec"):
        return ec.generate_private_key(ec.SECP384R1() if "384" in name else ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def jwk(name: str, *, kid: str | None = None, **more: object) -> dict[str, Any]:
    """The public half of a key as an entry of a key set."""
    kinds: list[tuple[str, Any]] = [
        ("rsa", algorithms.RSAAlgorithm),
        ("ec", algorithms.ECAlgorithm),
        ("ed", algorithms.OKPAlgorithm),
    ]
    kind = next(kind for start, kind in kinds if name.startswith(start))
    entry: dict[str, Any] = dict(kind.to_jwk(private(name).public_key(), as_dict=True))
    entry.pop("key_ops", None)
    return {**entry, "kid": kid or name, **more}


def jwks(*entries: Mapping[str, object]) -> bytes:
    """A key set."""
    return json.dumps({"keys": list(entries)}).encode()


def claims(**changed: object) -> dict[str, object]:
    """Good claims with changes; None takes one away."""
    good: dict[str, object] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": NOW_S + 300,
        "sub": "vera",
        "tenant": "acme",
        "roles": ["viewer"],
        **changed,
    }
    return {name: value for name, value in good.items() if value is not None}


def token(
    body: object = None,
    *,
    key: str = "ec",
    algorithm: str = "ES256",
    header: Mapping[str, object] | None = None,
    signer: Any = None,
) -> bytes:
    """A signed token. `body` may be bytes, which then stand in it as they are."""
    payload = body if isinstance(body, bytes) else json.dumps(body or claims()).encode()
    named = {"kid": key, "typ": "at+jwt", **(header or {}), "alg": algorithm}
    named = {name: value for name, value in named.items() if value is not None}
    return assembled(named, payload, signer or private(key))


def assembled(header: Mapping[str, object], payload: bytes, key: Any) -> bytes:
    """The three parts, signed by `key` with the algorithm of the header, whatever it says."""
    signed = packed(json.dumps(header).encode()) + b"." + packed(payload)
    if header["alg"] == "none":
        return signed + b"."
    algorithm = PyJWS(algorithms=[str(header["alg"])]).get_algorithm_by_name(str(header["alg"]))
    return signed + b"." + packed(algorithm.sign(signed, key))


def packed(data: bytes) -> bytes:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")
