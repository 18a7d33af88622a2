# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command line."""

import argparse
import sys
from collections.abc import Sequence

from treeclaim import __version__
from treeclaim.cli import candidates, database, demo, load, serve, tree
from treeclaim.cli.output import CommandError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except CommandError as error:
        print(f"treeclaim: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="treeclaim",
        description="Trees of resource providers: candidates in milliseconds, claims that never "
        "overbook.",
    )
    top.add_argument("--version", action="version", version=f"treeclaim {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (serve, database, load, candidates, tree, demo):
        module.add_to(commands)
    return top
