"""What can go wrong, and what may a client be told?

    TidegateError
    ├── CallerError                 the request is at fault; sending it again will not help
    │   ├── Unauthenticated         401
    │   ├── Forbidden               403
    │   ├── InvalidRequest          400
    │   ├── UnsupportedMediaType    415
    │   ├── NotFound                404
    │   ├── MethodNotAllowed        405
    │   ├── Misdirected             421
    │   ├── BodyTooLarge            413
    │   ├── HeaderTooLarge          431
    │   ├── RequestTimeout          408
    │   ├── RequestExceedsLimit     413
    │   └── ContentBlocked          400
    ├── RateLimited                 429
    ├── UpstreamError               a provider is at fault
    │   ├── UpstreamRejectedRequest 400
    │   ├── ContextLengthExceeded   400
    │   ├── ContentFiltered         400
    │   ├── UpstreamCredential      502
    │   ├── AllProvidersFailed      502, 503 or 504
    │   └── UpstreamInterrupted     an event inside a stream
    └── GatewayFault                we are at fault
        ├── RedactionFailed         500
        ├── StoreUnavailable        503
        ├── IdentityUnavailable     503
        ├── Overloaded              503
        └── InternalError           500

Lives here: codes, statuses and the constant sentences of the OpenAI style envelope. Does not
live here: headers and bytes (gateway.respond), JSON-RPC codes (jsonrpc). Nothing derived from
an upstream, an exception text, a path or a host may become part of a message: `detail` is for
the log alone.
"""

from collections.abc import Collection
from typing import ClassVar


class TidegateError(Exception):
    """A refusal or failure with a status, a code and a sentence that a client may see.

    `detail` goes to the log under the request id, never to a client. `param` names the field
    of the caller's own request that is at fault. `retry_after_s` is how long to wait, if
    waiting helps.
    """

    code: ClassVar[str] = "gateway.internal"
    type: ClassVar[str] = "api_error"
    public_message: ClassVar[str] = "The gateway failed. The request id names this event."
    should_retry: bool | None = None
    status: int = 500

    def __init__(
        self, detail: str = "", *, param: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(detail or self.code)
        self.detail = detail
        self.param = param
        self.retry_after_s = retry_after_s

    @property
    def message(self) -> str:
        """The sentence for the client: constant, or built from our own numbers and names."""
        return self.public_message


class CallerError(TidegateError):
    """The request is at fault."""

    type = "invalid_request_error"
    should_retry = False


class Unauthenticated(CallerError):
    """No key, a wrong key, an odd key: one answer for all of them.

    `challenge` is the value of WWW-Authenticate. `reason` and `issuer` are for the log: a word of
    ours, and the configured issuer whose token was refused.
    """

    code, type, status = "gateway.unauthenticated", "authentication_error", 401
    public_message = "Missing or invalid credentials."

    def __init__(
        self, detail: str = "", *, challenge: str = "Bearer", reason: str = "", issuer: str = ""
    ) -> None:
        super().__init__(detail or reason)
        self.challenge, self.reason, self.issuer = challenge, reason, issuer


class Forbidden(CallerError):
    """The principal may not do this."""

    code, type, status = "gateway.forbidden", "permission_error", 403
    public_message = "This request is not allowed."


class InvalidRequest(CallerError):
    """Malformed, ambiguous or unsupported. `public` is a constant sentence of ours."""

    code, status = "gateway.invalid_request", 400
    public_message = "The request is malformed, ambiguous or unsupported."

    def __init__(self, detail: str = "", *, public: str = "", param: str | None = None) -> None:
        super().__init__(detail or public, param=param)
        self._public = public

    @property
    def message(self) -> str:
        """Our own sentence about the fault, without any value of the request."""
        return self._public or self.public_message


class UnsupportedMediaType(CallerError):
    """Neither the media type nor the content coding is one we read."""

    code, status = "gateway.unsupported_media_type", 415
    public_message = "Send the body as uncompressed application/json in UTF-8."


class NotFound(CallerError):
    """No such path."""

    code, type, status = "gateway.not_found", "not_found_error", 404
    public_message = "No such path on this gateway."


class MethodNotAllowed(CallerError):
    """The path exists, the method does not; `allowed` are those that do."""

    code, status = "gateway.method_not_allowed", 405
    public_message = "This method is not allowed on this path."

    def __init__(self, detail: str = "", *, allowed: Collection[str] = ("POST",)) -> None:
        super().__init__(detail)
        self.allowed = allowed


class Misdirected(CallerError):
    """The Host header names another host than this listener serves."""

    code, status = "gateway.invalid_request", 421
    public_message = "This listener does not serve that host."


class BodyTooLarge(CallerError):
    """More body bytes than the cap, counted while reading."""

    code, status = "gateway.body_too_large", 413
    public_message = "The request body is larger than this gateway accepts."


class HeaderTooLarge(CallerError):
    """More header bytes than the cap."""

    code, status = "gateway.header_too_large", 431
    public_message = "The request headers are larger than this gateway accepts."


class RequestTimeout(CallerError):
    """Head or body did not arrive in time."""

    code, status = "gateway.invalid_request", 408
    public_message = "The request did not arrive in time."


class RequestExceedsLimit(CallerError):
    """The request can never fit the limit `limit`, however long it waits."""

    code, type, status = "gateway.request_exceeds_limit", "rate_limit_error", 413

    def __init__(self, *, limit: str, scope: str, cap: int, requested: int) -> None:
        super().__init__(f"{limit}/{scope}: {requested} > {cap}")
        self.limit, self.scope = limit, scope
        self.cap, self.requested = cap, requested

    @property
    def message(self) -> str:
        """Names the limit, its size and our estimate."""
        return (
            f"This request is estimated at {self.requested}, more than the limit "
            f"'{self.limit}' of {self.cap} can ever admit."
        )


class ContentBlocked(CallerError):
    """A detector with the action `block` found something; `kind` names the detector."""

    code, status = "gateway.content_blocked", 400

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    @property
    def message(self) -> str:
        """Names the rule, never the value."""
        return f"The content was blocked by the detector '{self.kind}'."


class RateLimited(TidegateError):
    """Over the limit now; `retry_after_s` is when this request would fit."""

    code, type, status = "gateway.rate_limited", "rate_limit_error", 429

    def __init__(
        self, *, limit: str, scope: str, cap: int, used: int, requested: int, retry_after_s: float
    ) -> None:
        super().__init__(
            f"{limit}/{scope}: {used}+{requested} > {cap}", retry_after_s=retry_after_s
        )
        self.limit, self.scope, self.cap = limit, scope, cap
        self.used, self.requested = used, requested

    @property
    def message(self) -> str:
        """Names the limit, its scope and the numbers it was judged by."""
        return (
            f"Limit '{self.limit}' (per {self.scope}): {self.used} of {self.cap} used, "
            f"{self.requested} requested."
        )


class UpstreamError(TidegateError):
    """A provider is at fault, or says that the request is."""

    type = "upstream_error"
    should_retry: bool | None = False


class UpstreamRejectedRequest(UpstreamError):
    """A provider answered 400, 422 or the like; another one would do the same."""

    code, status = "gateway.upstream_rejected_request", 400
    public_message = "The model provider rejected this request as invalid."


class ContextLengthExceeded(UpstreamError):
    """Too long for every target."""

    code, type, status = "context_length_exceeded", "invalid_request_error", 400
    public_message = "The request is longer than the context of every configured model."


class ContentFiltered(UpstreamError):
    """The provider's own policy refused; never routed around."""

    code, type, status = "content_filter", "invalid_request_error", 400
    public_message = "The model provider refused this content by its policy."


class UpstreamCredential(UpstreamError):
    """The provider refused our credential."""

    code, status = "gateway.upstream_credential", 502
    public_message = "The gateway's credential was refused by the model provider."


class AllProvidersFailed(UpstreamError):
    """No target could serve: 502, 503 if all were open or cooling, 504 if the time was over."""

    code, status = "gateway.all_providers_failed", 502
    public_message = "No model provider could serve this request. Please retry shortly."

    def __init__(
        self, detail: str = "", *, status: int = 502, retry_after_s: float | None = None
    ) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)
        self.status = status
        if retry_after_s is not None:
            self.should_retry = None


