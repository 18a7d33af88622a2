# SPDX-License-Identifier: Apache-2.0
"""The first process: keeps workers running, and replaces them on SIGHUP.

Each place of a worker is a task. A worker that ends is always replaced, after a pause that grows while
workers die soon after their start. A worker is stopped only when its successor answers requests.

It imports nothing of the service: a loader checks, loads and forks for it (`loader.py`).
"""

import asyncio
import logging
import os
import signal
import time
from contextlib import suppress

from treeclaim import logs
from treeclaim.admin.census import Census
from treeclaim.metrics_folder import provide_folder
from treeclaim.server.processes.admin_place import AdminPlace
from treeclaim.server.processes.child import Child
from treeclaim.server.processes.listening import allow_most_files, listening_socket
from treeclaim.server.processes.nursery import NoLoaderError, Nursery
from treeclaim.server.processes.orders import Checked, Role
from treeclaim.server.processes.patience import Patience, reason
from treeclaim.server.processes.reaper import Reaper
from treeclaim.server.processes.systemd import notify, reloading
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

_LOOK_SECONDS = 30.0
"""How often age and memory of the workers are looked at."""


class Supervisor:
    """The places of workers."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._nursery = Nursery(settings, Reaper())
        self._workers: dict[int, Child] = {}
        places = range(1, settings.workers + 1)
        self._turns = {place: asyncio.Lock() for place in places}
        """Whoever fills a place has its turn, so that no worker is put over another one."""
        self._ready = {place: asyncio.Event() for place in places}
        self._admin = AdminPlace(self._nursery, self._census)
        self._leaving: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            NoLoaderError: if the service cannot run; the message says why.
            ListenError: if the address cannot be had.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)
        try:
            checked = await self._opened()
            if checked is not None:
                logs.set_up_by(checked.log_options, checked.program)
                await self._serve(checked)
        finally:
            self._nursery.close()

    async def _opened(self) -> Checked | None:
        """Start the first loader; return what it has found out, None if told to stop meanwhile."""
        opening = asyncio.create_task(self._nursery.open())
        stopped = asyncio.create_task(self._until_stopped())
        await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            stopped.cancel()
            return opening.result()
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        return None

    async def _serve(self, checked: Checked) -> None:
        self._listener = listening_socket(self._settings)
        self._admin.open(checked.admin)
        # First, as a single worker lets the loader rest.
        work = [self._admin.keep(), *(self._keep(place) for place in self._turns)]
        work += [self._announce(), self._reload_when_told(), self._look_after()]
        tasks = [asyncio.create_task(coroutine) for coroutine in work]
        try:
            await self._watch(tasks)
        finally:
            await self._end(tasks)

    async def _watch(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait until told to stop, or until a task fails, which none should."""
        stopped = asyncio.create_task(self._until_stopped())
        waiting = {stopped, *tasks}
        while not stopped.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _until_stopped(self) -> None:
        await self._stop.wait()

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        notify("STOPPING=1")
        _LOG.info("Stopping")
        # New connections are refused at once instead of waiting while the last workers finish.
        self._listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._nursery.close()
        if self._settings.unix_socket:
            with suppress(FileNotFoundError):
                os.unlink(self._settings.unix_socket)  # noqa: PTH108 - quick, nothing else runs
        await asyncio.gather(*(worker.stop() for worker in self._workers.values()), *self._leaving)
        await self._admin.stop()

    async def _keep(self, place: int) -> None:
        """Keep a worker in a place."""
        patience = Patience()
        while True:
            try:
                worker = await self._worker_at(place)
            except NoLoaderError as error:
                _LOG.error(
                    "Worker %s cannot start (%s); again in %s s", place, error, patience.pause
                )
            else:
                code = await worker.wait()
                if self._workers.get(place) is not worker:
                    continue
                del self._workers[place]
                patience.note_life(worker.born)
                _LOG.error(
                    "Worker %s ended (%s); the next one starts in %s s",
                    place,
                    reason(code),
                    patience.pause,
                )
            await asyncio.sleep(patience.pause)
            patience.lengthen()

    async def _worker_at(self, place: int) -> Child:
        """Return the worker in a place; start one if there is none, and wait until it is ready.

        Raises:
            NoLoaderError: if none can be started now.
        """
        async with self._turns[place]:
            worker = self._workers.get(place)
            if worker is not None:
                return worker
            worker = await Child.spawn(self._nursery, Role.WORKER, self._listener)
            self._workers[place] = worker
        if await worker.wait_until_ready():
            await self._note_ready(place, worker)
        return worker

    async def _note_ready(self, place: int, worker: Child) -> None:
        _LOG.info("Worker %s runs as process %s", place, worker.pid)
        self._ready[place].set()
        if self._settings.workers == 1:
            # Nobody is left to share with: its own pages would be for nothing.
            await self._nursery.rest()

    async def _census(self) -> Census:
        """Ask all workers that have begun to answer whether they stand still."""
        workers = [worker for worker in self._workers.values() if worker.is_ready]
        answers = await asyncio.gather(*(worker.answers() for worker in workers))
        by_answer: dict[bool, list[int]] = {True: [], False: []}
        for worker, is_alive in zip(workers, answers, strict=True):
            # One that has ended meanwhile is about to be replaced.
            if worker.is_ready:
                by_answer[is_alive].append(worker.pid)
        return Census(by_answer[True], by_answer[False])

    async def _announce(self) -> None:
        for event in self._ready.values():
            await event.wait()
        _LOG.info("Serving at %s", self._settings.where())
        notify(f"READY=1\nSTATUS=Serving at {self._settings.where()}")

    async def _reload_when_told(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            notify(reloading())
            try:
                checked = await self._nursery.renew()
            except NoLoaderError as error:
                _LOG.error("Not reloaded: %s", error)
            else:
                _LOG.info("Reloading")
                logs.set_up_by(checked.log_options, checked.program)
                await self._admin.renew(checked.admin)
                for place in self._turns:
                    await self._replace(place)
            notify("READY=1")

    async def _replace(self, place: int) -> None:
        """Start another worker for a place; the old one goes when that one answers."""
        async with self._turns[place]:
            try:
                successor = await Child.spawn(self._nursery, Role.WORKER, self._listener)
            except NoLoaderError as error:
                _LOG.error("Worker %s is not replaced: %s", place, error)
                return
            try:
                is_ready = await successor.wait_until_ready()
            except asyncio.CancelledError:
                await successor.stop()
                raise
            if not is_ready:
                _LOG.error("Worker %s is not replaced: its successor ended", place)
                return
            former = self._workers.get(place)
            self._workers[place] = successor
        await self._note_ready(place, successor)
        if former is not None:
            _LOG.info("Stopping old worker %s, process %s", place, former.pid)
            leaving = asyncio.create_task(former.stop())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _look_after(self) -> None:
        """Replace workers that are too old or too large."""
        lifetime, memory = self._settings.lifetime, self._settings.memory
        if lifetime is None and memory is None:
            return await asyncio.Event().wait()  # type: ignore[return-value]
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for place, worker in list(self._workers.items()):
                is_old = lifetime is not None and time.monotonic() - worker.born > lifetime
                if is_old or (memory is not None and worker.memory() > memory):
                    _LOG.info("Worker %s has become too %s", place, "old" if is_old else "large")
                    await self._replace(place)


def supervise(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP replaces the workers by new ones.

    Raises:
        NoLoaderError: if the service cannot run; the message says why.
        ListenError: if the address cannot be had.
    """
    allow_most_files()
    provide_folder()

    async def run() -> None:
        await Supervisor(settings).run()

    asyncio.run(run())
