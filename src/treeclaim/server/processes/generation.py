# SPDX-License-Identifier: Apache-2.0
"""A generation: the loader, and the processes that it forks.

The loader checks whether the service can run, loads the inventory, and forks the workers and the admin listener. It
replaces processes that end, and workers that are too old or too large. Workers share the memory of code and inventory
that was loaded before the fork.

The loader has no threads, event loop or database connection when it forks, since these do not survive a fork. Each
worker creates them, and applies the changes committed since the inventory was loaded.

A single worker that is never replaced for age or memory shares its inventory with no process. The loader then becomes
that worker and supervises in a thread, which saves a third of the memory. A process with threads cannot fork again, so
the master replaces the generation after any of its processes has ended.
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
    SILENCE_SECONDS,
    TICK_SECONDS,
    WORKING_SECONDS,
)
from treeclaim.server.processes.admin import run_admin
from treeclaim.server.processes.checks import (
    PreforkState,
    UnusableError,
    check_service,
    load_inventory,
    log_expiries,
    require_database,
)
from treeclaim.server.processes.children import (
    ADMIN_NAME,
    LOADER_NAME,
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
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

_ONLY_ROW = 1
"""Row of an only worker in the liveness table."""


def run_generation(settings: ServerSettings, control: Control, *, is_first: bool) -> None:
    """Check the service, receive its sockets from the master, and serve; report a failure to the master."""
    name_process(LOADER_NAME)
    try:
        with report_work(control):
            state = check_service(settings, is_first=is_first)
        address = state.configuration.admin
        control.send("checked", admin=(address.host, address.port) if address else ())
        select.select([0, control.fileno()], [], [], SILENCE_SECONDS)
        order = control.receive()
        if order is None:
            return
        for problem in order[0].get("problems", ()):
            _LOG.error("%s", problem)
        sockets = list(order[1])
        listener = sockets.pop(0) if settings.workers else None
        admin_listener = sockets.pop(0) if sockets else None
        Generation(state, control, listener, admin_listener, is_first=is_first).run()
    except UnusableError as error:
        control.send("refused", why=str(error))
    except Exception as error:  # noqa: BLE001 - the master reports it
        _LOG.debug("The service cannot run for an unexpected reason", exc_info=True)
        control.send("refused", why=f"unexpected {type(error).__name__}: {error}")


class Generation:
    """The processes that share one state of code, configuration and inventory.

    `listener` is None without workers, and `admin_listener` without an admin listener. `is_first` means that no other
    generation serves.
    """

    def __init__(
        self,
        state: PreforkState,
        control: Control,
        listener: socket.socket | None,
        admin_listener: socket.socket | None,
        *,
        is_first: bool,
    ) -> None:
        workers = state.settings.workers
        self._loader = os.getpid()
        self._state = state
        self._control = control
        self._listener = listener
        self._admin_listener = admin_listener
        self._is_first = is_first
        # During its replacement, a worker's place has two processes.
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
        has_bounds = state.settings.lifetime is not None or state.settings.memory is not None
        self._is_only_worker = workers == 1 and not has_bounds
        self._has_become_worker = False
        self._loss_reason = ""

    def run(self) -> None:
        """Serve until the standard input ends; raise UnusableError if the service cannot run."""
        if self._is_first and self._admin_listener is not None:
            # Probes are answered while this process waits for the database.
            self._places.append(self._admin)
            self._update_processes()
        if self._workers:
            with report_work(self._control):
                require_database(self._state.configuration)
            self._load()
            if self._state.inventory is None and not self._is_first:
                raise UnusableError("the inventory could not be loaded; the log says why")
            self._places = [*self._workers, *self._places]
            if self._is_only_worker:
                self._become_worker()
                return
            self._update_processes()
        self._supervise()
        self._stop()

    def _become_worker(self) -> None:
        """Answer requests in this process until the standard input ends, while a thread supervises."""
        if self._admin_listener is not None and not self._find_processes(self._admin):
            self._fork(self._admin)
            self._places = [*self._workers, self._admin]
        self._has_become_worker = True
        (place,) = self._workers
        pid = os.getpid()
        self._children[pid] = ServiceProcess(pid, _ONLY_ROW, place, time.monotonic(), math.inf)
        name_process(place.process_name)
        log_queue.start_log_thread()
        metrics.set_build_info()
        start_helper_thread("generation", self._supervise_this_worker)
        assert self._listener is not None  # noqa: S101 - there is a worker
        run_worker(self._state, self._listener, self._table, _ONLY_ROW)

    def _supervise_this_worker(self) -> None:
        self._supervise()
        _LOG.info("Stopping")
        if not self._is_ready:
            os._exit(1)

    def _supervise(self) -> None:
        """Start and replace processes until the standard input ends."""
        # The first generation may serve without its admin listener, but a reload must not lose the listener.
        needed_places = self._workers if self._is_first and self._workers else self._places
        while not self._is_stopping:
            self._wait()
            self._update_processes()
            if not self._is_ready and all(place.was_ready for place in needed_places):
                self._note_all_ready()
            # The master would end a service that is not ready yet instead of replacing the generation.
            if self._loss_reason and (self._is_ready or not self._is_first):
                self._control.send("lost", why=self._loss_reason)
                self._loss_reason = ""

    def _note_all_ready(self) -> None:
        """Report to the master that all processes answer."""
        if self._admin_listener is not None and self._admin not in self._places:
            # The previous admin listener answers probes until now: the new one reports only workers of this generation.
            self._places.append(self._admin)
            return
        self._is_ready = True
        _LOG.info("Serving at %s", self._state.url)
        self._control.send("ready", where=self._state.url, is_alone=self._has_become_worker)

    def _update_processes(self) -> None:
        """Handle ended and ready processes, kill overdue ones, and fork missing ones."""
        self._reap()
        for child in self._children.values():
            if not child.is_ready and self._table.has_begun(child.row):
                self._note_ready(child)
            elif time.monotonic() > child.deadline:
                if not child.is_ready:
                    _LOG.error("Process %s did not begin to answer and is killed", child.pid)
                child.deadline = math.inf
                child.send(signal.SIGKILL)
        for place in self._places:
            if place.backoff.is_due and not self._is_stopping and self._needs_process(place):
                self._start_process(place)
        if time.monotonic() - self._warned_at >= DAY_SECONDS:
            self._warned_at = time.monotonic()
            log_expiries(self._state.expiries)

    def _wait(self) -> None:
        """Wait briefly for messages of the master; report to the master that this process works."""
        if time.monotonic() - self._reported_at >= WORKING_SECONDS:
            self._reported_at = time.monotonic()
            self._control.send("working")
        control = self._control.fileno()
        sources = [control] if self._is_stopping else [0, control]
        readable, _, _ = select.select(sources, [], [], TICK_SECONDS)
        if 0 in readable:
            self._is_stopping = True
        elif readable:
            message = self._control.receive()
            if message is None:
                # The master has ended, and the standard input will end.
                time.sleep(TICK_SECONDS)
            elif message[0]["kind"] == "reload_refused":
                self._table.is_reload_refused = True
                _LOG.error("Not reloaded: %s", message[0].get("why"))

    def _reap(self) -> None:
        """Handle ended children by their ids: an only worker has further children, and is not a child itself."""
        for child in list(self._children.values()):
            with suppress(ChildProcessError):
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    del self._children[pid]
                    self._handle_end(child, os.waitstatus_to_exitcode(status))

    def _handle_end(self, child: ServiceProcess, code: int) -> None:
        place = child.place
        self._table.clear(child.row)
        if place is not self._admin:
            self._free_rows.append(child.row)
        if child.is_leaving or self._is_stopping:
            return
        reason = f"{place.name} ended ({describe_end(code)})"
        if self._has_become_worker:
            place.backoff.disable()
            _LOG.error("%s", reason)
            self._loss_reason = reason
            return
        if not (self._is_first or self._is_ready):
            raise UnusableError(f"{place.name} ended before it answered; the log says why")
        if child.age() > YOUNG_SECONDS:
            place.backoff.reset()
        pause = place.backoff.pause
        _LOG.error("%s; the next one starts in %s s", reason, pause)
        place.backoff.postpone()

    def _note_ready(self, child: ServiceProcess) -> None:
        place = child.place
        child.is_ready = place.was_ready = True
        child.deadline = math.inf
        if place is not self._admin:
            _LOG.info("%s runs as process %s", place.name, child.pid)
        for former_process in self._find_processes(place):
            if former_process is not child:
                _LOG.info("Stopping process %s", former_process.pid)
                former_process.is_leaving = True
                former_process.deadline = time.monotonic() + GRACE_SECONDS + END_SECONDS
                former_process.send(signal.SIGTERM)
        if len(self._workers) == 1 and place is self._workers[0] and not self._has_become_worker:
            # No other worker shares the inventory.
            self._state = replace(self._state, inventory=None)
            release_memory()

    def _find_processes(self, place: ProcessPlace) -> list[ServiceProcess]:
        """Return the processes of a place that are not being replaced, the oldest first."""
        children = self._children.values()
        return [child for child in children if child.place is place and not child.is_leaving]

    def _needs_process(self, place: ProcessPlace) -> bool:
        """Return whether a place is empty, or its worker too old or large; workers are replaced one by one."""
        processes = self._find_processes(place)
        if not processes:
            return True
        settings = self._state.settings
        excess_reason = processes[0].find_excess(settings.lifetime, settings.memory)
        is_replacing = any(len(self._find_processes(worker)) > 1 for worker in self._workers)
        if place is self._admin or excess_reason is None or is_replacing:
            return False
        _LOG.info("%s has become too %s", place.name, excess_reason)
        return True

    def _start_process(self, place: ProcessPlace) -> None:
        try:
            self._fork(place)
        except (CannotForkError, UnusableError) as error:
            pause = place.backoff.pause
            _LOG.error("%s cannot start (%s); again in %s s", place.name, error, pause)
            place.backoff.postpone()

    def _fork(self, place: ProcessPlace) -> None:
        """Fork a process, and return in the loader; raise CannotForkError if that is impossible now."""
        require_no_threads()
        row = 0
        if place is not self._admin:
            self._renew_inventory()
            if not self._free_rows:
                raise CannotForkError("its former processes have not ended")
            row = self._free_rows[0]
        pid = fork_with_shared_memory()
        if not pid:
            self._run_and_exit(place, row)
        if row:
            self._free_rows.remove(row)
        now = time.monotonic()
        self._children[pid] = ServiceProcess(pid, row, place, now, now + READY_SECONDS)

    def _run_and_exit(self, place: ProcessPlace, row: int) -> NoReturn:
        name_process(place.process_name)
        self._control.close()
        log_queue.start_log_thread()
        metrics.set_build_info()
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
        while self._is_only_worker and not self._is_first and not self._table.has_begun(_ONLY_ROW):
            # The previous admin listener answers probes until the worker does.
            if os.getppid() != self._loader:
                return
            time.sleep(TICK_SECONDS)
        run_admin(self._state, self._loader, self._admin_listener, self._table, row)

    def _load(self) -> None:
        """Load the inventory; if the database does not answer, each worker loads it later."""
        self._state = replace(self._state, inventory=None)
        with report_work(self._control):
            self._state = replace(self._state, inventory=load_inventory(self._state))
        self._loaded_at = time.monotonic()

    def _renew_inventory(self) -> None:
        """Reload the inventory if it was released, or is too old for a worker to catch up by the change feed."""
        is_old = time.monotonic() - self._loaded_at > INVENTORY_SECONDS
        if is_old or (self._state.inventory is None and self._is_ready):
            gc.unfreeze()
            self._load()

    def _stop(self) -> None:
        """Wait until the workers have finished their requests, then end the admin listener."""
        # The end of their standard input stops the workers; a signal could interrupt their exit.
        _LOG.info("Stopping")
        for listener in (self._listener, self._admin_listener):
            # The kernel refuses connections once all processes have closed the listener.
            if listener is not None:
                listener.close()
        workers = [child for child in self._children.values() if child.place is not self._admin]
        self._await_end(workers, GRACE_SECONDS + END_SECONDS)
        admin = self._find_processes(self._admin)
        for child in admin:
            child.send(signal.SIGTERM)
        self._await_end(admin, END_SECONDS)

    def _await_end(self, children: list[ServiceProcess], seconds: float) -> None:
        """Wait until children have ended; kill them after some seconds."""
        deadline = time.monotonic() + seconds
        while any(child.pid in self._children for child in children):
            self._wait()
            self._reap()
            for child in children:
                if child.pid in self._children and time.monotonic() > deadline:
                    child.send(signal.SIGKILL)
