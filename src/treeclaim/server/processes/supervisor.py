# SPDX-License-Identifier: Apache-2.0
"""The first process: keeps workers running (`places.py`), and replaces them on SIGHUP.

It imports nothing of the service: a loader checks, loads and forks for it (`loader.py`).
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

from treeclaim import log_queue, logs
from treeclaim.admin import Census
from treeclaim.admin.certificates import Expiry, received
from treeclaim.metrics_folder import provide_folder
from treeclaim.server.http.loop import new_loop
from treeclaim.server.processes.child import Child
from treeclaim.server.processes.forking import Forker, NoLoaderError
from treeclaim.server.processes.listening import allow_most_files, listening_socket
from treeclaim.server.processes.orders import Checked
from treeclaim.server.processes.places import AdminPlace, WorkerPlace
from treeclaim.server.processes.reaper import Reaper
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

DAY_SECONDS = 24 * 3600.0


class ExpiryWarnings:
    """What the log is told of certificates, for as long as the service runs."""

    def __init__(self, seconds: float = DAY_SECONDS) -> None:
        """Begin with none; `seconds` is the time between two warnings."""
        self._expiries: Sequence[Expiry] = ()
        self._seconds = seconds
        self._are_new = asyncio.Event()

    def use(self, expiries: Sequence[Expiry]) -> None:
        """Warn about these from now on."""
        self._expiries = expiries
        self._are_new.set()

    async def tell(self) -> None:
        """Warn, and again after each such time, and when there are others."""
        while True:
            self._are_new.clear()
            now = time.time()
            for expiry in self._expiries:
                if (words := expiry.words(now)) is not None:
                    _LOG.warning(
                        "%s (%s): renew it, and send SIGHUP",
                        words[0].upper() + words[1:],
                        expiry.path,
                    )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._are_new.wait(), self._seconds)


_LOOK_SECONDS = 30.0
"""How often age and memory of the workers are looked at."""


class Supervisor:
    """The first process: the places of workers and of the admin listener, and who forks for them."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._forker = Forker(settings, Reaper())
        self._places = [
            WorkerPlace(number, self._forker, is_only=settings.workers == 1)
            for number in range(1, settings.workers + 1)
        ]
        self._admin = AdminPlace(self._forker, self._census)
        self._expiries = ExpiryWarnings()
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()
        self._is_loaded = asyncio.Event()
        self._is_reload_refused = False

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
                self._follow(checked)
                log_queue.start_log_thread()
                await self._serve(checked)
        finally:
            self._forker.close()

    async def _opened(self) -> Checked | None:
        """Start the first loader; return what it has found out, None if told to stop meanwhile."""
        opening = asyncio.create_task(self._forker.open())
        stopped = asyncio.create_task(self._until_stopped())
        await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            stopped.cancel()
            return opening.result()
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        return None

    def _follow(self, checked: Checked) -> None:
        """Do what a loader has found in the configuration for this process."""
        logs.set_up_logging_by(checked.log_options, checked.program)
        self._expiries.use(received(checked.expiries))

    async def _serve(self, checked: Checked) -> None:
        self._listener = listening_socket(self._settings)
        self._admin.open(checked.admin)
        # The admin listener first: probes are answered while the database is waited for.
        work = [self._admin.keep(), self._load(), self._serve_when_loaded()]
        work += [self._announce(), self._expiries.tell()]
        tasks = [asyncio.create_task(coroutine) for coroutine in work]
        try:
            await self._watch(tasks)
        finally:
            await self._end(tasks)

    async def _load(self) -> None:
        await self._forker.load()
        self._is_loaded.set()

    async def _serve_when_loaded(self) -> None:
        await self._is_loaded.wait()
        work = [place.serve(self._listener) for place in self._places]
        await asyncio.gather(*work, self._reload_when_told(), self._look_after())

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
        _notify("STOPPING=1")
        _LOG.info("Stopping")
        # New connections are refused at once instead of waiting while the last workers finish.
        self._listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._forker.close()
        if self._settings.unix_socket:
            with suppress(FileNotFoundError):
                os.unlink(self._settings.unix_socket)  # noqa: PTH108 - quick, nothing else runs
        await asyncio.gather(*(place.stop() for place in self._places))
        await self._admin.stop()

    @property
    def _workers(self) -> list[Child]:
        return [place.child for place in self._places if place.child is not None]

    async def _census(self) -> Census:
        """Ask all workers that have begun to answer whether they have stalled."""
        workers = [worker for worker in self._workers if worker.is_ready]
        answers = await asyncio.gather(*(worker.answers() for worker in workers))
        answering: list[int] = []
        silent: list[int] = []
        reading: list[int] = []
        for worker, (is_alive, can_read) in zip(workers, answers, strict=True):
            # One that has ended meanwhile is about to be replaced.
            if worker.is_ready:
                (answering if is_alive else silent).append(worker.pid)
                if is_alive and can_read:
                    reading.append(worker.pid)
        return Census(answering, silent, reading, self._is_reload_refused)

    async def _announce(self) -> None:
        for place in self._places:
            await place.is_ready.wait()
        _LOG.info("Serving at %s", self._settings.where())
        _notify(f"READY=1\nSTATUS=Serving at {self._settings.where()}")

    async def _reload_when_told(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            _notify(_reloading())
            try:
                checked = await self._forker.renew()
            except NoLoaderError as error:
                self._is_reload_refused = True
                _LOG.error("Not reloaded: %s", error)
            else:
                self._is_reload_refused = False
                _LOG.info("Reloading")
                self._follow(checked)
                await self._admin.renew(checked.admin)
                for place in self._places:
                    await place.replace()
            _notify("READY=1")

    async def _look_after(self) -> None:
        """Replace workers that are too old or too large."""
        lifetime, memory = self._settings.lifetime, self._settings.memory
        if lifetime is None and memory is None:
            return await asyncio.Event().wait()  # type: ignore[return-value]
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for place in self._places:
                worker = place.child
                if worker is None:
                    continue
                is_old = lifetime is not None and time.monotonic() - worker.started_at > lifetime
                if is_old or (memory is not None and worker.memory() > memory):
                    _LOG.info("%s has become too %s", place.name, "old" if is_old else "large")
                    await place.replace()


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

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def _notify(state: str) -> None:
    """Send a state such as READY=1 to systemd (sd_notify(3)); without NOTIFY_SOCKET, or if nobody listens, do nothing."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(state.encode(), address)
        except OSError:
            # An absent watcher must not stop the service.
            return


def _reloading() -> str:
    """Return the state of a reload; systemd requires the time in it."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}"
