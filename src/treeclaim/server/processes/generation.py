# SPDX-License-Identifier: Apache-2.0
"""A generation: the loader, and the processes that it forks.

The loader checks whether the service can run, loads the inventory, forks the workers and the admin listener,
and replaces those that end, or are too old or too large. Memory that is loaded before a fork is shared after
it, page by page, until either process writes to it. So the workers hold code and inventory once between them.

Nothing that belongs to one process may cross a fork: the loader has no threads, no event loop and no
connection to a database when it forks. Store, caches, threads and event loop are made by each worker, which
learns from the change feed what was committed since the inventory was loaded.

Where one worker is to run until it ends, no other process would share its inventory: the loader becomes that
worker, and a thread of it supervises. It has threads and cannot fork again, so the master replaces the generation
when one of its processes has ended.
"""

import gc
import logging
import math
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from treeclaim import log_queue, metrics
from treeclaim.helper_threads import start_helper_thread
from treeclaim.server.bounds import (
    DAY_SECONDS,
    END_SECONDS,
    GRACE_SECONDS,
    INVENTORY_SECONDS,
    READY_SECONDS,
    TICK_SECONDS,
    WORKING_SECONDS,
)
from treeclaim.server.processes.admin import run_admin
from treeclaim.server.processes.checks import (
    PreforkState,
    UnusableError,
    load_inventory,
    log_expiries,
    require_database,
)
from treeclaim.server.processes.children import (
    ADMIN_NAME,
    WORKER_NAME,
    YOUNG_SECONDS,
    CannotForkError,
    ProcessPlace,
    ServiceProcess,
    describe_end,
    fork_with_shared_memory,
    name_process,
    release_memory,
    require_no_threads,
)
from treeclaim.server.processes.control import Control, report_work
from treeclaim.server.processes.liveness import LivenessTable
from treeclaim.server.processes.worker import run_worker

_LOG = logging.getLogger(__name__)

_ONLY_ROW = 1
"""Row of the liveness table for a worker that has no others beside it."""


