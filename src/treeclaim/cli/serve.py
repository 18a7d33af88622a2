# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve`, the service with a server of its own, and `treeclaim admin`, its admin listener alone."""

import argparse
import socket
import stat
from importlib.util import find_spec
from pathlib import Path

from treeclaim.cli.arguments import CONFIG_OPTIONS, LocalCommand
from treeclaim.cli.output import PORT, CommandError
from treeclaim.server.settings import ALLOW_NOAUTH2, ServerSettings

_THREADS = 32
"""Requests that a process handles at a time: half of them may be writes that wait for the database,
and a quarter long questions, while the rest go on. A thread that waits costs 50 KB."""

_SHORTEST_LIFETIME = 60

_SERVICE_PACKAGES = ("falcon", "numpy", "oslo_log", "sqlalchemy")
"""Packages that the loader imports; the first process needs none of them."""


class Serve(LocalCommand):
    """Serve the API until stopped. SIGHUP reloads code and configuration without losing a request."""

    example = "--workers 4 --config-file /etc/placement/placement.conf"

    arguments = f"""
        --host ADDRESS = 127.0.0.1   address to listen on
        {ALLOW_NOAUTH2}              let noauth2, which believes every caller, listen on addresses that other machines can reach
        --port PORT = {PORT}         port to listen on
        --unix-socket PATH           listen on a Unix socket instead of host and port
        --unix-socket-mode OCTAL     permissions of the Unix socket, such as 660
        --tls-certificate PATH       PEM file with certificate and chain; with it the service speaks TLS 1.2 and 1.3
        --tls-key PATH               PEM file with the certificate's key
        --tls-client-ca PATH         PEM file of the authority that must have signed clients' certificates
        --workers N = 1              number of processes
        --threads N = {_THREADS}     requests that a process handles at a time
        --worker-lifetime SECONDS    replace a process after this time, at least {_SHORTEST_LIFETIME} seconds
        --worker-max-memory MIB      replace a process that holds more memory; checked every 30 seconds
        {CONFIG_OPTIONS}
    """

    def act(self, options: argparse.Namespace) -> None:
        _check_numbers(options)
        if options.unix_socket:
            _check_unix_socket(Path(options.unix_socket))
        _check_tls(options)
        _serve_until_stopped(_settings(options))


class ServeAdmin(LocalCommand):
    """Serve liveness, readiness and metrics until stopped.

    'treeclaim serve' does so by itself; this command is for other WSGI servers, with the same
    PROMETHEUS_MULTIPROC_DIR in its environment as the workers have. SIGHUP reloads the code and
    the configuration.
    """

    example = "--config-file /etc/placement/placement.conf"

    arguments = CONFIG_OPTIONS

    def act(self, options: argparse.Namespace) -> None:
        _serve_until_stopped(
            ServerSettings(
                workers=0,
                config_files=_resolve(options.config_file),
                config_dirs=_resolve(options.config_dir),
            )
        )


def _check_numbers(options: argparse.Namespace) -> None:
    lifetime = options.worker_lifetime
    if lifetime is not None and lifetime < _SHORTEST_LIFETIME:
        raise CommandError(f"--worker-lifetime must be at least {_SHORTEST_LIFETIME} seconds")


def _check_unix_socket(path: Path) -> None:
    """Take away the socket that a service left which was killed, but no other file."""
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


def _check_tls(options: argparse.Namespace) -> None:
    certificate, key, authority = options.tls_certificate, options.tls_key, options.tls_client_ca
    if certificate is None and key is None and authority is None:
        return
    if certificate is None or key is None:
        raise CommandError("TLS needs both --tls-certificate and --tls-key")


def _serve_until_stopped(settings: ServerSettings) -> None:
    """Run the first process of a service, or of an admin listener.

    Raises:
        CommandError: if it cannot run.
        ModuleNotFoundError: if a package of the service is not installed.
    """
    for package in _SERVICE_PACKAGES:
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
    # Importing the server takes a while, and no other command needs it.
    from treeclaim.server.processes import master  # noqa: PLC0415
    from treeclaim.server.processes.listening import ListenError  # noqa: PLC0415

    try:
        master.run_master(settings)
    except (master.StartError, ListenError) as error:
        raise CommandError(*str(error).splitlines()) from error


def _settings(options: argparse.Namespace) -> ServerSettings:
    return ServerSettings(
        host=options.host,
        port=options.port,
        unix_socket=_text(options.unix_socket),
        unix_socket_mode=options.unix_socket_mode,
        workers=options.workers,
        threads=options.threads,
        certificate=_text(options.tls_certificate),
        key=_text(options.tls_key),
        client_authority=_text(options.tls_client_ca),
        lifetime=options.worker_lifetime,
        memory=options.worker_max_memory,
        config_files=_resolve(options.config_file),
        config_dirs=_resolve(options.config_dir),
        allow_noauth2=options.allow_noauth2,
    )


def _resolve(paths: list[str]) -> list[str]:
    return [str(Path(path).resolve()) for path in paths]


def _text(path: str | None) -> str | None:
    return path and str(Path(path).resolve())
