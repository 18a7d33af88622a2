# SPDX-License-Identifier: Apache-2.0
"""`treeclaim claim`, `place` and `release`: claim a candidate, place consumers, release them."""

import argparse
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from treeclaim.cli.cloud.asking.question import add_question_options, query_of_options
from treeclaim.cli.cloud.asking.questions import ordered
from treeclaim.cli.cloud.endpoint import client_of, finish
from treeclaim.cli.cloud.progress import shown_waiting
from treeclaim.cli.cloud.providers import DOMAINS_HELP, domains_of, with_uuids
from treeclaim.cli.output import CommandError, complain, positive, printer, say, say_document
from treeclaim.cli.printing import amounts_in_words, bars, line
from treeclaim.client import (
    CandidateQuery,
    Client,
    ConsumerExistsError,
    Placed,
    PlacingRequest,
    PlacingRule,
)
from treeclaim.client.requests.bodies import Owner
from treeclaim.model.names import normalised_uuid

UNKNOWN = "treeclaim"
"""The project and the user of new consumers and holds, unless --project and --user are given."""

_KIND = "INSTANCE"


def add_to(commands: Any) -> None:
    """Add the commands."""
    place = commands.add_parser(
        "place",
        description="Find places for consumers and claim them in one transaction. A call with "
        "--consumer may be repeated: consumers that are placed already stay where they are.",
    )
    add_placing_options(place)
    finish(place, partial(shown, placed), json="print the server's document")
    claim = commands.add_parser(
        "claim",
        description="Claim a candidate for a consumer, and print the consumer. The query is kept as "
        "the consumer's request. A consumer that has allocations is refused without --replace.",
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
    for name, usual in (("project", UNKNOWN), ("user", UNKNOWN), ("consumer-type", _KIND)):
        claim.add_argument(f"--{name}", help=f"{name} of the consumer ({usual})")
    finish(claim, run_claim)
    release = commands.add_parser(
        "release",
        description="Release all allocations of a consumer. May be repeated.",
    )
    release.add_argument("consumer", metavar="CONSUMER", help="its uuid")
    finish(release, run_release)


def add_from_hold(command: argparse.ArgumentParser) -> None:
    """Add the option that names holds to draw from."""
    command.add_argument(
        "--from-hold",
        action="append",
        default=[],
        metavar="UUID",
        help="draw from this hold first; may be repeated, in order",
    )


def run_claim(options: argparse.Namespace) -> int:
    """Claim the candidate with a number; print the consumer."""
    query = query_of_options(options)
    consumer = consumer_uuid(options.consumer) if options.consumer else str(uuid.uuid4())
    from_holds = [consumer_uuid(text) for text in options.from_hold]
    with client_of(options) as client:
        query = with_uuids(client, query)
        search = query
        if "limit" not in dict(query.parameters):
            search = search.with_parameter("limit", str(options.number))
        if from_holds:
            search = search.with_parameter("from_holds", ",".join(from_holds))
        owner = _owner(client, consumer, options)
        candidates = client.candidates(search)["allocation_requests"]
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
                request=query,
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
        options.project or present.get("project_id") or UNKNOWN,
        options.user or present.get("user_id") or UNKNOWN,
        options.consumer_type or present.get("consumer_type") or _KIND,
    )


def _refusal(error: ConsumerExistsError) -> CommandError:
    return CommandError(f"{error}; --replace replaces it and keeps its owners")


def consumer_uuid(text: str) -> str:
    """Return the uuid of a consumer as the service writes it.

    Raises:
        CommandError: if it is none.
    """
    uuid = normalised_uuid(text)
    if uuid is None:
        raise CommandError(f"a consumer is named by its uuid, and {text!r} is not a uuid")
    return uuid


def run_release(options: argparse.Namespace) -> int:
    """Release what a consumer holds."""
    consumer = consumer_uuid(options.consumer)
    with client_of(options) as client:
        if not client.release(consumer):
            complain(f"consumer {consumer} has no allocations")
    return 0


