# SPDX-License-Identifier: Apache-2.0
"""Listening sockets, the TLS context, and the limit of open files."""

import os
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treeclaim.server.bounds import BACKLOG
from treeclaim.server.settings import ServerSettings


class ListenError(Exception):
    """Listening fails; the message has the address and the reason."""


def listen_at(host: str, port: int, backlog: int | None = None) -> socket.socket:
    """Listen at a host and port; raise ListenError if they cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        # Python appends the address to the message.
        reason = (error.strerror or str(error)).partition(" (while ")[0]
        raise ListenError(f"cannot listen on {host}:{port}: {reason}") from error


def open_listener(settings: ServerSettings) -> socket.socket:
    """Listen at the address of the settings.

    All workers inherit the socket with its queue, so no connection is refused or reset when a worker ends.

    Raises:
        ListenError: if the address cannot be bound.
    """
    if settings.unix_socket is None:
        return listen_at(settings.host, settings.port, BACKLOG)
    try:
        return _listen_at_path(settings.unix_socket, settings.unix_socket_mode)
    except OSError as error:
        raise ListenError(f"cannot listen on {settings.unix_socket}: {error.strerror}") from error


def _listen_at_path(path: str, mode: int | None) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # No client may connect before the mode is set.
    former_umask = os.umask(0o777) if mode is not None else None
    try:
        listener.bind(path)
    finally:
        if former_umask is not None:
            os.umask(former_umask)
    if mode is not None:
        Path(path).chmod(mode)
    listener.listen(BACKLOG)
    return listener


def make_tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Return the TLS context; None without TLS.

    Raises:
        OSError: if a file is unusable; the message names the files.
    """
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Without a password OpenSSL would prompt at the terminal.
    with _naming(f"--tls-certificate {settings.certificate} with --tls-key {settings.key}"):
        context.load_cert_chain(settings.certificate, settings.key, password="")
    if settings.client_authority is not None:
        with _naming(f"--tls-client-ca {settings.client_authority}"):
            context.load_verify_locations(settings.client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def _naming(files: str) -> Iterator[None]:
    """Add file names to the errors of a block, since OpenSSL's messages have none."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{files} cannot be used: {error}") from error


def allow_most_files() -> int:
    """Raise the limit of open files to its maximum, for later children too; return the limit."""
    _soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return hard_limit
