"""Which tools of the conformance harness ask the client something in the middle of a call?

They belong to the revisions up to 2025-11-25, in which a server may send requests. Does not live
here: the same questions in several rounds (fixture_rounds).
"""

from typing import Any

import mcp_types as types
from mcp.shared.message import ServerMessageMetadata

from tests.conformance.fixture_tools import Context, Outcome, text, tool
from tidegate import strictjson
from tidegate.tools import StrictInput


class Prompt(StrictInput):
    prompt: str


class Message(StrictInput):
    message: str


def _argument(params: types.CallToolRequestParams, name: str) -> str:
    return str((params.arguments or {})[name])


async def _elicit(context: Context, message: str, schema: dict[str, Any]) -> types.ElicitResult:
    return await context.session.elicit_form(message, schema, context.request_id)


async def _sampling(context: Context, params: types.CallToolRequestParams) -> Outcome:
    prompt = types.TextContent(text=_argument(params, "prompt"))
    request = types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=prompt)], max_tokens=100
        )
    )
    related = ServerMessageMetadata(related_request_id=context.request_id)
    said = await context.session.send_request(request, types.CreateMessageResult, None, related)
    words = said.content.text if isinstance(said.content, types.TextContent) else said.content.type
    return text(f"LLM response: {words}")


async def _elicitation(context: Context, params: types.CallToolRequestParams) -> Outcome:
    schema = {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    said = await _elicit(context, _argument(params, "message"), schema)
    return text(f"User response: {_told(said)}")


async def _defaults(context: Context, _: types.CallToolRequestParams) -> Outcome:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    said = await _elicit(context, "Who are you?", {"type": "object", "properties": properties})
    return text(f"Elicitation completed: {_told(said)}")


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{n}", "title": title} for n, title in enumerate(titles, 1)]


async def _enums(context: Context, _: types.CallToolRequestParams) -> Outcome:
    plain = ["option1", "option2", "option3"]
    properties = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {
            "type": "string",
            "oneOf": _titled("First Option", "Second Option", "Third Option"),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")},
        },
    }
    said = await _elicit(context, "Which ones?", {"type": "object", "properties": properties})
    return text(f"Elicitation completed: {_told(said)}")


def _told(said: types.ElicitResult) -> str:
    return f"action={said.action}, content={strictjson.dumps(said.content).decode()}"


ASKING = (
    tool("test_sampling", "Asks the client's model.", _sampling, Prompt),
    tool("test_elicitation", "Asks the user.", _elicitation, Message),
    tool("test_elicitation_sep1034_defaults", "Proposes answers.", _defaults),
    tool("test_elicitation_sep1330_enums", "Offers choices.", _enums),
)
