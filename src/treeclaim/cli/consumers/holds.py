# SPDX-License-Identifier: Apache-2.0
"""`hold create` and `list`: capacity reserved for later claims (contract page 100)."""

import argparse
from typing import Any

from treeclaim.cli.command import Cell, CloudLister, Result
from treeclaim.cli.consumers.allocations import DEFAULT_OWNER, PlacingCommand, sum_amounts
from treeclaim.cli.names import TREE_OPTION, build_tree_filter
from treeclaim.cli.query_arguments import ORDER_OPTION, QUERY_ARGUMENTS
from treeclaim.client import Client

_FILTERS = ("project_id", "drawable_by", "until_before")


class CreateHolds(PlacingCommand):
    """Reserve capacity for later claims, all or nothing.

    Claims draw from holds with --from-hold; 'allocation release' ends a hold.
    """

    item = "Hold"
    waiting_text = "finding room for"
    example = "resources=VCPU:8 --amount 3 --until 2026-12-01T08:00:00Z"

    arguments = f"""
        {QUERY_ARGUMENTS}
        --amount N = 1            number of holds, each for one claim of the query
        {ORDER_OPTION}
        --until TIME              end of the holds, such as 2026-12-01T08:00:00Z (default: never)
        --returns                 a release returns the drawn amounts to the hold
        --drawable-by PROJECT...  a further project whose consumers may draw
        --note TEXT               a note for operators
        --dry-run                 do not create the holds
        --project ID = {DEFAULT_OWNER}  project of the holds
        --user ID = {DEFAULT_OWNER}     user of the holds
    """

    def build_request(self, options: argparse.Namespace) -> dict[str, Any]:
        terms = {
            "until": options.until,
            "returns": options.returns,
            "projects": options.drawable_by,
            "note": options.note,
        }
        return {"hold": terms}


class ListHolds(CloudLister):
    """List holds with their terms and the amounts drawn from them."""

    example = "--in-tree host-1"

    arguments = f"""
        --project project_id:ID  only holds of this project
        --drawable-by ID         only holds from which this project may draw
        --until-before TIME      only holds that end before, such as 2026-12-01T08:00:00Z
        {TREE_OPTION}
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        filters = {name: getattr(options, name) for name in _FILTERS if getattr(options, name)}
        filters |= build_tree_filter(client, options)
        holds = list(client.rows("/treeclaim/holds", "holds", **filters))
        rows = [
            (
                hold["uuid"],
                hold["project_id"],
                Cell.of_amounts(
                    sum_amounts(part["resources"] for part in hold["allocations"].values())
                ),
                Cell.of_amounts(sum_amounts(hold["hold"]["drawn"].values())),
                hold["hold"]["until"],
                hold["hold"]["returns"],
                Cell.of_lines(hold["hold"]["projects"]),
                hold["hold"]["note"],
            )
            for hold in holds
        ]
        columns = ("Hold", "Project", "Has", "Drawn", "Until", "Returns", "Drawable By", "Note")
        return Result(columns, rows, {"holds": holds}, notes=() if rows else ["There is no hold."])
