# SPDX-License-Identifier: Apache-2.0
"""The loader: imports the service, loads the inventory, and forks the processes that use both.

What is loaded before a fork is shared after it, page by page, until either side writes to it. So the
workers of a machine hold the code and the inventory once between them.

Nothing that belongs to one process may cross the fork. The loader closes its connections to the
database before it forks, and has no other thread then, so no lock is held. What a process gets from
it is the code, the configuration, the policy and a picture of the inventory; store, caches, threads
and event loop it makes by itself. A worker learns by the change feed what was committed since the
picture was taken.

A forked process is not the loader's child: an intermediate process ends at once, and the first
process, which has asked the kernel for orphans (`Reaper`), becomes its parent. So the loader may be
killed at any time; workers stay, and the first process knows what becomes of them.
"""

import gc
import logging
import os
import socket
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter

from treeclaim import allocator, log_queue, logs, metrics, wsgi
from treeclaim.api.app import store_of
from treeclaim.config import PROJECT
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica import FollowedForest
from treeclaim.replica.following import Follower
from treeclaim.server.processes import admin, worker
from treeclaim.server.processes.checks import (
    UnusableError,
    checked_policy,
    checked_tls,
    configuration_of,
    expiries_of,
    require_authentication,
    require_database,
)
from treeclaim.server.processes.orders import (
    Checked,
    Fork,
    Forked,
    Load,
    Loaded,
    LoadersEnd,
    Refused,
    Role,
    saying_that_it_works,
)
from treeclaim.server.processes.worker import Groundwork
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

NAME = "treeclaim-load"
"""What `ps` and `top` call it."""


class CannotForkError(Exception):
    """A process cannot be forked; the message says why."""


_Life = Callable[[], None]
"""What a forked process does."""


def main(settings: ServerSettings, orders: LoadersEnd) -> None:
    """Run a loader, or what becomes of a process that it forks."""
    _be_called(NAME)
    try:
        with saying_that_it_works(orders):
            groundwork = _checked(settings)
    except UnusableError as error:
        orders.tell(Refused(str(error)))
        return
    except Exception as error:  # noqa: BLE001 - the first process tells it
        _LOG.debug("The reason why the service cannot run is unknown", exc_info=True)
        orders.tell(Refused(f"unexpected {type(error).__name__}: {error}"))
        return
    configuration = groundwork.configuration
    log_options = logs.logging_options(configuration.options)
    admin_at = configuration.admin
    address = () if admin_at is None else (admin_at.host, admin_at.port)
    expiries = [asdict(expiry) for expiry in groundwork.expiries]
    orders.tell(Checked(PROJECT, log_options, address, expiries))
    life = _follow(orders, groundwork)
    if life is not None:
        life()


def _checked(settings: ServerSettings) -> Groundwork:
    """Read the configuration, begin to log, and look whether the service can run.

    Raises:
        UnusableError: if it cannot.
    """
    configuration = configuration_of(settings)
    try:
        logs.set_up_logging(configuration.options, PROJECT)
    except logs.LoggingError as error:
        raise UnusableError(str(error)) from error
    policy = checked_policy(configuration)
    require_authentication(configuration, settings)
    tls = checked_tls(settings)
    logs.log_options(configuration.options)
    return Groundwork(settings, configuration, policy, tls, expiries_of(configuration, settings))


def _follow(orders: LoadersEnd, groundwork: Groundwork) -> _Life | None:
    """Do what the first process says until it says no more; return the life of a forked process."""
    is_loaded = False
    first_process = os.getppid()
    while (order := orders.next_order()) is not None:
        match order:
            case Load(), _:
                try:
                    if not is_loaded:
                        with saying_that_it_works(orders):
                            groundwork = _loaded(groundwork)
                    is_loaded = True
                    orders.tell(Loaded(has_inventory=groundwork.picture is not None))
                except UnusableError as error:
                    orders.tell(Refused(str(error)))
            case Fork(role), descriptors:
                try:
                    pid = _fork()
                except CannotForkError as error:
                    orders.tell(Refused(str(error)))
                    continue
                if pid == 0:
                    orders.close()
                    return _life(Role(role), groundwork, descriptors, first_process)
                for descriptor in descriptors:
                    os.close(descriptor)
                orders.tell(Forked(pid))
    return None


def _loaded(groundwork: Groundwork) -> Groundwork:
    """Wait for the database, and load the inventory.

    Without a database each worker loads by itself, when there is one.

    Raises:
        UnusableError: if the database cannot be used.
    """
    configuration, settings = groundwork.configuration, groundwork.settings
    require_database(configuration)
    store = store_of(configuration)
    picture: FollowedForest | None = None
    begin = perf_counter()
    try:
        follower = Follower(store, is_worker=False)
        follower.catch_up(monotonic())
        picture = follower.picture()
        seconds = perf_counter() - begin
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
        words = wsgi.loaded_words(len(picture.forest), seconds)
    except StoreUnavailableError:
        words = wsgi.NOTHING_LOADED
    finally:
        store.close()
    processes = f"{settings.workers} x {settings.threads} threads"
    wsgi.tell_start(configuration, store, processes, words)
    wsgi.warn_of_threads(configuration.server_threads, None)
    return replace(groundwork, picture=picture)


def _fork() -> int:
    """Fork a process that is not a child of this one; return its id, and 0 in that process.

    Raises:
        CannotForkError: if there can be no more processes, or another thread may hold a lock.
    """
    others = [thread.name for thread in threading.enumerate()][1:]
    if others:
        raise CannotForkError(f"a library has started threads: {', '.join(others)}")
    # The garbage collector leaves all present objects alone; it would write to each page.
    gc.collect()
    gc.freeze()
    allocator.give_back()
    told, tell = os.pipe()
    try:
        between = _forked()
    except OSError as error:
        os.close(told)
        os.close(tell)
        raise CannotForkError(f"no process can be started: {error.strerror}") from error
    if between == 0:
        _fork_and_end(tell)
        os.close(told)
        os.close(tell)
        return 0
    os.close(tell)
    with os.fdopen(told, "rb") as reader:
        text = reader.read()
    os.waitpid(between, 0)
    if not text:
        raise CannotForkError("no process can be started")
    return int(text)


def _fork_and_end(tell: int) -> None:
    """Fork once more, tell the number of that process, and end; return in that process only."""
    code = 1
    try:
        pid = _forked()
        if pid == 0:
            return
        os.write(tell, str(pid).encode())
        code = 0
    except OSError:
        # Silence says enough.
        code = 1
    os._exit(code)


def _forked() -> int:
    with warnings.catch_warnings():
        # From Python 3.12 on; the threads of a library for arrays know of forks.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _life(
    role: Role, groundwork: Groundwork, descriptors: Sequence[int], first_process: int
) -> _Life:
    """Return what a forked process does."""
    _be_called(role.value)
    log_queue.start_log_thread()
    metrics.tell_build()
    listener, connection = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    if role is Role.ADMIN:
        return partial(admin.serve_beside_workers, groundwork, listener, connection, first_process)
    return partial(worker.work, groundwork, listener, connection)


def _be_called(name: str) -> None:
    """Set the name that `ps` and `top` show."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)
