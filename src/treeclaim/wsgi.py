# SPDX-License-Identifier: Apache-2.0
"""The WSGI application for any WSGI server: `treeclaim.wsgi:application`.

It is configured by the usual files and environment variables. The service starts with the first
request or, where a server imports the module before forking, in each worker by itself.
"""

import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from treeclaim import __version__, allocator, config, logs
from treeclaim.api.app import application_of, start_services
from treeclaim.api.middleware.draining import Draining
from treeclaim.api.protocol.operations.services import Services
from treeclaim.config import Configuration
from treeclaim.model.errors import StoreUnavailableError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOG = logging.getLogger(__name__)

CONFIG_FILES_VARIABLE = "TREECLAIM_CONFIG_FILES"
"""Names configuration files to the workers of `treeclaim serve`."""


@dataclass(frozen=True, slots=True)
class Started:
    """The service in this process.

    Attributes:
        application: What a WSGI server calls.
        configuration: What it was started with.
    """

    application: "WSGIApplication"
    configuration: Configuration


def start(processes: str = "of another server", *, pages: bool = False) -> Started:
    """Start the service now, configured by files and environment, and write a line about it.

    Args:
        processes: How many workers and threads there are, for the line.
        pages: Whether the pages are served where no option says so.

    Raises:
        ConfigurationError: if an option is missing or impossible.
        SchemaRevisionError: if the database's schema is not the one understood.
        StoreUnavailableError: if the database cannot be reached.
    """
    files = os.environ.get(CONFIG_FILES_VARIABLE, "")
    configuration = config.load(config_files=[one for one in files.split(os.pathsep) if one])
    if configuration.pages is None:
        configuration = replace(configuration, pages=pages)
    logs.set_up(configuration)
    allocator.keep_large_blocks()
    services = start_services(configuration)
    _LOG.info(
        "Treeclaim %s on %s, authentication %s, workers %s, %s",
        __version__,
        services.store.engine.dialect.name,
        configuration.auth_strategy,
        processes,
        _loaded(services),
    )
    return Started(application_of(services, configuration), configuration)


def _loaded(services: Services) -> str:
    """Load the Forest, so that no client waits for that; say what was loaded."""
    begin = perf_counter()
    try:
        with services.replica.current() as forest:
            providers = len(forest)
    except StoreUnavailableError:
        # It comes with the first request that finds the database.
        return "providers not loaded: the database does not answer"
    return f"{providers} providers loaded in {perf_counter() - begin:.2f} s"


class _Lazy:
    """Starts the service when it is first called, so that importing the module needs nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._application: WSGIApplication | None = None

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        with self._lock:
            if self._application is None:
                started = start()
                self._application = Draining(
                    started.application, started.configuration.max_body_bytes
                )
        return self._application(environment, start_response)


application = _Lazy()
