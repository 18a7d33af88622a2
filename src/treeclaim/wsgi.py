# SPDX-License-Identifier: Apache-2.0
"""The WSGI application for any WSGI server: `treeclaim.wsgi:application`.

It is configured by the usual files and environment variables. The service starts with the first
request or, where a server imports the module before forking, in each worker by itself.
"""

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from treeclaim import allocator, config, logs
from treeclaim.api.app import make_application as start

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


CONFIG_FILES_VARIABLE = "TREECLAIM_CONFIG_FILES"
"""Names configuration files to the workers of `treeclaim serve`."""


def make_application() -> "WSGIApplication":
    """Start the service now, configured by files and environment."""
    files = os.environ.get(CONFIG_FILES_VARIABLE, "")
    configuration = config.load(config_files=[one for one in files.split(os.pathsep) if one])
    logs.set_up(configuration)
    allocator.keep_large_blocks()
    return start(configuration)


class _Lazy:
    """Starts the service when it is first called, so that importing the module needs nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._application: WSGIApplication | None = None

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        with self._lock:
            if self._application is None:
                self._application = make_application()
        return self._application(environment, start_response)


application = _Lazy()
