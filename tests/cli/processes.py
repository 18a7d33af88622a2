# SPDX-License-Identifier: Apache-2.0
"""Commands run to their end: as processes of their own, or in this one."""

import io
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from tests.servers import TREECLAIM
from treeclaim.cli.main import main, parser

_MOST_SECONDS = 120


def run(environment, *arguments):
    """Run a command as a process; returns its exit code and what it wrote."""
    return subprocess.run(
        [*TREECLAIM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )


def call(environment, *arguments):
    """Do the same in this process, for tests in which the process is not the point.

    To start a process takes longer than most commands.
    """
    # What the command imports may keep things in the environment that others need later.
    parser(*arguments[:1])
    return call_program(main, environment, *arguments)


def call_program(program, environment, *arguments):
    """Call the function of a command line's entry point as if it were a process."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        # A process does not end when a library warns of what it will do some day; tests do.
        warnings.catch_warnings(action="ignore"),
        patch.dict(os.environ, environment, clear=True),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            code = program(list(arguments))
        except SystemExit as end:
            code = end.code
    command = [program.__name__, *arguments]
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def run_placement(environment, name, *arguments):
    """Run `placement-manage` or `placement-status` as a process."""
    call_it = f"import sys; from treeclaim.cli.placement_names import {name}; sys.exit({name}())"
    return subprocess.run(
        [sys.executable, "-c", call_it, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
