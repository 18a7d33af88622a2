# SPDX-License-Identifier: Apache-2.0
"""Listening sockets, TLS, and how many files a process may open."""

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
    """Cannot listen at an address; the message names it, and says why."""


def tcp_socket(host: str, port: int, backlog: int | None = None) -> socket.socket:
    """Listen at a host and port.

    Raises:
        ListenError: if the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        # Python adds the address once more.
        reason = (error.strerror or str(error)).partition(" (while ")[0]
        raise ListenError(f"cannot listen on {host}:{port}: {reason}") from error


def admin_socket(host: str, port: int) -> socket.socket:
    """Listen at the address of the admin listener.

    Raises:
        ListenError: if it cannot be had.
    """
    try:
        return tcp_socket(host, port)
    except ListenError as error:
        raise ListenError(
            f"[treeclaim]/admin_listen: {error}; without another address, or none, there are no "
            "probes and no metrics"
        ) from error


def listening_socket(settings: ServerSettings) -> socket.socket:
    """Listen where the settings say; workers inherit the socket.

    One socket for all workers, which the first process keeps, has one queue: no connection is
    refused or reset when a worker goes.

    Raises:
        ListenError: if the address cannot be had.
    """
    if settings.unix_socket is None:
        return tcp_socket(settings.host, settings.port, BACKLOG)
    try:
        return _unix_socket(settings.unix_socket, settings.unix_socket_mode)
    except OSError as error:
        raise ListenError(f"cannot listen on {settings.unix_socket}: {error.strerror}") from error


def _unix_socket(path: str, mode: int | None) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # If a mode is given, no client may connect before it is set.
    before = os.umask(0o777) if mode is not None else None
    try:
        listener.bind(path)
    finally:
        if before is not None:
            os.umask(before)
    if mode is not None:
        Path(path).chmod(mode)
    listener.listen(BACKLOG)
    return listener


def tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Return the TLS context, None without TLS.

    Raises:
        OSError: if a file cannot be read, or has something else in it; the message names it.
    """
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # An empty password keeps OpenSSL from asking at the terminal.
    with _naming(f"--tls-certificate {settings.certificate} with --tls-key {settings.key}"):
        context.load_cert_chain(settings.certificate, settings.key, password="")
    if settings.client_authority is not None:
        with _naming(f"--tls-client-ca {settings.client_authority}"):
            context.load_verify_locations(settings.client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def _naming(files: str) -> Iterator[None]:
    """Name files in the errors of a block: those of OpenSSL name none."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{files} cannot be used: {error}") from error


def allow_most_files() -> int:
    """Raise the number of files that this process and its children may open; return it."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
