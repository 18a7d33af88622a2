# SPDX-License-Identifier: Apache-2.0
"""Long calls show their progress on a terminal."""

import os
import pty
import select
import subprocess
import sys

from tests.servers import usual_environment

_WAIT = """\
import sys
from treeclaim.cli.printing import show_waiting
with show_waiting("placing 3"):
    sys.stdin.read(1)
print("done")
"""
_MOST_SECONDS = 60


def read_until(terminal, end):
    """The output on a terminal up to a text."""
    received = b""
    while end not in received:
        ready, _, _ = select.select([terminal], [], [], _MOST_SECONDS)
        assert ready, received
        received += os.read(terminal, 4096)
    return received


def test_progress_is_shown_on_a_terminal(tmp_path):
    terminal, inside = pty.openpty()
    environment = usual_environment(tmp_path, TERM="xterm")
    command = [sys.executable, "-c", _WAIT]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=inside
    ) as process:
        os.close(inside)
        # The call ends only after its progress was reported.
        assert b"placing 3" in read_until(terminal, b"placing 3")
        output, _ = process.communicate(b".", timeout=_MOST_SECONDS)
    os.close(terminal)
    assert output == b"done\n"
    assert process.returncode == 0
