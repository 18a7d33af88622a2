# SPDX-License-Identifier: Apache-2.0
"""The WSGI application for any WSGI server: `treeclaim.wsgi:application`.

The usual files and environment variables configure it. The service starts with the first request; if a server
imports the module before forking, each worker starts its own.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from treeclaim import __version__, allocator, config, gate, log_queue, logs
from treeclaim.api.app import create_application, start_services
from treeclaim.api.middleware.layers import Draining
from treeclaim.config import Configuration
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import Store

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOG = logging.getLogger(__name__)

_THREAD_COUNTS: Mapping[str, Callable[[Any], Any]] = {
    "uwsgi": lambda module: module.opt["threads"],
    "mod_wsgi": lambda module: module.threads_per_process,
}
"""Functions that read the number of threads, by module of the WSGI server."""

_FEWEST_THREADS = 3
"""Threads that a process needs: one for a write that waits in the database, one for reads, and one for requests
without the database."""


def start() -> "WSGIApplication":
    """Start the service, configured by files and environment; return its WSGI application.

    Raises:
        ConfigurationError: if an option is missing or invalid.
        SchemaRevisionError: if the schema of the database has an unknown revision.
        StoreUnavailableError: if the database cannot be reached.
    """
    configuration = config.load()
    threads = _read_server_threads() or configuration.server_threads
    configuration = replace(configuration, server_threads=threads)
    logs.set_up_logging(configuration.options, config.PROJECT)
    log_queue.start_log_thread()
    logs.log_options(configuration.options)
    allocator.cache_large_blocks()
    allocator.collect_garbage_rarely()
    gate.shorten_switch_interval()
    services = start_services(configuration)
    begin, providers = perf_counter(), None
    # If the database does not answer now, the first request loads the Forest.
    with suppress(StoreUnavailableError), services.replica.borrow_forest() as forest:
        providers = len(forest)
    seconds = perf_counter() - begin
    processes = f"of another server, {threads} threads each"
    log_start(configuration, services.store, processes, providers, seconds)
    application = create_application(services, configuration)
    return Draining(application, configuration.connections.body_bytes)


def log_start(
    configuration: Configuration,
    store: Store,
    processes: str,
    providers: int | None,
    seconds: float,
) -> None:
    """Log the start of the service, and warn of too few threads (docs/operate.md, "Admission").

    `processes` are the numbers of workers and threads as text; `providers` is the number of loaded providers, or None
    if the database did not answer.
    """
    loaded = "providers not loaded: the database does not answer"
    if providers is not None:
        loaded = f"{providers} providers loaded in {seconds:.2f} s"
    _LOG.info(
        "Treeclaim %s on %s, authentication %s, workers %s, %s",
        __version__,
        store.engine.dialect.name,
        configuration.options.api.auth_strategy,
        processes,
        loaded,
    )
    threads = configuration.server_threads
    if threads < _FEWEST_THREADS:
        _LOG.warning(
            "This process runs requests in %s thread%s: reads are refused while a write waits for "
            "the database. Use %s threads or more",
            threads,
            "" if threads == 1 else "s",
            _FEWEST_THREADS,
        )


def _read_server_threads() -> int | None:
    """Return the number of threads of the WSGI server in this process; None if it is unknown, as for gunicorn."""
    # The modules exist only in processes of their servers.
    for module, read_thread_count in _THREAD_COUNTS.items():
        try:
            return int(read_thread_count(import_module(module)))
        except (ImportError, AttributeError, KeyError, TypeError, ValueError):
            # Another server, or a server without threads.
            continue
    return None


class _LazyApplication:
    """Starts the service at the first call, so that an import of the module needs no configuration."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._application: WSGIApplication | None = None

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        with self._lock:
            if self._application is None:
                self._application = start()
        return self._application(environment, start_response)


application = _LazyApplication()
