# SPDX-License-Identifier: Apache-2.0
"""`treeclaim admin`: the admin listener by itself.

`treeclaim serve` runs one beside its workers. Under another WSGI server it is run like this, with
the same PROMETHEUS_MULTIPROC_DIR in its environment as the workers have. SIGHUP makes it read the file of
flavors again.
"""

import argparse
from typing import Any

from treeclaim import logs, request_lines
from treeclaim.cli.config_options import add_config_options
from treeclaim.cli.configuration import configuration_of
from treeclaim.cli.output import CommandError
from treeclaim.cli.service.stores import opened_store
from treeclaim.config import PROJECT
from treeclaim.server.processes.admin import serve
from treeclaim.server.processes.listening import ListenError


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("admin", help="serve liveness, readiness and metrics")
    add_config_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    configuration = configuration_of(options)
    logs.set_up(configuration.options, PROJECT)
    request_lines.write_behind()
    logs.tell_options(configuration.options)
    try:
        with opened_store(configuration) as store:
            serve(configuration, store)
    except ListenError as error:
        raise CommandError(str(error)) from error
    return 0
