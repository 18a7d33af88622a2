# SPDX-License-Identifier: Apache-2.0
"""Runs the `openstack` command once for each line of JSON on standard input.

Its argument is the group of the subcommands that will be run.

A line in is the list of arguments and the environment, None for that of this process; a line out is exit
code, standard output and standard error.
The imports, which take most of the time, happen once. Each command then runs in a forked process, without state of
earlier commands.
"""

import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout

from openstackclient import shell


def once(arguments, environment):
    """Run the command; return its output and exit code."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = os.fork()
        if not process:
            _become_the_command(arguments, environment, output, errors)
        _, status = os.waitpid(process, 0)
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode())
        return os.waitstatus_to_exitcode(status), *texts


def _become_the_command(arguments, environment, output, errors):
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    os.dup2(output.fileno(), sys.stdout.fileno())
    os.dup2(errors.fileno(), sys.stderr.fileno())
    code = 1
    try:
        code = shell.main(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def main():
    """Answer until there is no more input."""
    with redirect_stdout(io.StringIO()):
        # To list all subcommands imports them.
        shell.main(["command", "list", f"--group={sys.argv[1]}"])
    for line in sys.stdin:
        print(json.dumps(once(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
