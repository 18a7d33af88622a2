# SPDX-License-Identifier: Apache-2.0
"""`treeclaim admin`: the admin listener by itself.

`treeclaim serve` starts one beside its workers. Under another WSGI server it is run like this, with
the same PROMETHEUS_MULTIPROC_DIR in its environment as the workers have.
"""

import argparse
import os
import socket
import sys
import threading
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client.registry import Collector

from treeclaim import logs
from treeclaim.admin.app import make_admin_application
from treeclaim.admin.collectors import FeedCollector, ResourceCollector
from treeclaim.admin.processes import ProcessCollector
from treeclaim.cli.configuration import add_config_options, configuration_of
from treeclaim.cli.output import CommandError
from treeclaim.config import Address, Configuration
from treeclaim.store import Store


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("admin", help="serve liveness, readiness and metrics")
    command.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when the standard input is closed, which is when the parent is gone",
    )
    add_config_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    configuration = configuration_of(options)
    if configuration.admin is None:
        raise CommandError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    logs.set_up(configuration)
    store = Store(configuration.database)
    server = _server(configuration, configuration.admin, store)
    if options.until_input_ends:
        threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        server.serve_forever()
    finally:
        store.close()
    return 0


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each request: a slow scrape must not hide that the service is alive."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Say nothing: probes come every few seconds."""


def _server(configuration: Configuration, address: Address, store: Store) -> _Server:
    collectors: list[Collector] = [FeedCollector(store), ProcessCollector()]
    if configuration.metrics_of_resources != "none":
        by_aggregate = configuration.metrics_of_resources == "aggregates"
        collectors.append(ResourceCollector(store, by_aggregate=by_aggregate))
    kind = type("_Here", (_Server,), {"address_family": _family(address.host)})
    try:
        server: _Server = kind((address.host, address.port), _Quiet)
    except OSError as error:
        raise CommandError(
            f"[treeclaim]/admin_listen: cannot listen on {address.host}:{address.port}: "
            f"{error.strerror}"
        ) from error
    server.set_app(make_admin_application(store, collectors))
    return server


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
