"""Does an answer carry the error a case asks for, in the profile that is run?

The case files speak the language of the brief. In the profile `spec` a denial is HTTP 403 with a
code of our own, bad arguments are a result with isError, and an unknown tool is -32602.
"""

from typing import Any

BAD_ARGUMENTS, UNKNOWN_TOOL, DENIED = -32602, -32601, -32001
# Ranges that belong to JSON-RPC and to the MCP specification.
_RESERVED = (range(-32768, -32099), range(-32099, -32019), range(-32019, -31999))


def code_of(message: dict[str, Any]) -> object:
    """The error code of a JSON-RPC message; None without an error."""
    error = message.get("error")
    return error.get("code") if isinstance(error, dict) else None


def fits(message: dict[str, Any], wanted: object, profile: str) -> bool:
    """Whether `message` is the refusal `wanted` in this profile."""
    code = code_of(message)
    if code == wanted and not isinstance(code, bool):
        return True
    if profile != "spec":
        return False
    result = message.get("result")
    if wanted == BAD_ARGUMENTS:
        return isinstance(result, dict) and result.get("isError") is True
    if wanted == UNKNOWN_TOOL:
        return code == BAD_ARGUMENTS
    if wanted == DENIED:
        error = message.get("error")
        data = error.get("data") if isinstance(error, dict) else None
        free = isinstance(code, int) and not any(code in span for span in _RESERVED)
        return free and isinstance(data, dict) and "reason" in data
    return False


def wrong_arguments(message: dict[str, Any], profile: str) -> bool:
    """Whether a tool server found the arguments wrong, not the world unwilling.

    In `spec` both are results with isError; only the first names the arguments, in its `_meta`.
    """
    if code_of(message) == BAD_ARGUMENTS:
        return profile != "spec"
    if profile != "spec" or not fits(message, BAD_ARGUMENTS, profile):
        return False
    faults = message["result"].get("_meta", {}).get("tidegate/faults")
    return bool(faults) and all(fault["pointer"].startswith("/") for fault in faults)


def status_for(status: int, wanted: object, profile: str) -> bool:
    """Whether an HTTP status goes with the JSON-RPC code `wanted` where the brief says 200."""
    return status == (403 if profile == "spec" and wanted == DENIED else 200)
