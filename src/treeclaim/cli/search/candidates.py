# SPDX-License-Identifier: Apache-2.0
"""`candidate list`, `explain` and `count`."""

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from treeclaim.cli.command import Cell, CloudLister, CloudShow, Result
from treeclaim.cli.names import (
    DOMAINS_HELP,
    find_provider,
    read_provider_names,
    resolve_domains,
    resolve_providers,
)
from treeclaim.cli.output import CommandError, format_count
from treeclaim.cli.printing import format_amounts
from treeclaim.cli.query_arguments import (
    ORDER_OPTION,
    QUERY_ARGUMENTS,
    build_flavor_query,
    format_query,
    has_query,
    read_flavors,
)
from treeclaim.cli.search.explanation import (
    format_funnel,
    read_limits,
    render_explanation,
    select_advice,
)
from treeclaim.client import CandidateQuery, Client, Flavor
from treeclaim.client.aggregates import AggregateNames, format_aggregate, read_aggregate_names
from treeclaim.client.client import amounts_by_provider

_LIMIT = 20
"""Candidates or domains shown by default: one screen."""


class ListCandidates(CloudLister):
    """List the candidates that can satisfy a query, best first with --order-by.

    The exit status is 0 also without a candidate.
    """

    example = "resources=VCPU:4 required=HW_CPU_X86_AVX2 --order-by spread"

    arguments = f"""
        {QUERY_ARGUMENTS}
        --limit N = {_LIMIT}  most candidates to show
        {ORDER_OPTION}
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        query = resolve_providers(client, self.build_query(options))
        if "limit" not in dict(query.parameters):
            query = query.with_parameter("limit", str(options.limit))
        answer = client.candidates(query)
        names = read_provider_names(client, _find_provider_uuids(answer))
        can_explain = client.extension is not None
        columns, rows = _make_rows(answer, names)
        return Result(
            columns, rows, answer, notes=_make_notes(query, len(rows), can_explain=can_explain)
        )


def _make_notes(query: CandidateQuery, count: int, *, can_explain: bool) -> list[str]:
    if not count:
        advice = f"; 'treeclaim explain {format_query(query.without('limit'))}' shows the reason"
        return [f"No candidate{advice if can_explain else ''}."]
    title = format_count(count, "candidate")
    if str(count) == dict(query.parameters)["limit"]:
        title += ", which is the limit: there may be more (--limit)"
    return [title, format_query(query)]


def _find_provider_uuids(answer: Mapping[str, Any]) -> Iterator[str]:
    for candidate in answer["allocation_requests"]:
        yield from candidate["allocations"]
        for providers in candidate.get("mappings", {}).values():
            yield from providers


def _make_rows(
    answer: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    scores = answer.get("scores")
    columns = ("Candidate", *(("Score",) if scores else ()), "Takes", "Groups")
    rows = [
        (
            number,
            *((round(scores[number - 1], 6),) if scores else ()),
            *_make_cells(candidate, names),
        )
        for number, candidate in enumerate(answer["allocation_requests"], 1)
    ]
    return columns, rows


def _make_cells(candidate: Mapping[str, Any], names: Mapping[str, str]) -> tuple[Cell, Cell]:
    resources_by_name = [
        (names.get(uuid, uuid), dict(resources))
        for uuid, resources in amounts_by_provider(candidate["allocations"]).items()
    ]
    groups = {
        suffix: [names.get(uuid, uuid) for uuid in providers]
        for suffix, providers in candidate.get("mappings", {}).items()
    }
    return (
        Cell(
            [{"name": name, "resources": resources} for name, resources in resources_by_name],
            lambda _: [f"{name}: {format_amounts(part)}" for name, part in resources_by_name],
        ),
        Cell(
            groups,
            lambda _: [
                f"{suffix or '(unsuffixed)'}: {', '.join(providers)}"
                for suffix, providers in groups.items()
            ],
        ),
    )


class ExplainCandidates(CloudShow):
    """Show why a query has no candidate, or which trees match.

    Prints each step that rules out trees, the nearest trees with their limits, and advice.
    """

    example = "resources=VCPU:400 --nearest 3"

    arguments = f"""
        {QUERY_ARGUMENTS}
        --nearest N        trees to explain one by one (default: 5)
        --tree PROVIDER    explain only the tree of this provider, by uuid or name
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        query = search = resolve_providers(client, self.build_query(options))
        if options.nearest is not None:
            search = search.with_parameter("nearest", str(options.nearest))
        if options.tree is not None:
            root = find_provider(client, options.tree)["root_provider_uuid"]
            search = search.with_parameter("tree", root)
        answer = client.explain(search)
        names = read_aggregate_names(client) or {}
        fields = {
            "query": format_query(query),
            "feasible": answer["feasible"],
            "fits_when_empty": answer["fits_when_empty"],
            "trees": Cell(
                answer["trees"],
                lambda trees: [f"{trees['matching']} of {trees['considered']} match"],
            ),
            "funnel": Cell(
                answer["funnel"],
                lambda _: format_funnel({"explanation": answer}, names),
            ),
            "nearest": Cell(
                answer["nearest"], lambda trees: [tree["root_provider"]["name"] for tree in trees]
            ),
            "advice": Cell.of_lines(select_advice(answer, query)),
        }
        return Result(
            tuple(fields),
            tuple(fields.values()),
            answer,
            render_explanation(answer, query, read_limits(client, answer), names),
        )


