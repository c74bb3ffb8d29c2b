"""Are the rules that tenants have in files of their own right?

Lives here: from the folder of `mcp.rules_dir` to the rules of each tenant: every rule of
`mcp.rules`, a key that only the main file may use, and what stays in force when a file is not
right. Does not live here: files and names (rulefiles), how rules are combined (mcp.rules).

At a start everything must be right. While a gateway runs (`known` is what is in force), a file
that is not right changes nothing for its tenant, and the other files count.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath

from tidegate.config.checks import names, reach, shape, shown_names
from tidegate.config.document import Tree, read_document
from tidegate.config.errors import Problem
from tidegate.config.findings import Findings
from tidegate.config.models import Config
from tidegate.config.places import Path, Places, quoted
from tidegate.config.rulefiles import (
    MOST_FILES,
    RulesDir,
    State,
    TenantFile,
    Unreadable,
    folder_state,
    misnamed,
    read_file,
    tenant_of,
)
from tidegate.config.sections.mcp import McpServer, Rule
from tidegate.config.validate import validate

_PLACE: Path = ("mcp", "rules_dir")
_REFERENCES = ("${env:", "${file:")


class _Broken(Exception):
    """A file is not right."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__()
        self.problems = problems


def check_rules_dir(config: Config, findings: Findings, known: RulesDir | None) -> RulesDir:
    """The rules of tenants. What is wrong goes to the findings, or to `faults` beside `known`."""
    written = config.mcp.rules_dir
    if written is None or findings.touched(("mcp", "servers"), _PLACE):
        return RulesDir()
    folder = findings.folder / written
    if known is not None and known.folder != folder:
        known = None
    try:
        state = folder_state(folder)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        wrong = f"this folder cannot be read ({reason})"
        return _not_listed(findings, known, folder, wrong, "create it, empty at first")
    if len(state) > MOST_FILES:
        wrong = f"more than {MOST_FILES} files are in this folder"
        return _not_listed(findings, known, folder, wrong, "move those of former tenants away")
    reading = _Reading(folder, written, state, config.mcp.servers, known or RulesDir())
    found = reading.read()
    findings.warnings.extend(reading.warnings)
    if known is None:
        findings.problems.extend(found.faults)
    return found


def _not_listed(
    findings: Findings, known: RulesDir | None, folder: FilePath, wrong: str, right: str
) -> RulesDir:
    if known is None:
        findings.error(_PLACE, wrong, right)
        return RulesDir(folder)
    # A folder that went away took nobody's word back.
    return replace(known, state={}, faults=(findings.problem(_PLACE, wrong, right),))


@dataclass(slots=True)
class _Reading:
    """One look at the folder."""

    folder: FilePath
    written: str
    state: dict[str, State]
    servers: Mapping[str, McpServer]
    known: RulesDir
    # Said once: when a file is read, not whenever it is looked at.
    warnings: list[Problem] = field(default_factory=list)

    def read(self) -> RulesDir:
        """What it comes to; only what changed is parsed."""
        files: dict[str, TenantFile] = {}
        faults: list[Problem] = []
        is_misnamed = False
        for name, state in self.state.items():
            tenant = tenant_of(name)
            if tenant is None:
                is_misnamed = True
                faults.append(misnamed(self._shown(name), name))
                continue
            try:
                files[tenant] = self._file(name, tenant, state)
            except _Broken as broken:
                faults.extend(broken.problems[:1])
                if tenant in self.known.files:
                    # Under no state of a file: it is judged again until it is right.
                    files[tenant] = replace(self.known.files[tenant], state=())
        if is_misnamed:
            # It may be the file of a tenant that has none any more.
            files = {**self.known.files, **files}
        names_now = tuple(self.servers)
        return RulesDir(self.folder, self.state, files, tuple(faults), names_now)

    def _shown(self, name: str) -> str:
        return quoted(str(FilePath(self.written) / name), limit=300, mark="")

    def _file(self, name: str, tenant: str, state: State) -> TenantFile:
        known = self.known.files.get(tenant)
        if known and known.state == state and self.known.servers == tuple(self.servers):
            return known
        shown = self._shown(name)
        try:
            data = read_file(self.folder, name)
        except Unreadable as fault:
            raise _Broken([Problem(shown, 0, 0, "", fault.wrong, fault.right)]) from None
        rules, places, warnings = _rules(data, shown, tenant, self.servers)
        self.warnings += warnings
        digest = hashlib.sha256(data).hexdigest()[:12]
        lines = tuple(places.of_value(("mcp", "rules", n)).line for n in range(len(rules)))
        return TenantFile(tenant, shown, state, digest, rules, lines)


