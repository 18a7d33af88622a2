# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it, behind a queue: no log can delay or fail a request.

Each handler that the operator configured is replaced by one that puts records into the queue of the
process, see `log_queue`.
"""

import logging
import os
import time
from importlib.util import find_spec
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from treeclaim.log_lines import REQUESTS
from treeclaim.log_queue import QueuedHandler, handlers

LOG_FILE = "placement-api.log"
"""The file in `log_dir`, where `log_file` names none."""

_PLACEMENT_NAMES = {"treeclaim": "placement", REQUESTS.name: "placement.requestlog"}
"""Our loggers, and the loggers of the Placement service that operators configured in their place."""

_FILE_CLOCK_STEP_NS = 20_000_000
"""The kernel stamps files with a clock that advances every few milliseconds."""


class LoggingError(Exception):
    """Logging cannot be set up; the message is for operators."""


def check_logging(options: cfg.ConfigOpts, program: str) -> None:
    """Set up logging as a service would, undo it, and remove the files that this made.

    A file that belongs to the user who checks would keep the service from writing to it.

    Raises:
        LoggingError: if a service could not start with these options.
    """
    begin = time.time_ns() - _FILE_CLOCK_STEP_NS
    try:
        set_up_logging(options, program)
    finally:
        for logger in _all_loggers():
            for handler in [h for h in logger.handlers if isinstance(h, QueuedHandler)]:
                logger.removeHandler(handler)
                handler.close_file()
                path = Path(getattr(handler.handler, "baseFilename", os.devnull))
                made = path.stat() if path.is_file() else None
                if made is not None and not made.st_size and made.st_ctime_ns >= begin:
                    path.unlink()


def set_up_logging(options: cfg.ConfigOpts, program: str) -> None:
    """Start logging as the operator's options say.

    With `log_dir` and no `log_file` all processes write to one file of the name that the Placement
    service's packages use; oslo.log would name it by the script that a process was begun with.

    No thread is started, so a process may fork after this; see `log_queue.start_log_thread`.

    Raises:
        LoggingError: if that cannot be done; the message says why.
    """
    options.set_default("log_file", LOG_FILE if options.log_dir else None)
    if options.publish_errors and not options.log_config_append:
        raise LoggingError("[DEFAULT]/publish_errors is not supported: set it to false")
    if options.use_journal and not options.log_config_append and find_spec("systemd") is None:
        raise LoggingError(
            "[DEFAULT]/use_journal needs the Python package systemd-python, which is not installed: "
            "install it beside Treeclaim, or set use_journal to false"
        )
    try:
        log.setup(options, program)
    except (
        Exception
    ) as error:  # the library has an error of its own, and files and handlers have theirs
        raise LoggingError(f"logging cannot be set up: {error}") from error
    for name, placement_name in _PLACEMENT_NAMES.items():
        _follow_placement_logger(logging.getLogger(name), logging.getLogger(placement_name))
    queued: dict[logging.Handler, QueuedHandler] = {}
    for logger in _all_loggers():
        for handler in list(logger.handlers):
            if isinstance(handler, QueuedHandler):
                queued[handler] = handler
                continue
            if handler not in queued:
                queued[handler] = QueuedHandler(handler)
            logger.removeHandler(handler)
            logger.addHandler(queued[handler])
    handlers[:] = queued.values()


def _follow_placement_logger(logger: logging.Logger, placement: logging.Logger) -> None:
    """Apply the level, handlers and propagation of a Placement logger, unless ours has its own."""
    if not logger.level:
        logger.setLevel(placement.level)
    if not logger.handlers:
        reached = _handlers_above(logger)
        logger.propagate = placement.propagate
        for handler in placement.handlers:
            if not logger.propagate or handler not in reached:
                logger.addHandler(handler)


def _handlers_above(logger: logging.Logger) -> list[logging.Handler]:
    """Return the handlers that a line reaches besides those of its own logger."""
    reached: list[logging.Handler] = []
    above = logger.parent
    while above is not None:
        reached += above.handlers
        above = above.parent if above.propagate else None
    return reached


def _all_loggers() -> list[logging.Logger]:
    root = logging.getLogger()
    loggers = list(root.manager.loggerDict.values())
    return [root, *(logger for logger in loggers if isinstance(logger, logging.Logger))]


def log_options(options: cfg.ConfigOpts) -> None:
    """Log the values of all options, where an option asks for that."""
    if options.log_options:
        options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)
