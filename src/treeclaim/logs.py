# SPDX-License-Identifier: Apache-2.0
"""Configures oslo.log, and puts a queue before its handlers, so that no log delays or fails a request."""

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
"""The file in `log_dir` if `log_file` is not set."""

_PLACEMENT_NAMES = {"treeclaim": "placement", REQUESTS.name: "placement.requestlog"}
"""Loggers of the Placement service, whose configuration Treeclaim's loggers use."""

_FILE_CLOCK_STEP_NS = 20_000_000
"""Resolution of the kernel's time stamps of files, with a margin."""


class LoggingError(Exception):
    """Logging cannot be set up; the message is for operators."""


def check_logging(options: cfg.ConfigOpts, program: str) -> None:
    """Set up logging as a service would, and undo it.

    This also removes created files: they belong to the user of the check, and the service could not write to them.

    Raises:
        LoggingError: if a service could not start with these options.
    """
    begin = time.time_ns() - _FILE_CLOCK_STEP_NS
    try:
        set_up_logging(options, program)
    finally:
        for logger in _list_loggers():
            for handler in [h for h in logger.handlers if isinstance(h, QueuedHandler)]:
                logger.removeHandler(handler)
                handler.close_file()
                path = Path(getattr(handler.handler, "baseFilename", os.devnull))
                status = path.stat() if path.is_file() else None
                if status is not None and not status.st_size and status.st_ctime_ns >= begin:
                    path.unlink()


def set_up_logging(options: cfg.ConfigOpts, program: str) -> None:
    """Set up logging by the operator's options, without a thread, so that the process may fork afterwards.

    With `log_dir` and without `log_file`, all processes write to one file, which is named as by the packages of
    the Placement service. oslo.log would name it after each process's script.

    Raises:
        LoggingError: if logging cannot be set up.
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
    except Exception as error:  # errors of the library, of files and of any handler
        raise LoggingError(f"logging cannot be set up: {error}") from error
    for name, placement_name in _PLACEMENT_NAMES.items():
        _follow_placement_logger(logging.getLogger(name), logging.getLogger(placement_name))
    queued_handlers: dict[logging.Handler, QueuedHandler] = {}
    for logger in _list_loggers():
        for handler in list(logger.handlers):
            if isinstance(handler, QueuedHandler):
                queued_handlers[handler] = handler
                continue
            if handler not in queued_handlers:
                queued_handlers[handler] = QueuedHandler(handler)
            logger.removeHandler(handler)
            logger.addHandler(queued_handlers[handler])
    handlers[:] = queued_handlers.values()


def _follow_placement_logger(logger: logging.Logger, placement: logging.Logger) -> None:
    """Copy level, handlers and propagation of a Placement logger to an unconfigured logger of Treeclaim."""
    if not logger.level:
        logger.setLevel(placement.level)
    if not logger.handlers:
        inherited_handlers = _find_inherited_handlers(logger)
        logger.propagate = placement.propagate
        for handler in placement.handlers:
            if not logger.propagate or handler not in inherited_handlers:
                logger.addHandler(handler)


def _find_inherited_handlers(logger: logging.Logger) -> list[logging.Handler]:
    """Return the handlers of the ancestors to which records propagate."""
    inherited_handlers: list[logging.Handler] = []
    ancestor = logger.parent
    while ancestor is not None:
        inherited_handlers += ancestor.handlers
        ancestor = ancestor.parent if ancestor.propagate else None
    return inherited_handlers


def _list_loggers() -> list[logging.Logger]:
    root = logging.getLogger()
    loggers = list(root.manager.loggerDict.values())
    return [root, *(logger for logger in loggers if isinstance(logger, logging.Logger))]


def log_options(options: cfg.ConfigOpts) -> None:
    """Log the values of all options if `log_options` is set."""
    if options.log_options:
        options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)
