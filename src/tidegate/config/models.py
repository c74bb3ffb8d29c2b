"""What did the operator ask for?

Lives here: the root of the frozen tree, shaped exactly like the file, and what is known about
its origin. Does not live here: the parts (sections), how a file becomes this tree (load).
"""

from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Self

from pydantic import Field, PrivateAttr

from tidegate.config.denylists import DenyFiles
from tidegate.config.errors import NotInEffect, Problem
from tidegate.config.places import Path, Places
from tidegate.config.rulefiles import RulesDir
from tidegate.config.sections.identity import Identity, Limit, Prices
from tidegate.config.sections.mcp import Mcp
from tidegate.config.sections.redaction import Redaction
from tidegate.config.sections.routing import Provider, Route
from tidegate.config.sections.server import Records, Server, Store, Telemetry
from tidegate.config.shapes import Name, Section


@dataclass(frozen=True, slots=True)
class Origin:
    """Where values came from. Paths that are not in `places` are defaults.

    `places` says it in words ("tidegate.yaml:4", "demo world", "--port"); `references` holds
    the text of values that contain `${env:}` or `${file:}`, as written; `implied` are the parts
    that follow from others, whole. `document` has the lines and columns of the file.
    """

    source: str = "demo world"
    places: dict[Path, str] = field(default_factory=dict)
    references: dict[Path, str] = field(default_factory=dict)
    implied: frozenset[Path] = frozenset()
    document: Places = field(default_factory=Places, repr=False)


@dataclass(frozen=True, slots=True)
class About:
    """What is known about a configuration beside its values."""

    origin: Origin = field(default_factory=Origin)
    revision: str = ""
    warnings: tuple[Problem, ...] = ()
    not_in_effect: tuple[NotInEffect, ...] = ()
    deny_files: dict[str, DenyFiles] = field(default_factory=dict, repr=False)
    rules_dir: RulesDir = field(default_factory=RulesDir, repr=False)
    folder: FilePath = field(default_factory=FilePath)
    search_path: str | None = None


class Config(Section):
    """The whole file, validated. Secrets are SecretStr and never shown by repr."""

    server: Server = Field(default_factory=Server, description="Listeners, sizes and timers.")
    store: Store = Field(default_factory=Store, description="Where reservations live.")
    identity: Identity = Field(default_factory=Identity, description="Who may call.")
    limits: tuple[Limit, ...] = Field(default=(), description="Caps; all that match must admit.")
    prices: Prices = Field(default_factory=dict, description="provider: { model: price }.")
    redaction: Redaction = Field(default_factory=Redaction, description="What is masked.")
    providers: dict[Name, Provider] = Field(
        default_factory=dict, description="Model providers by name."
    )
    routes: tuple[Route, ...] = Field(
        default=(), description="Which providers serve which model; none: all providers in order."
    )
    mcp: Mcp = Field(default_factory=Mcp, description="The MCP gateway.")
    records: Records = Field(default_factory=Records, description="Decision records.")
    telemetry: Telemetry = Field(default_factory=Telemetry, description="Logs and metrics.")
    demo: bool = Field(
        default=False, description="Run the demo world's providers and MCP backend too."
    )

    _about: About = PrivateAttr(default_factory=About)

    def attach(self, about: About) -> Self:
        """A copy that knows where it came from and what was found."""
        copy = self.model_copy()
        copy._about = about  # noqa: SLF001 - a copy of ourselves, not yet seen by anybody
        return copy

    @property
    def origin(self) -> Origin:
        """Where each value came from."""
        return self._about.origin

    @property
    def source(self) -> str:
        """The file this was read from, as it was named; "demo world" without one."""
        return self._about.origin.source

    @property
    def revision(self) -> str:
        """Twelve hex digits that name the effective configuration, secrets left out."""
        return self._about.revision

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is allowed but probably not meant."""
        return self._about.warnings

    @property
    def not_in_effect(self) -> tuple[NotInEffect, ...]:
        """Keys that are validated although nothing obeys them yet."""
        return self._about.not_in_effect

    @property
    def deny_files(self) -> dict[str, DenyFiles]:
        """What stood in the files of `deny_list`, by entry, when this was loaded."""
        return self._about.deny_files

    @property
    def folder(self) -> FilePath:
        """Where relative names of the file begin that are said to begin there."""
        return self._about.folder

    @property
    def search_path(self) -> str | None:
        """Where the process looks for programs: PATH as it stood when this was loaded."""
        return self._about.search_path

    @property
    def rules_dir(self) -> RulesDir:
        """The rules that tenants have in the folder of `mcp.rules_dir`, when this was loaded."""
        return self._about.rules_dir
