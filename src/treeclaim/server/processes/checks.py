# SPDX-License-Identifier: Apache-2.0
"""The state that is prepared before a fork, and the faults that keep a service from starting."""

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
from treeclaim.admin.capacity import FlavorFileError, flavors_in
from treeclaim.admin.certificates import CertificateUse, Expiry, expiry_of
from treeclaim.api.app import prepare_database, store_of
from treeclaim.api.middleware.authentication import read_password_file
from treeclaim.api.policy_rules import list_rules
from treeclaim.api.protocol.policy import Policy
from treeclaim.config import Configuration, ConfigurationError
from treeclaim.model.errors import PolicyFileError, SchemaRevisionError, StoreUnavailableError
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import FollowedForest
from treeclaim.replica.following import Follower
from treeclaim.server.processes.listening import tls_context
from treeclaim.server.settings import ALLOW_NOAUTH2, ServerSettings
from treeclaim.store.database.engine import describe_engine_error

_LOG = logging.getLogger(__name__)


class UnusableError(Exception):
    """The service cannot run like this; the message says why."""


@dataclass(frozen=True, slots=True)
class PreforkState:
    """State prepared before the fork; safe to share between processes.

    Attributes:
        settings: The command line.
        configuration: The options of the operator.
        policy: Rules for the operations of the API.
        tls: The TLS context with the certificate of the start, so that no worker reads files that are being
            renewed; None without TLS.
        expiries: Expiry of the certificates in use.
        master: Process id of the master.
        picture: The inventory; None if it is not loaded.
    """

    settings: ServerSettings
    configuration: Configuration
    policy: Policy
    tls: ssl.SSLContext | None
    expiries: Sequence[Expiry]
    master: int
    picture: FollowedForest | None = None

    def where(self) -> str:
        """Return where the service listens, for people."""
        address = self.configuration.admin
        if not self.settings.workers and address is not None:
            return f"http://{address.host}:{address.port}"
        return self.settings.where()


def check_service(settings: ServerSettings) -> PreforkState:
    """Read the configuration, begin to log, and check whether the service can run.

    Raises:
        UnusableError: if it cannot.
    """
    configuration = _load_configuration(settings)
    try:
        logs.set_up_logging(configuration.options, config.PROJECT)
    except logs.LoggingError as error:
        raise UnusableError(str(error)) from error
    policy = _load_policy(configuration)
    if settings.workers:
        _require_authentication(configuration, settings)
    elif configuration.admin is None:
        raise UnusableError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    _require_database_url(configuration)
    try:
        tls = tls_context(settings)
    except OSError as error:
        raise UnusableError(str(error)) from error
    logs.log_options(configuration.options)
    expiries = _read_expiries(configuration, settings)
    return PreforkState(settings, configuration, policy, tls, expiries, os.getppid())


def check_flavors(configuration: Configuration) -> None:
    """Require that the file of flavors can be read, as a reload must not lose the metrics of the former one.

    Raises:
        UnusableError: if it is broken.
    """
    try:
        read_flavors(configuration)
    except FlavorFileError as error:
        raise UnusableError(f"[treeclaim]/metrics_of_flavors: {error}") from error


def read_flavors(configuration: Configuration) -> Mapping[str, CandidateRequest]:
    """Return the flavors that the operator wants to be counted.

    Raises:
        FlavorFileError: if their file is broken.
    """
    metrics_settings = configuration.metrics
    if metrics_settings is None or metrics_settings.flavors is None:
        return {}
    return flavors_in(metrics_settings.flavors, configuration.options.treeclaim.max_request_groups)


def load_inventory(state: PreforkState) -> FollowedForest | None:
    """Load the inventory, and log a line about the start; return None if the database does not answer."""
    configuration, settings = state.configuration, state.settings
    begin = perf_counter()
    picture = None
    with closing(store_of(configuration)) as store:
        try:
            follower = Follower(store, is_worker=False)
            follower.catch_up(monotonic())
            picture = follower.picture()
            seconds = perf_counter() - begin
            metrics.FOREST_LOAD_SECONDS.observe(seconds)
            words = wsgi.loaded_words(len(picture.forest), seconds)
        except StoreUnavailableError:
            words = wsgi.NOTHING_LOADED
    processes = f"{settings.workers} x {settings.threads} threads"
    wsgi.tell_start(configuration, store, processes, words)
    wsgi.warn_of_threads(configuration.server_threads, None)
    return picture


def _load_configuration(settings: ServerSettings) -> Configuration:
    try:
        configuration = config.load(
            config_files=settings.config_files, config_dirs=settings.config_dirs
        )
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    pages = True if configuration.pages is None else configuration.pages
    return replace(configuration, pages=pages, server_threads=settings.threads)


def _load_policy(configuration: Configuration) -> Policy:
    try:
        return Policy(configuration.options, list_rules())
    except PolicyFileError as error:
        raise UnusableError(f"[oslo_policy]/policy_file: {error}") from error


def _require_authentication(configuration: Configuration, settings: ServerSettings) -> None:
    """Refuse to believe callers from other machines, unless that is explicitly allowed."""
    if configuration.uses_keystone:
        # Imported before the fork, so that workers share it.
        from treeclaim.api.middleware import tokens  # noqa: PLC0415

        fault = tokens.fault_of(configuration.options)
        if fault is not None:
            raise UnusableError(f"[keystone_authtoken]: {fault}")
    options = configuration.options.api
    if options.auth_strategy == "http_basic":
        try:
            read_password_file(options.http_basic_auth_user_file)
        except ConfigurationError as error:
            raise UnusableError(str(error)) from error
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
    """Return when the certificates expire that the service shows, and those that it trusts."""
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
    expiries = (expiry_of(use, path) for use, path in files)
    return [expiry for expiry in expiries if expiry is not None]


def log_expiries(expiries: Sequence[Expiry]) -> None:
    """Log which certificates have expired or soon will."""
    for expiry in expiries:
        if (words := expiry.words(time())) is not None:
            text = words[0].upper() + words[1:]
            _LOG.warning("%s (%s): renew it, and send SIGHUP", text, expiry.path)


def require_database(configuration: Configuration) -> None:
    """Wait for the database, and make its schema where an option says so; close it again.

    Raises:
        UnusableError: if there can be none, it cannot be reached, or has another schema.
    """
    with _database_faults_in_words(), closing(store_of(configuration)) as store:
        prepare_database(store, configuration)


def _require_database_url(configuration: Configuration) -> None:
    """Require the URL of a database of a supported kind; connect to nothing.

    Raises:
        UnusableError: if it is not.
    """
    with _database_faults_in_words():
        store_of(configuration).close()


@contextmanager
def _database_faults_in_words() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise UnusableError(f"the database: {error.orig}") from error
    except (SQLAlchemyError, ImportError, ValueError) as error:
        words = describe_engine_error(error)
        raise UnusableError(f"[placement_database]/connection: {words}") from error
    except SchemaRevisionError as error:
        raise UnusableError(f"the database cannot be used: {error}") from error
    except StoreUnavailableError as error:
        raise UnusableError(f"the database cannot be used: {error.for_operators}") from error
