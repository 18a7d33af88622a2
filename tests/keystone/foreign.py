# SPDX-License-Identifier: Apache-2.0
"""The scripts that run in the environment of foreign software."""

import json
import subprocess
from pathlib import Path

_SCRIPTS = Path(__file__).parent / "scripts"
_MOST_SECONDS = 300


def methods_unused_by(script, programs, environment, *arguments):
    """Run a script to its end; returns the names of the methods that it says it has not used.

    Args:
        script: Its name.
        programs: The folder of the programs of the environment that it runs in.
        environment: Environment of the process.
        arguments: Arguments of the script.
    """
    result = subprocess.run(
        [str(programs / "python"), str(_SCRIPTS / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-5000:]
    return json.loads(result.stdout)
