# SPDX-License-Identifier: Apache-2.0
"""Every option, with the names that operators of the Placement service know (page 05, section 3).

Options come from `placement.conf` and from the environment (`OS_<GROUP>__<OPTION>`). Sections and
options that nobody knows are ignored, so a file written for Placement works as it is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from oslo_config import cfg
from oslo_log import _options as log_options
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi
from oslo_policy import opts as policy_opts
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from treeclaim.model.request import SearchOptions
from treeclaim.store import DatabaseSettings

PROJECT = "placement"
CONFIG_DIR_VARIABLE = "OS_PLACEMENT_CONFIG_DIR"
_LAST_PORT = 65535
_NOBODY = "00000000-0000-0000-0000-000000000000"

_DEFAULT = (
    cfg.StrOpt("tempdir", help="Explicitly specify the temporary working directory."),
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).parent),
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
        choices=("keystone", "noauth2"),
        deprecated_group="DEFAULT",
        help="How callers are authenticated; noauth2 is for tests and standalone use.",
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
        help="How often a claim that met others is tried again.",
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
        help="Accepted and ignored: candidates are always pruned early.",
    ),
)
_DATABASE = (
    cfg.StrOpt("connection", secret=True, help="URL of the database. Required."),
    cfg.StrOpt("connection_parameters", default="", help="More parameters of the URL."),
    cfg.BoolOpt("sqlite_synchronous", default=True, help="Make commits durable on SQLite."),
    cfg.StrOpt("slave_connection", secret=True, help="Accepted; reads go to the connection."),
    cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="SQL mode of MySQL sessions."),
    cfg.IntOpt(
        "connection_recycle_time",
        default=3600,
        help="Seconds after which a connection is replaced.",
    ),
    cfg.IntOpt("max_pool_size", help="Most connections kept open."),
    cfg.IntOpt("max_retries", default=10, help="Connection attempts at start; -1 is endless."),
    cfg.IntOpt("retry_interval", default=10, help="Seconds between connection attempts."),
    cfg.IntOpt("max_overflow", help="Most connections beyond max_pool_size."),
    cfg.IntOpt("connection_debug", default=0, help="Log SQL statements where above 0."),
    cfg.BoolOpt("connection_trace", default=False, help="Accepted and ignored."),
    cfg.IntOpt("pool_timeout", help="Seconds to wait for a connection."),
    cfg.BoolOpt("sync_on_startup", default=False, help="Bring the schema up to date at start."),
)
_TREECLAIM = (
    cfg.StrOpt(
        "admin_listen",
        default="127.0.0.1:8779",
        help="Address and port for liveness, readiness and metrics; empty for none. Nobody is "
        "asked for a token there, so it should not be reachable for everybody.",
    ),
    cfg.StrOpt(
        "metrics_of_resources",
        default="none",
        choices=("none", "cloud", "aggregates"),
        help="Whether the metrics have capacity and usage by resource class: of the whole cloud, "
        "and of each aggregate too. Each scrape sums up all inventories and claims then.",
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
    cfg.FloatOpt(
        "search_seconds",
        default=30.0,
        min=0.0,
        help="Seconds after which a search for candidates is given up, with 400; 0 for never.",
    ),
    cfg.BoolOpt(
        "tracing",
        default=False,
        help="Send OpenTelemetry traces; needs the extra 'tracing'. Where they go is said by the "
        "OTEL_* environment variables of OpenTelemetry.",
    ),
)
_GROUPS: Mapping[str | None, Sequence[cfg.Opt]] = {
    None: _DEFAULT,
    "api": _API,
    "placement": _PLACEMENT,
    "workarounds": _WORKAROUNDS,
    "placement_database": _DATABASE,
    "treeclaim": _TREECLAIM,
    "oslo_middleware": tuple(http_proxy_to_wsgi.OPTS),
}

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


class ConfigurationError(Exception):
    """An option is missing or has a value that it cannot have; the message names it."""


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
        claim_attempts: How often a claim is tried in all.
        incomplete_project_id, incomplete_user_id: Owners of claims made below 1.8.
        cors_enabled: Whether cross-origin requests are answered.
        proxy_headers: Whether headers of a proxy in front are honoured.
        admin: Where liveness, readiness and metrics are served; None for nowhere.
        metrics_of_resources: `none`, `cloud` or `aggregates`.
        max_body_bytes, max_request_groups: Limits of a request.
        tracing: Whether traces are sent.
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
    metrics_of_resources: str
    max_body_bytes: int
    max_request_groups: int
    tracing: bool


@dataclass(frozen=True, slots=True)
class EffectiveOption:
    """The value that an option has.

    Attributes:
        name: `[group]/option`.
        value: Secrets are not shown.
        source: A file, the environment, or "default".
        is_default: Whether nobody set it.
    """

    name: str
    value: str
    source: str
    is_default: bool


def list_options() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return all options by group, for the option generator."""
    return [(group, list(options)) for group, options in _GROUPS.items()]


