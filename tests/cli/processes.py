# SPDX-License-Identifier: Apache-2.0
"""Commands run to their end: as processes of their own, or in this one."""

import io
import logging
import os
import subprocess
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

from tests.servers import TREECLAIM
from treeclaim.cli.main import main
from treeclaim.cli.registry import find_command

_MOST_SECONDS = 120


def run(environment, *arguments):
    """Run a command as a process; return its exit code and output."""
    return subprocess.run(
        [*TREECLAIM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )


def call(environment, *arguments, output=None):
    """Do the same in this process, for tests in which the process is not the point.

    To start a process takes longer than most commands. The standard output may be a stream of the caller.
    A server is a process nevertheless: it sets signal handlers, and awaits all children of its process.
    """
    if arguments[:1] in {("serve",), ("admin",)} and output is None:
        return run(environment, *arguments)
    # Modules that the command imports may set variables of the environment that other tests need.
    command = find_command(arguments)
    if command is not None:
        command[1].load()
    return call_program(main, environment, *arguments, output=output)


def call_program(program, environment, *arguments, output=None):
    """Call the function of a command line's entry point as if it were a process."""
    written, errors = io.StringIO(), io.StringIO()
    with (
        # A command ignores deprecation warnings of libraries, which fail tests.
        warnings.catch_warnings(action="ignore"),
        patch.dict(os.environ, environment, clear=True),
        logging_kept(),
        redirect_stdout(output or written),
        redirect_stderr(errors),
    ):
        try:
            code = program(list(arguments))
        except SystemExit as end:
            code = end.code
    command = [program.__name__, *arguments]
    return subprocess.CompletedProcess(command, code, written.getvalue(), errors.getvalue())


@contextmanager
def logging_kept():
    """Undo the changes of a command to loggers; otherwise later tests would keep all log records."""
    named = logging.root.manager.loggerDict.values()
    loggers = [
        logging.root,
        *(kept_logger for kept_logger in named if isinstance(kept_logger, logging.Logger)),
    ]
    before = [
        (logger, logger.level, list(logger.handlers), logger.propagate) for logger in loggers
    ]
    try:
        yield
    finally:
        for kept_logger, level, handlers, propagate in before:
            kept_logger.setLevel(level)
            kept_logger.handlers, kept_logger.propagate = handlers, propagate
