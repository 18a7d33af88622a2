# SPDX-License-Identifier: Apache-2.0
"""The admin listener as a process: by itself, or forked beside the workers of `treeclaim serve`."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NoReturn

from prometheus_client.registry import Collector

from treeclaim.admin import TakeCensus
from treeclaim.admin.app import make_admin_application
from treeclaim.admin.capacity import FlavorFileError, Meter, flavors_in
from treeclaim.admin.certificates import Expiry
from treeclaim.admin.collectors import (
    ExpiryCollector,
    FeedCollector,
    ProcessCollector,
    ResourceCollector,
    WorkerCollector,
)
from treeclaim.config import Configuration
from treeclaim.config.configuration import ConnectionLimits
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.request import CandidateRequest
from treeclaim.server.http.listener import HttpListener
from treeclaim.server.http.loop import new_loop
from treeclaim.server.processes.heartbeat import BROKEN, READY, CensusClient
from treeclaim.server.processes.listening import ListenError, admin_socket
from treeclaim.server.processes.worker import Groundwork
from treeclaim.store import Store

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_INHERITED = "TREECLAIM_ADMIN_LISTENER"
"""Environment variable that tells a successor the number of the listening socket, and its address."""

_THREADS = 4
"""A slow scrape, and one that waits for the database, do not hide that the service is alive."""

_LIMITS = ConnectionLimits(
    header_seconds=5.0,
    body_seconds=5.0,
    answer_seconds=10.0,
    keep_alive_seconds=75.0,
    connections=128,
    waiting=64,
    body_bytes=64 * 1024,
    watchers=0,
)
"""Probes and scrapers are few and near, and send no bodies."""


def serve_beside_workers(
    groundwork: Groundwork,
    listener: socket.socket,
    connection: socket.socket,
    first_process: int,
) -> None:
    """Serve until stopped, or until the first process is gone.

    Args:
        groundwork: What the operator configured, and when certificates expire.
        listener: Where connections come.
        connection: To the first process, which tells which workers answer.
        first_process: Its number; it counts nothing, but is measured.
    """
    configuration = groundwork.configuration
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    start_helper_thread("parent", _leave_with_first_process)
    try:
        connection.send(READY if _can_read_flavors(configuration) else BROKEN)
    except ConnectionError:
        # The first process has not learned of this one, and has started another by now.
        return
    with closing(Store(configuration.database)) as store:
        others, census = [first_process], CensusClient(connection).census
        expiries = groundwork.expiries
        _serve_at(listener, configuration, store, others, census=census, expiries=expiries)


def serve(
    configuration: Configuration,
    store: Store,
    listener: socket.socket,
    read_again: Callable[[], Configuration | None],
) -> bool:
    """Serve by itself until SIGTERM or SIGINT, or until SIGHUP asks for a successor.

    Args:
        configuration: What the operator configured.
        store: The database.
        listener: Where connections come.
        read_again: Returns the configuration as it is now, None if it cannot be used.

    Returns:
        Whether it has ended for a successor: there is one that works as well, as far as can be known.
    """

    def may_be_renewed() -> bool:
        reread = read_again()
        return reread is not None and reread.admin is not None and _can_read_flavors(reread)

    return _serve_at(listener, configuration, store, may_be_renewed=may_be_renewed)


def inherited_or_new(configuration: Configuration) -> socket.socket:
    """Return the listening socket: that of the process before, if it is at the same address.

    Raises:
        ListenError: if there is no address to listen on, or it is taken.
    """
    if configuration.admin is None:
        raise ListenError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    address = configuration.admin
    number, _, where = os.environ.pop(_INHERITED, "").partition(" ")
    if number:
        former = socket.socket(fileno=int(number))
        former.set_inheritable(False)
        if where == f"{address.host} {address.port}":
            return former
        former.close()
    return admin_socket(address.host, address.port)


def replace_by_a_successor(configuration: Configuration, listener: socket.socket) -> NoReturn:
    """Restart as the same process, with the current code and configuration, and the same socket.

    Clients that connect meanwhile wait instead of being refused.
    """
    address = configuration.admin
    where = "" if address is None else f"{address.host} {address.port}"
    listener.set_inheritable(True)
    os.environ[_INHERITED] = f"{listener.detach()} {where}"
    logging.shutdown()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606


def _serve_at(
    listener: socket.socket,
    configuration: Configuration,
    store: Store,
    others: Sequence[int] = (),
    *,
    census: TakeCensus | None = None,
    expiries: Sequence[Expiry] = (),
    may_be_renewed: Callable[[], bool] = lambda: False,
) -> bool:
    collectors: list[Collector] = [FeedCollector(store), ProcessCollector(others)]
    collectors.append(ExpiryCollector(expiries))
    if census is not None:
        collectors.append(WorkerCollector(census))
    meter = _meter(configuration, store)
    if meter is not None:
        collectors.append(ResourceCollector(meter))
    keystone = None
    if configuration.uses_keystone:
        # Only here: a service without Keystone does without its libraries.
        from treeclaim.admin.keystone_check import KeystoneState  # noqa: PLC0415

        keystone = KeystoneState(configuration.options)
        keystone.start()
    application = make_admin_application(store, collectors, census, expiries, keystone)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_serve(application, listener, meter, may_be_renewed))


async def _serve(
    application: "WSGIApplication",
    listener: socket.socket,
    meter: Meter | None,
    may_be_renewed: Callable[[], bool],
) -> bool:
    """Serve until stopped, and return whether a successor is to follow; see `serve`.

    A client that waits holds no thread here either.
    """
    stop, renewal = asyncio.Event(), asyncio.Event()

    def hang_up() -> None:
        if may_be_renewed():
            renewal.set()
            stop.set()
        elif meter is not None:
            meter.reload()

    server = HttpListener(application, _LIMITS, _THREADS)
    for number in (signal.SIGTERM, signal.SIGINT):
        server.loop.add_signal_handler(number, stop.set)
    server.loop.add_signal_handler(signal.SIGHUP, hang_up)
    if meter is not None:
        # After the signal is heard: what it tells to read again is not read before.
        meter.start()
    # It closes its own, and a successor needs one.
    server.listen(listener.dup())
    await stop.wait()
    # Clients that are being answered get the rest, if that does not take long.
    await server.stop()
    return renewal.is_set()


def _meter(configuration: Configuration, store: Store) -> Meter | None:
    wanted = configuration.metrics
    if wanted is None:
        return None

    def read_flavors() -> Mapping[str, CandidateRequest]:
        return _flavors(configuration)

    return Meter(store, wanted.aggregates, read_flavors, configuration.search.most_bytes)


def _flavors(configuration: Configuration) -> Mapping[str, CandidateRequest]:
    """Return the flavors that the operator wants to be counted.

    Raises:
        FlavorFileError: if their file is broken.
    """
    wanted = configuration.metrics
    if wanted is None or wanted.flavors is None:
        return {}
    return flavors_in(wanted.flavors, configuration.options.treeclaim.max_request_groups)


def _can_read_flavors(configuration: Configuration) -> bool:
    try:
        _flavors(configuration)
    except FlavorFileError:
        # The process that counts them reports what is wrong.
        return False
    return True


def _leave_with_first_process() -> None:
    # Not by sys.stdin, whose lock this thread would hold when the interpreter ends.
    while os.read(0, 1):
        pass
    os._exit(0)
