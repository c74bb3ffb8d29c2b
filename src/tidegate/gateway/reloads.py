"""When is the configuration read again, and what is said about it?

On SIGHUP, and when the file, a deny list or a tenant's rules have changed. An invalid file
changes nothing and is one line in the log; a tenant's rules that are not right change nothing
for that tenant and are one, too. Lives here: that. Does not live here: reading and judging the
file (config), putting it in force (`take`: app for one process, workers for several).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from tidegate.config import Config, ConfigInvalid, Problem, serving_problems
from tidegate.config.rulefiles import RulesDir
from tidegate.gateway.filewatch import FileWatch, ListWatch, RulesWatch
from tidegate.gateway.settings import Load, Settings

logger = logging.getLogger(__name__)

_MOST_SHOWN = 20

Take = Callable[[Config], Awaitable[tuple[str, ...]]]
"""Puts a configuration in force; the parts that need a restart. Raises ConfigInvalid when it is
not taken."""


class Outcome(Protocol):
    """Who remembers what came of it, for readiness and metrics."""

    def reload_ended(self, *, failed: bool) -> None:
        """A reload was done."""


class Reloads:
    """The reloads of one gateway, one at a time."""

    def __init__(
        self,
        load: Load,
        take: Take,
        outcome: Outcome,
        settings: Settings,
        *,
        watch: Path | None = None,
        config: Config | None = None,
    ) -> None:
        self._load, self._take, self._outcome = load, take, outcome
        self._settings = settings
        # As it was read, or nearly so: what is written while the stores open is a change, too.
        self._watch = FileWatch(watch) if watch is not None else None
        self._lists = ListWatch(config)
        self._rules = RulesWatch(config.rules_dir if config is not None else RulesDir())
        self._told: tuple[Problem, ...] = ()
        self._files = set(config.rules_dir.files) if config is not None else set[str]()
        self._wanted = asyncio.Event()

    def ask(self) -> None:
        """As SIGHUP. Requests for it that come while one is done become one more."""
        self._wanted.set()

    async def attend(self) -> None:
        """Do what is asked for, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.once()

    async def once(self) -> None:
        """Read the configuration and put it in force, or say why not."""
        # A task of its own: whatever fails in it, the gateway goes on with what it has.
        reload = asyncio.create_task(self._reload())
        try:
            await asyncio.wait((reload,))
        finally:
            reload.cancel()
        if (bug := reload.exception()) is not None:
            self._kept(type(bug).__name__, 1)

    async def look_at_file(self) -> None:
        """Ask for a reload whenever the file has changed, for ever."""
        watch, clock_turn = self._watch, asyncio.Event()
        while watch is not None:
            asyncio.get_running_loop().call_later(self._settings.poll_s, clock_turn.set)
            await clock_turn.wait()
            clock_turn.clear()
            seen = watch.look()
            listed, ruled = await self._lists.changed(), await self._rules.changed()
            if seen == "changed" or listed or ruled:
                self.ask()
            elif seen == "missing":
                logger.warning("config_file_missing", extra={"path": str(watch.path)})

    async def _reload(self) -> None:
        try:
            config, stale = await self._take_over()
        except ConfigInvalid as invalid:
            self._kept(str(invalid.problems[0]), len(invalid.problems))
            return
        self._outcome.reload_ended(failed=False)
        logger.info("reloaded", extra={"revision": config.revision})
        self._tell_faults(config.rules_dir.faults)
        self._tell_removed(config.rules_dir)
        for finding in (*config.warnings, *config.not_in_effect):
            logger.warning("config_warning", extra={"problem": str(finding)})
        if stale:
            parts = ", ".join(stale)
            logger.warning("restart_needed", extra={"problem": f"changes of: {parts}"})

    async def _take_over(self) -> tuple[Config, tuple[str, ...]]:
        """What is in force now, and what of it needs a restart. Raises ConfigInvalid."""
        # Before it is read: what is written in between is read once more, never missed.
        if self._watch is not None:
            self._watch.take()
        # Reading and checking may take a while; streams go on meanwhile.
        config = await asyncio.to_thread(self._load)
        self._lists, self._rules = ListWatch(config), RulesWatch(config.rules_dir)
        if problems := serving_problems(config, listening_on=self._settings.host):
            raise ConfigInvalid(problems)
        return config, await self._take(config)

    def _tell_faults(self, faults: tuple[Problem, ...]) -> None:
        """A line for each file of a tenant that is not right, once for as long as it is so."""
        for fault in faults:
            if fault not in self._told:
                logger.error("last_good_rules_of_tenant_kept", extra={"problem": str(fault)})
        self._told = faults

    def _tell_removed(self, found: RulesDir) -> None:
        """One line: what a removed file denied is denied no more."""
        removed = sorted(self._files - set(found.files))
        self._files = set(found.files)
        if removed:
            shown = ", ".join(removed[:_MOST_SHOWN])
            extra = {"count": len(removed), "problem": f"no own rules any more: {shown}"}
            logger.warning("rules_of_tenants_removed", extra=extra)

    def _kept(self, problem: str, count: int) -> None:
        self._outcome.reload_ended(failed=True)
        logger.error(
            "reload_failed_last_good_configuration_kept",
            extra={"problem": problem, "count": count},
        )


__all__ = ["Outcome", "Reloads", "Take"]
