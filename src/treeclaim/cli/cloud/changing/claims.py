# SPDX-License-Identifier: Apache-2.0
"""`treeclaim claim` and `release`: claim a candidate for a consumer, and release it."""

import argparse
import uuid
from collections.abc import Mapping
from typing import Any

from treeclaim.cli.cloud.asking.question import add_question_options, query_of_options
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.providers import with_uuids
from treeclaim.cli.output import CommandError, positive, say, say_document
from treeclaim.client import CandidateQuery, Client, ConsumerExistsError
from treeclaim.client.requests.bodies import Owner

_UNKNOWN = "treeclaim"
"""Project and user of a new consumer without --project and --user."""

_KIND = "INSTANCE"


def add_to(commands: Any) -> None:
    """Add the commands."""
    claim = commands.add_parser(
        "claim",
        help="claim a candidate for a consumer",
        description="Claim a candidate for a consumer, and print the consumer. A consumer that "
        "holds something already is refused without --replace.",
    )
    add_question_options(claim)
    claim.add_argument("--json", action="store_true", help="print what was claimed")
    claim.add_argument(
        "--number", type=positive, default=1, help="which of the candidates, counted from 1 (1)"
    )
    claim.add_argument("--consumer", metavar="UUID", help="for whom; a new one if left out")
    claim.add_argument(
        "--replace",
        action="store_true",
        help="replace what the consumer holds; it keeps its project, user and type unless these "
        "are given",
    )
    add_from_hold(claim)
    for name, usual in (("project", _UNKNOWN), ("user", _UNKNOWN), ("consumer-type", _KIND)):
        claim.add_argument(f"--{name}", help=f"{name} of the consumer ({usual})")
    finish(claim, run_claim)
    release = commands.add_parser("release", help="release everything that a consumer holds")
    release.add_argument("consumer", metavar="CONSUMER", help="its uuid")
    finish(release, run_release)


def add_from_hold(command: argparse.ArgumentParser) -> None:
    """Add the option that names holds to draw from."""
    command.add_argument(
        "--from-hold",
        nargs="+",
        default=[],
        metavar="UUID",
        help="draw from these holds first, in this order",
    )


def run_claim(options: argparse.Namespace) -> int:
    """Claim the candidate with a number; print the consumer."""
    query = query_of_options(options)
    if "limit" not in dict(query.parameters):
        query = CandidateQuery((*query.parameters, ("limit", str(options.number))))
    consumer = consumer_uuid(options.consumer) if options.consumer else str(uuid.uuid4())
    from_holds = [consumer_uuid(text) for text in options.from_hold]
    with client_of(options) as client:
        query = with_uuids(client, query)
        if from_holds:
            query = CandidateQuery((*query.parameters, ("from_holds", ",".join(from_holds))))
        owner = _owner(client, consumer, options)
        candidates = client.candidates(query)["allocation_requests"]
        if len(candidates) < options.number:
            raise CommandError(_too_few(len(candidates)))
        chosen = candidates[options.number - 1]
        try:
            client.claim(
                consumer,
                chosen,
                project_id=owner.project_id,
                user_id=owner.user_id,
                consumer_type=owner.consumer_type,
                replace=options.replace,
                from_holds=from_holds,
            )
        except ConsumerExistsError as error:
            raise _refusal(error) from error
    if options.json:
        say_document({"consumer": consumer} | chosen)
    else:
        say(consumer)
    return 0


def _too_few(count: int) -> str:
    if not count:
        return "there is no candidate; 'treeclaim explain' with the same question tells why"
    return f"there {'is' if count == 1 else 'are'} only {count} candidate{'s'[: count > 1]}"


def _owner(client: Client, consumer: str, options: argparse.Namespace) -> Owner:
    """Return the consumer's owner and type: as given, else as before, else the default."""
    present: Mapping[str, Any] = {}
    if options.consumer:
        present = client.get(f"/allocations/{consumer}")
        if present["allocations"] and not options.replace:
            raise _refusal(ConsumerExistsError(consumer, present))
    return Owner(
        options.project or present.get("project_id") or _UNKNOWN,
        options.user or present.get("user_id") or _UNKNOWN,
        options.consumer_type or present.get("consumer_type") or _KIND,
    )


def _refusal(error: ConsumerExistsError) -> CommandError:
    return CommandError(f"{error}; --replace replaces it and keeps its owners")


def consumer_uuid(text: str) -> str:
    """Return the uuid of a consumer as the service writes it.

    Raises:
        CommandError: if it is none.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise CommandError(
            f"a consumer is named by its uuid, and {text!r} is not a uuid"
        ) from error


def run_release(options: argparse.Namespace) -> int:
    """Release what a consumer holds."""
    consumer = consumer_uuid(options.consumer)
    with client_of(options) as client:
        client.release(consumer)
    return 0
