# SPDX-License-Identifier: Apache-2.0
"""The WSGI application for any WSGI server: `treeclaim.wsgi:application`.

It is configured by the usual files and environment variables. The service starts with the first
request or, where a server imports the module before forking, in each worker by itself.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from treeclaim import __version__, allocator, config, gate, log_queue, logs
from treeclaim.api.app import application_of, start_services
from treeclaim.api.middleware.layers import Draining
from treeclaim.api.protocol.operations.call import Services
from treeclaim.config import Configuration
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import Store

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOG = logging.getLogger(__name__)

_TELLS_THREADS: Mapping[str, Callable[[Any], Any]] = {
    "uwsgi": lambda module: module.opt["threads"],
    "mod_wsgi": lambda module: module.threads_per_process,
}
"""Modules of WSGI servers that report the number of threads."""

FEWEST_THREADS = 3
"""Threads that a process needs so that one write that hangs in the database leaves one for reads and
one for what needs no database."""


def start() -> "WSGIApplication":
    """Start the service, configured by files and environment; return its WSGI application.

    Raises:
        ConfigurationError: if an option is missing or impossible.
        SchemaRevisionError: if the database's schema is not the one understood.
        StoreUnavailableError: if the database cannot be reached.
    """
    configuration = config.load()
    logs.set_up_logging(configuration.options, config.PROJECT)
    log_queue.start_log_thread()
    logs.log_options(configuration.options)
    allocator.keep_large_blocks()
    allocator.collect_rarely()
    gate.hand_over_soon()
    services = start_services(configuration)
    tell_start(configuration, services.store, "of another server", _load_forest(services))
    warn_of_threads(configuration.server_threads, _threads_of_server())
    application = application_of(services, configuration)
    return Draining(application, configuration.connections.body_bytes)


def tell_start(configuration: Configuration, store: Store, processes: str, loaded: str) -> None:
    """Log what was started.

    Args:
        configuration: What the operator configured.
        store: The database.
        processes: How many workers and threads there are.
        loaded: What was loaded.
    """
    _LOG.info(
        "Treeclaim %s on %s, authentication %s, workers %s, %s",
        __version__,
        store.engine.dialect.name,
        configuration.options.api.auth_strategy,
        processes,
        loaded,
    )


def _threads_of_server() -> int | None:
    """Return how many threads the WSGI server runs in this process; None if unknown.

    uWSGI and mod_wsgi tell by modules that exist only inside of them. gunicorn does not tell.
    """
    for module, read in _TELLS_THREADS.items():
        try:
            return int(read(import_module(module)))
        except (ImportError, AttributeError, KeyError, TypeError, ValueError):
            # Another server, or one without threads.
            continue
    return None


def warn_of_threads(configured: int, actual: int | None) -> None:
    """Warn if the threads cannot be divided as docs/operate.md, "Admission", says."""
    if actual is not None and actual != configured:
        _LOG.warning(
            "[treeclaim]/server_threads is %s, but the server runs %s threads: set it to %s",
            configured,
            actual,
            actual,
        )
    threads = configured if actual is None else actual
    if threads < FEWEST_THREADS:
        _LOG.warning(
            "This process runs requests in %s thread%s: reads are refused while a write waits for "
            "the database. Use %s threads or more",
            threads,
            "" if threads == 1 else "s",
            FEWEST_THREADS,
        )


def _load_forest(services: Services) -> str:
    """Load the Forest before clients come; return a summary of it."""
    begin = perf_counter()
    try:
        with services.replica.current() as forest:
            return loaded_words(len(forest), perf_counter() - begin)
    except StoreUnavailableError:
        # It comes with the first request that finds the database.
        return NOTHING_LOADED


NOTHING_LOADED = "providers not loaded: the database does not answer"


def loaded_words(providers: int, seconds: float) -> str:
    """Say how many providers were loaded in which time."""
    return f"{providers} providers loaded in {seconds:.2f} s"


class _Lazy:
    """Starts the service at the first call, so that importing the module needs nothing."""

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


application = _Lazy()