def _rules(
    data: bytes, file: str, tenant: str, servers: Mapping[str, McpServer]
) -> tuple[tuple[Rule, ...], Places, list[Problem]]:
    """The rules in `data`, judged as those of the main file, with their places and warnings."""
    document = read_document(data, file)
    # The same keys at the same places as in the main file, so that the same words fit.
    places = Places(
        {("mcp", *path): mark for path, mark in document.places.keys.items()},
        {("mcp", *path): mark for path, mark in document.places.values.items()},
    )
    problems = [replace(one, path=f"mcp.{one.path}") for one in document.problems]
    findings = Findings(file, places, problems=problems)
    if not document.problems or document.tree:
        findings.spoil(*(("mcp", *path) for path in document.refused))
        tree = _own_keys(document.tree, findings)
        ambiguous = {("mcp", *path): word for path, word in document.ambiguous.items()}
        config = validate({"mcp": tree}, findings, ambiguous)
        mcp = config.mcp.model_copy(update={"servers": dict(servers)})
        config = config.model_copy(update={"mcp": mcp})
        shape.check_rules(config, findings)
        names.check_rules(config, findings)
        shown_names.check_rules(config, findings)
        reach.check_rules(config, findings)
        _own_tenant(config, tenant, findings)
        if not findings.problems:
            return config.mcp.rules, places, [_reworded(one) for one in findings.warnings]
    raise _Broken([_reworded(one) for one in sorted(findings.problems, key=lambda p: p.order)])


def _own_keys(tree: dict[str, Tree], findings: Findings) -> dict[str, Tree]:
    """`tree` with nothing but `rules`; that it holds them, and no reference."""
    for key in tree:
        if key != "rules":
            right = "keep `rules:` only; everything else stands in the main file"
            wrong = f"a tenant's file cannot set {quoted(key)}"
            findings.error(("mcp", key), wrong, right, at_key=True)
    if tree.get("rules") is None and not findings.problems:
        # As after a write that broke off: nobody empties rules by chance.
        right = "write `rules: []` for a tenant without rules of its own"
        findings.error(("mcp", "rules"), "the file holds no rules", right)
    for path, text in _texts(tree.get("rules"), ("mcp", "rules")):
        if any(mark in text for mark in _REFERENCES):
            wrong = "a tenant's file cannot refer to variables or files"
            findings.error(path, wrong, "write the value itself")
            findings.spoil(path)
    return {"rules": tree["rules"]} if tree.get("rules") is not None else {}


def _texts(tree: Tree, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, tuple):
        for index, item in enumerate(tree):
            yield from _texts(item, (*path, index))
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _texts(item, (*path, key))


def _own_tenant(config: Config, tenant: str, findings: Findings) -> None:
    for index, rule in enumerate(config.mcp.rules):
        for effect in ("allow", "deny"):
            body = getattr(rule, effect)
            if body is not None and body.tenants is not None:
                path = ("mcp", "rules", index, effect, "tenants")
                wrong = f"this file speaks for the tenant {quoted(tenant)} alone"
                findings.error(path, wrong, "remove `tenants`", at_key=True)


def _reworded(problem: Problem) -> Problem:
    """As a reader of this file would spell it."""
    right = problem.right
    if problem.wrong.startswith("the file holds a"):
        right = "begin it with `rules:`"
    return replace(problem, path=problem.path.removeprefix("mcp").removeprefix("."), right=right)


__all__ = ["check_rules_dir"]
