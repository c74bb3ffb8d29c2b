"""How is the object graph built?

Lives here: construction, opening, closing and the swap of a revision. It decides nothing: the
order of a request is in chat and tool_traffic, the boundary in front.
"""

import logging
import os
from contextlib import AsyncExitStack
from random import Random
from secrets import token_bytes
from socket import socket

from tidegate.clock import Clock, SystemClock
from tidegate.config import (
    Config,
    ConfigInvalid,
    folder_fault,
    reload_problems,
    restart_parts,
    store_file,
    values,
    without_secrets,
)
from tidegate.errors import StoreUnavailable
from tidegate.gateway.accounting import Accounting
from tidegate.gateway.admin import IssuersHealth, Readiness, admin_of, exposure_of
from tidegate.gateway.attempts import Attempts, Bounds
from tidegate.gateway.body import BodyGate, BodyReader
from tidegate.gateway.charge import Charging, new_owner
from tidegate.gateway.chat import Chat
from tidegate.gateway.classifier import Classifiers
from tidegate.gateway.front import Front, Path
from tidegate.gateway.identify import fetching
from tidegate.gateway.logs import RefusalLog
from tidegate.gateway.metrics import Metrics
from tidegate.gateway.pins.checked import Pins
from tidegate.gateway.request_ids import RequestIds
from tidegate.gateway.respond import Receive, Scope, Send
from tidegate.gateway.revision import Revision, build
from tidegate.gateway.servers.carriers import Carriers
from tidegate.gateway.servers.children import Children, ChildSettings
from tidegate.gateway.servers.upstream import ToolTimes, ToolUpstream
from tidegate.gateway.stores import ledger_for, pin_store_for, shelf_for
from tidegate.gateway.target_rows import TargetsReport, resting_routes, target_rows
from tidegate.gateway.tool_requests.pinned import PinGate
from tidegate.gateway.tool_requests.relay import ToolRelay
from tidegate.gateway.tool_requests.sessions import ToolSessions
from tidegate.gateway.tool_requests.streams import StreamCaps
from tidegate.gateway.tool_traffic import ToolTraffic
from tidegate.gateway.watched import Watched
from tidegate.identity.jwks import TokenKeys
from tidegate.jsonrpc import error_of
from tidegate.mcp.sessions import Sessions
from tidegate.records.store import Recorder
from tidegate.routing.targets import Targets
from tidegate.transport.aiohttp_client import AiohttpTransport
from tidegate.transport.inbox import Inboxes

logger = logging.getLogger(__name__)

CHAT_PATH = b"/v1/chat/completions"
_MCP_METHODS = frozenset({"POST", "GET", "DELETE"})
_SETTLE_S = 5.0
_SECRET_BYTES = 32


class Gateway:
    """The gateway as one ASGI application, and `admin` for the second listener.

    A server that runs the lifespan protocol opens and closes it; others call `open` and `close`.
    `reload` swaps the revision; a running request keeps the one it began with. `secret` is what
    values are hashed under: gateways with the same one give equal values equal hashes. `owner`
    leads to the process that keeps the ledger on a file, if that is another one (limits.owned).
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        secret: bytes | None = None,
        owner: socket | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._secret = secret or token_bytes(_SECRET_BYTES)
        self._token_keys = TokenKeys(fetching(), self._clock)
        self._first = self._revision = build(config, self._secret, token_keys=self._token_keys)
        caps = values.caps(config)
        self._targets = Targets()
        self._ledger = ledger_for(config, self._clock, owner)
        self._transport = AiohttpTransport()
        self._recorder = self._make_recorder()
        self._charging = Charging(self._ledger, new_owner())
        self.metrics = Metrics()
        self._accounting = Accounting(self._recorder, self.metrics, self._clock)
        self._inboxes = Inboxes(self._clock)
        self._attempts = self._make_attempts()
        self._tool_upstream = self._make_tool_upstream()
        self._pins = self._make_pins()
        self._children = self._make_children()
        self._carriers = self._make_carriers()
        self._sessions = ToolSessions(Sessions(), self._clock, shelf_for(config, self._clock))
        gate = BodyGate(caps.bodies_in_flight_bytes)
        self._chat = self._make_chat(gate)
        self._tools = self._make_tools(gate)
        self._paths = self._path_table()
        self._front = self._make_front()
        self.readiness = Readiness(
            records=self._recorder,
            store_degraded=lambda: self._ledger.degraded,
            serves_without_store=self._serves_without_store,
            clock_ahead_s=lambda: self._ledger.clock_ahead_s,
            resting_routes=lambda: resting_routes(
                self._revision.chat.routes.routes, self._targets, self._clock.monotonic_s()
            ),
            demo=config.demo,
            revision=config.revision,
        )
        self.admin = admin_of(config, self.readiness, self.metrics, self.targets_report)
        self._watch()

    def _issuers_health(self) -> IssuersHealth:
        identity = self.config.identity
        keyed = bool(identity.keys) or identity.anonymous is not None
        keys = self._token_keys
        return IssuersHealth(tuple(keys.without_keys), serves=keyed or keys.any_usable)

    def _serves_without_store(self) -> bool:
        limits = self._revision.chat.limits.limits
        return any(limit.on_store_down != "closed" for limit in limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI: `http` and `lifespan`."""
        if scope["type"] == "http":
            await self._front(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def open(self) -> None:
        """Open the stores and the transport; raises StoreUnavailable."""
        url, records = self.config.store.url, self.config.records.path
        stores = (
            (f"store.url {without_secrets(url)}", store_file(url), self._ledger.open),
            (f"records.path {records}", records, self._recorder.open),
        )
        for place, file, opened in stores:
            try:
                await opened()
            except StoreUnavailable as error:
                await self.close()
                fault = folder_fault(file) if file is not None else None
                # A database says only that it cannot be opened.
                why = f"the directory {fault.wrong}" if fault is not None else error.detail
                raise StoreUnavailable(f"{place}: {why}") from error
        await self._transport.open()
        await self._token_keys.open()
        if self._revision.tools.servers:
            self._sessions.start()
        await self._pins.open()
        if self._recorder.lost:
            logger.warning("requests_lost", extra={"lost": self._recorder.lost})

    async def close(self) -> None:
        """Settle what is owed, write what waits, close what is open."""
        async with AsyncExitStack() as last_first:
            last_first.push_async_callback(self._recorder.close)
            last_first.push_async_callback(self._ledger.close)
            last_first.push_async_callback(self._pins.close)
            last_first.push_async_callback(self._sessions.close)
            last_first.push_async_callback(self._charging.drain, _SETTLE_S)
            last_first.push_async_callback(self._transport.close)
            last_first.push_async_callback(self._token_keys.close)
            last_first.push_async_callback(self._tool_upstream.drain, _SETTLE_S)
            last_first.push_async_callback(self._carriers.close)
            await self._tools.close()

    def let_go(self) -> None:
        """A drain begins: end the streams that would never end by themselves."""
        self._tools.streams.let_go()
        self._carriers.let_go()

    def cut(self) -> None:
        """The drain limit is reached: end every answer that still runs, honestly."""
        self._inboxes.cut()
        self._carriers.cut()

    @property
    def in_flight(self) -> int:
        """Requests being served now."""
        return self._front.in_flight

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._revision.config

    def targets_report(self) -> TargetsReport:
        """How every target of the configuration in force is doing in this process."""
        routes = self._revision.chat.routes.routes
        now_s = self._clock.monotonic_s()
        return TargetsReport(
            revision=self.config.revision, targets=target_rows(routes, self._targets, now_s)
        )

    def reload(self, config: Config) -> tuple[str, ...]:
        """Put `config` in force; returns the parts that only a restart takes over.

        Those parts keep the meaning they had at the start until then. Raises ConfigInvalid, and
        changes nothing, when `config` would switch the demo on or off.
        """
        self.adopt(self.prepare(config))
        return restart_parts(config, running=self._first.config)

    def prepare(self, config: Config) -> Revision:
        """What `adopt` needs; changes nothing, and may run in a thread. Raises ConfigInvalid."""
        if problems := reload_problems(config, running=self._first.config):
            raise ConfigInvalid(problems)
        return build(config, self._secret, token_keys=self._token_keys)

    def adopt(self, revision: Revision) -> None:
        """Put in force what `prepare` made. Requests that run keep what they began with."""
        for name in set(revision.tools.pinned_servers) - set(self._revision.tools.pinned_servers):
            # Nobody looked while it was not.
            self._pins.stale(name, announced=False)
        self._revision = revision
        self._targets.retain(revision.targets)
        self._carriers.retain(revision.tool_places)
        self._carriers.watch_only(revision.tools.pinned_servers)
        self._token_keys.retain(revision.issuers)
        self._paths = self._path_table()
        self.readiness.revision = revision.config.revision
        self.metrics.revision(revision.config.revision)

    def _make_recorder(self) -> Recorder:
        records = self.config.records
        return Recorder(
            records.path,
            self._clock,
            queue=records.queue,
            keep_days=records.keep_days,
            max_bytes=records.max_bytes,
            hash_key=self._secret,
        )

    def _make_front(self) -> Front:
        config = self.config
        return Front(
            paths=lambda: self._paths,
            exposure=exposure_of(config, config.server.host),
            max_in_flight=values.caps(config).requests_in_flight,
            metrics=self.metrics,
            refusals=RefusalLog(logger, self._clock),
            mint=RequestIds(self._clock).mint,
        )

    def _make_pins(self) -> Pins:
        return Pins(
            pin_store_for(self.config),
            self._clock,
            self.metrics,
            servers=lambda: self._revision.tools.pinned_servers,
        )

    def _make_children(self) -> Children:
        caps = values.caps(self.config)
        return Children(
            ChildSettings(
                self._clock,
                max_line_bytes=caps.upstream_event_bytes,
                search_path=self.config.search_path or os.defpath,
                metrics=self.metrics,
            )
        )

    def _make_carriers(self) -> Carriers:
        carriers = Carriers(
            self._tool_upstream,
            self._children,
            self._clock,
            tools_changed=lambda name, announced: self._pins.stale(name, announced=announced),
        )
        carriers.retain(self._revision.tool_places)
        return carriers

    def _make_attempts(self) -> Attempts:
        caps = values.caps(self.config)
        return Attempts(
            self._transport,
            self._inboxes,
            self._clock,
            Bounds(caps.upstream_event_bytes, caps.before_commit_bytes),
            self.metrics,
            Random(),  # noqa: S311 - it spreads load and guards nothing
        )

    def _make_chat(self, gate: BodyGate) -> Chat:
        return Chat(
            policy=lambda: self._revision.chat,
            bodies=BodyReader(gate, max_bytes=values.caps(self.config).llm_body_bytes),
            charging=self._charging,
            attempts=self._attempts,
            targets=self._targets,
            accounting=self._accounting,
            classifiers=Classifiers(self._transport, self._inboxes, self._clock, self.metrics),
        )

    def _make_tool_upstream(self) -> ToolUpstream:
        # A call that waits for its client is known to one process, and the client may meet another.
        times = ToolTimes() if self.config.server.workers == 1 else ToolTimes(resume_s=0.0)
        return ToolUpstream(
            self._transport,
            self._inboxes,
            self._clock,
            max_answer_bytes=values.caps(self.config).upstream_event_bytes,
            times=times,
        )

    def _make_tools(self, gate: BodyGate) -> ToolTraffic:
        caps = values.caps(self.config)
        return ToolTraffic(
            policy=lambda: self._revision.tools,
            bodies=BodyReader(gate, max_bytes=caps.mcp_body_bytes),
            charging=self._charging,
            accounting=self._accounting,
            relay=ToolRelay(
                self._carriers,
                PinGate(self._pins, self._carriers, self._sessions),
                self._clock,
                self._tool_upstream.times,
                self._sessions,
            ),
            clock=self._clock,
            caps=StreamCaps(
                caps.mcp_streams,
                caps.mcp_streams_per_principal,
                caps.mcp_requests_per_principal,
                caps.bodies_in_flight_bytes,
            ),
        )

    def _watch(self) -> None:
        self._token_keys.retain(self._revision.issuers)
        self.readiness.issuers = self._issuers_health
        self.readiness.broken_rules = lambda: self.config.rules_dir.broken
        self.metrics.revision(self.config.revision)
        self.metrics.watched = Watched(
            records=self._recorder,
            in_flight=lambda: self._front.in_flight,
            store_degraded=lambda: self._ledger.degraded or self._sessions.degraded,
            clock_ahead_s=lambda: self._ledger.clock_ahead_s,
            settlements=self._charging,
            targets=lambda: self.targets_report().targets,
            broken_rules=lambda: len(self.config.rules_dir.faults),
            pins=self._pins.differing,
            tool_processes=self._children.running,
        )

    def _path_table(self) -> dict[bytes, Path]:
        return {
            self._revision.config.mcp.path.encode(): Path(
                self._tools.serve, _MCP_METHODS, error_body=error_of
            ),
            CHAT_PATH: Path(self._chat.serve),
            **dict.fromkeys(
                self._revision.metadata.documents,
                Path(self._revision.metadata.serve, frozenset({"GET"})),
            ),
        }

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.open()
        except StoreUnavailable as error:
            # Not raised: some servers take an exception here for "lifespan is not spoken", and
            # serve on stores that are not open.
            await send({"type": "lifespan.startup.failed", "message": error.detail})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})


__all__ = ["CHAT_PATH", "Gateway"]
