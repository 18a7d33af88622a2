# SPDX-License-Identifier: Apache-2.0
"""Prepares the state before the fork, and checks whether the service can run."""

import ipaddress
import logging
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from time import monotonic, perf_counter, time

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import config, logs, metrics, wsgi
from treeclaim.admin.certificates import CertificateUse, Expiry, read_expiry
from treeclaim.api.app import open_store, prepare_database
from treeclaim.api.middleware.authentication import read_password_file
from treeclaim.api.policy_rules import list_rules
from treeclaim.api.protocol.policy import Policy
from treeclaim.api.resources.placing.flavor_file import FlavorFileError, read_flavor_file
from treeclaim.config import Configuration, ConfigurationError
from treeclaim.model.errors import PolicyFileError, SchemaRevisionError, StoreUnavailableError
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import SharedForest
from treeclaim.replica.following import Follower
from treeclaim.server.processes.listening import make_tls_context
from treeclaim.server.settings import ALLOW_NOAUTH2, ServerSettings
from treeclaim.store.database.engine import describe_engine_error

_LOG = logging.getLogger(__name__)


class UnusableError(Exception):
    """The service cannot run; the message is the reason."""


@contextmanager
def _unusable(prefix: str, kind: type[Exception]) -> Iterator[None]:
    """Convert errors of a kind to UnusableError with a prefix."""
    try:
        yield
    except kind as error:
        raise UnusableError(f"{prefix}{error}") from error


@dataclass(frozen=True, slots=True)
class PreforkState:
    """State prepared before the fork; safe to share between processes.

    Attributes:
        tls: None without TLS. It is created before the fork, so that no worker reads files during their renewal.
        master: Process id of the master.
        inventory: None if it is not loaded.
    """

    settings: ServerSettings
    configuration: Configuration
    policy: Policy
    tls: ssl.SSLContext | None
    expiries: Sequence[Expiry]
    master: int
    inventory: SharedForest | None = None

    @property
    def url(self) -> str:
        """The URL of the service for messages."""
        address = self.configuration.admin
        if not self.settings.workers and address is not None:
            return f"http://{address.host}:{address.port}"
        return self.settings.url


def check_service(settings: ServerSettings, *, is_first: bool = True) -> PreforkState:
    """Read the configuration, set up logging, and check whether the service can run.

    Only the first generation, `is_first`, may serve without the metrics of flavors.

    Raises:
        UnusableError: if the service cannot run.
    """
    configuration = _load_configuration(settings)
    with _unusable("", logs.LoggingError):
        logs.set_up_logging(configuration.options, config.PROJECT)
    with _unusable("[oslo_policy]/policy_file: ", PolicyFileError):
        policy = Policy(configuration.options, list_rules())
    if settings.workers:
        _require_authentication(configuration, settings)
    elif configuration.admin is None:
        raise UnusableError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    with _database_faults_as_unusable():
        open_store(configuration).close()
    with _unusable("", OSError):
        tls = make_tls_context(settings)
    if not is_first:
        with _unusable("[treeclaim]/metrics_of_flavors: ", FlavorFileError):
            read_flavors(configuration)
    logs.log_options(configuration.options)
    expiries = _read_expiries(configuration, settings)
    return PreforkState(settings, configuration, policy, tls, expiries, os.getppid())


def read_flavors(configuration: Configuration) -> Mapping[str, CandidateRequest]:
    """Return the queries of the flavors in metrics; raise FlavorFileError if their file is invalid."""
    metrics_settings = configuration.metrics
    if metrics_settings is None or metrics_settings.flavors is None:
        return {}
    most_groups = configuration.options.treeclaim.max_request_groups
    return read_flavor_file(metrics_settings.flavors, most_groups)


