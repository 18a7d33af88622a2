# SPDX-License-Identifier: Apache-2.0
"""`treeclaim copy`: everything in one Placement API endpoint, to another one."""

import argparse
import os
from typing import Any

from treeclaim.cli.cloud.endpoint import client_at
from treeclaim.cli.cloud.progress import shown_progress
from treeclaim.cli.output import CommandError, positive, say
from treeclaim.client.copying.copy import CopyOutcome, compare, copy

_THREADS = 4
_MOST_SHOWN = 50


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "copy",
        help="copy everything from one Placement API endpoint to another, and compare the two",
    )
    for end in ("from", "to"):
        _add_end(command, end)
    command.add_argument(
        "--compare", action="store_true", help="only compare the two; nothing is written"
    )
    command.add_argument(
        "--threads", type=positive, default=_THREADS, help="reading requests made at once"
    )
    command.set_defaults(run=run)


def _add_end(command: argparse.ArgumentParser, end: str) -> None:
    upper = end.upper()
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument(f"--{end}", dest=f"{end}_url", metavar="URL", help="URL of the endpoint")
    where.add_argument(
        f"--{end}-cloud", metavar="NAME", help="a cloud of clouds.yaml; needs treeclaim[cloud]"
    )
    command.add_argument(
        f"--{end}-token",
        metavar="TOKEN",
        help=f"token to send to --{end} (or TREECLAIM_{upper}_TOKEN, or OS_TOKEN)",
    )


def run(options: argparse.Namespace) -> int:
    """Copy and compare; the exit code is 1 if anything differs in the end."""
    with (
        client_at(options.from_url, _token(options, "from"), options.from_cloud) as source,
        client_at(options.to_url, _token(options, "to"), options.to_cloud) as target,
        shown_progress() as report,
    ):
        if options.compare:
            outcome = CopyOutcome(
                differences=compare(source, target, report, threads=options.threads)
            )
        else:
            outcome = copy(source, target, report, threads=options.threads)
    _say(outcome, only_compared=options.compare)
    return 1 if outcome.refused or outcome.differences else 0


def _token(options: argparse.Namespace, end: str) -> str:
    """Return the token for one end: what is given, or what the environment has."""
    given: str | None = getattr(options, f"{end}_token")
    if given and getattr(options, f"{end}_cloud"):
        raise CommandError(
            f"--{end}-token is for --{end}; a cloud of clouds.yaml has its own authentication"
        )
    names = (f"TREECLAIM_{end.upper()}_TOKEN", "OS_TOKEN")
    return given or next((os.environ[name] for name in names if os.environ.get(name)), "admin")


def _say(outcome: CopyOutcome, *, only_compared: bool) -> None:
    if not only_compared:
        say(
            f"{outcome.providers} providers and {outcome.consumers} consumers written, "
            f"{outcome.unchanged} already equal"
        )
    for title, lines in (("refused", outcome.refused), ("differs", outcome.differences)):
        say(*(f"{title}: {line}" for line in lines[:_MOST_SHOWN]))
        if len(lines) > _MOST_SHOWN:
            say(f"{title}: and {len(lines) - _MOST_SHOWN} more")
    if not outcome.differences:
        say("The target has everything that the source has.")
