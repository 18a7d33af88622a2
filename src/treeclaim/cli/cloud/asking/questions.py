# SPDX-License-Identifier: Apache-2.0
"""`treeclaim candidates`, `explain` and `fit`: what can satisfy a request, why nothing can, and how often."""

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter
from rich.console import Group, RenderableType
from rich.table import Table

from treeclaim.cli.cloud.asking.explanation import explanation, limits_of
from treeclaim.cli.cloud.asking.question import (
    add_question_options,
    flavors_in,
    is_asked,
    query_of_options,
    tell_unasked,
)
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.providers import (
    DOMAINS_HELP,
    domains_of,
    find_provider,
    names_in,
    with_uuids,
)
from treeclaim.cli.output import CommandError, positive, printer, say, say_document
from treeclaim.cli.printing import amounts_in_words, bar, bars, lines
from treeclaim.client import CandidateQuery, Capacity, Client, Flavor, FlavorError
from treeclaim.client.aggregates import NO_NAMES, AggregateNames
from treeclaim.client.requests import bodies
from treeclaim.client.requests.server_flavors import server_flavor

_LIMIT = 20
"""Candidates shown without a limit: a screen."""

_PARTS = 20
"""Parts shown of each request if nobody says how many: a screen."""

_JSON = "print the server's document"


def add_to(commands: Any) -> None:
    """Add the commands."""
    ask = commands.add_parser("candidates")
    add_candidate_options(ask)
    finish(ask, run_candidates, json=_JSON)
    why = commands.add_parser("explain")
    add_explain_options(why)
    finish(why, run_explain, json=_JSON)
    fit = commands.add_parser("fit")
    add_fit_options(fit)
    finish(fit, run_fit, json="print the numbers as JSON")


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


def add_fit_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say what is to be counted, and where."""
    add_question_options(command)
    command.add_argument(
        "--flavors",
        type=Path,
        metavar="FILE",
        help="file of flavors in YAML or JSON: vcpus, ram, disk and extra_specs by name",
    )
    command.add_argument(
        "--domains", metavar="DOMAINS", help=f"also count in each of these: {DOMAINS_HELP}"
    )
    command.add_argument(
        "--limit", type=positive, default=_PARTS, help=f"most of these to show ({_PARTS})"
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


def candidate_table(
    title: str, query: str, answer: Mapping[str, Any], names: Mapping[str, str]
) -> Table:
    """Return a table with a row for each candidate."""
    table = Table(title=title, caption=f"?{query}", title_justify="left", caption_justify="left")
    scores = answer.get("scores")
    table.add_column("#", justify="right")
    if scores:
        table.add_column("score", justify="right")
    table.add_column("takes")
    table.add_column("groups")
    for number, candidate in enumerate(answer["allocation_requests"], 1):
        taken = [
            f"{names.get(uuid, uuid)}: {amounts_in_words(resources)}"
            for uuid, resources in bodies.by_provider(candidate["allocations"]).items()
        ]
        groups = [
            f"{suffix or '(unsuffixed)'} → {', '.join(names.get(uuid, uuid) for uuid in providers)}"
            for suffix, providers in candidate.get("mappings", {}).items()
        ]
        first = [str(number), *([f"{scores[number - 1]:.6f}"] if scores else [])]
        table.add_row(*first, lines(taken), lines(groups))
    if not answer["allocation_requests"]:
        table.add_row("", "no candidate", "")
    return table


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


def run_fit(options: argparse.Namespace) -> int:
    """Count, and show a table with bars."""
    requests = requests_of(options)
    with client_of(options) as client:
        capacities = counted(client, requests, options)
        names = AggregateNames.read(client) if options.domains else NO_NAMES
    if options.json:
        documents = {name: dataclasses.asdict(capacity) for name, capacity in capacities.items()}
        say_document(documents)
    else:
        printer().print(capacity_table(capacities, names))
    return 0


def requests_of(
    options: argparse.Namespace, compute: Callable[[], Adapter] | None = None
) -> dict[str, CandidateQuery]:
    """Return the questions of a command by name: those of a file, and the one that is typed.

    Raises:
        CommandError: for what cannot be read, or has no meaning.
    """
    requests = _flavors(options.flavors) if options.flavors else {}
    if is_asked(options) or not requests:
        name = options.server_flavor or "request"
        requests[name] = query_of_options(options, compute)
    return requests


def counted(
    client: Client, requests: Mapping[str, CandidateQuery], options: argparse.Namespace
) -> dict[str, Capacity]:
    """Return how many consumers of each request fit.

    Raises:
        CommandError: if there are no such parts.
    """
    domains = None if options.domains is None else domains_of(client, options.domains)
    asked = {name: with_uuids(client, query) for name, query in requests.items()}
    return client.capacity(asked, domains, options.limit)


def _flavors(file: Path) -> dict[str, CandidateQuery]:
    """Read several flavors."""
    return {name: _query(f"{file}: {name}", flavor) for name, flavor in flavors_in(file).items()}


def _query(where: str, flavor: Flavor) -> CandidateQuery:
    try:
        asked = server_flavor(flavor)
    except FlavorError as error:
        raise CommandError(f"{where}: {error}") from error
    if not any(name.startswith("resources") for name, _ in asked.query.parameters):
        raise CommandError(f"{where}: it requests nothing")
    tell_unasked(asked)
    return asked.query


def capacity_table(
    capacities: Mapping[str, Capacity], names: AggregateNames = NO_NAMES
) -> RenderableType:
    """Return a table of how many fit, with bars, and of the parts where they were asked for."""
    table = Table("request", "fits", "when empty", "", box=None)
    parts: list[RenderableType] = [table]
    for name, capacity in capacities.items():
        fits = str(capacity.fits)
        if capacity.at_most is None:
            fits += " or more"
        elif capacity.fits != capacity.at_most:
            fits += f" to {capacity.at_most}"
        note = "" if capacity.is_complete else " (counting took too long)"
        full = bar(capacity.fits, max(capacity.when_empty, capacity.fits))
        table.add_row(name, fits, str(capacity.when_empty), full + note)
        if capacity.domains:
            counts = [(names.shown(domain), count) for domain, count in capacity.domains]
            parts.append(bars(f"{name} by part", counts))
    return Group(*parts)
