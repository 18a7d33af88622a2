# SPDX-License-Identifier: Apache-2.0
"""Starts servers to measure: Treeclaim, and openstack-placement in an environment of its own."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil

from tests.environments import peer_environment
from tests.ports import free_port
from tests.servers import answers, running


def treeclaim_on(
    database: str,
    folder: Path,
    workers: int = 1,
    *,
    python: Path | None = None,
    source: Path | None = None,
) -> AbstractContextManager[tuple[str, psutil.Process]]:
    """Run Treeclaim on a database for a block, which gets its URL and process.

    Args:
        database: The URL of the database.
        folder: The folder of the log.
        workers: The number of worker processes.
        python: The interpreter; None for the current one.
        source: The folder that `treeclaim` is imported from; None for the installed package.
    """
    port = free_port()
    command = [str(python or sys.executable), "-m", "treeclaim", "serve", "--port", str(port)]
    command += ["--workers", str(workers)]
    environment = _environment(database)
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    return _running(command, environment, port, folder)


def openstack_placement_on(
    database: str, folder: Path, workers: int = 1
) -> AbstractContextManager[tuple[str, psutil.Process]]:
    """Run openstack-placement on a database for a block, which gets its URL and process.

    Raises:
        subprocess.CalledProcessError: if it cannot be installed.
    """
    port = free_port()
    command = [
        str(peer_environment() / "bin" / "gunicorn"),
        f"--workers={workers}",
        "--threads=4",
        "--timeout=600",
        "--keep-alive=300",
        f"--bind=127.0.0.1:{port}",
        "placement.wsgi.api:application",
    ]
    environment = _environment(database.replace("postgresql+psycopg:", "postgresql+psycopg2:"))
    return _running(command, environment, port, folder)


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
) -> Iterator[tuple[str, psutil.Process]]:
    log = folder / f"server-{port}.log"
    url = f"http://127.0.0.1:{port}"
    ready = answers(f"{url}/")
    with running(command, environment, log, ready) as server:
        yield url, psutil.Process(server.process.pid)


def memory_of(process: psutil.Process) -> int:
    """Return the memory of a server and its children in bytes; shared pages count once (PSS)."""
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
