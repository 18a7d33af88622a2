# SPDX-License-Identifier: Apache-2.0
"""Reads and validates the configuration from `placement.conf` and the environment."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from oslo_config import cfg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from treeclaim.config.options import register
from treeclaim.model.names import normalised_uuid, one_line
from treeclaim.model.request import SearchOptions
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.timeouts import Timeouts

PROJECT = "placement"
"""Name of the configuration file and its folder, the same as for Placement."""

CONFIG_DIR_VARIABLE = "OS_PLACEMENT_CONFIG_DIR"
"""The environment variable that names the folder of the configuration file."""

_LAST_PORT = 65535

_MOST_AGGREGATES = 500
"""Most aggregates with separate sums; with three classes each, as usual, the metrics show all of them."""

_QUOTING = (
    "in a password, @ is written as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25"
)

_MEGABYTE = 1_000_000


_SOURCE = re.compile(r"^Value for option \S+ from LocationInfo\(.*?\) is not valid: ", re.DOTALL)
"""The prefix of oslo.config's messages, which does not help operators."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address on which a server listens: a host (IPv6 without brackets), and a port from 0 (any) to 65535."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections for `treeclaim serve`, in each worker.

    Attributes:
        header_seconds: From the opening of a connection, or the first byte of a request, to the end of the headers.
        body_seconds: From the end of the headers to the end of the body.
        answer_seconds: Interval in which a client must read a piece of its response.
        keep_alive_seconds: From the end of a response to the next request.
        connections: Most open connections.
        waiting: Most requests that wait for a thread.
        body_bytes: Longest accepted body.
        watchers: Most connections that watch changes; see `most_watchers`.
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
        """Return the number of connections that may watch; a quarter of all is reserved for other requests."""
        return min(self.watchers, self.connections * 3 // 4)


@dataclass(frozen=True, slots=True)
class ResourceMetrics:
    """Additional metrics of resources: sums of `aggregates` (UUIDs), and how many of each query in the file `flavors` fit."""

    aggregates: tuple[str, ...]
    flavors: str | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a service.

    Attributes:
        options: All options by group.
        admin: The address of liveness, readiness and metrics; None without an admin listener.
        metrics: None without metrics of resources.
        server_threads: Most concurrent requests of a process.
        pages: Whether to serve the pages at /ui/; None for the default of the server.
    """

    options: cfg.ConfigOpts
    database: DatabaseSettings
    search: SearchOptions
    admin: Address | None
    metrics: ResourceMetrics | None
    connections: ConnectionLimits
    server_threads: int
    pages: bool | None

    @property
    def claim_attempts(self) -> int:
        """Return the number of attempts of a claim that conflicts."""
        return max(int(self.options.placement.allocation_conflict_retry_count), 1)

    @property
    def uses_keystone(self) -> bool:
        """Return whether callers are authenticated by Keystone."""
        return bool(self.options.api.auth_strategy == "keystone")


class ConfigurationError(Exception):
    """An option is missing or has an invalid value; the message names it.

    Attributes:
        lines: The lines of the message, one for each fault.
    """

    def __init__(self, *lines: str) -> None:
        # The messages quote values of options, which may contain line breaks.
        self.lines = tuple(map(one_line, lines))
        super().__init__("\n".join(self.lines))


def load(
    *,
    config_files: Sequence[str] = (),
    config_dirs: Sequence[str] = (),
) -> Configuration:
    """Read the configuration from files and directories.

    The default file is `placement.conf` in the directory OS_PLACEMENT_CONFIG_DIR, else in the usual places of
    oslo.config.

    Raises:
        ConfigurationError: if a file is unreadable, or an option is missing or invalid.
    """
    options = cfg.ConfigOpts()
    register(options)
    message = StringIO()
    try:
        with redirect_stderr(message):
            options(
                [part for directory in config_dirs for part in ("--config-dir", directory)],
                project=PROJECT,
                default_config_files=_files(config_files),
            )
        return _configuration(options)
    except SystemExit:
        # oslo.config prints faults of options that exist on its command line too, such as use_journal.
        text = re.sub(r"argument --(\w+)", r"[DEFAULT]/\1", message.getvalue())
        raise ConfigurationError(*text.splitlines()) from None
    except (cfg.Error, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _files(config_files: Sequence[str]) -> list[str] | None:
    """Return the files to read; None for the usual places of oslo.config."""
    if config_files:
        return list(config_files)
    directory = os.environ.get(CONFIG_DIR_VARIABLE)
    if not directory:
        return None
    path = Path(directory) / f"{PROJECT}.conf"
    return [str(path)] if path.exists() else []


def _configuration(options: cfg.ConfigOpts) -> Configuration:
    require_valid_values(options)
    placement, treeclaim = options.placement, options.treeclaim
    maximum = placement.max_allocation_candidates
    return Configuration(
        options=options,
        database=_database(options),
        search=SearchOptions(
            maximum=None if maximum < 0 else maximum,
            breadth_first=(placement.allocation_candidates_generation_strategy == "breadth-first"),
            randomize=placement.randomize_allocation_candidates,
            seconds=treeclaim.search_seconds or None,
            most_bytes=treeclaim.search_megabytes * _MEGABYTE,
        ),
        admin=_address("[treeclaim]/admin_listen", treeclaim.admin_listen),
        metrics=_metrics(options),
        connections=ConnectionLimits(
            header_seconds=treeclaim.header_seconds,
            body_seconds=treeclaim.body_seconds,
            answer_seconds=treeclaim.answer_seconds,
            keep_alive_seconds=treeclaim.keep_alive_seconds,
            connections=treeclaim.max_connections,
            waiting=treeclaim.max_waiting_requests,
            body_bytes=treeclaim.max_body_bytes,
            watchers=treeclaim.max_watchers,
        ),
        server_threads=treeclaim.server_threads,
        pages=treeclaim.pages,
    )


def _metrics(options: cfg.ConfigOpts) -> ResourceMetrics | None:
    section = options.treeclaim
    aggregate_names = section.metrics_of_aggregates
    if len(aggregate_names) > _MOST_AGGREGATES:
        raise ValueError(
            f"[treeclaim]/metrics_of_aggregates: {len(aggregate_names)} are more than {_MOST_AGGREGATES}"
        )
    aggregates = tuple(_uuid(name) for name in aggregate_names)
    if section.metrics_of_resources == "none":
        return None
    return ResourceMetrics(aggregates, section.metrics_of_flavors or None)


def _uuid(name: str) -> str:
    uuid = normalised_uuid(name)
    if uuid is None:
        raise ValueError(f"[treeclaim]/metrics_of_aggregates: {name!r} is not a uuid")
    return uuid


def _address(name: str, text: str) -> Address | None:
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > _LAST_PORT:
        raise ConfigurationError(f"{name}: {text!r} is not an address and a port, 127.0.0.1:8779")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def require_valid_values(options: cfg.ConfigOpts) -> None:
    """Validate every registered option.

    Raises:
        ConfigurationError: with a line for each invalid value.
    """
    faults: list[str] = []

    def read(values: Mapping[str, Any], group: str, name: str) -> Any:
        try:
            return values[name]
        except (cfg.Error, ValueError) as error:
            faults.append(f"[{group}]/{name}: {_SOURCE.sub('', str(error))}")

    for name in options:
        value = read(options, "DEFAULT", name)
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            for option in value:
                read(value, name, option)
    if faults:
        raise ConfigurationError(*faults)


def _database(options: cfg.ConfigOpts) -> DatabaseSettings:
    database = options.placement_database
    if not database.connection:
        raise ConfigurationError(
            "[placement_database]/connection is required: the URL of the database, for example "
            "sqlite:////var/lib/placement/placement.db, in placement.conf or in the variable "
            "OS_PLACEMENT_DATABASE__CONNECTION"
        )
    return DatabaseSettings(
        url=_url(database.connection, database.connection_parameters),
        **{
            field.name: database[field.name]
            for field in fields(DatabaseSettings)
            if field.name not in {"url", "timeouts"}
        },
        timeouts=Timeouts(
            **{
                field.name: options.treeclaim[f"database_{field.name}_timeout"]
                for field in fields(Timeouts)
            }
        ),
    )


def _url(connection: str, parameters: str) -> str:
    try:
        url = make_url(connection)
    except (ArgumentError, ValueError):
        # `from None`, because the cause may quote a part of the password.
        raise ConfigurationError(
            f"[placement_database]/connection is not the URL of a database; {_QUOTING}"
        ) from None
    is_file = url.get_backend_name() == "sqlite"
    if not is_file and "@" in f"{url.host}{url.database}":
        # The lookup of such a host would log a part of the password.
        raise ConfigurationError(
            f"[placement_database]/connection has more than one @ before its host; {_QUOTING}"
        )
    url_parameters = dict(parse_qsl(parameters))
    return url.update_query_dict(url_parameters).render_as_string(hide_password=False)
