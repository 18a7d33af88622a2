# SPDX-License-Identifier: Apache-2.0
"""`survival`: failures that all consumers survive (contract page 101, section 4)."""

import argparse
from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

from treeclaim.cli.command import CloudLister, Result
from treeclaim.cli.names import DOMAINS_HELP, TREES, resolve_domains
from treeclaim.cli.output import FAILED
from treeclaim.cli.planning.plans import GIVEN_OPTION, read_assumptions
from treeclaim.cli.search.explanation import format_funnel
from treeclaim.client import Client
from treeclaim.client.aggregates import format_aggregate, read_aggregate_names


class CheckSurvival(CloudLister):
    """Check whether all consumers would find a place elsewhere if hosts or racks failed.

    Exit status: 0 if all survive, 1 if not (or not all were checked), 2 if the command failed.
    """

    example = "--domains 'rack-{n}' --explain"
    failure_status: ClassVar[int] = FAILED

    arguments = f"""
        --domains DOMAINS = {TREES}  domains that may fail: {DOMAINS_HELP}
        --consumer-type TYPE...      only consumers of this type need a new place ('unknown' for none; default: all)
        --from-hold UUID...          a hold with capacity reserved for such failures
        --all                        also show domains that survive
        --explain                    explain why the first unplaced consumer has no place
        --limit N = 100              most domains to show
        {GIVEN_OPTION}
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        body = {
            "domains": resolve_domains(client, options.domains),
            "all": options.all,
            "explain": options.explain,
            "limit": options.limit,
            **read_assumptions(options),
        }
        if options.consumer_type:
            body["consumer_types"] = options.consumer_type
        if options.from_hold:
            body["from_holds"] = options.from_hold
        answer = client.call("POST", "/treeclaim/survival", body)
        names = (options.domains != TREES and read_aggregate_names(client)) or {}
        rows = [
            (
                domain["name"] or format_aggregate(names, domain["uuid"]),
                domain["consumers"],
                domain["without_request"],
                _format_verdict(domain),
                domain["first_unplaced"],
            )
            for domain in answer["domains"]
        ]
        columns = ("Domain", "Consumers", "Without Request", "Verdict", "First Unplaced")
        is_safe = answer["complete"] and answer["survive"] == answer["of"]
        return Result(
            columns,
            rows,
            answer,
            notes=[
                *chain.from_iterable(map(format_funnel, answer["domains"])),
                _format_summary(answer),
            ],
            status=0 if is_safe else 1,
        )


def _format_summary(answer: Mapping[str, Any]) -> str:
    note = "" if answer["complete"] else "; the time was up before all were checked"
    fail, unknown = (
        f", {answer[outcome]} {outcome}" if answer[outcome] else ""
        for outcome in ("fail", "unknown")
    )
    return f"{answer['survive']} of {answer['of']} survive{fail}{unknown}{note}"


def _format_verdict(domain: Mapping[str, Any]) -> str:
    if domain["survives"]:
        return "survives"
    if domain["survives"] is None:
        return "unknown"
    certainty = "" if domain["proven"] else " in this order"
    return f"{domain['unplaced']} without a place{certainty}"
