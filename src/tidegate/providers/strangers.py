"""Is this event, which is none of the dialect, somebody's error?

Lives here: the shapes in which frameworks, proxies and the dialects beside this one put an error
into a stream that has begun. Does not live here: the dialect's own error object (openai.py), what
the words mean (routing.wording).
"""

from collections.abc import Mapping

import msgspec

# An error whatever they hold, if it is anything.
_ALWAYS = frozenset(
    {
        "detail",
        "details",
        "err",
        "error",
        "error_code",
        "error_description",
        "error_message",
        "error_type",
        "errorcode",
        "errormessage",
        "errors",
        "errortype",
        "exception",
        "fault",
        "faultstring",
        "stack",
        "stacktrace",
        "trace",
        "traceback",
    }
)
# An error as a text: a message that begins is an object under the same name.
_AS_TEXT = frozenset({"message", "msg", "reason", "title"})
_TYPES = ("type", "object", "status", "__type", "event")
_WORDS = ("error", "exception", "fail")


def stranger(data: bytes) -> bytes | None:
    """The JSON object that holds the error in `data`, itself an object; None if it holds none.

    Never raises. Cost: one decode; ask only about events that hold nothing else.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or not _is_error(value):
        return None
    # `response.failed` has its error one level down.
    inner = value.get("response")
    if isinstance(inner, dict) and inner.get("error"):
        return msgspec.json.encode(inner)
    if value.get("error"):
        return data
    # Only an error object is read for its words: here the whole event is one.
    return msgspec.json.encode({"error": value})


def _is_error(value: Mapping[str, object]) -> bool:
    for name, held in value.items():
        key = name.casefold()
        if held and (key in _ALWAYS or (key in _AS_TEXT and isinstance(held, str))):
            return True
    kinds = [kind for name in _TYPES if isinstance(kind := value.get(name), str)]
    return any(word in kind.casefold() for kind in kinds for word in _WORDS)


__all__ = ["stranger"]
