# SPDX-License-Identifier: Apache-2.0
"""`treeclaim candidates` and `explain`: what can satisfy a request, and why nothing can."""

import argparse
from typing import Any

from treeclaim.cli.cloud.asking.explanation import explanation, limits_of
from treeclaim.cli.cloud.asking.question import add_question_options, query_of_options
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.looking.tables import candidate_table
from treeclaim.cli.cloud.providers import find_provider, names_in, with_uuids
from treeclaim.cli.output import positive, printer, say, say_document
from treeclaim.client import CandidateQuery, Client
from treeclaim.client.aggregates import AggregateNames

_LIMIT = 20
"""Candidates shown without a limit: a screen."""

_JSON = "print the server's document"


def add_to(commands: Any) -> None:
    """Add the commands."""
    ask = commands.add_parser("candidates", help="ask which providers can satisfy a request")
    add_candidate_options(ask)
    finish(ask, run_candidates, json=_JSON)
    why = commands.add_parser("explain", help="say why a request has no candidate")
    add_explain_options(why)
    finish(why, run_explain, json=_JSON)


def add_candidate_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which candidates, how many, and in which order."""
    add_question_options(command)
    command.add_argument(
        "--limit", type=positive, default=_LIMIT, help=f"most candidates to show ({_LIMIT})"
    )
    command.add_argument(
        "--order-by", metavar="TERMS", help="which candidates come first, such as spread"
    )


def add_explain_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say what is to be explained, and for which trees."""
    add_question_options(command)
    command.add_argument("--nearest", type=positive, help="trees to explain one by one (5)")
    command.add_argument(
        "--tree", metavar="NAME", help="explain only the tree of this provider, by uuid or name"
    )


def ordered(query: CandidateQuery, options: argparse.Namespace) -> CandidateQuery:
    """Return a question with the order that a command's options name."""
    if options.order_by is None:
        return query
    return query.with_parameter("order_by", options.order_by)


def candidates(
    client: Client, query: CandidateQuery, options: argparse.Namespace
) -> tuple[CandidateQuery, dict[str, Any]]:
    """Return the question as it was asked, and its answer."""
    query = with_uuids(client, ordered(query, options))
    if "limit" not in dict(query.parameters):
        query = query.with_parameter("limit", str(options.limit))
    return query, client.candidates(query)


def explained(
    client: Client, query: CandidateQuery, options: argparse.Namespace
) -> tuple[CandidateQuery, dict[str, Any]]:
    """Return the question with uuids, and why it has the candidates that it has."""
    query = with_uuids(client, query)
    asked = query
    if options.nearest is not None:
        asked = asked.with_parameter("nearest", str(options.nearest))
    if options.tree is not None:
        root = find_provider(client, options.tree)["root_provider_uuid"]
        asked = asked.with_parameter("tree", root)
    return query, client.explain(asked)


def run_candidates(options: argparse.Namespace) -> int:
    """Search, and show a table; the exit status is 0 also without a candidate."""
    query = query_of_options(options)
    with client_of(options) as client:
        query, answer = candidates(client, query, options)
        if options.json:
            say_document(answer)
            return 0
        names = names_in(client, answer)
        can_explain = client.versions.extension is not None
    count = len(answer["allocation_requests"])
    if not count:
        advice = "; 'treeclaim explain' with the same question tells why" if can_explain else ""
        say(f"No candidate{advice}.")
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
        query, told = explained(client, query, options)
        if options.json:
            say_document(told)
            return 0
        limits, names = limits_of(client, told), AggregateNames.read(client)
    printer().print(explanation(told, query, limits, names))
    return 0
