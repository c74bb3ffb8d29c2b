"""What is masked, where, and how?

Lives here: the redaction part, which routes and MCP servers may override key by key.
"""

from typing import Literal

from pydantic import Field

from tidegate.config.shapes import HttpUrl, Seconds, Section, Word

Mode = Literal["off", "detect", "enforce"]


class Detector(Section):
    """How one built-in detector behaves."""

    action: Literal["mask", "block", "off"] = Field(
        default="mask",
        description="Replace what is found, refuse the whole request, or do not look.",
    )
    regions: tuple[str, ...] = Field(
        default=(), description="Countries, for detectors that know them."
    )


class Custom(Section):
    """A detector of the operator's own: prefix and body, or a regex of finite width."""

    kind: Word = Field(
        description="Word of the placeholder.",
        examples=["EMPLOYEE_ID"],
    )
    action: Literal["mask", "block", "off"] = Field(default="mask", description="As for detectors.")
    prefix: str | None = Field(
        default=None, min_length=1, max_length=64, description="Literal beginning."
    )
    body: str | None = Field(
        default=None, min_length=3, max_length=128, description="Character class, such as [0-9]."
    )
    min: int | None = Field(
        default=None, ge=1, le=1024, description="Fewest characters of the body."
    )
    max: int | None = Field(default=None, ge=1, le=1024, description="Most characters of the body.")
    validator: str | None = Field(
        default=None, alias="validate", description="Named check of a candidate, such as luhn."
    )
    regex: str | None = Field(
        default=None, min_length=1, max_length=1024, description="Instead of prefix and body."
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
    vault: bool = Field(default=False, description="Reversible placeholders within one request.")
    allow: tuple[str, ...] = Field(
        default=(), description="Literals and globs that are never masked."
    )
    deny_list: tuple[str, ...] = Field(
        default=(), description="Files of literal values, one a line."
    )
    detectors: dict[str, Detector] = Field(
        default_factory=dict, description="Built-in detectors by name."
    )
    custom: tuple[Custom, ...] = Field(default=(), description="Detectors of your own.")
    classifier: Classifier | None = Field(
        default=None, description="Webhook for names and addresses."
    )
