# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve`: Granian, with a listening socket that outlives its workers."""

import ctypes
import logging
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from granian.constants import Interfaces, SSLProtocols
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.mp import MPServer, WorkerProcess

from treeclaim.cli.output import CommandError
from treeclaim.wsgi import make_application as start

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger("_granian")
"""The server's own messages; there are none of ours in its first process."""

_BACKLOG = 1024
"""Connections that wait for a worker."""

_GRACE_SECONDS = 30
"""How long a worker that stops may take for requests that it has begun."""

_TAKE_NO_MORE = signal.SIGUSR1
"""Tells a worker that its successor runs."""

_ARRIVAL_SECONDS = 1.0
"""How long a worker then waits for requests on connections that it has taken."""

_PR_SET_PDEATHSIG = 1
"""Of <linux/prctl.h>."""


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
        "treeclaim.cli.server:make_application",
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


class _Worker(WorkerProcess):
    """A process that answers requests; it ends in two steps."""

    def terminate(self) -> None:
        """Let the process take no more connections, finish what it has, and end.

        In between, the requests on connections that it has just taken arrive. Without that the
        server closes these unanswered.
        """
        if not self.parent.interrupt_signal and self.inner.is_alive():
            os.kill(self.inner.pid, _TAKE_NO_MORE)
            time.sleep(_ARRIVAL_SECONDS)
        super().terminate()  # type: ignore[no-untyped-call]


class _Server(MPServer):
    """Granian, but no connection is lost when a worker goes.

    By default each worker listens on a socket of its own. What waits in the queue of a worker that
    stops is reset, and while none runs all are refused. One socket for all, which the first process
    keeps, has one queue; Granian does the same with Unix sockets.
    """

    # Granian's own annotations know only what these are at first.
    _sfd: Any
    _shd: Any

    def __init__(self, check: Callable[[], None], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._check = check

    def _init_shared_socket(self) -> None:
        if self.bind_uds:
            super()._init_shared_socket()  # type: ignore[no-untyped-call]
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
        self._shd = SocketHolder(self._sfd, False, self.backlog)  # type: ignore[call-arg]

    def _spawn_worker(self, *arguments: Any, **named: Any) -> WorkerProcess:
        worker = super()._spawn_worker(*arguments, **named)
        worker.__class__ = _Worker
        return worker

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        try:
            self._check()
        except CommandError as error:
            _LOG.error("Not reloaded: %s", error)
            self.reload_signal = False
            self.main_loop_interrupt.clear()
            return
        super()._reload(spawn_target, target_loader)  # type: ignore[no-untyped-call]


def make_application() -> "WSGIApplication":
    """Start the service in a worker, which from then on can be told to take no more connections.

    A worker that is told to stop before it has started just ends; it would have the handler of the
    first process, which is of no effect here, until Granian gives it one of its own.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with_parent()
    signal.signal(_TAKE_NO_MORE, lambda *_: _take_no_more_connections())
    return start()


def _end_with_parent() -> None:
    """Let Linux stop this process when the first one is killed, or it would keep the port."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _take_no_more_connections() -> None:
    """Put a socket that nobody knows in the place of the one that all workers listen on.

    The server itself stops listening only at the moment when it closes its connections too.
    """
    unknown = socket.socket(socket.AF_UNIX)
    unknown.setblocking(False)
    unknown.bind("")
    unknown.listen()
    descriptors = [int(one.name) for one in Path("/proc/self/fd").iterdir()]
    for one in descriptors:
        if one != unknown.fileno() and _is_listening(one):
            os.dup2(unknown.fileno(), one)


def _is_listening(descriptor: int) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
    except OSError:
        return False
    with socket.socket(fileno=os.dup(descriptor)) as one:
        return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
