"""Is there any way to tell a tool that is denied from one that does not exist?

Over random rules, names, servers, limits and arguments: the same history with a name that is
denied and with one that the rules would allow and the server does not have, in two gateways. What
a client sees must be equal byte by byte, and so must what reaches the server.
"""

from dataclasses import dataclass, replace
from typing import Any, get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.app.federated import Federated
from tests.app.mcp_answers import META, modern, run_in_no_time
from tests.app.mcp_streams import passes
from tests.app.mcp_world import World, ask, call, tell
from tests.app.offered import STATES, WAYS, Roster, methods, seen
from tests.unit.mcp.asking import VIEWER, allow, deny
from tests.unit.mcp.test_authorize_laws import RULES
from tidegate.gateway.masking import Masking
from tidegate.limits.ledger import Limit
from tidegate.mcp import Rule, RuleSet
from tidegate.mcp.authorize import Subject, is_visible
from tidegate.mcp.pins import Mode
from tidegate.redaction import RedactionPolicy

OFFERED = ("get_status", "get_secret", "admin_reset", "a", "pay")
NOWHERE = ("get_nothing", "admin_zero", "b", "pax", "Get_Secret", "GET_status")
BLOCKING = Masking(
    RedactionPolicy.preset().with_actions({"email": "block"}),
    tool_arguments="enforce",
    tool_results="enforce",
)
MAIL = "ann" + "@" + "example.com"
LIMITS = {
    "none": [],
    "one call": [Limit("calls", unit="requests", per="principal", cap=1, tools=("*",))],
    "no call": [Limit("calls", unit="requests", per="principal", cap=0, tools=("*",))],
}
ERAS = ("legacy", "session", "modern", "batch")
PATTERNS = st.sampled_from(["*", "get_*", "a*", "?", "pay", "admin_*", "*_s*", "b", "get_status"])


@dataclass(frozen=True)
class Case:
    """A world, and what happens in it before the call and behind it."""

    rules: tuple[Rule, ...]
    offered: tuple[str, ...]
    way: str
    state: str
    is_modern: bool
    several: bool
    limit: str
    errors: str
    era: str
    arguments: Any
    before: tuple[str, ...]
    """Tools that are called before, lists, seconds, and that the server begins to tell of news."""
    pin: Mode = "off"

    def names(self) -> tuple[list[str], list[str]]:
        """The names that are hidden from the caller, and those that are nowhere and allowed."""
        rules = RuleSet(self.rules)
        hidden, open_ = [], []
        for name in (*OFFERED, *NOWHERE):
            visible = is_visible(Subject("tools", name), VIEWER, rules, server="backend")
            if not visible:
                hidden.append(name)
            elif name not in self.offered:
                open_.append(name)
        return hidden, open_


@st.composite
def cases(draw: Any) -> Case:
    """Rules that allow something, so that a made-up name may be allowed."""
    when = draw(st.sampled_from([(), ("x <= 1",)]))
    rules = [
        allow(tools=tuple(draw(st.lists(PATTERNS, min_size=1, max_size=2))), when=when),
        deny(tools=tuple(draw(st.lists(PATTERNS, min_size=1, max_size=2)))),
        *draw(RULES | st.just([])),
    ]
    steps = ["list", "second", "news", *OFFERED]
    return Case(
        tuple(replace(rule, id=f"rule{number}") for number, rule in enumerate(rules)),
        tuple(draw(st.lists(st.sampled_from(OFFERED), unique=True))),
        draw(st.sampled_from(sorted(WAYS))),
        draw(st.sampled_from(STATES)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from(sorted(LIMITS))),
        draw(st.sampled_from(["brief", "spec"])),
        draw(st.sampled_from(ERAS)),
        draw(st.sampled_from([{}, {"x": 0}, {"x": 9}, {"to": MAIL}, {"x": 0, "to": MAIL}])),
        tuple(draw(st.lists(st.sampled_from(steps), max_size=4))),
        draw(st.sampled_from(get_args(Mode))),
    )