def add_placing_options(command: argparse.ArgumentParser) -> None:
    """Add the options that say which consumers are placed, and the rules between their places."""
    add_question_options(command)
    command.add_argument("--amount", type=positive, default=1, help="how many new consumers (1)")
    command.add_argument(
        "--consumer",
        action="append",
        metavar="UUID",
        help="a consumer to place, instead of new ones; may be repeated",
    )
    add_order_option(command)
    command.add_argument(
        "--spread",
        metavar="DOMAINS",
        help=f"keep domains balanced: {DOMAINS_HELP}",
    )
    command.add_argument(
        "--most", type=positive, metavar="N", help="at most this many in one tree"
    )
    command.add_argument("--together", metavar="DOMAINS", help="all in one of these domains")
    command.add_argument("--partial", action="store_true", help="place those that have a place")
    command.add_argument("--dry-run", action="store_true", help="claim nothing")
    add_from_hold(command)
    for name, usual in (("project", UNKNOWN), ("user", UNKNOWN), ("consumer-type", _KIND)):
        command.add_argument(f"--{name}", default=usual, help=f"{name} of the consumers ({usual})")


def add_order_option(command: argparse.ArgumentParser) -> None:
    """Add --order-by of a command that places."""
    command.add_argument(
        "--order-by", metavar="TERMS", help="which places come first, such as spread or pack"
    )


def shown(
    makes: Callable[[Client, CandidateQuery, argparse.Namespace], Placed],
    options: argparse.Namespace,
) -> int:
    """Have consumers or holds placed, and show where they are; the exit code is 1 where some have no place."""
    query = query_of_options(options)
    with client_of(options) as client:
        done = makes(client, query, options)
    if options.json:
        say_document(done.document)
    else:
        printer().print(placed_table(done, is_dry=options.dry_run))
    return 1 if done.unplaced else 0


def placed(client: Client, query: CandidateQuery, options: argparse.Namespace) -> Placed:
    """Place the consumers that a command's options name, and show progress.

    Raises:
        CommandError: for what cannot be read, or names no aggregate.
    """
    consumers = [consumer_uuid(text) for text in options.consumer or ()]
    consumers = consumers or [str(uuid.uuid4()) for _ in range(options.amount)]
    rules = _rules(client, options)
    request = PlacingRequest(
        [with_uuids(client, ordered(query, options))],
        consumers,
        options.project,
        options.user,
        options.consumer_type,
        [consumer_uuid(text) for text in options.from_hold],
    )
    with shown_waiting(f"placing {len(consumers)}"):
        return client.place([request], rules, partial=options.partial, dry_run=options.dry_run)


def _rules(client: Client, options: argparse.Namespace) -> list[PlacingRule]:
    rules = []
    if options.most is not None:
        rules.append(PlacingRule(max_per_domain=options.most))
    if options.spread is not None:
        rules.append(PlacingRule(domains_of(client, options.spread), max_skew=1))
    if options.together is not None:
        rules.append(PlacingRule(domains_of(client, options.together), same_domain=True))
    return rules


def added_up(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return what there is of each resource class in all parts together."""
    amounts: Counter[str] = Counter()
    for part in parts:
        amounts.update(part)
    return dict(sorted(amounts.items()))


def placed_table(done: Placed, *, is_dry: bool) -> RenderableType:
    """Return a table of who is where, and a picture of how many are in each tree."""
    table = Table("consumer", "tree", "takes", box=None)
    for placement in done.placements:
        takes = amounts_in_words(added_up(placement.allocations.values()))
        note = " (was there)" if placement.held_before else ""
        table.add_row(placement.consumer, ", ".join(placement.roots) + note, takes)
    would = " would be" if is_dry else ""
    words = [line(f"{len(done.placements)}{would} placed")]
    if done.unplaced:
        words.append(line(", ", (f"no place for {len(done.unplaced)}", "red")))
    return Group(table, places_table(done), line("").join(words))


def places_table(done: Placed) -> Table:
    """Return a picture of how many are in each tree."""
    counts = Counter(root for placement in done.placements for root in placement.roots)
    return bars("Where they are", counts.most_common())
