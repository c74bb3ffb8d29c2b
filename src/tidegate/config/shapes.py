"""Which values may a key of the file take?

Lives here: the annotated types that the sections share, and the words for a value outside
them. Does not live here: which keys exist (sections), what ties keys together (checks).
"""

import ipaddress
import re
from math import isfinite
from typing import Annotated, NoReturn
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_core import PydanticCustomError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_WHO = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:/+-]{0,127}")
_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIGNS = "'*' stands for any characters, '?' for one"
_GLOB_WHO = re.compile(r"[A-Za-z0-9_.@:/+*?-]{1,128}")
_GLOB_ANY = re.compile(r"[\x21-\x7e]{1,512}")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
# What the gateway itself reads or decides; two opinions about these would break an answer.
_OWN_PARAMETERS = frozenset({"messages", "n", "stream", "stream_options"})
# Written by the gateway or by its HTTP client, never by the operator.
_OWN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Section(BaseModel):
    """A mapping of the file: frozen, no unknown keys, no silent conversion of types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )


def one_of(*keys: str) -> ConfigDict:
    """For the editor schema: exactly one of these keys (checks.shape reports it)."""
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in keys]})


def refuse(wrong: str, right: str) -> NoReturn:
    """Stop the validation of one value with these words."""
    raise PydanticCustomError("refused", "{wrong}", {"wrong": wrong, "right": right})


def _name(text: str) -> str:
    _not_empty(text)
    if not _NAME.fullmatch(text):
        refuse(
            "is not usable as a name",
            "use letters, digits, '_', '.' and '-', at most 64, the first a letter or digit",
        )
    return text


def is_who(text: str) -> bool:
    """Whether a principal, a tenant or a role can have this name."""
    return _WHO.fullmatch(text) is not None


def _who(text: str) -> str:
    _not_empty(text)
    if not is_who(text):
        refuse(
            "is not usable as a name",
            "use letters, digits and any of _ . @ : / + -, at most 128, without spaces or '*'",
        )
    return text


def _deny_list(text: str) -> str:
    if not text or "\0" in text:
        refuse("is not a path", "write one such as lists/names.txt or lists/{tenant}.txt")
    name = text.rpartition("/")[2]
    if text.count("{tenant}") > 1 or ("{tenant}" in text and "{tenant}" not in name):
        refuse("names the tenant elsewhere", "write {tenant} once, in the last part of the path")
    if re.search(r"[*?]|\{(?!tenant\})", text):
        refuse("is not a path", "write {tenant} for the name of a tenant, and no other pattern")
    return text


def _not_empty(text: str) -> None:
    if not text:
        refuse("is empty", "write a name")


def _glob(text: str) -> str:
    if not _GLOB_WHO.fullmatch(text):
        _refuse_glob(text, "use letters, digits and any of _ . @ : / + -")
    return _no_double_star(text)


def _any_glob(text: str) -> str:
    if not _GLOB_ANY.fullmatch(text) or "[" in text or "{" in text:
        _refuse_glob(text, "use printable characters without spaces")
    return _no_double_star(text)


def _refuse_glob(text: str, plain: str) -> NoReturn:
    if not text:
        refuse("is empty and matches nothing", 'remove it, or write "*" to match everything')
    if "[" in text or "{" in text:
        refuse("uses [...] or {...}, which patterns do not know", f"list each pattern; {_SIGNS}")
    refuse("is not usable as a pattern", f"{plain}; {_SIGNS}")


def _no_double_star(text: str) -> str:
    if "**" in text:
        refuse("means the same with a single '*'", "write '*' instead of '**'")
    return text


def _model_name(text: str) -> str:
    if text != "*" and ("*" in text or "?" in text):
        refuse(
            "is a pattern, but aliases are exact names", 'write each name, or "*" for all others'
        )
    return _any_glob(text)


def _sent_model(text: str) -> str:
    if "*" in text or "?" in text:
        refuse("is a pattern", "write the exact name that the provider knows")
    if not _GLOB_ANY.fullmatch(text):
        _not_empty(text)
        refuse("is not usable as a name", "use printable characters without spaces")
    return text


def _parameter(text: str) -> str:
    if text == "model":
        refuse("has a key of its own", "write `model` beside `parameters`")
    if text in _OWN_PARAMETERS:
        refuse("is the client's to choose", "remove it")
    if not _PARAMETER.fullmatch(text):
        refuse("is not the name of a field", "write one of the request's body, such as temperature")
    return text


def _scalar(value: object) -> object:
    if isinstance(value, dict | list | tuple):
        refuse("holds more than one value", "write a number, a text, true, false or null")
    if isinstance(value, float) and not isfinite(value):
        refuse("is not a number in JSON", "write a finite one")
    return value


def _host(text: str) -> str:
    if not _HOST.fullmatch(text) and _address(text) is None:
        refuse("is not a host name or address", "write one such as 127.0.0.1 or gateway.example")
    return text


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def split_url(text: str) -> SplitResult | None:
    """The parts of an absolute URL with a host and a port in range; None for anything else."""
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if usable and _TOKEN.fullmatch(text) else None


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach `host`; an unknown name counts as no."""
    address = _address(host)
    if address is None:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _http_url(text: str) -> str:
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https"):
        refuse("is not an HTTP address", "write one such as https://api.example/v1")
    if parts.username is not None:
        refuse("holds a user or password", "keep them out of the address: use a credential key")
    if parts.fragment or text.endswith("#"):
        refuse("holds a fragment (#...)", "remove it: no server ever sees it")
    return text


