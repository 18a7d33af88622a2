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
        help="Authentication of callers. http_basic reads users from a file; noauth2 is for tests.",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="",
        help="For http_basic: file with lines USER:HASH, as written by `htpasswd -B`.",
    ),
)
_PLACEMENT = (
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="With a limit, return a random sample of the candidates; else shuffle them.",
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
        help="Most attempts of a claim that conflicts with others.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        min=-1,
        help="Most candidates generated for one request; -1 for no limit.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="Whether to take candidates tree by tree (depth-first), or from all trees in turn.",
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
    "lock": "Seconds that a write waits for a lock; three times as long on SQLite.",
    "statement": "Most seconds of a statement of a request.",
    "load": "Most seconds of a statement that reads the whole inventory or does maintenance.",
    "write": "Seconds after which a write begins no further statement or attempt.",
    "idle": "Seconds after which the database server ends the transaction of a stalled process.",
    "tcp": "Seconds without a response of the database's machine until a connection fails.",
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
        help="Address and port for liveness, readiness and metrics; empty for none. They require "
        "no token, so restrict access to the address.",
    ),
    cfg.StrOpt(
        "metrics_of_resources",
        default="none",
        choices=("none", "cloud"),
        help="Whether the metrics have capacity and usage by resource class. The admin listener "
        "then needs a copy of the inventory in memory, like each worker.",
    ),
    cfg.ListOpt(
        "metrics_of_aggregates",
        default=[],
        help="UUIDs of at most 500 aggregates, for which the metrics of resources have separate sums.",
    ),
    cfg.StrOpt(
        "metrics_of_flavors",
        help='A JSON file with {"requests": {NAME: QUERY, ...}}, as for POST /treeclaim/capacity. The '
        "metrics of resources report how many of each request fit. SIGHUP reloads the file.",
    ),
    cfg.IntOpt(
        "max_body_bytes",
        default=16 * 1024 * 1024,
        min=1024,
        help="Most bytes in the body of a request; a longer one is rejected unread with 413.",
    ),
    cfg.IntOpt(
        "max_request_groups",
        default=512,
        min=1,
        help="Most request groups in a query for candidates.",
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
        help="Threads of the WSGI server in each process; requests that wait never occupy all of "
        "them. The numbers of `treeclaim serve`, uWSGI and mod_wsgi are known and take precedence.",
    ),
    cfg.FloatOpt(
        "search_seconds",
        default=30.0,
        min=0.0,
        help="Seconds after which a search for candidates fails with 400; 0 for no limit.",
    ),
    cfg.IntOpt(
        "search_megabytes",
        default=128,
        min=1,
        help="Megabytes of memory above which a search for candidates fails with 400.",
    ),
    cfg.FloatOpt(
        "plan_seconds",
        default=30.0,
        min=0.1,
        help="Seconds after which a plan (survival, moves) returns the best result so far.",
    ),
    cfg.FloatOpt(
        "header_seconds",
        default=10.0,
        min=0.1,
        help="Most seconds from the opening of a connection, or the first byte of a request, to the end "
        "of its headers. Only `treeclaim serve` uses this and the options up to max_waiting_requests.",
    ),
    cfg.FloatOpt(
        "body_seconds",
        default=60.0,
        min=0.1,
        help="Most seconds from the headers of a request to the end of its body.",
    ),
    cfg.FloatOpt(
        "answer_seconds",
        default=30.0,
        min=0.1,
        help="Seconds in which a client must read the next 16 KiB of its response, or the remainder.",
    ),
    cfg.FloatOpt(
        "keep_alive_seconds",
        default=75.0,
        min=1.0,
        help="Seconds after which an idle connection is closed.",
    ),
    cfg.IntOpt(
        "max_connections",
        default=4096,
        min=1,
        help="Most connections of a worker; a further one closes the connection that is idle for "
        "longest.",
    ),
    cfg.IntOpt(
        "max_waiting_requests",
        default=1000,
        min=1,
        help="Most requests that wait for a thread of a worker; further ones are rejected with 503.",
    ),
    cfg.IntOpt(
        "max_watchers",
        default=1000,
        min=0,
        help="Most connections of a worker that watch changes, and at most three quarters of all; "
        "further ones are rejected with 503.",
    ),
    cfg.FloatOpt(
        "watch_seconds",
        default=3600.0,
        min=1.0,
        help="Seconds after which a stream of events ends; a new one validates the token again.",
    ),
    cfg.BoolOpt(
        "pages",
        sample_default="true under `treeclaim serve`, false under other servers",
        help="Whether to serve the web pages at /ui/.",
    ),
    cfg.BoolOpt(
        "tracing",
        default=False,
        help="Send OpenTelemetry traces; requires the extra 'tracing'. The OTEL_* environment variables "
        "of OpenTelemetry set their destination.",
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
