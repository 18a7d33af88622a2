# SPDX-License-Identifier: Apache-2.0
"""`treeclaim hold`: keep room for claims to come (contract page 100)."""

import argparse
import uuid
from typing import Any

from treeclaim.cli.cloud.asking.question import add_question_options
from treeclaim.cli.cloud.asking.questions import ordered
from treeclaim.cli.cloud.changing.place import UNKNOWN, add_order_option, shown
from treeclaim.cli.cloud.endpoint import finish
from treeclaim.cli.cloud.progress import shown_waiting
from treeclaim.cli.cloud.providers import with_uuids
from treeclaim.cli.output import positive
from treeclaim.client import CandidateQuery, Client, Hold, Placed, PlacingRequest


def add_to(commands: Any) -> None:
    """Add the command."""
    hold = commands.add_parser(
        "hold",
        help="keep room for claims to come",
        description="Find room and keep it in holds, all or nothing. Claims draw from them with "
        "--from-hold; 'treeclaim release' ends one.",
    )
    add_hold_options(hold)
    finish(hold, run, json="show the server's document")


def add_hold_options(command: argparse.ArgumentParser) -> None:
    """Add what says how much is kept, and on what terms."""
    add_question_options(command)
    command.add_argument(
        "--amount", type=positive, default=1, help="how many holds, each for one such claim (1)"
    )
    add_order_option(command)
    command.add_argument(
        "--until", metavar="TIME", help="when they end, such as 2026-12-01T08:00:00Z; never"
    )
    command.add_argument(
        "--returns", action="store_true", help="what is drawn comes back when it is released"
    )
    command.add_argument(
        "--drawable-by",
        nargs="+",
        default=[],
        metavar="PROJECT",
        help="projects beside --project whose consumers may draw",
    )
    command.add_argument("--note", help="a line for people")
    command.add_argument("--dry-run", action="store_true", help="keep nothing")
    for name in ("project", "user"):
        command.add_argument(f"--{name}", default=UNKNOWN, help=f"of the holds ({UNKNOWN})")


def run(options: argparse.Namespace) -> int:
    """Make holds, and show where they are."""
    return shown(held, options)


def held(client: Client, query: CandidateQuery, options: argparse.Namespace) -> Placed:
    """Make the holds that a command's options describe, and show that it takes its time."""
    request = PlacingRequest(
        [with_uuids(client, ordered(query, options))],
        [str(uuid.uuid4()) for _ in range(options.amount)],
        options.project,
        options.user,
        hold=Hold(options.until, options.returns, options.drawable_by, options.note),
    )
    with shown_waiting(f"finding room for {options.amount}"):
        return client.place([request], dry_run=options.dry_run)
