"""What is masked, where, and how?

Lives here: the redaction part, which routes and MCP servers may override key by key.
"""

from typing import Literal

from pydantic import Field

from tidegate.config.shapes import DenyListPath, HttpUrl, Seconds, Section

Mode = Literal["off", "detect", "enforce"]
Action = Literal["mask", "partial", "hash", "block", "report", "off"]


class Detector(Section):
    """How one built-in detector behaves."""

    action: Action = Field(
        default="mask",
        description="mask: a placeholder; partial: with the last four characters; hash: with a"
        " keyed digest; block: the request is refused; report: counted only; off: not looked for.",
    )
    regions: tuple[str, ...] = Field(
        default=(),
        description="Countries (ISO 3166, such as US) that `phone` and `national_id` know; all.",
    )


class Custom(Section):
    """A detector of the operator's own: prefix and body, or a regex of finite width."""

    kind: str = Field(
        description="Word of the placeholder; in lower case the label in counts.",
        examples=["EMPLOYEE_ID"],
    )
    action: Action = Field(default="mask", description="As for detectors.")
    prefix: str | None = Field(
        default=None, min_length=1, max_length=64, description="Literal beginning of a value."
    )
    body: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="Class of the characters behind the prefix, such as [0-9].",
    )
    min: int | None = Field(
        default=None, ge=1, le=1024, description="Fewest characters of the body; 1."
    )
    max: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Most characters of the body; a longer run is no value. Without it, any.",
    )
    validator: str | None = Field(
        default=None, alias="validate", description="Check by name, such as luhn."
    )
    regex: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="Instead of prefix and body: of finite width, without look-around,"
        " back-references and repeats inside repeats.",
    )


class Classifier(Section):
    """A webhook that finds what patterns cannot, such as names."""

    url: HttpUrl = Field(
        repr=False, description="Where texts go.", examples=["http://127.0.0.1:9300/find"]
    )
    deadline_s: Seconds = Field(default=0.2, description="Time for one answer.")
    late: Literal["hold", "release", "block"] = Field(
        default="hold", description="What happens to text whose answer is late."
    )


class Redaction(Section):
    """Modes and detectors; as an override only the keys that are given count."""

    preset: Literal["default", "strict", "code"] = Field(
        default="default", description="Which detectors are on."
    )
    request: Mode = Field(default="detect", description="Prompts on their way to the provider.")
    response: Mode = Field(default="enforce", description="Answers on their way to the client.")
    tool_arguments: Mode = Field(default="detect", description="Arguments of tool calls.")
    tool_results: Mode = Field(default="enforce", description="Results of MCP tools.")
    logprobs: Literal["drop", "refuse"] = Field(
        default="drop",
        description="Token probabilities repeat the text; drop them or refuse the request.",
    )
    tail_comment: bool = Field(
        default=False, description="Counts as a comment line above [DONE] of a stream."
    )
    vault: bool = Field(
        default=False,
        description="Placeholders for the provider, values for the client. Enforce requests.",
    )
    allow: tuple[str, ...] = Field(
        default=(), description="Literals and globs that are never masked."
    )
    deny_list: tuple[DenyListPath, ...] = Field(
        default=(),
        description="Files of literal values, one a line; {tenant} stands for the tenant's name.",
    )
    detectors: dict[str, Detector] = Field(
        default_factory=dict, description="Built-in detectors by name, and `deny_list`."
    )
    custom: tuple[Custom, ...] = Field(default=(), description="Detectors of your own.")
    classifier: Classifier | None = Field(
        default=None, description="Webhook for names and addresses."
    )