class CountCandidates(CloudLister):
    """Count how many consumers of each request still fit.

    The requests are the query, and the flavors of --flavors.
    """

    example = "--flavors flavors.yaml --domains tree"

    arguments = f"""
        {QUERY_ARGUMENTS}
        --flavors FILE      file of flavors in YAML or JSON: vcpus, ram, disk and extra_specs by name
        --domains DOMAINS   also count in each of these: {DOMAINS_HELP}
        --limit N = {_LIMIT}  most domains to show
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        requests = self._build_queries(options)
        domains = None if options.domains is None else resolve_domains(client, options.domains)
        queries = {name: str(resolve_providers(client, query)) for name, query in requests.items()}
        domain_arguments = {} if domains is None else {"domains": domains, "limit": options.limit}
        capacities = client.capacity(queries, **domain_arguments)
        names = (options.domains and read_aggregate_names(client)) or {}
        columns = ("Request", "Fits", "At Most", "When Empty", "Complete", "Domains")
        members = ("fits", "at_most", "when_empty", "complete")
        rows = [
            (
                name,
                *(capacity[member] for member in members),
                Cell(
                    {
                        domain["name"] or domain["uuid"]: domain["fits"]
                        for domain in capacity.get("domains", ())
                    },
                    partial(_format_domains, names),
                ),
            )
            for name, capacity in capacities.items()
        ]
        return Result(columns, rows, capacities)

    def _build_queries(self, options: argparse.Namespace) -> dict[str, CandidateQuery]:
        """Return the queries of the flavor file and of the command line, by name."""
        requests = {}
        if options.flavors:
            flavors = read_flavors(options.flavors)
            requests = {
                name: _translate_flavor(f"{options.flavors}: {name}", flavor)
                for name, flavor in flavors.items()
            }
        if has_query(options) or not requests:
            name = options.server_flavor or "request"
            requests[name] = self.build_query(options)
        return requests


def _translate_flavor(source: str, flavor: Flavor) -> CandidateQuery:
    query = build_flavor_query(flavor, source)
    if not any(name.startswith("resources") for name, _ in query.parameters):
        raise CommandError(f"{source}: it requests nothing")
    return query


def _format_domains(names: AggregateNames, counts: Mapping[str, int]) -> list[str]:
    return [f"{format_aggregate(names, name)}: {count}" for name, count in counts.items()]
