# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command line."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from treeclaim import __version__
from treeclaim.cli.output import CommandError

_MODULES = {
    "serve": "serve",
    "db": "service.database",
    "upgrade": "service.upgrade",
    "config": "service.configured",
    "policy": "service.configured",
    "admin": "admin",
    "load": "cloud.load",
    "copy": "cloud.copy",
    "candidates": "cloud.candidates",
    "explain": "cloud.candidates",
    "claim": "cloud.candidates",
    "release": "cloud.candidates",
    "tree": "cloud.tree",
    "demo": "demo",
}
"""The module of each command. Only that of the command given is imported: a client of a service
has no use for the service, which takes seconds to import."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser(given[0] if given else None).parse_args(given)
    try:
        return int(options.run(options))
    except CommandError as error:
        print(f"treeclaim: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one command, or of all if there is none of that name."""
    top = argparse.ArgumentParser(
        prog="treeclaim",
        description="Trees of resource providers: candidates in milliseconds, claims that never "
        "overbook.",
    )
    top.add_argument("--version", action="version", version=f"treeclaim {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    wanted = [_MODULES[command]] if command in _MODULES else list(dict.fromkeys(_MODULES.values()))
    for name in wanted:
        import_module(f"treeclaim.cli.{name}").add_to(commands)
    return top
