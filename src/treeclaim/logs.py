# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it."""

import logging
from collections.abc import Mapping
from copy import copy
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_log.formatters import JSONFormatter

from treeclaim.model.texts import one_line

LOG_FILE = "placement-api.log"
"""The file in `log_dir`, where `log_file` names none."""


def set_up(options: cfg.ConfigOpts, program: str) -> None:
    """Start logging as the operator's options say, each line when it is told.

    With `log_dir` and no `log_file` all processes write to one file of the name that the Placement
    service's packages use; oslo.log would name it by the script that a process was begun with.

    No thread is started, so a process may fork after this; see `request_lines.write_behind`.
    """
    options.set_default("log_file", LOG_FILE if options.log_dir else None)
    log.setup(options, program)
    for handler in logging.getLogger().handlers:
        if handler.formatter is not None and not isinstance(handler.formatter, JSONFormatter):
            handler.setFormatter(OneLine(handler.formatter))


def tell_options(options: cfg.ConfigOpts) -> None:
    """Log the values of all options, where an option asks for that."""
    if options.log_options:
        options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)


def options_of(options: cfg.ConfigOpts) -> dict[str, Any]:
    """Return the values of all options of logging, for a process that reads no configuration."""
    known = cfg.ConfigOpts()
    built_in = set(known)
    log.register_options(known)
    return {name: options[name] for name in known if name in options and name not in built_in}


def set_up_by(values: Mapping[str, Any], program: str) -> None:
    """Start logging as another process was told to; see `options_of`."""
    options = cfg.ConfigOpts()
    log.register_options(options)
    options([], default_config_files=[], default_config_dirs=[])
    for name, value in values.items():
        options.set_override(name, value)
    set_up(options, program)


class OneLine(logging.Formatter):
    """Escapes what would let a client forge a line (or hide one) in a log for people.

    Each message becomes one line, and so does what is known of the caller. The lines of a traceback
    stay lines: oslo.log begins each of them as it begins every line.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without changing it: other handlers format it too."""
        if isinstance(record, Lines):
            return record.text
        cleaned = copy(record)
        cleaned.msg, cleaned.args = one_line(record.getMessage()), None
        context = getattr(record, "context", None)
        if isinstance(context, dict):
            cleaned.context = {
                name: one_line(value) if isinstance(value, str) else value
                for name, value in context.items()
            }
        return one_line(self._inner.format(cleaned), keep="\n")


class Lines(logging.LogRecord):
    """Several formatted lines, for a handler that writes them at once."""

    def __init__(self, logger: str, text: str) -> None:
        super().__init__(logger, logging.INFO, __file__, 0, "", None, None)
        self.text = text
