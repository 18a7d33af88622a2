# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve`: the service with a server of its own."""

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treeclaim.cli.configuration import add_config_options, configuration_of
from treeclaim.cli.output import PORT, CommandError
from treeclaim.config import Configuration
from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError
from treeclaim.store import Store, schema
from treeclaim.store.engine import await_database
from treeclaim.wsgi import CONFIG_FILES_VARIABLE

_THREADS = 4


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("serve", help="run the service")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on")
    command.add_argument("--port", type=int, default=PORT, help="port to listen on")
    command.add_argument("--workers", type=int, default=1, help="number of processes")
    command.add_argument(
        "--threads", type=int, default=_THREADS, help="requests that a process handles at a time"
    )
    add_config_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check that the service can start, then serve until stopped."""
    if options.workers < 1 or options.threads < 1:
        raise CommandError("--workers and --threads take a number of at least 1")
    if options.config_dir:
        raise CommandError("--config-dir is not possible here; name the files by --config-file")
    configuration = configuration_of(options)
    _check_database(configuration)
    _check_address(options.host, options.port)
    if options.config_file:
        files = [str(Path(one).resolve()) for one in options.config_file]
        os.environ[CONFIG_FILES_VARIABLE] = os.pathsep.join(files)
    with _admin(configuration, options):
        _serve(options)
    return 0


@contextmanager
def _admin(configuration: Configuration, options: argparse.Namespace) -> Iterator[None]:
    """Run the admin listener beside the workers; without it the service works as well."""
    if configuration.admin is None:
        yield
        return
    files = [part for one in options.config_file for part in ("--config-file", one)]
    command = [sys.executable, "-m", "treeclaim", "admin", "--until-input-ends", *files]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - ourselves
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _check_database(configuration: Configuration) -> None:
    """Find out here what would make every worker fail, and sync the schema only once."""
    store = Store(configuration.database)
    try:
        await_database(
            store.engine, attempts=configuration.max_retries, pause=configuration.retry_interval
        )
        if configuration.sync_on_startup:
            schema.sync(store.engine)
        schema.require_ready(store.engine)
    except (SchemaRevisionError, StoreUnavailableError) as error:
        raise CommandError(f"the database cannot be used: {error}") from error
    finally:
        store.close()


def _check_address(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _serve(options: argparse.Namespace) -> None:
    # Importing the server takes long, and no other command needs it.
    from granian import Granian  # noqa: PLC0415
    from granian.constants import Interfaces  # noqa: PLC0415

    Granian(
        "treeclaim.wsgi:make_application",
        factory=True,
        address=options.host,
        port=options.port,
        interface=Interfaces.WSGI,
        workers=options.workers,
        blocking_threads=options.threads,
        websockets=False,
        respawn_failed_workers=True,
    ).serve()
