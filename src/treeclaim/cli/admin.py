# SPDX-License-Identifier: Apache-2.0
"""`treeclaim admin`: the admin listener by itself.

`treeclaim serve` runs one beside its workers. Under another WSGI server it is run like this, with
the same PROMETHEUS_MULTIPROC_DIR in its environment as the workers have. SIGHUP makes it restart, with
the current code and configuration; if these cannot be used, it goes on.
"""

import argparse
import logging

from treeclaim import log_queue, logs
from treeclaim.cli.arguments import LocalCommand, add_config_options
from treeclaim.cli.output import CommandError
from treeclaim.cli.service.stores import configuration_of, opened_store
from treeclaim.config import PROJECT, Configuration
from treeclaim.server.processes.admin import inherited_or_new, replace_by_a_successor, serve
from treeclaim.server.processes.listening import ListenError

_LOG = logging.getLogger(__name__)


class ServeAdmin(LocalCommand):
    """Serve liveness, readiness and metrics until stopped.

    'treeclaim serve' does so by itself; this command is for other WSGI servers. SIGHUP reloads the code and
    the configuration.
    """

    example = "--config-file /etc/placement/placement.conf"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_config_options(parser)

    def act(self, options: argparse.Namespace) -> int:
        configuration = configuration_of(options)
        try:
            logs.set_up_logging(configuration.options, PROJECT)
        except logs.LoggingError as error:
            raise CommandError(str(error)) from error
        log_queue.start_log_thread()
        logs.log_options(configuration.options)
        try:
            listener = inherited_or_new(configuration)
        except ListenError as error:
            raise CommandError(str(error)) from error
        with opened_store(configuration) as store:
            is_renewed = serve(configuration, store, listener, lambda: _read_again(options))
        if is_renewed:
            replace_by_a_successor(configuration, listener)
        return 0


def _read_again(options: argparse.Namespace) -> Configuration | None:
    try:
        return configuration_of(options)
    except CommandError as error:
        for text in error.lines:
            _LOG.error("The admin listener was not renewed: %s", text)
        return None
