"""What did the operator ask for, and where is it wrong?

Lives here: finding the file, reading it, and the order in which a text becomes a Config; the
only place of the product that looks at environment variables (a mapping handed in). Does not
live here: the shape (models), the single checks (checks), conversion for the floors below
(values).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from tidegate.config.checks import check
from tidegate.config.demo_world import DemoPorts, demo_world, fill
from tidegate.config.document import Document, Tree, read_document
from tidegate.config.errors import ConfigInvalid, Problem
from tidegate.config.findings import Findings
from tidegate.config.models import About, Config, Origin
from tidegate.config.places import Path
from tidegate.config.references import follow
from tidegate.config.revision import revision
from tidegate.config.rulefiles import RulesDir
from tidegate.config.validate import validate

FILE_NAME = "tidegate.yaml"
DEMO_WORLD = "demo world"
_EMPTIED = ("the file is empty", "write the configuration again; only a start takes the demo world")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says instead of the file; None keeps the file's value."""

    host: str | None = None
    port: int | None = None
    workers: int | None = None
    admin_port: int | None = None


def find_config(
    given: FilePath | None, environ: Mapping[str, str], *, folder: FilePath = FilePath()
) -> FilePath | None:
    """The file to read, or None for the demo world.

    `given` (from --config), else TIDEGATE_CONFIG, else tidegate.yaml in `folder`, else
    tidegate/tidegate.yaml below XDG_CONFIG_HOME (default ~/.config). The first two are taken
    even when they do not exist: load_config then says so.
    """
    if given is not None:
        return given
    if named := environ.get("TIDEGATE_CONFIG"):
        return FilePath(named)
    candidates = [folder / FILE_NAME]
    home = environ.get("XDG_CONFIG_HOME", "")
    if not FilePath(home).is_absolute():
        # The XDG base directory specification: ignore a relative path, default to ~/.config.
        home = f"{environ['HOME']}/.config" if environ.get("HOME") else ""
    if home:
        candidates.append(FilePath(home) / "tidegate" / FILE_NAME)
    return next((path for path in candidates if path.exists()), None)


def load_config(
    path: FilePath | None,
    environ: Mapping[str, str],
    *,
    overrides: Overrides | None = None,
    demo_ports: DemoPorts | None = None,
    empty_is_demo: bool = True,
    known: RulesDir | None = None,
) -> Config:
    """The configuration in `path`, complete and checked; the demo world for None.

    A file without any key is the demo world, too, unless `empty_is_demo` is false: then it is a
    problem, as for a gateway that runs, where it was emptied by accident. `known` are the rules
    of tenants that such a gateway obeys: a file of theirs that is not right any more then keeps
    those (Config.rules_dir.faults) and is no problem of the whole.
    Raises ConfigInvalid with every problem at once. Reads the file and the files it refers to;
    costs some milliseconds, more for a file beyond 10 kB: not for the request path.
    """
    if path is None:
        return _load(Document(), DEMO_WORLD, FilePath(), environ, (overrides, demo_ports))
    document = read_document(_read(path, str(path)), str(path))
    if not (document.tree or document.problems or empty_is_demo):
        raise ConfigInvalid([Problem(str(path), 0, 0, "", *_EMPTIED)])
    given = (overrides, demo_ports)
    return _load(document, str(path), path.parent, environ, given, known)


def load_part(path: FilePath, environ: Mapping[str, str], part: str) -> Config:
    """The configuration of which only the top-level part `part` stands in `path`.

    For who needs no more and may lack what the rest refers to, such as the secrets of a service.
    Raises ConfigInvalid for what is wrong in that part, or when the file cannot be read at all.
    """
    document = read_document(_read(path, str(path)), str(path))
    if document.tree:
        document = replace(
            document,
            tree={key: value for key, value in document.tree.items() if key == part},
            ambiguous={at: word for at, word in document.ambiguous.items() if at[:1] == (part,)},
            problems=tuple(
                each for each in document.problems if re.split(r"[.\[]", each.path)[0] in ("", part)
            ),
        )
    return _load(document, str(path), path.parent, environ)


def load_config_text(
    text: str,
    environ: Mapping[str, str],
    *,
    name: str = "configuration",
    folder: FilePath = FilePath(),
    overrides: Overrides | None = None,
) -> Config:
    """Like load_config, for a text called `name`; `${file:}` is looked for in `folder`."""
    document = read_document(text.encode("utf-8", "surrogateescape"), name)
    return _load(document, name, folder, environ, (overrides, None))


def _load(
    document: Document,
    file: str,
    folder: FilePath,
    environ: Mapping[str, str],
    given: tuple[Overrides | None, DemoPorts | None] = (None, None),
    known: RulesDir | None = None,
) -> Config:
    overrides, demo_ports = given
    findings = Findings(
        file,
        document.places,
        problems=list(document.problems),
        folder=folder,
        search_path=environ.get("PATH"),
    )
    if document.problems and not document.tree:
        raise ConfigInvalid(findings.problems)
    findings.spoil(*document.refused)
    followed = follow(document.tree, environ, folder)
    for place, (written, value) in followed.written.items():
        findings.follow(place, written, value)
    for fault, words in followed.faults.items():
        findings.error(fault, *words)
        findings.spoil(fault)
    draft = _Draft(_mapping(followed.tree), findings)
    draft.complete(demo_ports or DemoPorts())
    draft.override(overrides or Overrides())
    draft.obey(environ)
    config = validate(draft.tree, findings, document.ambiguous)
    check(config, findings, known)
    if findings.problems:
        raise ConfigInvalid(findings.problems)
    return config.attach(_about(config, draft, findings))


