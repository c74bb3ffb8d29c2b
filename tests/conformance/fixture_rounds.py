"""Which tools of the conformance harness need several rounds, as 2026-07-28 has it?

A server of that revision sends no requests: it answers "input required", and the client asks again
with what was wanted. Lives here: those tools and the prompt that does the same, the tools that
need a capability, and the ones that change a list. What is in a `requestState` was sealed by the
SDK's own middleware (fixture), so a state that comes here is one that was made here.
"""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import PromptsListChanged, SubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture_tools import Context, Handler, Outcome, text, tool
from tidegate.tools.strict import StrictTool

Params = types.CallToolRequestParams


def form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def sample(prompt: str, max_tokens: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    return types.CreateMessageRequest(params=params)


def roots() -> types.ListRootsRequest:
    return types.ListRootsRequest(params=types.RequestParams())


def ask(
    requests: Mapping[str, types.InputRequest], state: str | None = None
) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=dict(requests), request_state=state)


def filled(params: types.InputResponseRequestParams, key: str, field: str) -> object:
    """What the user wrote into `field` of the form `key`; None if there is no such answer."""
    said = (params.input_responses or {}).get(key)
    if isinstance(said, types.ElicitResult) and said.action == "accept":
        return (said.content or {}).get(field)
    return None


async def _elicitation(_: Context, params: Params) -> Outcome:
    name = filled(params, "user_name", "name")
    if not isinstance(name, str):
        return ask({"user_name": form("What is your name?", "name")})
    return text(f"Hello, {name}!")


async def _sampling(_: Context, params: Params) -> Outcome:
    said = (params.input_responses or {}).get("capital_question")
    if isinstance(said, types.CreateMessageResult) and isinstance(said.content, types.TextContent):
        return text(said.content.text)
    return ask({"capital_question": sample("What is the capital of France?", 100)})


async def _roots(_: Context, params: Params) -> Outcome:
    said = (params.input_responses or {}).get("client_roots")
    if isinstance(said, types.ListRootsResult):
        return text("Roots: " + ", ".join(str(root.uri) for root in said.roots))
    return ask({"client_roots": roots()})


async def _state(_: Context, params: Params) -> Outcome:
    if params.request_state == "asked" and filled(params, "confirm", "ok") is not None:
        return text("state-ok")
    return ask({"confirm": form("Please confirm", "ok", "boolean")}, "asked")


async def _multiple(_: Context, params: Params) -> Outcome:
    wanted: dict[str, types.InputRequest] = {
        "user_name": form("What is your name?", "name"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": roots(),
    }
    if params.request_state == "asked" and wanted.keys() <= (params.input_responses or {}).keys():
        return text("All three came.")
    return ask(wanted, "asked")


async def _multi_round(_: Context, params: Params) -> Outcome:
    if params.request_state == "first" and filled(params, "step1", "name") is not None:
        return ask({"step2": form("Step 2: What is your favorite color?", "color")}, "second")
    if params.request_state == "second" and filled(params, "step2", "color") is not None:
        return text("Two rounds were enough.")
    return ask({"step1": form("Step 1: What is your name?", "name")}, "first")


async def _capabilities(context: Context, params: Params) -> Outcome:
    """Asks only for what the client said it can do."""
    able = context.session.client_capabilities or types.ClientCapabilities()
    wanted: dict[str, types.InputRequest] = {}
    if able.sampling is not None:
        wanted["greeting"] = sample("Generate a greeting", 50)
    if able.elicitation is not None:
        wanted["user_name"] = form("What is your name?", "name")
    if not wanted or wanted.keys() <= (params.input_responses or {}).keys():
        return text("Nothing more is needed.")
    return ask(wanted)


async def _missing(context: Context, _: Params) -> Outcome:
    able = context.session.client_capabilities
    if able is None or able.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs a client that can sample",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return text("The client can sample.")


def changing(bus: SubscriptionBus, event: ToolsListChanged | PromptsListChanged) -> Handler:
    """A tool that says to whoever listens that a list is another one."""

    async def run(_: Context, __: Params) -> Outcome:
        await bus.publish(event)
        return text("It was announced.")

    return run


def rounds(bus: SubscriptionBus) -> list[StrictTool[Any]]:
    """The tools; changes are announced on `bus`."""
    runs: dict[str, Handler] = {
        "test_input_required_result_elicitation": _elicitation,
        "test_input_required_result_sampling": _sampling,
        "test_input_required_result_list_roots": _roots,
        "test_input_required_result_request_state": _state,
        "test_input_required_result_multiple_inputs": _multiple,
        "test_input_required_result_multi_round": _multi_round,
        "test_input_required_result_tampered_state": _state,
        "test_input_required_result_capabilities": _capabilities,
        "test_streaming_elicitation": _elicitation,
        "test_missing_capability": _missing,
        "test_trigger_tool_change": changing(bus, ToolsListChanged()),
        "test_trigger_prompt_change": changing(bus, PromptsListChanged()),
    }
    return [tool(name, f"Fixture {name}.", run) for name, run in runs.items()]
