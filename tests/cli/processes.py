# SPDX-License-Identifier: Apache-2.0
"""Commands as processes of their own."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "treeclaim"]


def run(environment, *arguments):
    """Run a command to its end; its code is that which the tests import."""
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return subprocess.run(
        [*COMMAND, *arguments],
        env=path | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_placement(environment, name, *arguments):
    """Run `placement-manage` or `placement-status` to its end."""
    call = f"import sys; from treeclaim.cli.placement_names import {name}; sys.exit({name}())"
    return subprocess.run(
        [sys.executable, "-c", call, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
