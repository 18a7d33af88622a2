# SPDX-License-Identifier: Apache-2.0
"""Server processes: start, readiness, stop."""

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import httpx
import psutil

from tests import authorities
from tests.ports import free_port
from treeclaim.server.processes.children import LOADER_NAME, WORKER_NAME

TREECLAIM = (sys.executable, "-m", "treeclaim")
"""The command, run from the code that the tests import."""

START_SECONDS = 180
_FIRST_ANSWER_SECONDS = 600
"""Enough to load a million providers on a busy machine."""

_STOP_SECONDS = 90
"""Longer than other web servers wait for their workers before they kill them."""
_POLL_SECONDS = 0.05

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients without TLS: reading all certificates takes longer than most requests."""


class NoAnswerError(Exception):
    """A condition did not become true in time; the message has the reason and the server's output."""


def usual_environment(folder, **variables):
    """Return an environment without the configuration of the user."""
    wanted = ("PATH", "PYTHONPATH", authorities.VARIABLE)
    kept = {name: os.environ[name] for name in wanted if name in os.environ}
    fixed = {
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "COLUMNS": "200",
        # An admin listener costs a process, and all services would use the same default address.
        "OS_TREECLAIM__ADMIN_LISTEN": "",
    }
    return kept | fixed | variables


def command_environment(folder, database=None, **variables):
    """Return the environment of a `treeclaim` command without configuration files and authentication.

    Args:
        folder: Home directory, without a configuration.
        database: URL of the database; by default an SQLite file in the folder.
        variables: Further variables.
    """
    fixed = {
        "OS_PLACEMENT_CONFIG_DIR": str(folder),
        "OS_PLACEMENT_DATABASE__CONNECTION": database or f"sqlite:///{folder / 'placement.db'}",
        "OS_API__AUTH_STRATEGY": "noauth2",
    }
    return usual_environment(folder, **fixed | variables)


def service_environment(folder, database=None, **variables):
    """Return the environment of a service that creates its schema at the start."""
    return command_environment(
        folder, database, **{"OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true"} | variables
    )


def eventually(condition, description="the condition", seconds=START_SECONDS, pause=_POLL_SECONDS):
    """Wait until `condition()` returns a true value; return the value."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise NoAnswerError(f"{description}: not within {seconds} s")
        time.sleep(pause)
    return result


class Server:
    """A server process that writes to a log file.

    Attributes:
        process: The process; None while it is stopped.
        log: The file with its output.
        admin_url: URL of its admin listener; None without one.
    """

    def __init__(self, command, environment, log, is_ready):
        """Describe a server; `is_ready()` returns whether it answers."""
        self.process = None
        self.log = log
        self.admin_url = None
        self._command = list(map(str, command))
        self._environment = environment
        self._is_ready = is_ready

    def start(self):
        """Start the process, and wait until the server answers."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,
            )
        try:
            eventually(self._ready_or_dead, self._command[0], _FIRST_ANSWER_SECONDS)
        except NoAnswerError:
            self.stop()
            raise

    def _ready_or_dead(self):
        if self.process.poll() is not None:
            raise NoAnswerError(f"{self._command}: ended\n{self.log.read_text()}")
        # If the process has ended, another server gave the answer.
        return self._is_ready() and self.process.poll() is None

    def send(self, number):
        """Send a signal to its first process."""
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """Stop the process; return its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=_STOP_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, path):
        """Return status and text of a path of the admin listener; None without a response."""
        with suppress(httpx.TransportError):
            answer = httpx.get(self.admin_url + path, timeout=30)
            return answer.status_code, answer.text
        return None

    def metric(self, name):
        """Return the value of a metric of the admin listener, named by a pattern."""
        text = self.ask("/metrics")[1]
        return float(re.search(rf"^{name} (.*)$", text, re.MULTILINE)[1])

    def await_status(self, path, status):
        """Wait until a path of the admin listener has a status; return its text."""
        return eventually(
            lambda: answer[1] if (answer := self.ask(path)) and answer[0] == status else None,
            f"{path} answers {status}",
        )


class Service(Server):
    """`treeclaim serve`, with its log in a folder.

    Args:
        environment: Environment of the process.
        folder: Working directory, with the log.
        options: Options of the command.
        url: Address to listen on; by default a free loopback port.
        prefix: A program and its arguments that run the command.
        is_awaited: Whether `start` waits for the first answer.
        how: Options of the httpx client that probes the service.

    Attributes:
        url: URL of the service.
    """

    def __init__(self, environment, folder, *options, url=None, prefix=(), is_awaited=True, **how):
        self.url = url or f"http://127.0.0.1:{free_port()}"
        port = httpx.URL(self.url).port
        command = [*prefix, *TREECLAIM, "serve", f"--port={port}", *options]
        is_ready = answers(self.url, **how) if is_awaited else lambda: True
        super().__init__(command, environment, folder / f"treeclaim-{port}.log", is_ready)
        self.admin_url = f"http://{environment.get('OS_TREECLAIM__ADMIN_LISTEN')}"

    def processes(self, *names):
        """Return the child processes with these names."""
        processes = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if child.name() in names and child.status() != psutil.STATUS_ZOMBIE:
                    processes.append(child)
        return processes

    def workers(self):
        """Return the workers, without the children that they fork for long searches."""
        workers = set()
        for worker in self.processes(WORKER_NAME):
            with suppress(psutil.NoSuchProcess):
                if worker.parent().name() != WORKER_NAME:
                    workers.add(worker)
        return workers

    def await_workers(self, number, former=()):
        """Wait until a single generation serves with `number` workers, none of them in `former`; return the workers.

        A generation serves once its admin listener answers; a generation that loses a worker earlier ends.
        """

        def new_workers():
            with suppress(psutil.NoSuchProcess):
                workers = self.workers()
                # An only worker is its own loader.
                loaders = {
                    parent if (parent := worker.parent()).name() == LOADER_NAME else worker
                    for worker in workers
                }
                loaders.update(self.processes(LOADER_NAME))
                if len(loaders) == 1 and all(map(self._serves, loaders)):
                    is_complete = len(workers) == number and not workers & set(former)
                    return workers if is_complete else None
            return None

        return eventually(new_workers, f"{number} workers run")

    def _serves(self, loader):
        line = re.compile(rf" {loader.pid} INFO .*Serving at ".encode())
        # A test may also log to another file, and rotate it.
        return any(line.search(log.read_bytes()) for log in self.log.parent.rglob("*.log*"))

    def await_process(self, name):
        """Wait for a child process with a name; return it."""
        return eventually(lambda: self.processes(name), f"there is {name}")[0]


def running(command, environment, log, is_ready):
    """Run a server for a block."""
    return _started(Server(command, environment, log, is_ready))


def serving(*arguments, **options):
    """Run a `Service` for a block, with its arguments."""
    return _started(Service(*arguments, **options))


@contextmanager
def _started(server):
    server.start()
    try:
        yield server
    finally:
        server.stop()


def answers(url, **options):
    """Return a function that checks whether a URL answers."""
    verify = options.pop("verify", NO_CERTIFICATES)

    def ask():
        try:
            with httpx.Client(timeout=5, verify=verify, **options) as client:
                client.get(url)
        except httpx.HTTPError:
            return False
        return True

    return ask
