# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve`, the service, and `treeclaim admin`, its admin listener for other WSGI servers."""

import argparse
import socket
import stat
from importlib.util import find_spec
from pathlib import Path

from treeclaim.cli.arguments import CONFIG_OPTIONS, DeclaredCommand
from treeclaim.cli.output import PORT, CommandError
from treeclaim.server.settings import ALLOW_NOAUTH2, ServerSettings

_THREADS = 32
"""Requests that a process handles at once. Half may be writes that wait for the database, a quarter long
searches. A waiting thread costs 50 KB."""

_SHORTEST_LIFETIME = 60

_SERVICE_PACKAGES = ("falcon", "numpy", "oslo_log", "sqlalchemy")
"""Packages that the loader imports, but not the first process."""


class Serve(DeclaredCommand):
    """Serve the API until stopped. SIGHUP reloads code and configuration without losing a request."""

    example = "--workers 4 --config-file /etc/placement/placement.conf"

    # Attributes are named like the fields of ServerSettings.
    arguments = f"""
        --host ADDRESS = 127.0.0.1             address to listen on
        {ALLOW_NOAUTH2}                        allow noauth2, which accepts every caller, on addresses that other machines can reach
        --port PORT = {PORT}                   port to listen on
        --unix-socket PATH                     listen on a Unix socket instead of host and port
        --unix-socket-mode OCTAL               permissions of the Unix socket, such as 660
        --tls-certificate certificate:PATH     PEM file with certificate and chain; with it the service speaks TLS 1.2 and 1.3
        --tls-key key:PATH                     PEM file with the certificate's key
        --tls-client-ca client_authority:PATH  PEM file of the authority that must sign the certificates of clients
        --workers N = 1                        number of processes
        --threads N = {_THREADS}               concurrent requests of a process
        --worker-lifetime lifetime:SECONDS     replace a process after this time, at least {_SHORTEST_LIFETIME} seconds
        --worker-max-memory memory:MIB         replace a process that holds more memory; checked every 30 seconds
        {CONFIG_OPTIONS}
    """

    def execute(self, options: argparse.Namespace) -> None:
        settings = ServerSettings(**vars(options))
        if settings.lifetime is not None and settings.lifetime < _SHORTEST_LIFETIME:
            raise CommandError(f"--worker-lifetime must be at least {_SHORTEST_LIFETIME} seconds")
        if settings.unix_socket:
            _check_unix_socket(Path(settings.unix_socket))
        has_tls = settings.certificate or settings.key or settings.client_authority
        if has_tls and not (settings.certificate and settings.key):
            raise CommandError("TLS needs both --tls-certificate and --tls-key")
        _serve_until_stopped(settings)


class ServeAdmin(DeclaredCommand):
    """Serve liveness, readiness and metrics until stopped.

    'treeclaim serve' does so by itself; this command is for other WSGI servers, with the same
    PROMETHEUS_MULTIPROC_DIR in its environment as the workers have. SIGHUP reloads the code and
    the configuration.
    """

    example = "--config-file /etc/placement/placement.conf"

    arguments = CONFIG_OPTIONS

    def execute(self, options: argparse.Namespace) -> None:
        _serve_until_stopped(ServerSettings(workers=0, **vars(options)))


def _check_unix_socket(path: Path) -> None:
    """Remove the stale socket of a killed service; raise CommandError for anything else at the path."""
    if not path.parent.is_dir():
        raise CommandError(f"cannot listen on {path}: its folder does not exist")
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise CommandError(f"cannot listen on {path}: a file there is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise CommandError(f"cannot listen on {path}: another server does already")


def _serve_until_stopped(settings: ServerSettings) -> None:
    """Run the first process; raise ModuleNotFoundError if a package of the service is missing."""
    for package in _SERVICE_PACKAGES:
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
    # Slow to import; no other command needs it.
    from treeclaim.server.processes import master  # noqa: PLC0415
    from treeclaim.server.processes.listening import ListenError  # noqa: PLC0415

    try:
        master.run_master(settings)
    except (master.StartError, ListenError) as error:
        raise CommandError(*str(error).splitlines()) from error