def _read(path: FilePath, file: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        wrong, right = "there is no such file", "create it, or name another one with --config"
    except IsADirectoryError:
        wrong, right = "this is a directory", f"name the file in it, such as {path / FILE_NAME}"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        wrong = f"the file cannot be read ({reason or 'not a path'})"
        right = "make it readable for the user who runs tidegate"
    raise ConfigInvalid([Problem(file, 0, 0, "", wrong, right)])


def _mapping(tree: Tree) -> dict[str, Tree]:
    return tree if isinstance(tree, dict) else {}


@dataclass(slots=True)
class _Draft:
    """The tree on its way from the file to the model; the findings learn what is not of it."""

    tree: dict[str, Tree]
    findings: Findings

    def complete(self, ports: DemoPorts) -> None:
        """Add what the file leaves out: the demo world, or the route over all providers."""
        if not self.tree or self.tree.get("demo") is True:
            self.tree = fill(self.tree, demo_world(ports))
        providers = self.tree.get("providers")
        if self.tree.get("routes") is None and isinstance(providers, dict) and providers:
            candidates: Tree = tuple({"provider": name} for name in providers)
            self.tree = {**self.tree, "routes": ({"name": "default", "candidates": candidates},)}
            self.findings.outside[_ROUTES] = "default: all providers in order"
            self.findings.implied.add(_ROUTES)

    def override(self, given: Overrides) -> None:
        """Put the values of the command line in place of the file's."""
        for key in ("host", "port", "workers"):
            value: str | int | None = getattr(given, key)
            if value is not None:
                self._put(("server", key), value, f"--{key}")
        if given.admin_port is not None:
            self._put(("server", "admin", "port"), given.admin_port, "--admin-port")

    def obey(self, environ: Mapping[str, str]) -> None:
        """Apply the two variables that change the configuration itself.

        HIDE_ADMIN_TOOLS=1 raises `mcp.hide_denied` from off to list; it never lowers `full`.
        TIDEGATE_LOG takes the place of `telemetry.log`.
        """
        hide = environ.get("HIDE_ADMIN_TOOLS", "")
        if hide not in ("", "0", "1"):
            self.findings.outside[_HIDE] = "HIDE_ADMIN_TOOLS"
            self.findings.error(_HIDE, "this is neither 0 nor 1", "write HIDE_ADMIN_TOOLS=1")
        mcp = self.tree.get("mcp")
        if hide == "1" and isinstance(mcp, dict) and mcp.get("hide_denied") == "off":
            self._put(_HIDE, "list", "HIDE_ADMIN_TOOLS")
        if form := environ.get("TIDEGATE_LOG"):
            self._put(("telemetry", "log"), form, "TIDEGATE_LOG")

    def _put(self, path: Path, value: Tree, origin: str) -> None:
        """Put `value` at `path`, unless something that is no mapping stands in the way."""
        changed = _placed(self.tree, path, value)
        if isinstance(changed, dict):
            self.tree = changed
            self.findings.outside[path] = origin


def _placed(tree: Tree, path: Path, value: Tree) -> Tree:
    """A copy of the mapping `tree` with `value` at `path`; what is no mapping stays as it is."""
    if not path:
        return value
    if tree is not None and not isinstance(tree, dict):
        return tree
    key = str(path[0])
    return {**(tree or {}), key: _placed((tree or {}).get(key), path[1:], value)}


_HIDE: Path = ("mcp", "hide_denied")
_ROUTES: Path = ("routes",)


def _about(config: Config, draft: _Draft, findings: Findings) -> About:
    origins = dict(_origins(draft.tree, (), findings))
    origin = Origin(
        source=findings.file,
        places=origins,
        references=findings.references,
        implied=frozenset(findings.implied),
        document=findings.places,
    )
    return About(
        origin=origin,
        revision=revision(config, findings.references, findings.rules_dir),
        warnings=tuple(sorted(findings.warnings, key=lambda warning: warning.order)),
        not_in_effect=tuple(sorted(findings.idle, key=lambda idle: (idle.line, idle.col))),
        deny_files=findings.deny_files,
        rules_dir=findings.rules_dir,
        folder=findings.folder,
        search_path=findings.search_path,
    )


def _origins(tree: Tree, path: Path, findings: Findings) -> Iterator[tuple[Path, str]]:
    """Where each value of the tree came from, outside before file before demo world."""
    if path in findings.outside:
        yield path, findings.outside[path]
    elif findings.places.holds(path):
        yield path, f"{findings.file}:{findings.places.of_value(path).line}"
    elif path:
        yield path, DEMO_WORLD
    if path in findings.outside:
        return
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _origins(value, (*path, key), findings)
    elif isinstance(tree, tuple):
        for index, item in enumerate(tree):
            yield from _origins(item, (*path, index), findings)
