# SPDX-License-Identifier: Apache-2.0
"""What keeps a service from starting: every worker would fail, or it would be open to others."""

import ipaddress
import ssl
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import config
from treeclaim.admin.certificates import CertificateUse, Expiry, expiry_of
from treeclaim.api.app import policy_of, prepare_database, store_of
from treeclaim.api.middleware.authentication import read_password_file
from treeclaim.api.protocol.policy import Policy
from treeclaim.config import Configuration, ConfigurationError
from treeclaim.model.errors import PolicyFileError, SchemaRevisionError, StoreUnavailableError
from treeclaim.server.processes.listening import tls_context
from treeclaim.server.settings import ALLOW_NOAUTH2, ServerSettings
from treeclaim.store.database.connecting.engine import database_words


class UnusableError(Exception):
    """The service cannot run like this; the message says why."""


def configuration_of(settings: ServerSettings) -> Configuration:
    """Read the configuration of the service.

    Raises:
        UnusableError: if an option is missing or impossible.
    """
    try:
        configuration = config.load(config_files=settings.config_files)
    except ConfigurationError as error:
        raise UnusableError(str(error)) from error
    pages = True if configuration.pages is None else configuration.pages
    return replace(configuration, pages=pages, server_threads=settings.threads)


def checked_policy(configuration: Configuration) -> Policy:
    """Read the policy files.

    Raises:
        UnusableError: if one of them cannot be understood; names file and line.
    """
    try:
        return policy_of(configuration.options)
    except PolicyFileError as error:
        raise UnusableError(f"[oslo_policy]/policy_file: {error}") from error


def require_authentication(configuration: Configuration, settings: ServerSettings) -> None:
    """Refuse to believe callers from other machines, unless that is explicitly allowed.

    Raises:
        UnusableError: where `[api]/auth_strategy` is noauth2, and the address is not loopback; or
            tokens cannot be kept as `[keystone_authtoken]` says, or the password file is unusable.
    """
    if configuration.uses_keystone:
        # Here, as what a loader has imported is shared by the workers that it forks.
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


def checked_tls(settings: ServerSettings) -> ssl.SSLContext | None:
    """Read the files of TLS; return its context, None without TLS.

    Raises:
        UnusableError: if certificate and key cannot be used.
    """
    try:
        return tls_context(settings)
    except OSError as error:
        raise UnusableError(str(error)) from error


def expiries_of(configuration: Configuration, settings: ServerSettings) -> Sequence[Expiry]:
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


def require_database(configuration: Configuration) -> None:
    """Wait for the database, and make its schema where an option says so; close it again.

    Raises:
        UnusableError: if there can be none, it cannot be reached, or has another schema.
    """
    try:
        with closing(store_of(configuration)) as store:
            prepare_database(store, configuration)
    except DBAPIError as error:
        raise UnusableError(f"the database: {error.orig}") from error
    except (SQLAlchemyError, ImportError, ValueError) as error:
        words = database_words(error)
        raise UnusableError(f"[placement_database]/connection: {words}") from error
    except SchemaRevisionError as error:
        raise UnusableError(f"the database cannot be used: {error}") from error
    except StoreUnavailableError as error:
        raise UnusableError(f"the database cannot be used: {error.for_operators}") from error
