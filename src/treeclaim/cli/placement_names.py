# SPDX-License-Identifier: Apache-2.0
"""`placement-manage` and `placement-status`, the programs that deployment tools call.

Options for configuration files precede the command, as in oslo.config's programs. Options for logging have
no effect; tools pass them.
"""

import argparse
import sys
from collections.abc import Sequence

from treeclaim.cli.main import main


def manage(arguments: Sequence[str] | None = None) -> int:
    """Run `placement-manage`; return the exit status."""
    return _run("placement-manage", "db", arguments)


def status(arguments: Sequence[str] | None = None) -> int:
    """Run `placement-status`; return the exit status."""
    return _run("placement-status", "upgrade", arguments)


def _run(program: str, category: str, arguments: Sequence[str] | None) -> int:
    argument_list = list(sys.argv[1:] if arguments is None else arguments)
    parser = _make_parser(program, category)
    options = parser.parse_args(argument_list)
    if options.category is None:
        parser.print_help()
        return 0
    files = [
        part
        for name in ("config-file", "config-dir")
        for value in getattr(options, name.replace("-", "_"))
        for part in (f"--{name}", value)
    ]
    # The commands of treeclaim accept options for configuration files only at the end.
    return main([category, *options.command, *(files if options.command else [])])


def _make_parser(program: str, category: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--config-file", action="append", default=[], metavar="PATH")
    parser.add_argument("--config-dir", action="append", default=[], metavar="DIR")
    for name in ("debug", "nodebug", "use-syslog", "use-journal", "use-json"):
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-d", action="store_true", dest="debug", help=argparse.SUPPRESS)
    for name in ("log-file", "log-dir", "log-config-append", "log-date-format"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("category", nargs="?", choices=[category])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser
