"""Where does the gateway listen, what does it keep, and what does it say about itself?

Lives here: server, store, records, telemetry. A change of server or store needs a restart.
"""

from typing import Literal

from pydantic import Field

from tidegate.config.shapes import (
    Bytes,
    Count,
    Host,
    Origin,
    Port,
    Seconds,
    SecondsOrZero,
    Section,
    Token,
)


class Admin(Section):
    """The second listener: health, metrics, later the dashboard."""

    host: Host = Field(default="127.0.0.1", description="Address of the admin listener.")
    port: Port = Field(
        default=8081, description="Port of the admin listener; 0 lets the system choose."
    )
    token: Token | None = Field(
        default=None, description="Bearer token of the admin listener; needed off loopback."
    )


class Caps(Section):
    """What one caller, and all callers together, may take from one process (each worker)."""

    header_bytes: int = Field(
        default=32_768, ge=1024, le=1_048_576, description="Request head; beyond: 431."
    )
    header_timeout_s: Seconds = Field(default=10.0, description="Time for a whole request head.")
    body_idle_s: Seconds = Field(
        default=30.0,
        description="Longest pause inside a request body; beyond its first such time, the body "
        "must average at least 4 KiB/s.",
    )
    llm_body_bytes: Bytes = Field(default=33_554_432, description="Chat request body; beyond: 413.")
    mcp_body_bytes: Bytes = Field(default=4_194_304, description="MCP request body; beyond: 413.")
    upstream_event_bytes: Bytes = Field(
        default=8_388_608, description="One server-sent event of a provider."
    )
    before_commit_bytes: Bytes = Field(
        default=65_536,
        description="What may be read before the first content (or one event, if larger).",
    )
    requests_in_flight: Count = Field(default=1000, description="Requests at a time; beyond: 503.")
    mcp_requests_per_principal: Count = Field(
        default=500, description="Those to MCP of one principal, of each process; beyond: 429."
    )
    mcp_streams: Count = Field(
        default=500, description="Open event streams of MCP clients; beyond: 503."
    )
    mcp_streams_per_principal: Count = Field(
        default=50, description="Those of one principal; beyond: 429."
    )
    bodies_in_flight_bytes: Bytes = Field(
        default=268_435_456,
        description="Request bodies held at a time, and as much of MCP answers that nobody has"
        " read yet, a quarter of it for one principal; beyond: 503, 429.",
    )
    write_stall_s: Seconds = Field(
        default=60.0, description="A client that reads nothing for that long is cut."
    )


class Server(Section):
    """The listeners and their bounds."""

    host: Host = Field(default="127.0.0.1", description="Address of the client listener.")
    port: Port = Field(
        default=8080, description="Port of the client listener; 0 lets the system choose."
    )
    workers: int = Field(
        default=1, ge=1, le=256, description="Processes that share the client listener."
    )
    admin: Admin = Field(default_factory=Admin, description="The second listener.")
    allowed_hosts: tuple[Host, ...] = Field(
        default=(), description="Accepted Host names; on loopback empty means loopback names only."
    )
    allowed_origins: tuple[Origin, ...] = Field(
        default=(), description="Browser origins that may call; empty: only the gateway's own."
    )
    drain_s: SecondsOrZero = Field(
        default=30.0, description="Time for running requests at shutdown."
    )
    caps: Caps = Field(default_factory=Caps, description="Sizes and timers.")


class Store(Section):
    """Where reservations live."""

    url: str = Field(
        default="sqlite:///tidegate.db",
        repr=False,
        description="memory: | sqlite:///PATH | redis://HOST:PORT/DB",
        examples=["sqlite:///tidegate.db"],
    )
    wait_s: Seconds = Field(default=5.0, description="Longest wait for the store; then 503.")
    deadline_s: Seconds = Field(default=0.25, description="Redis: time for one batch.")


class Records(Section):
    """The file that remembers decisions."""

    path: str = Field(
        default="tidegate-records.db",
        min_length=1,
        description="SQLite file of the decision records.",
    )
    keep_days: int = Field(
        default=7, ge=1, le=3650, description="Age at which records are deleted."
    )
    max_bytes: int = Field(
        default=1_073_741_824, ge=1_048_576, le=1_099_511_627_776, description="Size of that file."
    )
    queue: Count = Field(
        default=10_000, description="Records waiting for the disk; beyond: dropped."
    )


class Telemetry(Section):
    """Logs and metrics."""

    log: Literal["auto", "json", "text"] = Field(
        default="auto", description="Form of the log; the variable TIDEGATE_LOG wins."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Log level."
    )
    metrics: bool = Field(default=True, description="Serve /metrics on the admin listener.")