class Told:
    """One client of one gateway, and everything it was told."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.server = Roster(
            *case.offered, way=case.way, state=case.state, is_modern=case.is_modern
        )
        policy: Any = {
            "rules": RuleSet(case.rules),
            "hide_denied": "full",
            "errors": case.errors,
            "limits": LIMITS[case.limit],
            "masking": BLOCKING,
        }
        if case.several:
            self.world: World = Federated(backend=self.server, other=Roster("a"), **policy)
        else:
            self.world = World(self.server, pin=case.pin, **policy)
        self.heads: dict[str, str] = {}
        self.answers: list[Any] = []

    async def begin(self) -> None:
        """A session, if the case has one and the server gives one."""
        if self.case.era != "session":
            return
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
        answer = await self.world.post(ask("initialize", **hello))
        session = answer.header("mcp-session-id")
        self.heads = {"mcp_protocol_version": "2025-11-25"}
        if session is not None:
            self.heads["mcp_session_id"] = session

    async def say(self, message: Any) -> None:
        """A request, and what came of it."""
        heads = self.heads or {"mcp_protocol_version": "2025-06-18"}
        if self.case.era == "modern":
            params = message.get("params", {})
            named = {"mcp_name": params["name"]} if "name" in params else {}
            heads = modern(message["method"], **named)
            message = {**message, "params": {**params, "_meta": META}}
        elif self.case.era == "batch":
            heads = {"mcp_protocol_version": "2025-03-26"}
            message = [message, ask("ping", id=2), {**message, "id": 3}]
        self.answers.append(seen(await self.world.post(message, **heads)))

    def shown(self, name: str) -> str:
        """As clients call the tool."""
        return f"backend__{name}" if self.case.several else name

    async def take(self, step: str) -> None:
        """One step of the life before the call."""
        match step:
            case "list":
                await self.say(ask("tools/list"))
            case "second":
                await passes(1)
            case "news":
                self.server.news = True
            case _:
                await self.say(call(self.shown(step), {"x": 0}))

    async def history(self, name: str) -> None:
        """The call of `name` in the middle of the life that the case describes."""
        await self.begin()
        for step in self.case.before:
            await self.take(step)
        for number in range(2):
            await self.say(call(self.shown(name), self.case.arguments, id=number))
        await self.world.post(tell("tools/call", name=self.shown(name)), **self.heads)
        for other in self.case.offered:
            await self.say(call(self.shown(other), {"x": 0}))
        await self.world.traffic.close()
        if isinstance(self.world, Federated):
            await self.world.over()
        else:
            await self.world.pins.close()
            await self.world.carriers.close()


def compare(case: Case, hidden: str, made_up: str) -> None:
    async def body() -> None:
        first, second = Told(case), Told(case)
        await first.history(hidden)
        await second.history(made_up)
        assert first.answers == second.answers
        assert methods(first.server.log) == methods(second.server.log)
        assert made_up not in second.server.called
        assert hidden not in first.server.called

    run_in_no_time(body)


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
@pytest.mark.full
def test_a_denied_tool_and_one_that_does_not_exist_are_alike_in_everything(
    case: Case, data: Any
) -> None:
    hidden, made_up = case.names()
    assume(hidden and made_up)
    compare(case, data.draw(st.sampled_from(hidden)), data.draw(st.sampled_from(made_up)))


PLAIN = Case(
    (deny(tools=("get_secret",)), allow()),
    OFFERED,
    "a result",
    "serves",
    is_modern=False,
    several=False,
    limit="one call",
    errors="brief",
    era="legacy",
    arguments={"to": MAIL},
    before=("a",),
)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("state", STATES)
def test_they_are_alike_whatever_the_server_is_like(
    state: str, era: str, *, is_modern: bool, several: bool
) -> None:
    case = replace(PLAIN, state=state, era=era, is_modern=is_modern, several=several)
    compare(case, "get_secret", "get_nothing")


@pytest.mark.parametrize("arguments", [{}, {"to": MAIL}])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("errors", ["brief", "spec"])
@pytest.mark.parametrize("way", WAYS)
def test_they_are_alike_however_the_server_would_say_it(
    way: str, errors: str, limit: str, arguments: Any
) -> None:
    case = replace(PLAIN, way=way, errors=errors, limit=limit, arguments=arguments)
    compare(case, "get_secret", "get_nothing")