def load_inventory(state: PreforkState) -> SharedForest | None:
    """Load the inventory, and log the start; return None if the database is unavailable."""
    configuration, settings = state.configuration, state.settings
    begin = perf_counter()
    inventory = None
    with closing(open_store(configuration)) as store:
        try:
            follower = Follower(store, is_worker=False)
            follower.catch_up(monotonic())
            inventory = follower.share()
        except StoreUnavailableError:
            _LOG.debug("The workers load the inventory later", exc_info=True)
    seconds = perf_counter() - begin
    if inventory is not None:
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
    processes = f"{settings.workers} x {settings.threads} threads"
    providers = None if inventory is None else len(inventory.forest)
    wsgi.log_start(configuration, store, processes, providers, seconds)
    return inventory


def _load_configuration(settings: ServerSettings) -> Configuration:
    with _unusable("", ConfigurationError):
        configuration = config.load(
            config_files=settings.config_files, config_dirs=settings.config_dirs
        )
    pages = True if configuration.pages is None else configuration.pages
    return replace(configuration, pages=pages, server_threads=settings.threads)


def _require_authentication(configuration: Configuration, settings: ServerSettings) -> None:
    """Check the options of authentication; refuse noauth2 for remote callers unless it is allowed."""
    if configuration.uses_keystone:
        # The import before the fork lets workers share the libraries.
        from treeclaim.api.middleware import tokens  # noqa: PLC0415

        fault = tokens.find_option_fault(configuration.options)
        if fault is not None:
            raise UnusableError(f"[keystone_authtoken]: {fault}")
    options = configuration.options.api
    if options.auth_strategy == "http_basic":
        with _unusable("", ConfigurationError):
            read_password_file(options.http_basic_auth_user_file)
    if options.auth_strategy != "noauth2" or settings.allow_noauth2:
        return
    if settings.unix_socket or _is_loopback(settings.host):
        return
    raise UnusableError(
        "[api]/auth_strategy is noauth2, which believes every caller; it listens on addresses of "
        f"this machine alone (127.0.0.1, ::1, localhost), not on {settings.host}. Use keystone, "
        f"or {ALLOW_NOAUTH2} where no one else can reach that address."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_expiries(configuration: Configuration, settings: ServerSettings) -> Sequence[Expiry]:
    files = [
        (CertificateUse.SERVER, settings.certificate),
        (CertificateUse.CLIENT_AUTHORITY, settings.client_authority),
    ]
    if configuration.uses_keystone:
        keystone = configuration.options.keystone_authtoken
        files += [
            (CertificateUse.KEYSTONE_CLIENT, keystone.certfile),
            (CertificateUse.KEYSTONE_AUTHORITY, keystone.cafile),
        ]
    expiries = (read_expiry(use, path) for use, path in files)
    return [expiry for expiry in expiries if expiry is not None]


def log_expiries(expiries: Sequence[Expiry]) -> None:
    """Log a warning for each certificate that has expired or expires soon."""
    for expiry in expiries:
        if (warning := expiry.describe_warning(time())) is not None:
            sentence = warning[0].upper() + warning[1:]
            _LOG.warning("%s (%s): renew it, and send SIGHUP", sentence, expiry.path)


def require_database(configuration: Configuration) -> None:
    """Wait for the database, and create its schema if an option requests that.

    Raises:
        UnusableError: if the URL is invalid, the database cannot be reached, or its schema is of another revision.
    """
    with _database_faults_as_unusable(), closing(open_store(configuration)) as store:
        prepare_database(store, configuration)


@contextmanager
def _database_faults_as_unusable() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise UnusableError(f"the database: {error.orig}") from error
    except (SQLAlchemyError, ImportError, ValueError) as error:
        fault = describe_engine_error(error)
        raise UnusableError(f"[placement_database]/connection: {fault}") from error
    except SchemaRevisionError as error:
        raise UnusableError(f"the database cannot be used: {error}") from error
    except StoreUnavailableError as error:
        raise UnusableError(f"the database cannot be used: {error.for_operators}") from error
