# SPDX-License-Identifier: Apache-2.0
"""`hold create` and `list`: capacity reserved for later claims (contract page 100)."""

import argparse
import uuid

from treeclaim.cli.arguments import add_repeatable
from treeclaim.cli.command import CloudLister, Result, amounts, lines
from treeclaim.cli.consumers.allocations import (
    DEFAULT_OWNER,
    add_amount_option,
    add_up,
    explained_refusals,
    placed_result,
)
from treeclaim.cli.names import add_tree_option, tree_filter, with_uuids
from treeclaim.cli.progress import shown_waiting
from treeclaim.cli.query_arguments import (
    add_order_option,
    add_query_arguments,
    ordered,
    query_of,
)
from treeclaim.client import Client

_FILTERS = ("project_id", "drawable_by", "until_before")


class CreateHolds(CloudLister):
    """Reserve capacity for later claims, all or nothing.

    Claims draw from holds with --from-hold; 'allocation release' ends a hold.
    """

    example = "resources=VCPU:8 --amount 3 --until 2026-12-01T08:00:00Z"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_query_arguments(parser)
        add_amount_option(parser, "holds, each for one claim of the query")
        add_order_option(parser)
        parser.add_argument(
            "--until",
            metavar="TIME",
            help="end of the holds, such as 2026-12-01T08:00:00Z (default: never)",
        )
        parser.add_argument(
            "--returns",
            action="store_true",
            help="a release gives back to the hold what was drawn from it",
        )
        add_repeatable(
            parser,
            "drawable-by",
            "PROJECT",
            "another project than --project whose consumers may draw",
        )
        parser.add_argument("--note", help="a note for people")
        parser.add_argument("--dry-run", action="store_true", help="do not create the holds")
        for name in ("project", "user"):
            parser.add_argument(
                f"--{name}",
                default=DEFAULT_OWNER,
                help=f"{name} of the holds (default: %(default)s)",
            )

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        query = query_of(options, self.compute(options, "--server-flavor"))
        request = {
            "alternatives": [str(with_uuids(client, ordered(query, options)))],
            "consumers": [str(uuid.uuid4()) for _ in range(options.amount)],
            "project_id": options.project,
            "user_id": options.user,
            "hold": {
                "until": options.until,
                "returns": options.returns,
                "projects": options.drawable_by,
                "note": options.note,
            },
        }
        with (
            explained_refusals(query, "holds", options.amount),
            shown_waiting(f"finding room for {options.amount}"),
        ):
            placed = client.place([request], dry_run=options.dry_run)
        return placed_result(placed, "Hold", is_dry=options.dry_run)


class ListHolds(CloudLister):
    """List holds with their terms, and what consumers have drawn from them."""

    example = "--in-tree host-1"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--project", dest="project_id", metavar="ID", help="only those of this project"
        )
        parser.add_argument(
            "--drawable-by", metavar="ID", help="only those from which this project may draw"
        )
        parser.add_argument(
            "--until-before",
            metavar="TIME",
            help="only those that end before, such as 2026-12-01T08:00:00Z",
        )
        add_tree_option(parser)

    def answer(self, client: Client, options: argparse.Namespace) -> Result:
        filters = {name: getattr(options, name) for name in _FILTERS if getattr(options, name)}
        filters |= tree_filter(client, options)
        holds = list(client.rows("/treeclaim/holds", "holds", **filters))
        rows = [
            (
                hold["uuid"],
                hold["project_id"],
                amounts(add_up(part["resources"] for part in hold["allocations"].values())),
                amounts(add_up(hold["hold"]["drawn"].values())),
                hold["hold"]["until"],
                hold["hold"]["returns"],
                lines(hold["hold"]["projects"]),
                hold["hold"]["note"],
            )
            for hold in holds
        ]
        columns = ("Hold", "Project", "Has", "Drawn", "Until", "Returns", "Drawable By", "Note")
        return Result(columns, rows, {"holds": holds}, notes=() if rows else ["Nothing is held."])