class Generation:
    """The processes that were made of one state of code, configuration and inventory."""

    def __init__(
        self,
        state: PreforkState,
        control: Control,
        listener: socket.socket | None,
        admin_listener: socket.socket | None,
        *,
        is_first: bool,
    ) -> None:
        """Fork nothing yet.

        Args:
            state: Checked configuration.
            control: Connection to the master.
            listener: Socket of the API; None without workers.
            admin_listener: Socket of the admin listener, if one is wanted.
            is_first: Whether no other generation serves.
        """
        workers = state.settings.workers
        self._loader = os.getpid()
        self._state = state
        self._control = control
        self._listener = listener
        self._admin_listener = admin_listener
        self._is_first = is_first
        # While a worker is replaced, two processes have its place.
        self._table = LivenessTable(1 + 2 * workers)
        self._free_rows = list(range(1, 1 + 2 * workers))
        self._workers = [
            ProcessPlace(f"Worker {number}", WORKER_NAME, self._run_worker)
            for number in range(1, workers + 1)
        ]
        self._admin = ProcessPlace("The admin listener", ADMIN_NAME, self._run_admin)
        self._places: list[ProcessPlace] = []
        self._children: dict[int, ServiceProcess] = {}
        self._loaded_at = self._warned_at = self._reported_at = -math.inf
        self._is_ready = self._is_stopping = False
        settings = state.settings
        self._is_alone = workers == 1 and settings.lifetime is None and settings.memory is None
        self._is_worker = False
        self._loss = ""

    def run(self) -> None:
        """Serve until the standard input ends.

        Raises:
            UnusableError: if the service cannot run.
        """
        if self._is_first and self._admin_listener is not None:
            # Probes are answered while the database is waited for.
            self._places.append(self._admin)
            self._step()
        if self._workers:
            with report_work(self._control):
                require_database(self._state.configuration)
            self._load()
            if self._state.picture is None and not self._is_first:
                raise UnusableError("the inventory could not be loaded; the log says why")
            self._places = [*self._workers, *self._places]
            if self._is_alone:
                self._become_worker()
                return
            self._step()
        self._supervise()
        self._stop()

    def _become_worker(self) -> None:
        """Answer requests in this process until the standard input ends, while a thread supervises."""
        if self._admin_listener is not None and not self._holders_of(self._admin):
            self._fork(self._admin)
            self._places = [*self._workers, self._admin]
        self._is_worker = True
        (place,) = self._workers
        pid = os.getpid()
        self._children[pid] = ServiceProcess(pid, _ONLY_ROW, place, time.monotonic(), math.inf)
        name_process(place.process_name)
        log_queue.start_log_thread()
        metrics.tell_build()
        start_helper_thread("generation", self._supervise_this_worker)
        assert self._listener is not None  # noqa: S101 - there is a worker
        run_worker(self._state, self._listener, self._table, _ONLY_ROW)

    def _supervise_this_worker(self) -> None:
        self._supervise()
        _LOG.info("Stopping")
        if not self._is_ready:
            os._exit(1)

    # The loader, or a thread of the only worker.

    def _supervise(self) -> None:
        """Do all that is due until the standard input ends."""
        # Without an admin listener the service works as well, but a reload must not lose it.
        needed = self._workers if self._is_first and self._workers else self._places
        while not self._is_stopping:
            self._wait()
            self._step()
            if not self._is_ready and all(place.was_ready for place in needed):
                self._note_all_ready()
            # The master would end a service that has not begun to serve.
            if self._loss and (self._is_ready or not self._is_first):
                self._control.send("lost", why=self._loss)
                self._loss = ""

    def _note_all_ready(self) -> None:
        """Report to the master that all processes answer."""
        if self._admin_listener is not None and self._admin not in self._places:
            # A probe that this process answered before would find no workers.
            self._places.append(self._admin)
            return
        self._is_ready = True
        where = self._state.where()
        _LOG.info("Serving at %s", where)
        self._control.send("ready", where=where, is_alone=self._is_worker)

    def _step(self) -> None:
        """Do all that is due."""
        self._reap()
        for child in self._children.values():
            if not child.is_ready and self._table.has_begun(child.row):
                self._note_ready(child)
            elif time.monotonic() > child.deadline:
                if not child.is_ready:
                    _LOG.error("Process %s is given up: it did not begin to answer", child.pid)
                child.deadline = math.inf
                child.send(signal.SIGKILL)
        for place in self._places:
            is_due = time.monotonic() >= place.due and not self._is_stopping
            if is_due and self._needs_process(place):
                self._start(place)
        self._warn_of_certificates()

    def _warn_of_certificates(self) -> None:
        if time.monotonic() - self._warned_at >= DAY_SECONDS:
            self._warned_at = time.monotonic()
            log_expiries(self._state.expiries)

    def _wait(self) -> None:
        """Wait for a moment; follow the master, and report to it that this process works."""
        if time.monotonic() - self._reported_at >= WORKING_SECONDS:
            self._reported_at = time.monotonic()
            self._control.send("working")
        control = self._control.fileno()
        sources = [control] if self._is_stopping else [0, control]
        readable, _, _ = select.select(sources, [], [], TICK_SECONDS)
        if 0 in readable:
            self._is_stopping = True
        elif readable:
            self._follow_master()

    def _follow_master(self) -> None:
        message = self._control.receive()
        if message is None:
            # The master is gone; the standard input ends too.
            time.sleep(TICK_SECONDS)
        elif message[0]["kind"] == "reload_refused":
            self._table.is_reload_refused = True
            _LOG.error("Not reloaded: %s", message[0].get("why"))

    # Children.

    def _reap(self) -> None:
        """Note all children that have ended; a worker has others, and is no child of itself."""
        for child in list(self._children.values()):
            with suppress(ChildProcessError):
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    del self._children[pid]
                    self._note_end(child, os.waitstatus_to_exitcode(status))

    def _note_end(self, child: ServiceProcess, code: int) -> None:
        place = child.place
        self._table.clear(child.row)
        if place is not self._admin:
            self._free_rows.append(child.row)
        if child.is_leaving or self._is_stopping:
            return
        why = f"{place.name} ended ({describe_end(code)})"
        if self._is_worker:
            place.due = math.inf
            _LOG.error("%s", why)
            self._loss = why
            return
        if not (self._is_first or self._is_ready):
            raise UnusableError(f"{place.name} ended before it answered; the log says why")
        if child.age() > YOUNG_SECONDS:
            place.pause = 0.0
        _LOG.error("%s; the next one starts in %s s", why, place.pause)
        place.postpone()

    def _note_ready(self, child: ServiceProcess) -> None:
        place = child.place
        child.is_ready = place.was_ready = True
        child.deadline = math.inf
        if place is not self._admin:
            _LOG.info("%s runs as process %s", place.name, child.pid)
        for former in self._holders_of(place):
            if former is not child:
                _LOG.info("Stopping process %s", former.pid)
                former.is_leaving = True
                former.deadline = time.monotonic() + GRACE_SECONDS + END_SECONDS
                former.send(signal.SIGTERM)
        if len(self._workers) == 1 and place is self._workers[0] and not self._is_worker:
            # No other worker shares it.
            self._state = replace(self._state, picture=None)
            release_memory()

    def _holders_of(self, place: ProcessPlace) -> list[ServiceProcess]:
        """Return the processes of a place that nothing has replaced, the oldest first."""
        children = self._children.values()
        return [child for child in children if child.place is place and not child.is_leaving]

    def _needs_process(self, place: ProcessPlace) -> bool:
        """Return whether a place is empty, or its worker too old or large; one is replaced at a time."""
        holders = self._holders_of(place)
        if not holders:
            return True
        settings = self._state.settings
        fault = holders[0].find_excess(settings.lifetime, settings.memory)
        if place is self._admin or fault is None:
            return False
        if any(len(self._holders_of(other)) > 1 for other in self._workers):
            return False
        _LOG.info("%s has become too %s", place.name, fault)
        return True

    def _start(self, place: ProcessPlace) -> None:
        """Fork a process for a place, beside one that it replaces."""
        try:
            self._fork(place)
        except (CannotForkError, UnusableError) as error:
            _LOG.error("%s cannot start (%s); again in %s s", place.name, error, place.pause)
            place.postpone()

    def _fork(self, place: ProcessPlace) -> None:
        """Fork a process; return only in the loader.

        Raises:
            CannotForkError: if that is impossible now.
        """
        require_no_threads()
        row = 0
        if place is not self._admin:
            self._renew_inventory()
            if not self._free_rows:
                raise CannotForkError("the processes before it have not ended")
            row = self._free_rows[0]
        pid = fork_with_shared_memory()
        if not pid:
            self._become(place, row)
        if row:
            self._free_rows.remove(row)
        now = time.monotonic()
        self._children[pid] = ServiceProcess(pid, row, place, now, now + READY_SECONDS)

    def _become(self, place: ProcessPlace, row: int) -> NoReturn:
        """Do the work of a place in a forked process, and end."""
        name_process(place.process_name)
        self._control.close()
        log_queue.start_log_thread()
        metrics.tell_build()
        try:
            place.work(row)
        except Exception:  # noqa: BLE001 - another process follows
            _LOG.exception("%s failed", place.name)
            sys.exit(1)
        sys.exit(0)

    def _run_worker(self, row: int) -> None:
        if self._admin_listener is not None:
            self._admin_listener.close()
        assert self._listener is not None  # noqa: S101 - there are workers
        run_worker(self._state, self._listener, self._table, row)

    def _run_admin(self, row: int) -> None:
        if self._listener is not None:
            self._listener.close()
        assert self._admin_listener is not None  # noqa: S101 - see `run`
        while self._is_alone and not self._is_first and not self._table.has_begun(_ONLY_ROW):
            # A probe that this process answered before would find no workers.
            if os.getppid() != self._loader:
                return
            time.sleep(TICK_SECONDS)
        run_admin(self._state, self._loader, self._admin_listener, self._table, row)

    # Inventory.

    def _load(self) -> None:
        """Load the inventory; without a database each worker loads by itself once there is one."""
        self._state = replace(self._state, picture=None)
        with report_work(self._control):
            self._state = replace(self._state, picture=load_inventory(self._state))
        self._loaded_at = time.monotonic()

    def _renew_inventory(self) -> None:
        """Load again what was released, or is older than the change feed that a worker catches up by."""
        is_old = time.monotonic() - self._loaded_at > INVENTORY_SECONDS
        if is_old or (self._state.picture is None and self._is_ready):
            gc.unfreeze()
            self._load()

    # The end.

    def _stop(self) -> None:
        """Let the workers finish their requests, then end the admin listener.

        The workers have the same standard input; a signal could meet one at its end.
        """
        _LOG.info("Stopping")
        for listener in (self._listener, self._admin_listener):
            # Connections are refused once the last process that serves them has closed it too.
            if listener is not None:
                listener.close()
        children = self._children.values()
        workers = [child for child in children if child.place is not self._admin]
        self._await_end(workers, GRACE_SECONDS + END_SECONDS)
        admin = self._holders_of(self._admin)
        for child in admin:
            child.send(signal.SIGTERM)
        self._await_end(admin, END_SECONDS)

    def _await_end(self, children: list[ServiceProcess], seconds: float) -> None:
        """Wait until children have ended; kill those that take too long."""
        deadline = time.monotonic() + seconds
        while any(child.pid in self._children for child in children):
            self._wait()
            self._reap()
            for child in children:
                if child.pid in self._children and time.monotonic() > deadline:
                    child.send(signal.SIGKILL)
