# SPDX-License-Identifier: Apache-2.0
"""The first steps of a loader: it checks the service, gets its sockets from the master, and serves."""

import logging
import select

from treeclaim.server.bounds import SILENCE_SECONDS
from treeclaim.server.processes.checks import UnusableError, check_flavors, check_service
from treeclaim.server.processes.children import LOADER_NAME, name_process
from treeclaim.server.processes.control import Control, report_work
from treeclaim.server.processes.generation import Generation
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)


def run_generation(settings: ServerSettings, control: Control, *, is_first: bool) -> None:
    """Serve as the master says; report to it why that is impossible."""
    name_process(LOADER_NAME)
    try:
        with report_work(control):
            state = check_service(settings)
            if not is_first:
                check_flavors(state.configuration)
        address = state.configuration.admin
        control.send("checked", admin=(address.host, address.port) if address else ())
        select.select([0, control.fileno()], [], [], SILENCE_SECONDS)
        order = control.receive()
        if order is None:
            return
        for problem in order[0].get("problems", ()):
            _LOG.error("%s", problem)
        sockets = list(order[1])
        listener = sockets.pop(0) if settings.workers else None
        admin_listener = sockets.pop(0) if sockets else None
        Generation(state, control, listener, admin_listener, is_first=is_first).run()
    except UnusableError as error:
        control.send("refused", why=str(error))
    except Exception as error:  # noqa: BLE001 - the master reports it
        _LOG.debug("The reason why the service cannot run is unknown", exc_info=True)
        control.send("refused", why=f"unexpected {type(error).__name__}: {error}")
