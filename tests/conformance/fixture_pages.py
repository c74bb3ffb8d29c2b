"""Which resources, prompts and completions does the conformance harness expect?

Lives here: the handlers and what they serve. Does not live here: tools; how it is all served
(fixture).
"""

import re
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture_rounds import ask, filled, form
from tests.conformance.fixture_tools import PNG, Context, embedded
from tidegate import strictjson

_TEMPLATE = re.compile(r"test://template/([A-Za-z0-9_-]+)/data")
_TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "This is the content of the watched resource.",
}
_PICTURE = "test://static-binary"


async def _resources(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    texts = [
        types.Resource(uri=uri, name=uri.removeprefix("test://"), mime_type="text/plain")
        for uri in _TEXTS
    ]
    picture = types.Resource(uri=_PICTURE, name="static-binary", mime_type="image/png")
    return types.ListResourcesResult(resources=[*texts, picture])


async def _templates(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = params.uri
    contents: list[types.TextResourceContents | types.BlobResourceContents]
    if uri in _TEXTS:
        contents = [types.TextResourceContents(uri=uri, mime_type="text/plain", text=_TEXTS[uri])]
    elif uri == _PICTURE:
        contents = [types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)]
    elif found := _TEMPLATE.fullmatch(uri):
        made = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        body = strictjson.dumps(made).decode()
        contents = [types.TextResourceContents(uri=uri, mime_type="application/json", text=body)]
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=contents)


def _argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=f"The {name}", required=True)


_PROMPTS = (
    types.Prompt(name="test_simple_prompt", description="One message."),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="Repeats its arguments.",
        arguments=[_argument("arg1"), _argument("arg2")],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="Holds a resource.",
        arguments=[_argument("resourceUri")],
    ),
    types.Prompt(name="test_prompt_with_image", description="Holds a picture."),
    types.Prompt(name="test_input_required_result_prompt", description="Needs an answer first."),
)


async def _prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=list(_PROMPTS))


async def _prompt(
    _: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    prompt = next((one for one in _PROMPTS if one.name == params.name), None)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, "Unknown prompt")
    if missing := [one.name for one in prompt.arguments or () if one.name not in given]:
        raise MCPError(types.INVALID_PARAMS, f"/arguments/{missing[0]}: Field required")
    match prompt.name:
        case "test_simple_prompt":
            return _said("This is a simple prompt for testing.")
        case "test_prompt_with_arguments":
            return _said(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        case "test_prompt_with_embedded_resource":
            body = "Embedded resource content for testing."
            resource = embedded(given["resourceUri"], "text/plain", body)
            return _said(resource, "Please process the embedded resource above.")
        case "test_prompt_with_image":
            picture = types.ImageContent(data=PNG, mime_type="image/png")
            return _said(picture, "Please analyze the image above.")
        case _:
            return _in_two_rounds(params)


def _in_two_rounds(
    params: types.GetPromptRequestParams,
) -> types.GetPromptResult | types.InputRequiredResult:
    context = filled(params, "user_context", "context")
    if not isinstance(context, str):
        return ask({"user_context": form("What context should the prompt use?", "context")})
    return _said(f"The context is: {context}")


def _said(*content: str | types.ContentBlock) -> types.GetPromptResult:
    blocks = [types.TextContent(text=one) if isinstance(one, str) else one for one in content]
    messages = [types.PromptMessage(role="user", content=block) for block in blocks]
    return types.GetPromptResult(messages=messages)


async def _complete(_: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    words = ["paris", "park", "party", "rome"]
    found = [word for word in words if word.startswith(params.argument.value)]
    return types.CompleteResult(
        completion=types.Completion(values=found, total=len(found), has_more=False)
    )


class Watchers:
    """Who asked, in the revisions up to 2025-11-25, to be told of changes of a resource."""

    def __init__(self) -> None:
        self.watched: set[str] = set()

    async def subscribe(
        self, _: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        self.watched.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, _: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self.watched.discard(params.uri)
        return types.EmptyResult()


async def _set_level(_: Context, __: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def add_pages(server: Server[Any]) -> None:
    """Registers everything that is no tool."""
    watchers, add = Watchers(), server.add_request_handler
    add("resources/list", types.PaginatedRequestParams, _resources)
    add("resources/templates/list", types.PaginatedRequestParams, _templates)
    add("resources/read", types.ReadResourceRequestParams, _read)
    add("resources/subscribe", types.SubscribeRequestParams, watchers.subscribe)
    add("resources/unsubscribe", types.UnsubscribeRequestParams, watchers.unsubscribe)
    add("prompts/list", types.PaginatedRequestParams, _prompts)
    add("prompts/get", types.GetPromptRequestParams, _prompt)
    add("completion/complete", types.CompleteRequestParams, _complete)
    add("logging/setLevel", types.SetLevelRequestParams, _set_level)
