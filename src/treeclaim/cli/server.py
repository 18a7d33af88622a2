# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve`: Granian, with a listening socket that outlives its workers."""

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from granian.constants import Interfaces, SSLProtocols
from granian.net import SocketHolder
from granian.server.mp import MPServer

from treeclaim.cli.output import CommandError

_LOG = logging.getLogger("_granian")
"""The server's own messages; there are none of ours in its first process."""

_BACKLOG = 1024
"""Connections that wait for a worker."""

_GRACE_SECONDS = 60
"""How long a worker that stops may take for requests that it has begun."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the service listens and how its processes live.

    Attributes:
        host: Address to listen on.
        port: Port to listen on.
        unix_socket: Path of a Unix socket to listen on instead.
        unix_socket_mode: Its permissions, None for what the umask leaves.
        workers: Number of processes.
        threads: Requests that a process handles at a time.
        certificate: PEM file with the certificate and its chain; None for no TLS.
        key: PEM file with its key, in PKCS #8.
        client_authority: PEM file with the authority that clients' certificates must be from.
        lifetime: Seconds after which a worker is replaced, None for never.
        memory: MiB of resident memory above which a worker is replaced, None for never.
    """

    host: str
    port: int
    unix_socket: Path | None
    unix_socket_mode: int | None
    workers: int
    threads: int
    certificate: Path | None
    key: Path | None
    client_authority: Path | None
    lifetime: int | None
    memory: int | None


def serve(settings: ServerSettings, check: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP replaces the workers by new ones.

    Args:
        settings: How to listen.
        check: Called before workers are replaced on SIGHUP, which does not happen if it raises
            `CommandError`: new workers could not start, and the old ones do.
    """
    _Server(
        check,
        "treeclaim.wsgi:make_application",
        factory=True,
        interface=Interfaces.WSGI,
        address=settings.host,
        port=settings.port,
        uds=settings.unix_socket,
        uds_permissions=settings.unix_socket_mode,
        workers=settings.workers,
        blocking_threads=settings.threads,
        backlog=_BACKLOG,
        websockets=False,
        ssl_cert=settings.certificate,
        ssl_key=settings.key,
        ssl_protocol_min=SSLProtocols.tls12,
        ssl_ca=settings.client_authority,
        ssl_client_verify=settings.client_authority is not None,
        respawn_failed_workers=True,
        workers_lifetime=settings.lifetime,
        workers_max_rss=settings.memory,
        workers_kill_timeout=_GRACE_SECONDS,
    ).serve()


class _Server(MPServer):
    """Granian, but no connection is lost when a worker goes.

    By default each worker listens on a socket of its own. What waits in the queue of a worker that
    stops is reset, and while none runs all are refused. One socket for all, which the first process
    keeps, has one queue; Granian does the same with Unix sockets.
    """

    def __init__(self, check: Callable[[], None], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._check = check

    def _init_shared_socket(self) -> None:
        if self.bind_uds:
            super()._init_shared_socket()
            return
        family = socket.AF_INET6 if ":" in self.bind_addr else socket.AF_INET
        listener = socket.create_server(
            (self.bind_addr, self.bind_port), family=family, backlog=self.backlog
        )
        listener.setblocking(False)
        listener.set_inheritable(True)
        self._ssp = None
        self._sso = listener
        self._sfd = listener.fileno()
        self._shd = SocketHolder(self._sfd, False, self.backlog)

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        try:
            self._check()
        except CommandError as error:
            _LOG.error("Not reloaded: %s", error)  # noqa: TRY400 - the message says it all
            self.reload_signal = False
            self.main_loop_interrupt.clear()
            return
        super()._reload(spawn_target, target_loader)
