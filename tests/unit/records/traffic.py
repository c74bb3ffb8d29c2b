"""Which requests do the tests of the records make?"""

from tidegate.policy import Principal
from tidegate.records import Recorder, Trail
from tidegate.records.entries import Surface

ACME = Principal("acme", "acme", ("tenant",), "9f86d081")


def request_id(number: int) -> str:
    return f"{number:032x}"


def begun(recorder: Recorder, number: int, surface: Surface = "chat") -> Trail:
    """A request that has begun."""
    trail = Trail.begin(surface, request_id(number), ACME, "r1")
    recorder.begin(trail)
    return trail


def answered(recorder: Recorder, number: int) -> None:
    """A chat request from its beginning to its end."""
    finish(recorder, begun(recorder, number))


def finish(recorder: Recorder, trail: Trail, outcome: str = "ok", status: int = 200) -> None:
    """The end of a request."""
    trail.step("attempt", outcome, provider="primary")
    trail.finish(outcome, status)
    recorder.end(trail)


async def called(recorder: Recorder, number: int) -> Trail:
    """An MCP call whose intent is committed."""
    trail = begun(recorder, number, "mcp")
    trail.step("authorize", "allow", "rules[0]", tool="echo")
    await recorder.intent(trail)
    return trail
