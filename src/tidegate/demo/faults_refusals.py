"""What do providers say when they refuse, and in which shape?

Lives here: the errors of the failing providers, by status and code, and the shapes that other
people's servers give to theirs. Does not live here: when one is sent (faults_answers).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.demo.leaks import HOST, KEY, ORG, QUOTA_HOST


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error answer: status, `type` and `code` of its error object, the sentence in it."""

    status: int
    type: str
    code: str | None
    message: str

    @property
    def body(self) -> dict[str, object]:
        """The error object; every sentence names a host, the account or the key."""
        return {"error": {"message": self.message, "type": self.type, "code": self.code}}


_INVALID, _SERVER = "invalid_request_error", "server_error"
REFUSALS: Mapping[str, Refusal] = MappingProxyType(
    {
        "400": Refusal(400, _INVALID, None, f"Invalid value in the request of {ORG}, see {HOST}"),
        "401": Refusal(401, _INVALID, "invalid_api_key", f"Incorrect API key provided: {KEY}"),
        "402": Refusal(402, "billing", None, f"The account {ORG} has to be paid for first"),
        "403": Refusal(403, "permission_error", None, f"{ORG} may not use this; ask {HOST}"),
        "404": Refusal(404, _INVALID, "model_not_found", f"The model is not served to {ORG}"),
        "408": Refusal(408, _SERVER, None, f"{HOST} waited too long for the body"),
        "409": Refusal(409, "conflict", None, f"{HOST} holds a lock for {ORG}"),
        "413": Refusal(413, _INVALID, None, f"{HOST} takes no body of this size"),
        "422": Refusal(422, _INVALID, None, f"{HOST} cannot process this for {ORG}"),
        "425": Refusal(425, "too_early", None, f"{HOST} is not ready to hear {KEY} again"),
        "429": Refusal(
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            f"Rate limit reached for {ORG}; bucket held by {QUOTA_HOST}",
        ),
        "500": Refusal(
            500, _SERVER, None, f"psycopg.OperationalError: connection to {HOST} refused"
        ),
        "502": Refusal(502, _SERVER, None, f"{QUOTA_HOST} got no answer from {HOST}"),
        "503": Refusal(503, _SERVER, None, f"{HOST} is overloaded; {ORG} waits in line"),
        "504": Refusal(504, _SERVER, None, f"{QUOTA_HOST} waited too long for {HOST}"),
        "529": Refusal(529, "overloaded_error", None, f"Overloaded: {HOST}"),
        "insufficient-quota": Refusal(
            429, "insufficient_quota", "insufficient_quota", f"{ORG} exceeded its quota"
        ),
        "low-credit": Refusal(
            400, _INVALID, None, f"Your credit balance is too low; {ORG} can be topped up"
        ),
        "context-length": Refusal(
            400,
            _INVALID,
            "context_length_exceeded",
            f"This model's maximum context length is 8192 tokens, says {HOST}",
        ),
        "content-filter": Refusal(
            400, _INVALID, "content_filter", f"{QUOTA_HOST} flagged the prompt of {ORG}"
        ),
    }
)


def refusal_of(status: int) -> Refusal:
    """The error of a status: ours, or one that says no more than the status does."""
    plain = Refusal(status, "demo", None, f"{HOST} said {status} to {ORG}")
    return REFUSALS.get(str(status), plain)


_Shape = Callable[[Refusal], dict[str, object]]
SHAPES: Mapping[str, _Shape] = MappingProxyType(
    {
        "openai": lambda r: r.body,
        "anthropic": lambda r: {"type": "error", "error": {"type": r.type, "message": r.message}},
        "google": lambda r: {
            "error": {"code": r.status, "message": r.message, "status": "UNAVAILABLE"}
        },
        "vllm": lambda r: {
            "object": "error", "message": r.message, "type": r.type, "code": r.status
        },
        "text": lambda r: {"error": r.message},
        "message": lambda r: {"message": r.message},
        "detail": lambda r: {"detail": r.message},
        "errors": lambda r: {
            "success": False, "errors": [{"code": r.status, "message": r.message}]
        },
        "fault": lambda r: {"fault": {"faultstring": r.message, "detail": {"errorcode": ORG}}},
        "error_code": lambda r: {"error_code": "TEMPORARILY_UNAVAILABLE", "message": r.message},
        "problem": lambda r: {"title": "Unavailable", "status": r.status, "detail": r.message},
    }
)  # fmt: skip
"""How an error object may look; the first is our dialect's."""


def shaped(refusal: Refusal, form: str) -> dict[str, object]:
    """The error object in one of SHAPES; "" is the first."""
    return SHAPES[form or "openai"](refusal)


__all__ = ["REFUSALS", "SHAPES", "Refusal", "refusal_of", "shaped"]
