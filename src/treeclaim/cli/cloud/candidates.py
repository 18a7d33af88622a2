# SPDX-License-Identifier: Apache-2.0
"""`treeclaim candidates`, `explain`, `claim` and `release`: the main job from a terminal."""

import argparse
import json
import uuid
from typing import Any

from rich.console import Console

from treeclaim.cli.cloud.endpoint import add_endpoint_options, client_of
from treeclaim.cli.cloud.explanation import explanation
from treeclaim.cli.cloud.question import add_question_options, query_of_options
from treeclaim.cli.cloud.tables import candidate_table
from treeclaim.cli.output import CommandError
from treeclaim.client import CandidateQuery


def add_to(commands: Any) -> None:
    """Add the commands."""
    ask = commands.add_parser("candidates", help="ask which providers can satisfy a request")
    _add_common(ask)
    ask.add_argument("--limit", type=int, default=20, help="most candidates to show (20)")
    ask.set_defaults(run=run_candidates)
    why = commands.add_parser("explain", help="tell why a request has no candidate")
    _add_common(why)
    why.add_argument("--nearest", type=int, help="trees to explain one by one (5)")
    why.add_argument("--tree", metavar="UUID", help="the only tree to explain")
    why.set_defaults(run=run_explain)
    claim = commands.add_parser("claim", help="claim a candidate for a consumer")
    _add_common(claim)
    claim.add_argument("--number", type=int, default=1, help="which of the candidates (1)")
    claim.add_argument("--consumer", metavar="UUID", help="for whom; a new one if left out")
    claim.add_argument("--project", default="treeclaim", help="project of the consumer")
    claim.add_argument("--user", default="treeclaim", help="user of the consumer")
    claim.add_argument("--consumer-type", default="INSTANCE", help="such as INSTANCE")
    claim.set_defaults(run=run_claim)
    release = commands.add_parser("release", help="give back all that a consumer holds")
    release.add_argument("consumer", metavar="CONSUMER", help="its uuid")
    add_endpoint_options(release)
    release.set_defaults(run=run_release)


def _add_common(command: argparse.ArgumentParser) -> None:
    add_question_options(command)
    command.add_argument("--json", action="store_true", help="show the server's document")
    add_endpoint_options(command)


def run_candidates(options: argparse.Namespace) -> int:
    """Ask, and show a table; the exit code is 0 also if there is none."""
    query = query_of_options(options)
    if "limit" not in dict(query.parameters):
        query = CandidateQuery((*query.parameters, ("limit", str(options.limit))))
    with client_of(options) as client:
        answer = client.candidates(query)
        if options.json:
            print(json.dumps(answer, indent=2))
            return 0
        names = {one["uuid"]: one["name"] for one in client.providers()}
    count = len(answer["allocation_requests"])
    title = f"{count} candidate{'' if count == 1 else 's'}"
    Console().print(candidate_table(title, str(query), answer, names))
    return 0


def run_explain(options: argparse.Namespace) -> int:
    """Ask why, and show the funnel, the nearest trees and the advice."""
    query = query_of_options(options)
    own = [("nearest", options.nearest), ("tree", options.tree)]
    more = tuple((name, str(value)) for name, value in own if value is not None)
    with client_of(options) as client:
        told = client.explain(CandidateQuery((*query.parameters, *more)))
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        Console().print(explanation(told, str(query)))
    return 0


def run_claim(options: argparse.Namespace) -> int:
    """Claim the candidate with a number; print the consumer."""
    query = query_of_options(options)
    if options.number < 1:
        raise CommandError("--number counts from 1")
    if "limit" not in dict(query.parameters):
        query = CandidateQuery((*query.parameters, ("limit", str(options.number))))
    consumer = options.consumer or str(uuid.uuid4())
    with client_of(options) as client:
        found = client.candidates(query)["allocation_requests"]
        if len(found) < options.number:
            raise CommandError(f"there are only {len(found)} candidates")
        chosen = found[options.number - 1]
        client.claim(
            consumer,
            chosen,
            project_id=options.project,
            user_id=options.user,
            consumer_type=options.consumer_type,
        )
    if options.json:
        print(json.dumps({"consumer": consumer} | chosen, indent=2))
    else:
        print(consumer)
    return 0


def run_release(options: argparse.Namespace) -> int:
    """Give back what a consumer holds."""
    with client_of(options) as client:
        client.release(options.consumer)
    return 0
