# SPDX-License-Identifier: Apache-2.0
"""`treeclaim candidates` and `explain`: what can satisfy a request, and why nothing can."""

import argparse
import json
from typing import Any

from treeclaim.cli.cloud.asking.explanation import explanation
from treeclaim.cli.cloud.asking.limits import limits_of
from treeclaim.cli.cloud.asking.question import add_question_options, query_of_options
from treeclaim.cli.cloud.endpoint import add_endpoint_options, client_of
from treeclaim.cli.cloud.looking.tables import candidate_table
from treeclaim.cli.cloud.providers import find_provider, names_in, with_uuids
from treeclaim.cli.output import positive, printer
from treeclaim.client import CandidateQuery

_LIMIT = 20
"""Candidates shown without a limit: a screen."""


def add_to(commands: Any) -> None:
    """Add the commands."""
    ask = commands.add_parser("candidates", help="ask which providers can satisfy a request")
    _add_common(ask)
    ask.add_argument(
        "--limit", type=positive, default=_LIMIT, help=f"most candidates to show ({_LIMIT})"
    )
    ask.add_argument("--order-by", metavar="TERMS", help="what is best first, such as spread")
    ask.set_defaults(run=run_candidates)
    why = commands.add_parser("explain", help="tell why a request has no candidate")
    _add_common(why)
    why.add_argument("--nearest", type=positive, help="trees to explain one by one (5)")
    why.add_argument(
        "--tree", metavar="NAME", help="uuid or name of any provider of the only tree to explain"
    )
    why.set_defaults(run=run_explain)


def _add_common(command: argparse.ArgumentParser) -> None:
    add_question_options(command)
    command.add_argument("--json", action="store_true", help="show the server's document")
    add_endpoint_options(command)


def run_candidates(options: argparse.Namespace) -> int:
    """Ask, and show a table; the exit code is 0 also if there is none."""
    query = query_of_options(options)
    if options.order_by is not None:
        query = query.with_parameter("order_by", options.order_by)
    with client_of(options) as client:
        query = with_uuids(client, query)
        if "limit" not in dict(query.parameters):
            query = CandidateQuery((*query.parameters, ("limit", str(options.limit))))
        answer = client.candidates(query)
        if options.json:
            print(json.dumps(answer, indent=2))
            return 0
        names = names_in(client, answer)
        can_explain = client.versions.extension is not None
    count = len(answer["allocation_requests"])
    if not count:
        advice = "; 'treeclaim explain' with the same question tells why" if can_explain else ""
        print(f"No candidate{advice}.")
        return 0
    title = f"{count} candidate{'' if count == 1 else 's'}"
    if str(count) == dict(query.parameters)["limit"]:
        title += ", which is the limit: there may be more (--limit)"
    printer().print(candidate_table(title, str(query), answer, names))
    return 0


def run_explain(options: argparse.Namespace) -> int:
    """Ask why, and show the funnel, the nearest trees with their limits, and the advice."""
    query = query_of_options(options)
    with client_of(options) as client:
        query = with_uuids(client, query)
        own: list[tuple[str, str]] = []
        if options.nearest is not None:
            own.append(("nearest", str(options.nearest)))
        if options.tree is not None:
            own.append(("tree", find_provider(client, options.tree)["root_provider_uuid"]))
        told = client.explain(CandidateQuery((*query.parameters, *own)))
        if options.json:
            print(json.dumps(told, indent=2))
            return 0
        limits = limits_of(client, told)
    printer().print(explanation(told, query, limits))
    return 0
