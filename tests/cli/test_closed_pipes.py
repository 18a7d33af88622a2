# SPDX-License-Identifier: Apache-2.0
"""Commands end quietly when the reader of their output is gone, as with `| head -1`."""

import io
import os
from contextlib import closing

import pytest

from tests.cli.processes import call_program
from tests.cli.services import run_service, run_successful_command
from tests.paths import EXAMPLE
from tests.servers import command_environment
from treeclaim.cli.main import main
from treeclaim.cli.placement_names import manage, status

GONE = 141
"""Exit status, in a shell, of a command that SIGPIPE has ended."""

PRINTING = (
    "--help", "--version", "tree --help", "tree", "tree -f json", "tree -f csv", "tree -f value -c Name",
    "explain resources=VCPU:1", "provider show host-1 -f yaml", "claim resources=VCPU:1",
    "load TOPOLOGY --dry-run", "plan drain host-1", "config check", "config sample", "policy sample", "db check",
    "db version", "upgrade check", "demo --topology", "placement-manage db version",
    "placement-status upgrade check",
)  # fmt: skip
"""Command lines that print in every way that there is."""

PROGRAMS = {"placement-manage": manage, "placement-status": status}
"""Programs that command lines begin with, beside `treeclaim`."""


class Unread(io.TextIOWrapper):
    """The write end of a pipe without a reader; remembers whether anything was written to it.

    Buffered, writing fails in the middle of a long output, or at the end of a command; else at once.
    """

    is_written = False

    def __init__(self, *, is_buffered):
        reading, writing = os.pipe()
        os.close(reading)
        pipe = os.fdopen(writing, "wb", -1 if is_buffered else 0)
        super().__init__(pipe, encoding="utf-8", write_through=not is_buffered)

    def write(self, text):
        self.is_written = self.is_written or bool(text)
        return super().write(text)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of commands with a database, and a service with the example topology."""
    folder = tmp_path_factory.mktemp("closed")
    with run_service(folder) as variables:
        environment = command_environment(folder) | variables
        run_successful_command(environment, "db", "sync")
        run_successful_command(environment, "load", str(EXAMPLE))
        yield environment


def run_with_closed_output(program, environment, arguments, *, is_buffered):
    """Run a program with a closed output; return whether it printed an error, and its exit code."""
    with closing(Unread(is_buffered=is_buffered)) as unread:
        result = call_program(program, environment, *arguments, output=unread)
        assert "unexpected" not in result.stderr
        assert "roken" not in result.stderr
        return unread.is_written, result.returncode


@pytest.mark.parametrize("is_buffered", [True, False], ids=["buffered", "at once"])
@pytest.mark.parametrize("line", PRINTING)
def test_command_survives_closed_stdout(environment, line, is_buffered):
    first, *words = line.replace("TOPOLOGY", str(EXAMPLE)).split()
    program, arguments = (PROGRAMS[first], words) if first in PROGRAMS else (main, [first, *words])
    is_written, code = run_with_closed_output(
        program, environment, arguments, is_buffered=is_buffered
    )
    assert is_written
    # Some releases of Python ignore the error where argparse prints help.
    is_help = "--help" in line or line == "--version"
    assert code == GONE or (is_help and not is_buffered and code == 0)


@pytest.mark.parametrize("is_buffered", [True, False], ids=["buffered", "at once"])
def test_silent_command_succeeds_with_closed_stdout(environment, is_buffered):
    arguments = ["condition", "set", "host-1", "CLEANING"]
    assert run_with_closed_output(main, environment, arguments, is_buffered=is_buffered) == (
        False,
        0,
    )
