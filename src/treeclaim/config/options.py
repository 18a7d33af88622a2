# SPDX-License-Identifier: Apache-2.0
"""Defines every option, with the names of the Placement service (page 05, section 3)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from oslo_config import cfg
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi
from oslo_policy import opts as policy_opts

from treeclaim.store.database.timeouts import Timeouts

WITHOUT_EFFECT = "Accepted, without effect: "
"""The prefix of the help of an accepted option without effect; the reason follows."""

_NOBODY = "00000000-0000-0000-0000-000000000000"

_DEFAULT = (
    cfg.StrOpt("tempdir", help="Explicitly specify the temporary working directory."),
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).parents[1]),
        sample_default="<the directory of the installed package>",
        help="The directory where the Python modules are installed; base of state_path.",
    ),
    cfg.StrOpt("state_path", default="$pybasedir", help="The top directory of state files."),
    cfg.BoolOpt("log_options", default=True, help="Log the values of all options at start."),
)
_API = (
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=("keystone", "noauth2", "http_basic"),
        deprecated_group="DEFAULT",
        help="How callers are authenticated. http_basic reads users from a file; noauth2 is for tests.",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="",
        help="With http_basic: file with lines USER:HASH, as `htpasswd -B` writes them.",
    ),
)
_PLACEMENT = (
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Return a random sample of the candidates under a limit, else shuffle them.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=_NOBODY,
        help="Project of claims that were written below microversion 1.8.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=_NOBODY,
        help="User of claims that were written below microversion 1.8.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        min=0,
        help="How often a claim that conflicts with others is tried again.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        min=-1,
        help="Most candidates generated for one request; -1 for no cap.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="Whether trees are visited one after the other, or in turn.",
    ),
)
_WORKAROUNDS = (
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=False,
        help=WITHOUT_EFFECT + "candidates are always pruned early.",
    ),
)
_DATABASE = (
    cfg.StrOpt("connection", secret=True, help="URL of the database. Required."),
    cfg.StrOpt(
        "connection_parameters", default="", secret=True, help="More parameters of the URL."
    ),
    cfg.BoolOpt("sqlite_synchronous", default=True, help="Make commits durable on SQLite."),
    cfg.StrOpt(
        "slave_connection",
        secret=True,
        help=WITHOUT_EFFECT + "every read goes to `connection`.",
    ),
    cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="SQL mode of MySQL sessions."),
    cfg.IntOpt(
        "connection_recycle_time",
        default=3600,
        help="Seconds after which a connection is replaced.",
    ),
    cfg.IntOpt("max_pool_size", help="Most connections kept open."),
    cfg.IntOpt("max_retries", default=10, help="Connection attempts at start; -1 for no limit."),
    cfg.IntOpt("retry_interval", default=10, help="Seconds between connection attempts."),
    cfg.IntOpt("max_overflow", help="Most connections beyond max_pool_size."),
    cfg.IntOpt("connection_debug", default=0, help="Log SQL statements if above 0."),
    cfg.BoolOpt(
        "connection_trace",
        default=False,
        help=WITHOUT_EFFECT + "`connection_debug` logs statements.",
    ),
    cfg.IntOpt("pool_timeout", min=1, help="Seconds to wait for a connection; 10 if not set."),
    cfg.BoolOpt("sync_on_startup", default=False, help="Bring the schema up to date at start."),
)
_WAITS = {
    "connect": "Seconds to connect and log in to each database server.",
    "lock": "Seconds that a write waits for a lock that others hold; three times that on SQLite.",
    "statement": "Seconds that one statement of a request may take.",
    "load": "Seconds that a statement may take that reads everything, or that does maintenance.",
    "write": "Seconds after which no further statement or attempt of a write is begun.",
    "idle": "Seconds after which the server ends a transaction whose process has stalled.",
    "tcp": "Seconds without a sign of the database's machine until it is given up on.",
}
"""The help of each member of `Timeouts`."""

_TREECLAIM = (
    *(
        cfg.IntOpt(
            f"database_{name}_timeout", default=getattr(Timeouts(), name), min=1, help=description
        )
        for name, description in _WAITS.items()
    ),
    cfg.StrOpt(
        "admin_listen",
        default="127.0.0.1:8779",
        help="Address and port for liveness, readiness and metrics; empty for none. Nobody is "
        "asked for a token there, so it should not be reachable for everybody.",
    ),
    cfg.StrOpt(
        "metrics_of_resources",
        default="none",
        choices=("none", "cloud"),
        help="Whether the metrics have capacity and usage by resource class. The admin listener has "
        "the inventory in memory then, as each worker has.",
    ),
    cfg.ListOpt(
        "metrics_of_aggregates",
        default=[],
        help="Uuids of aggregates, at most 500, of which the metrics of resources tell too.",
    ),
    cfg.StrOpt(
        "metrics_of_flavors",
        help='A JSON file with {"requests": {NAME: QUERY, ...}}, as POST /treeclaim/capacity takes '
        "them: the metrics of resources tell how many of each fit. Read again on SIGHUP.",
    ),
    cfg.IntOpt(
        "max_body_bytes",
        default=16 * 1024 * 1024,
        min=1024,
        help="Longest body of a request; a longer one is refused unread, with 413.",
    ),
    cfg.IntOpt(
        "max_request_groups",
        default=512,
        min=1,
        help="Most request groups in one question for candidates.",
    ),
    cfg.IntOpt(
        "max_placing_consumers",
        default=1_000,
        min=1,
        help="Most consumers in one call that places them.",
    ),
    cfg.IntOpt(
        "max_placing_rules",
        default=16,
        min=0,
        help="Most rules in one call that places consumers.",
    ),
    cfg.IntOpt(
        "server_threads",
        default=4,
        min=1,
        help="Threads in which the WSGI server runs the requests of a process, so that they are "
        "not all taken by what waits. The command serve, uWSGI and mod_wsgi report their number, which has precedence.",
    ),
    cfg.FloatOpt(
        "search_seconds",
        default=30.0,
        min=0.0,
        help="Seconds after which a search for candidates is given up, with 400; 0 for never.",
    ),
    cfg.IntOpt(
        "search_megabytes",
        default=128,
        min=1,
        help="Memory that a search for candidates may hold before it is given up, with 400.",
    ),
    cfg.FloatOpt(
        "plan_seconds",
        default=30.0,
        min=0.1,
        help="Seconds after which a plan (survival, moves) is answered with the best found so far.",
    ),
    cfg.FloatOpt(
        "header_seconds",
        default=10.0,
        min=0.1,
        help="Seconds from a connection's opening, or a request's first byte, until all its "
        "headers must have come; of `treeclaim serve`, as the options up to max_waiting_requests.",
    ),
    cfg.FloatOpt(
        "body_seconds",
        default=60.0,
        min=0.1,
        help="Seconds from the headers of a request until its whole body must have come.",
    ),
    cfg.FloatOpt(
        "answer_seconds",
        default=30.0,
        min=0.1,
        help="In each such time a client must take 16 KiB of its answer, or the rest.",
    ),
    cfg.FloatOpt(
        "keep_alive_seconds",
        default=75.0,
        min=1.0,
        help="Seconds for which a connection is kept open without a request.",
    ),
    cfg.IntOpt(
        "max_connections",
        default=4096,
        min=1,
        help="Most connections of a worker; a further one closes the one that was silent for "
        "longest.",
    ),
    cfg.IntOpt(
        "max_waiting_requests",
        default=1000,
        min=1,
        help="Most requests that wait for a thread of a worker; further ones are refused with 503.",
    ),
    cfg.IntOpt(
        "max_watchers",
        default=1000,
        min=0,
        help="Most connections of a worker that watch changes, and at most three quarters of all; "
        "further ones are refused with 503.",
    ),
    cfg.FloatOpt(
        "watch_seconds",
        default=3600.0,
        min=1.0,
        help="Seconds after which a stream of events ends, so that the token is judged again.",
    ),
    cfg.BoolOpt(
        "pages",
        sample_default="true under `treeclaim serve`, false under other servers",
        help="Whether the pages for people are served at /ui/.",
    ),
    cfg.BoolOpt(
        "tracing",
        default=False,
        help="Send OpenTelemetry traces; needs the extra 'tracing'. Where they go is said by the "
        "OTEL_* environment variables of OpenTelemetry.",
    ),
)
GROUPS: Mapping[str | None, Sequence[cfg.Opt]] = {
    None: _DEFAULT,
    "api": _API,
    "placement": _PLACEMENT,
    "workarounds": _WORKAROUNDS,
    "placement_database": _DATABASE,
    "treeclaim": _TREECLAIM,
    "oslo_middleware": tuple(http_proxy_to_wsgi.OPTS),
}
"""The options by group; None is the group DEFAULT."""

_CORS_HEADERS = [
    "X-Auth-Token",
    "X-Openstack-Request-Id",
    "X-Identity-Status",
    "X-Roles",
    "X-Service-Catalog",
    "X-User-Id",
    "X-Tenant-Id",
    "OpenStack-API-Version",
]
_CORS_EXPOSED = [
    "X-Auth-Token",
    "X-Openstack-Request-Id",
    "X-Subject-Token",
    "X-Service-Token",
    "OpenStack-API-Version",
]
_CORS_METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH"]


def list_options() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return all options by group, for the option generator."""
    return [(group, list(options)) for group, options in GROUPS.items()]


def register(options: cfg.ConfigOpts) -> None:
    """Register all options with a configuration."""
    for group, group_options in GROUPS.items():
        options.register_opts(group_options, group=group)
    log.register_options(options)
    policy_opts._register(options)  # noqa: SLF001
    cors.set_defaults(
        allow_headers=_CORS_HEADERS,
        expose_headers=_CORS_EXPOSED,
        allow_methods=_CORS_METHODS,
    )
    options.register_opts(cors.CORS_OPTS, group="cors")
