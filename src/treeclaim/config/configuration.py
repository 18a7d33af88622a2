# SPDX-License-Identifier: Apache-2.0
"""What the operator configured, as values."""

from dataclasses import dataclass

from oslo_config import cfg

from treeclaim.model.request import SearchOptions
from treeclaim.store import DatabaseSettings


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Attributes:
        host: Name or address, IPv6 without brackets.
        port: From 0 (any) to 65535.
    """

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections for `treeclaim serve`, in each worker.

    Attributes:
        header_seconds: From a connection's opening, or a request's first byte, until all headers
            are there.
        body_seconds: From the headers until the whole body is there.
        answer_seconds: In each such time a client has to take a piece of its answer.
        keep_alive_seconds: Between the end of an answer and the next request.
        connections: Open at a time.
        waiting: Requests that wait for a thread.
        body_bytes: Longest body that is read.
        watchers: Connections that watch; see `most_watchers`.
    """

    header_seconds: float
    body_seconds: float
    answer_seconds: float
    keep_alive_seconds: float
    connections: int
    waiting: int
    body_bytes: int
    watchers: int

    @property
    def most_watchers(self) -> int:
        """Return how many connections may watch: a quarter of all is left to other requests."""
        return min(self.watchers, self.connections * 3 // 4)


@dataclass(frozen=True, slots=True)
class ResourceMetrics:
    """What the metrics have besides the sums over the cloud.

    Attributes:
        aggregates: Uuids of those that have sums of their own.
        flavors: File with queries for which the number that fits is reported; None for none.
    """

    aggregates: tuple[str, ...]
    flavors: str | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the operator configured.

    Attributes:
        options: The options themselves, for the libraries that read their own from them.
        database: How to reach the database.
        max_retries: Connection attempts at start; -1 for endless ones.
        retry_interval: Seconds between them.
        sync_on_startup: Whether the schema is brought up to date at start.
        auth_strategy: `keystone` or `noauth2`.
        search: What concerns every search.
        claim_attempts: How often a claim is tried in total.
        incomplete_project_id, incomplete_user_id: Owners of claims made below 1.8.
        cors_enabled: Whether cross-origin requests are answered.
        proxy_headers: Whether headers of a proxy in front are honoured.
        admin: Where liveness, readiness and metrics are served; None for nowhere.
        metrics: What the metrics say about resources; None for nothing.
        max_body_bytes, max_request_groups, max_placing_consumers, max_placing_rules: Limits of a
            request.
        plan_seconds: How long a plan may take.
        server_threads: How many requests the server runs at a time in a process.
        watch_seconds: How long a stream of events goes on.
        connections: What clients of `treeclaim serve` are granted.
        tracing: Whether traces are sent.
        pages: Whether the pages are served at /ui/; None to leave it to the server.
    """

    options: cfg.ConfigOpts
    database: DatabaseSettings
    max_retries: int
    retry_interval: int
    sync_on_startup: bool
    auth_strategy: str
    search: SearchOptions
    claim_attempts: int
    incomplete_project_id: str
    incomplete_user_id: str
    cors_enabled: bool
    proxy_headers: bool
    admin: Address | None
    metrics: ResourceMetrics | None
    max_body_bytes: int
    max_request_groups: int
    max_placing_consumers: int
    max_placing_rules: int
    plan_seconds: float
    server_threads: int
    watch_seconds: float
    connections: ConnectionLimits
    tracing: bool
    pages: bool | None
