# SPDX-License-Identifier: Apache-2.0
"""The gabbi fixtures that suites can name; a suite that names none gets `FreshService`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.services import Application, FreshService
from tests.conformance.wide_hosts import EightByEight, OneUnitChildren

__all__ = ["EightByEight", "FreshService", "MountedService", "OneUnitChildren"]

PREFIX = "/placement"


class MountedService(FreshService):
    """The service lives below a prefix; a client asks for `/placement/...`."""

    def mount(self, application: Application) -> Application:
        """Take the prefix off, as a web server does."""

        def mounted(
            environ: dict[str, Any], start_response: Callable[..., Any]
        ) -> Iterable[bytes]:
            environ["SCRIPT_NAME"] = PREFIX
            environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix(PREFIX)
            return application(environ, start_response)

        return mounted