class UpstreamInterrupted(UpstreamError):
    """The answer broke off after its first content had left, whoever was at fault."""

    code, status = "gateway.upstream_interrupted", 502
    public_message = "The answer broke off and is incomplete."


class GatewayFault(TidegateError):
    """We are at fault."""


class RedactionFailed(GatewayFault):
    """The redactor failed; nothing unredacted left."""

    code, status = "gateway.redaction_failed", 500
    public_message = "The content could not be checked, so it was not passed on."
    should_retry = False


class StoreUnavailable(GatewayFault):
    """The ledger or the record store did not answer in time."""

    code, status = "gateway.store_unavailable", 503
    public_message = "The gateway cannot account for requests right now."

    def __init__(self, detail: str = "", *, retry_after_s: float | None = 1.0) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class IdentityUnavailable(GatewayFault):
    """The keys of an issuer are not there, so nobody can tell whether its token is good."""

    code, status = "gateway.identity_unavailable", 503
    public_message = "The gateway cannot check tokens of this issuer right now."

    def __init__(self, detail: str = "", *, retry_after_s: float | None = 5.0) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class Overloaded(GatewayFault):
    """More requests or bytes in flight than the caps allow, or the gateway is draining."""

    code, status = "gateway.overloaded", 503
    public_message = "The gateway is at capacity. Please retry shortly."

    def __init__(self, detail: str = "", *, retry_after_s: float | None = 1.0) -> None:
        super().__init__(detail, retry_after_s=retry_after_s)


class InternalError(GatewayFault):
    """A bug; the log has the detail under the request id."""


def envelope(error: TidegateError, request_id: str) -> dict[str, dict[str, str]]:
    """The OpenAI style body: type, code, message, request_id; and param if it names a field."""
    body = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "request_id": request_id,
    }
    if error.param is not None:
        body["param"] = error.param
    return {"error": body}


__all__ = [
    "AllProvidersFailed",
    "BodyTooLarge",
    "CallerError",
    "ContentBlocked",
    "ContentFiltered",
    "ContextLengthExceeded",
    "Forbidden",
    "GatewayFault",
    "HeaderTooLarge",
    "IdentityUnavailable",
    "InternalError",
    "InvalidRequest",
    "MethodNotAllowed",
    "Misdirected",
    "NotFound",
    "Overloaded",
    "RateLimited",
    "RedactionFailed",
    "RequestExceedsLimit",
    "RequestTimeout",
    "StoreUnavailable",
    "TidegateError",
    "Unauthenticated",
    "UnsupportedMediaType",
    "UpstreamCredential",
    "UpstreamError",
    "UpstreamInterrupted",
    "UpstreamRejectedRequest",
    "envelope",
]
