# SPDX-License-Identifier: Apache-2.0
"""Handlers of the log that raise in one of their methods, for `log_config_append`."""

import logging


class Broken(logging.StreamHandler):
    """A handler that raises in a method."""

    def __init__(self, method):
        super().__init__()
        setattr(self, method, self._fail)

    def _fail(self, *_given):
        raise RuntimeError("broken")


METHODS = ("emit", "filter", "flush", "format", "handle", "handleError", "acquire", "release")
"""The methods that logging calls for a line."""
