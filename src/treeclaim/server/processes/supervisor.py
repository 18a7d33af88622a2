# SPDX-License-Identifier: Apache-2.0
"""The first process: keeps workers running, and replaces them on SIGHUP.

Each place of a worker is a task. A worker that ends is always replaced, after a pause that grows while
workers die soon after their start. A worker is stopped only when its successor answers requests.
"""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from treeclaim.server.processes.child import Worker
from treeclaim.server.processes.listening import allow_most_files, listening_socket
from treeclaim.server.processes.systemd import notify, reloading
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

_FIRST_PAUSE = 0.25
"""Seconds before the second of two workers that died young is replaced; it doubles each time."""

_LONGEST_PAUSE = 5.0
"""Longest pause: the service comes back soon after the cause is gone."""

_YOUNG = 30.0
"""Seconds; a worker that lived longer is replaced at once."""

_LOOK_SECONDS = 30.0
"""How often age and memory of the workers are looked at."""


class ReloadError(Exception):
    """New workers could not work; the message says why."""


class Supervisor:
    """The places of workers."""

    def __init__(self, settings: ServerSettings, check: Callable[[], None]) -> None:
        """Describe the service; `check` raises `ReloadError` if new workers could not work."""
        self._settings = settings
        self._check = check
        self._listener = listening_socket(settings)
        self._workers: dict[int, Worker] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)
        places = range(1, self._settings.workers + 1)
        ready = [asyncio.Event() for _ in places]
        tasks = [
            *(asyncio.create_task(self._keep(*pair)) for pair in zip(places, ready, strict=True)),
            asyncio.create_task(self._announce(ready)),
            asyncio.create_task(self._reload_when_told()),
            asyncio.create_task(self._look_after()),
        ]
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
        if self._settings.unix_socket:
            with suppress(FileNotFoundError):
                os.unlink(self._settings.unix_socket)  # noqa: PTH108 - quick, nothing else runs
        await asyncio.gather(*(worker.stop() for worker in self._workers.values()), *self._leaving)

    async def _keep(self, place: int, ready: asyncio.Event) -> None:
        """Keep a worker in a place."""
        pause = 0.0
        while True:
            worker = self._workers.get(place)
            if worker is None:
                worker = await Worker.spawn(self._settings, self._listener)
                self._workers[place] = worker
                if await worker.wait_until_ready():
                    _LOG.info("Worker %s runs as process %s", place, worker.pid)
                    ready.set()
            code = await worker.wait()
            if self._workers.get(place) is not worker:
                continue
            del self._workers[place]
            if time.monotonic() - worker.born > _YOUNG:
                pause = 0.0
            _LOG.error(
                "Worker %s ended (%s); the next one starts in %s s", place, _reason(code), pause
            )
            await asyncio.sleep(pause)
            pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)

    async def _announce(self, ready: list[asyncio.Event]) -> None:
        for event in ready:
            await event.wait()
        _LOG.info("Serving at %s", self._settings.where())
        notify(f"READY=1\nSTATUS=Serving at {self._settings.where()}")

    async def _reload_when_told(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            notify(reloading())
            try:
                await _aside(self._check)
            except ReloadError as error:
                _LOG.error("Not reloaded: %s", error)
            else:
                _LOG.info("Reloading")
                for place in sorted(self._workers):
                    await self._replace(place)
            notify("READY=1")

    async def _replace(self, place: int) -> None:
        """Start another worker for a place; the old one goes when that one answers."""
        async with self._turn:
            successor = await Worker.spawn(self._settings, self._listener)
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
            _LOG.info("Worker %s runs as process %s", place, successor.pid)
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


async def _aside(function: Callable[[], None]) -> None:
    """Run in a thread what may wait long for a database; signals are heard meanwhile.

    The thread is a daemon, unlike those of asyncio: a stop does not wait for it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            function()
        except Exception as raised:  # noqa: BLE001 - raised again in the loop
            error = raised
        # The loop is closed if the service stops meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, error)

    threading.Thread(target=run, name="check", daemon=True).start()
    await done


def supervise(settings: ServerSettings, check: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP replaces the workers by new ones.

    Raises:
        OSError: if the address cannot be had.
    """
    allow_most_files()

    async def run() -> None:
        await Supervisor(settings, check).run()

    asyncio.run(run())


def _reason(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
