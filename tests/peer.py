# SPDX-License-Identifier: Apache-2.0
"""Starts servers to measure: Treeclaim, and openstack-placement in an environment of its own."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.environments import peer_environment
from tests.ports import free_port
from tests.servers import answers, running

_START_SECONDS = 600
"""A million providers are loaded before the first answer, maybe on a busy machine."""


@contextmanager
def treeclaim_on(
    database: str,
    folder: Path,
    workers: int = 1,
    *,
    python: Path | None = None,
    source: Path | None = None,
) -> Iterator[tuple[str, psutil.Process]]:
    """Run Treeclaim on a database; its log is in a folder.

    Args:
        database: The URL of the database.
        folder: The folder of the log.
        workers: The number of worker processes.
        python: The interpreter; None for the current one.
        source: The folder that `treeclaim` is imported from; None for the installed package.

    Yields:
        Its URL and process.
    """
    port = free_port()
    command = [str(python or sys.executable), "-m", "treeclaim", "serve", "--port", str(port)]
    command += ["--workers", str(workers)]
    environment = _environment(database)
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    with _running(command, environment, port, folder) as process:
        yield f"http://127.0.0.1:{port}", process


@contextmanager
def openstack_placement_on(
    database: str, folder: Path, workers: int = 1
) -> Iterator[tuple[str, psutil.Process]]:
    """Run openstack-placement on a database; its log is in a folder.

    Yields:
        Its URL and process.
    """
    programs = peer_environment() / "bin"
    environment = _environment(database.replace("postgresql+psycopg:", "postgresql+psycopg2:"))
    port = free_port()
    command = [
        str(programs / "gunicorn"),
        f"--workers={workers}",
        "--threads=4",
        "--timeout=600",
        "--keep-alive=300",
        f"--bind=127.0.0.1:{port}",
        "placement.wsgi.api:application",
    ]
    with _running(command, environment, port, folder) as process:
        yield f"http://127.0.0.1:{port}", process


def _environment(database: str) -> dict[str, str]:
    return os.environ | {
        "OS_PLACEMENT_DATABASE__CONNECTION": database,
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_TREECLAIM__ADMIN_LISTEN": "",
    }


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str], port: int, folder: Path
) -> Iterator[psutil.Process]:
    log = folder / f"server-{port}.log"
    ready = answers(f"http://127.0.0.1:{port}/")
    with running(command, environment, log, ready, _START_SECONDS) as server:
        yield psutil.Process(server.process.pid)


def memory_of(process: psutil.Process) -> int:
    """Return the bytes of a server with its children; what they share counts once (PSS)."""
    family = [process, *process.children(recursive=True)]
    return sum(_memory_alone(member) for member in family)


def _memory_alone(process: psutil.Process) -> int:
    """Return the bytes of a process; nothing of one that has ended meanwhile."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a temporary folder for databases and logs."""
    return tempfile.TemporaryDirectory(prefix="treeclaim-bench-")