def _base_url(text: str) -> str:
    _http_url(text)
    if "?" in text:
        refuse("holds a query (?...)", "write the parameters under `query`")
    if text.rstrip("/").endswith("/chat/completions"):
        refuse("ends with /chat/completions", "stop before it: the gateway adds that part itself")
    return text


def _proxy_url(text: str) -> str:
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https"):
        refuse("is not the address of an HTTP proxy", "write one such as http://proxy.example:3128")
    return text


def _jwks_url(text: str) -> str:
    _http_url(text)
    parts = split_url(text)
    if parts is None or not (parts.scheme == "https" or is_loopback(parts.hostname or "")):
        refuse("would fetch signing keys in clear text", "use https, or http on loopback only")
    address = _address(parts.hostname or "")
    if address is not None and not (address.is_global or is_loopback(parts.hostname or "")):
        refuse(
            "is an address of a private network", "use a public address or name, or one on loopback"
        )
    return text


def _origin(text: str) -> str:
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https") or parts.path or "?" in text:
        refuse("is not an origin", "write scheme, host and port only, such as https://app.example")
    return text


def _path(text: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", text):
        refuse("is not a path", "begin with / and do not end with it, such as /mcp")
    if text.startswith(("/v1", "/healthz", "/readyz", "/metrics")):
        refuse("already serves something else", "choose another one, such as /mcp")
    return text


def _header_name(text: str) -> str:
    if not _HEADER_NAME.fullmatch(text):
        refuse("is not a header name", "use letters, digits and '-', such as X-Project")
    if text.lower() in _OWN_HEADERS:
        refuse("is written by the gateway itself", "remove it")
    if text.lower() == "authorization":
        refuse("carries the credential", "put the key under `credentials`")
    return text


def _header_value(value: SecretStr) -> SecretStr:
    if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
        refuse("holds characters that no header can carry", "use printable ASCII on one line")
    return value


def _token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text:
        refuse("is empty", "write ${env:NAME} or ${file:PATH}")
    if (variable := re.fullmatch(r"\$([A-Z_][A-Z0-9_]*)", text)) is not None:
        # Not a secret: nobody would be let in by the name of a variable on purpose.
        refuse("is the name of a variable, not its value", f"write ${{env:{variable[1]}}}")
    if not _TOKEN.fullmatch(text):
        refuse(
            "holds spaces, line breaks or characters outside ASCII",
            "use printable ASCII without spaces: it travels in a header",
        )
    return value


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text.lower()):
        refuse("is not a SHA-256", 'write the 64 hex digits of `printf %s "$KEY" | sha256sum`')
    return text.lower()


Name = Annotated[str, AfterValidator(_name)]
DenyListPath = Annotated[str, AfterValidator(_deny_list)]
Who = Annotated[str, AfterValidator(_who)]
Glob = Annotated[str, AfterValidator(_glob)]
AnyGlob = Annotated[str, AfterValidator(_any_glob)]
ModelName = Annotated[str, AfterValidator(_model_name)]
SentModel = Annotated[str, AfterValidator(_sent_model)]
ParameterName = Annotated[str, AfterValidator(_parameter)]
Scalar = Annotated[str | bool | int | float | None, BeforeValidator(_scalar)]
Host = Annotated[str, AfterValidator(_host)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
ProxyUrl = Annotated[str, AfterValidator(_proxy_url)]
JwksUrl = Annotated[str, AfterValidator(_jwks_url)]
Origin = Annotated[str, AfterValidator(_origin)]
UrlPath = Annotated[str, AfterValidator(_path)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[SecretStr, AfterValidator(_header_value)]
Token = Annotated[SecretStr, AfterValidator(_token)]
Sha256 = Annotated[str, AfterValidator(_sha256)]

Port = Annotated[int, Field(ge=0, le=65535)]
# The upper bounds catch milliseconds written where seconds are wanted.
Seconds = Annotated[float, Field(gt=0, le=86_400)]
SecondsOrZero = Annotated[float, Field(ge=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Bytes = Annotated[int, Field(ge=1024, le=17_179_869_184)]
Cap = Annotated[int, Field(ge=1, le=1_000_000_000_000)]
MILLIONTHS = "millionths"
"""Marks a number that people write in whole units of a currency, 0.5 for 500000."""

Amount = Annotated[int, Field(ge=0, le=1_000_000_000_000), MILLIONTHS]
MoneyCap = Annotated[int, Field(ge=1, le=1_000_000_000_000), MILLIONTHS]
