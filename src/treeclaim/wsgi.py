# SPDX-License-Identifier: Apache-2.0
"""The WSGI application for any WSGI server: `treeclaim.wsgi:application`.

It is configured by the usual files and environment variables. The service starts with the first
request or, where a server imports the module before forking, in each worker by itself.
"""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from treeclaim import config, logs
from treeclaim.api.app import make_application

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class _Lazy:
    """Starts the service when it is first called, so that importing the module needs nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._application: WSGIApplication | None = None

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if self._application is None:
            self.start()
        if self._application is None:
            raise RuntimeError("the service did not start")
        return self._application(environment, start_response)

    def start(self) -> None:
        """Start the service now."""
        with self._lock:
            if self._application is None:
                configuration = config.load()
                logs.set_up(configuration)
                self._application = make_application(configuration)


application = _Lazy()
