# SPDX-License-Identifier: Apache-2.0
"""The real `openstack` command, many times without importing it each time."""

import json
import subprocess

from tests.paths import ROOT

_SCRIPT = ROOT / "tests" / "keystone" / "scripts" / "openstack_many.py"


class Shell:
    """Runs commands in an environment, each as a process of its own."""

    def __init__(self, python, environment, group):
        """Start; `group` names the subcommands that will be run."""
        self._process = subprocess.Popen(
            [str(python), str(_SCRIPT), group],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, environment=None):
        """Run a command, optionally in another environment; return its exit code and output."""
        self._process.stdin.write(json.dumps([arguments, environment]) + "\n")
        self._process.stdin.flush()
        document = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(list(arguments), *document)

    def close(self):
        """End the process that runs commands."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)