def load(
    *,
    config_files: Sequence[str] = (),
    config_dirs: Sequence[str] = (),
) -> Configuration:
    """Read the configuration.

    Args:
        config_files: Files named by the caller. Without any, the directory in
            OS_PLACEMENT_CONFIG_DIR counts, else the usual places.
        config_dirs: Directories with more files.

    Raises:
        ConfigurationError: if something is missing, unreadable or impossible.
    """
    options = cfg.ConfigOpts()
    _register(options)
    try:
        options(
            _arguments(config_dirs),
            project=PROJECT,
            default_config_files=_files(config_files),
        )
        return _configuration(options)
    except (cfg.Error, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _register(options: cfg.ConfigOpts) -> None:
    for group, some in _GROUPS.items():
        options.register_opts(some, group=group)
    log.register_options(options)
    policy_opts._register(options)  # noqa: SLF001
    cors.set_defaults(
        allow_headers=_CORS_HEADERS,
        expose_headers=_CORS_EXPOSED,
        allow_methods=_CORS_METHODS,
    )
    options.register_opts(cors.CORS_OPTS, group="cors")


def _arguments(config_dirs: Sequence[str]) -> list[str]:
    return [part for directory in config_dirs for part in ("--config-dir", directory)]


def _files(config_files: Sequence[str]) -> list[str] | None:
    """Return the files to read, None for the usual places of oslo.config."""
    if config_files:
        return list(config_files)
    directory = os.environ.get(CONFIG_DIR_VARIABLE)
    if not directory:
        return None
    path = Path(directory) / f"{PROJECT}.conf"
    return [str(path)] if path.exists() else []


def _configuration(options: cfg.ConfigOpts) -> Configuration:
    _check_all(options)
    placement, database = options.placement, options.placement_database
    maximum = placement.max_allocation_candidates
    return Configuration(
        options=options,
        database=_database(options),
        max_retries=database.max_retries,
        retry_interval=database.retry_interval,
        sync_on_startup=database.sync_on_startup,
        auth_strategy=options.api.auth_strategy,
        search=SearchOptions(
            maximum=None if maximum < 0 else maximum,
            breadth_first=(placement.allocation_candidates_generation_strategy == "breadth-first"),
            randomize=placement.randomize_allocation_candidates,
            seconds=options.treeclaim.search_seconds or None,
        ),
        claim_attempts=max(placement.allocation_conflict_retry_count, 1),
        incomplete_project_id=placement.incomplete_consumer_project_id,
        incomplete_user_id=placement.incomplete_consumer_user_id,
        cors_enabled=bool(options.cors.allowed_origin),
        proxy_headers=options.oslo_middleware.enable_proxy_headers_parsing,
        admin=_address("[treeclaim]/admin_listen", options.treeclaim.admin_listen),
        metrics_of_resources=options.treeclaim.metrics_of_resources,
        max_body_bytes=options.treeclaim.max_body_bytes,
        max_request_groups=options.treeclaim.max_request_groups,
        tracing=options.treeclaim.tracing,
    )


def _address(name: str, text: str) -> Address | None:
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > _LAST_PORT:
        raise ConfigurationError(f"{name}: {text!r} is not an address and a port, 127.0.0.1:8779")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


OptionGroups = Sequence[tuple[str | None, Sequence[cfg.Opt]]]


def effective_options(options: cfg.ConfigOpts, more: OptionGroups) -> list[EffectiveOption]:
    """Return what is configured, by name.

    Args:
        options: Of the service.
        more: Options by group of libraries that read their own when they are first used.
    """
    for group, some in more:
        options.register_opts(some, group=group)
    libraries = [*log_options.list_opts(), *policy_opts.list_opts(), ("cors", cors.CORS_OPTS)]
    found = []
    for group, some in [*list_options(), *libraries, *more]:
        where = options if group is None else options[group]
        # A library lists some options that it registers only where it needs them.
        registered = [option for option in some if option.dest in where]
        found += [_effective(options, group, one, where[one.dest]) for one in registered]
    return sorted(found, key=lambda one: one.name)


def _effective(
    options: cfg.ConfigOpts, group: str | None, option: cfg.Opt, value: object
) -> EffectiveOption:
    location = options.get_location(option.dest, group)
    name = f"[{group or 'DEFAULT'}]/{option.dest}"
    shown = "****" if option.secret and value else str(value)
    if location is None or not location.location.is_user_controlled:
        return EffectiveOption(name, shown, "default", is_default=True)
    source = location.detail or location.location.name
    return EffectiveOption(name, shown, source, is_default=False)


def _check_all(options: cfg.ConfigOpts) -> None:
    """Read every option once, so that a wrong value is found at start and named."""
    for group, some in _GROUPS.items():
        for option in some:
            where = options if group is None else options[group]
            try:
                where[option.dest]
            except (cfg.Error, ValueError) as error:
                name = f"[{group or 'DEFAULT'}]/{option.name}"
                raise ConfigurationError(f"{name}: {error}") from error


def _database(options: cfg.ConfigOpts) -> DatabaseSettings:
    database = options.placement_database
    if not database.connection:
        raise ConfigurationError(
            "[placement_database]/connection is required: the URL of the database, for example "
            "sqlite:////var/lib/placement/placement.db"
        )
    return DatabaseSettings(
        url=_url(database.connection, database.connection_parameters),
        sqlite_synchronous=database.sqlite_synchronous,
        connection_recycle_time=database.connection_recycle_time,
        max_pool_size=database.max_pool_size,
        max_overflow=database.max_overflow,
        pool_timeout=database.pool_timeout,
        mysql_sql_mode=database.mysql_sql_mode,
        connection_debug=database.connection_debug,
    )


def _url(connection: str, parameters: str) -> str:
    try:
        url = make_url(connection)
    except ArgumentError as error:
        raise ConfigurationError(
            "[placement_database]/connection is not the URL of a database"
        ) from error
    more = dict(parse_qsl(parameters))
    return url.update_query_dict(more).render_as_string(hide_password=False)
