# SPDX-License-Identifier: Apache-2.0
"""The loader as the only worker, and what it has in common with one that forks its workers."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from treeclaim import log_queue, metrics
from treeclaim.admin.certificates import Expiry
from treeclaim.server.bounds import DAY_SECONDS
from treeclaim.server.processes.checks import PreforkState
from treeclaim.server.processes.children import WORKER_NAME, describe_end, name_process
from treeclaim.server.processes.control import Control, report_work
from treeclaim.server.processes.liveness import LivenessTable
from treeclaim.server.processes.worker import run_worker

_LOG = logging.getLogger(__name__)

ONLY_ROW = 1
"""Row of the liveness table for a worker that has no others beside it."""


class OnlyWorker:
    """Answers requests in the loader's process, beside the admin listener at most.

    This process has threads and cannot fork again, so the master replaces the generation when one of the two
    processes ends.
    """

    def __init__(
        self, state: PreforkState, control: Control, table: LivenessTable, admin: int | None
    ) -> None:
        """Do nothing yet; `admin` is the process id of the admin listener."""
        self._state = state
        self._control = control
        self._table = table
        self._admin = admin

    def run(self, listener: socket.socket) -> None:
        """Answer requests until the standard input ends."""
        with ExitStack() as starting:
            starting.enter_context(report_work(self._control))
            name_process(WORKER_NAME)
            log_queue.start_log_thread()
            metrics.tell_build()
            on_ready = partial(self._follow_master, starting)
            run_worker(self._state, listener, self._table, ONLY_ROW, on_ready)

    def _follow_master(self, starting: ExitStack, stop: asyncio.Event) -> None:
        """Report that the worker answers; follow the master, and notice the end of the admin listener."""
        starting.close()
        _LOG.info("Worker 1 runs as process %s", os.getpid())
        report_ready(self._control, self._state, is_alone=True)
        loop = asyncio.get_running_loop()
        self._stopping = loop.create_task(_log_stop(stop))
        loop.call_later(DAY_SECONDS, self._warn_daily, loop)
        control = self._control.fileno()
        loop.add_reader(
            control,
            lambda: follow_order(self._control, self._table) or loop.remove_reader(control),
        )
        if self._admin is not None:
            descriptor = os.pidfd_open(self._admin)
            loop.add_reader(descriptor, self._note_end_of_admin, loop, descriptor, self._admin)

    def _note_end_of_admin(
        self, loop: asyncio.AbstractEventLoop, descriptor: int, pid: int
    ) -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        why = f"The admin listener ended ({describe_end(code)})"
        _LOG.error("%s", why)
        self._control.send("lost", why=why)

    def _warn_daily(self, loop: asyncio.AbstractEventLoop) -> None:
        log_expiries(self._state.expiries)
        loop.call_later(DAY_SECONDS, self._warn_daily, loop)


async def _log_stop(stop: asyncio.Event) -> None:
    await stop.wait()
    _LOG.info("Stopping")


def report_ready(control: Control, state: PreforkState, *, is_alone: bool) -> None:
    """Report to the master that all processes answer."""
    address = state.configuration.admin
    where = state.settings.where()
    if not state.settings.workers and address is not None:
        where = f"http://{address.host}:{address.port}"
    _LOG.info("Serving at %s", where)
    control.send("ready", where=where, is_alone=is_alone)


def follow_order(control: Control, table: LivenessTable) -> bool:
    """Follow a message of the master; return False if the master is gone."""
    message = control.receive()
    if message is None:
        return False
    if message[0]["kind"] == "reload_refused":
        table.is_reload_refused = True
        _LOG.error("Not reloaded: %s", message[0].get("why"))
    return True


def log_expiries(expiries: Sequence[Expiry]) -> None:
    """Log which certificates have expired or soon will."""
    for expiry in expiries:
        if (words := expiry.words(time.time())) is not None:
            text = words[0].upper() + words[1:]
            _LOG.warning("%s (%s): renew it, and send SIGHUP", text, expiry.path)
