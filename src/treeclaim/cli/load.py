# SPDX-License-Identifier: Apache-2.0
"""`treeclaim load`: provider trees from a file into any Placement API endpoint."""

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from treeclaim.cli.endpoint import add_endpoint_options, client_of
from treeclaim.cli.output import CommandError
from treeclaim.client.apply import Outcome, apply_topology
from treeclaim.client.topology import TopologyError, read_topology


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("load", help="load provider trees from a file")
    command.add_argument("file", type=Path, help="a topology in YAML; see docs/loading.md")
    add_endpoint_options(command)
    command.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load a file and say what was done."""
    console = Console()
    try:
        planned = read_topology(options.file)
        with client_of(options) as client, console.status("Loading") as show:
            outcome = apply_topology(
                client, planned, dry_run=options.dry_run, progress=show.update
            )
    except TopologyError as error:
        raise CommandError(str(error)) from error
    console.print(summary(outcome, dry_run=options.dry_run))
    return 0


def summary(outcome: Outcome, *, dry_run: bool) -> str:
    """Say what was done to how many providers."""
    text = (
        f"{len(outcome.created)} created, {len(outcome.updated)} updated, "
        f"{len(outcome.unchanged)} unchanged"
    )
    return f"Would be: {text}" if dry_run else text
