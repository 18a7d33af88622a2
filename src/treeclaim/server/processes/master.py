# SPDX-License-Identifier: Apache-2.0
"""The master: the first process, which owns the listening sockets and a generation that serves them.

SIGHUP starts another generation. When all its processes answer, the former generation finishes its requests and ends.
If the new generation cannot serve, the former continues. A loader that has ended or stalled is replaced in the same
way, while its workers continue.

The master imports no module of the service, so later installations do not affect it.
"""

import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from treeclaim.metrics_folder import provide_folder
from treeclaim.server.bounds import (
    END_SECONDS,
    GRACE_SECONDS,
    SILENCE_SECONDS,
    STARTS,
    TICK_SECONDS,
)
from treeclaim.server.processes.children import Backoff, describe_end
from treeclaim.server.processes.control import make_controls
from treeclaim.server.processes.listening import (
    ListenError,
    allow_most_files,
    listen_at,
    open_listener,
)
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

_CONTROL = 3
"""File descriptor of the connection in a generation."""


class StartError(Exception):
    """The service cannot run; the message is the reason."""


class _Loader:
    """The process of a loader.

    Attributes:
        control: The connection to the loader.
        received_at: Time of the last message by the monotonic clock.
        exit_code: Exit code of an ended process, negative for a signal.
        is_lost: Whether the loader of a serving generation, or another process of an only worker, has ended or stalled.
        is_alone: Whether the loader has become the only worker, which reports no work.
        admin_address: Host and port of the admin listener; empty for none.
    """

    def __init__(self, settings: ServerSettings, *, is_first: bool) -> None:
        self.received_at = time.monotonic()
        self.has_ended = self.is_lost = self.is_alone = False
        self.exit_code = 0
        self.admin_address: tuple[Any, ...] = ()
        self.control, generation_end = make_controls()
        standard_input, self._lifeline = os.pipe()
        role = "first" if is_first else "next"
        module = ["-m", "treeclaim.server", settings.to_json(), str(_CONTROL), role]
        with generation_end:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, *module],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, standard_input, 0),
                    (os.POSIX_SPAWN_DUP2, generation_end.fileno(), _CONTROL),
                ],
            )
        os.close(standard_input)

    def receive(self) -> Mapping[str, Any] | None:
        """Return the next message, or None; raise ValueError if it is invalid."""
        received_message = self.control.receive()
        if received_message is None:
            return None
        self.received_at = time.monotonic()
        return received_message[0]

    def stop(self) -> None:
        """Close the standard input of the generation, whose processes then finish their requests and end."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def kill(self) -> None:
        """Kill the loader, but not its child processes."""
        if not self.has_ended:
            os.kill(self.pid, signal.SIGKILL)


class Master:
    """The first process.

    `_serving` is the loader of the serving generation, and `_starting` the loader of its successor.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._loaders: list[_Loader] = []
        self._serving: _Loader | None = None
        self._starting: _Loader | None = None
        self._listener: socket.socket | None = None
        self._admin_listeners: dict[tuple[Any, ...], socket.socket] = {}
        self._is_stopping = self._is_reload_due = False
        self._starts = 0
        self._problem = ""
        self._backoff = Backoff()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            StartError: if the service cannot run.
            ListenError: if the address cannot be bound.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        try:
            while not self._is_stopping:
                self._start_if_due()
                self._wait()
        finally:
            self._stop()

    def _note_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self._is_reload_due = True
        else:
            self._is_stopping = True

    def _start_if_due(self) -> None:
        if self._starting is not None or not self._backoff.is_due:
            return
        serving = self._serving
        if serving is not None and not serving.is_lost:
            if not self._is_reload_due:
                return
            self._is_reload_due = False
            _notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        self._starts += 1
        self._starting = _Loader(self._settings, is_first=serving is None)
        self._loaders.append(self._starting)

    def _wait(self) -> None:
        """Wait briefly for messages, and handle them; detect ended and stalled loaders."""
        select.select([loader.control for loader in self._loaders], [], [], TICK_SECONDS)
        self._reap()
        for loader in list(self._loaders):
            try:
                while (message := loader.receive()) is not None:
                    self._handle(loader, message)
            except (ValueError, LookupError) as error:
                reason = "the loader is of another release, which this process does not understand"
                self._abandon(loader, f"{reason} ({error}); restart the service instead")
            if loader.has_ended:
                self._loaders.remove(loader)
                loader.control.close()
                reason = f"the loader has ended ({describe_end(loader.exit_code)})"
                # A retry may succeed after a signal, but not after an exit by the loader itself.
                self._abandon(loader, reason, may_retry=loader.exit_code < 0)
            elif not loader.is_alone and time.monotonic() - loader.received_at > SILENCE_SECONDS:
                loader.kill()
                reason = f"the loader has stalled: it reported nothing for {SILENCE_SECONDS:.0f} s"
                self._abandon(loader, reason, may_retry=True)

    def _reap(self) -> None:
        # In a container, orphans become children of this process too.
        with suppress(ChildProcessError):
            while (ended_child := os.waitpid(-1, os.WNOHANG))[0]:
                for loader in self._loaders:
                    if loader.pid == ended_child[0]:
                        loader.has_ended = True
                        loader.exit_code = os.waitstatus_to_exitcode(ended_child[1])

    def _handle(self, loader: _Loader, message: Mapping[str, Any]) -> None:
        if loader is self._starting and message["kind"] == "checked":
            self._send_sockets(loader, message["admin"])
        elif loader is self._starting and message["kind"] == "ready":
            loader.is_alone = bool(message.get("is_alone"))
            self._note_ready(loader, message["where"])
        elif message["kind"] in {"refused", "lost"}:
            self._abandon(loader, str(message["why"]))

    def _send_sockets(self, loader: _Loader, address: Sequence[Any]) -> None:
        problems = [self._problem] if self._problem else []
        if self._listener is None and self._settings.workers:
            self._listener = open_listener(self._settings)
        loader.admin_address = tuple(address)
        try:
            # A process that inherited an earlier listener may still occupy the address.
            if address and loader.admin_address not in self._admin_listeners:
                self._admin_listeners[loader.admin_address] = listen_at(*address)
        except ListenError as error:
            reason = (
                f"[treeclaim]/admin_listen: {error}; without another address, or none, there are "
                "no probes and no metrics"
            )
            if self._serving is not None or not self._settings.workers:
                self._abandon(loader, reason)
                return
            problems.append(reason)
        admin_listener = self._admin_listeners.get(loader.admin_address)
        sockets = [
            listener for listener in (self._listener, admin_listener) if listener is not None
        ]
        loader.control.send("serve", sockets, problems=problems)

    def _note_ready(self, loader: _Loader, location: str) -> None:
        former_loader, self._serving, self._starting = self._serving, loader, None
        if former_loader is not None:
            former_loader.stop()
        self._close_other_admin_listeners(loader)
        self._backoff.reset()
        self._problem = ""
        _notify(f"READY=1\nSTATUS=Serving at {location}")

    def _abandon(self, loader: _Loader, reason: str, *, may_retry: bool = False) -> None:
        """Continue without a loader; raise StartError if no generation serves and a retry is useless."""
        if loader is self._starting:
            self._starting = None
            loader.stop()
            loader.kill()
            if self._serving is None:
                if not may_retry or self._starts >= STARTS:
                    raise StartError(reason)
                self._note_problem(reason)
                self._backoff.postpone()
                return
            self._close_other_admin_listeners(self._serving)
            if self._serving.is_lost:
                self._note_problem(reason)
                self._backoff.postpone()
            else:
                self._serving.control.send("reload_refused", why=reason)
                _notify("READY=1")
        elif loader is self._serving and not loader.is_lost:
            loader.is_lost = True
            self._note_problem(reason)

    def _close_other_admin_listeners(self, serving: _Loader) -> None:
        for address in self._admin_listeners.keys() - {serving.admin_address}:
            self._admin_listeners.pop(address).close()

    def _note_problem(self, reason: str) -> None:
        """Report a problem on standard error, and let the next loader log it: the master has no log."""
        self._problem = f"Another loader is started: {reason}"
        _LOG.error("%s", self._problem)

    def _stop(self) -> None:
        if self._listener is not None:
            _notify("STOPPING=1")
            # New connections are refused immediately instead of waiting for the last workers to finish.
            self._listener.close()
            if self._settings.unix_socket:
                with suppress(FileNotFoundError):
                    os.unlink(self._settings.unix_socket)  # noqa: PTH108 - quick, nothing else runs
        loaders = list(self._loaders)
        for loader in loaders:
            loader.stop()
        deadline = time.monotonic() + GRACE_SECONDS + 3 * END_SECONDS
        while not all(loader.has_ended for loader in loaders) and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS)
            self._reap()
        for loader in loaders:
            loader.kill()
            loader.control.close()


def run_master(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP starts another generation.

    Raises:
        StartError: if the service cannot run.
        ListenError: if the address cannot be bound.
    """
    if settings.workers:
        allow_most_files()
        provide_folder()
    Master(settings).run()


def _notify(state: str) -> None:
    """Send a state such as READY=1 to systemd if it listens (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        with suppress(OSError):
            sender.sendto(state.encode(), address)
