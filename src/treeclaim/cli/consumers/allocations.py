# SPDX-License-Identifier: Apache-2.0
"""`allocation claim`, `place`, `release` and `show`: the allocations of consumers."""

import argparse
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from treeclaim.cli.command import Cell, CloudAction, CloudLister, CloudShow, Result
from treeclaim.cli.names import (
    DOMAINS_HELP,
    TREES,
    read_provider_names,
    resolve_domains,
    resolve_providers,
)
from treeclaim.cli.output import CommandError, format_count, warn
from treeclaim.cli.printing import format_amounts, show_waiting
from treeclaim.cli.query_arguments import ORDER_OPTION, QUERY_ARGUMENTS, format_query
from treeclaim.client import CandidateQuery, Client, ClientError, ConsumerExistsError
from treeclaim.client.client import amounts_by_provider
from treeclaim.model.names import normalised_uuid

DEFAULT_OWNER = "treeclaim"
"""Default of --project and --user."""

_DEFAULT_TYPE = "INSTANCE"

_FROM_HOLD_OPTION = """
    --from-hold UUID...  draw from this hold first; several holds in order
"""


class ClaimAllocation(CloudShow):
    """Claim a candidate for a consumer.

    The query becomes the consumer's stored request. A consumer with allocations is refused without --replace.
    """

    example = "resources=VCPU:2,MEMORY_MB:2048 -f value -c Consumer"

    arguments = f"""
        {QUERY_ARGUMENTS}
        {ORDER_OPTION}
        --number N = 1        number of the candidate
        --consumer UUID       consumer (default: a new one)
        --replace             replace the allocations of the consumer; it keeps its project, user and type unless these are given
        {_FROM_HOLD_OPTION}
        --project ID          project of the consumer (default of a new one: {DEFAULT_OWNER})
        --user ID             user of the consumer (default of a new one: {DEFAULT_OWNER})
        --consumer-type TYPE  type of the consumer (default of a new one: {_DEFAULT_TYPE})
    """

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        query = self.build_query(options)
        consumer = parse_consumer(options.consumer) if options.consumer else str(uuid.uuid4())
        from_holds = [parse_consumer(text) for text in options.from_hold]
        query = search = resolve_providers(client, query)
        if "limit" not in dict(query.parameters):
            search = search.with_parameter("limit", str(options.number))
        if from_holds:
            search = search.with_parameter("from_holds", ",".join(from_holds))
        owner = _choose_owner(client, consumer, options)
        document = client.candidates(search)
        candidates = document["allocation_requests"]
        if len(candidates) < options.number:
            raise CommandError(_describe_shortage(len(candidates), query))
        candidate = candidates[options.number - 1]
        resources = amounts_by_provider(candidate["allocations"])
        summaries = document["provider_summaries"]
        trees = read_provider_names(
            client, {summaries[provider]["root_provider_uuid"] for provider in resources}
        )
        try:
            client.claim(
                consumer,
                candidate,
                **owner,
                request=query,
                replace=options.replace,
                from_holds=from_holds,
            )
        except ConsumerExistsError as error:
            raise CommandError(f"{error}; --replace replaces it and keeps its owners") from error
        except ClientError as error:
            # The consumer does not exist: its random uuid would mislead.
            call = f"PUT /allocations/{consumer}: "
            raise CommandError(
                str(error).removeprefix("" if options.consumer else call)
            ) from error
        return Result(
            ("Consumer", "Trees", "Takes", "Project", "User", "Type"),
            (
                consumer,
                _make_trees_cell(sorted(trees.values())),
                Cell.of_amounts(sum_amounts(resources.values())),
                *owner.values(),
            ),
            {"consumer": consumer, "trees": trees} | candidate,
        )


def _describe_shortage(count: int, query: CandidateQuery) -> str:
    if not count:
        return f"there is no candidate; 'treeclaim explain {format_query(query)}' shows the reason"
    return f"there {'is' if count == 1 else 'are'} only {format_count(count, 'candidate')}"


def _choose_owner(client: Client, consumer: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return project, user and type: of the options, else of the replaced consumer, else the defaults."""
    present_document = client.get(f"/allocations/{consumer}") if options.replace else {}
    return {
        "project_id": options.project or present_document.get("project_id") or DEFAULT_OWNER,
        "user_id": options.user or present_document.get("user_id") or DEFAULT_OWNER,
        "consumer_type": options.consumer_type
        or present_document.get("consumer_type")
        or _DEFAULT_TYPE,
    }


def parse_consumer(text: str) -> str:
    """Return the uuid of a consumer in canonical form."""
    consumer = normalised_uuid(text)
    if consumer is None:
        raise CommandError(f"a consumer is named by its uuid, and {text!r} is not a uuid")
    return consumer


class ReleaseAllocation(CloudAction):
    """Release all allocations of a consumer. May be repeated."""

    example = "0b1a4d6c-5b1f-4c6e-9d0f-1f2e3d4c5b6a"

    arguments = "CONSUMER  its uuid"

    def act(self, client: Client, options: argparse.Namespace) -> None:
        consumer = parse_consumer(options.consumer)
        if not client.release(consumer):
            warn(f"consumer {consumer} has no allocations")


class ShowAllocation(CloudShow):
    """Show the allocations and the owner of a consumer."""

    example = "0b1a4d6c-5b1f-4c6e-9d0f-1f2e3d4c5b6a"

    arguments = "CONSUMER  its uuid"

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        consumer = parse_consumer(options.consumer)
        document = client.get(f"/allocations/{consumer}")
        resources = amounts_by_provider(document["allocations"])
        names = read_provider_names(client, resources)
        if not resources:
            raise CommandError(f"consumer {consumer} has no allocations")
        fields = {
            "Consumer": consumer,
            "Project": document.get("project_id"),
            "User": document.get("user_id"),
            "Type": document.get("consumer_type"),
            "Generation": document.get("consumer_generation"),
            "Allocations": Cell(
                {provider: dict(part) for provider, part in resources.items()},
                lambda parts: [
                    f"{names.get(provider, '?')} {provider}: {format_amounts(part)}"
                    for provider, part in parts.items()
                ],
            ),
        }
        return Result(
            tuple(fields),
            tuple(fields.values()),
            {"consumer": consumer, "names": names, **document},
        )


class PlacingCommand(CloudLister):
    """A command that places consumers or holds in one transaction.

    Attributes:
        item: Name of a placed item, and of the column of its uuid.
        waiting_text: Text before the number of items while the call runs.
    """

    item: ClassVar[str]
    waiting_text: ClassVar[str]

    def build_request(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return members of the request beyond the common ones."""
        raise NotImplementedError

    def build_members(self, client: Client, options: argparse.Namespace) -> dict[str, Any]:
        """Return members of the body beside the requests."""
        del client, options
        return {}

    def make_result(self, client: Client, options: argparse.Namespace) -> Result:
        query = self.build_query(options)
        named_uuids = [parse_consumer(text) for text in getattr(options, "consumer", ())]
        consumers = named_uuids or [str(uuid.uuid4()) for _ in range(options.amount)]
        request, members = self.build_request(options), self.build_members(client, options)
        request |= {
            "alternatives": [str(resolve_providers(client, query))],
            "consumers": consumers,
            "project_id": options.project,
            "user_id": options.user,
        }
        try:
            with show_waiting(f"{self.waiting_text} {len(consumers)}"):
                document = client.place([request], dry_run=options.dry_run, **members)
        except ClientError as error:
            if not error.members.get("unplaced"):
                raise
            # The items do not exist: their random uuids would mislead.
            items = f"{self.item.lower()}s ({options.amount})"
            reason = str(error) if named_uuids else f"There is no place for the requested {items}"
            advice = f"'treeclaim explain {format_query(query)}' shows the reason"
            raise CommandError(reason, advice) from error
        return self._make_placement_result(document, is_dry=options.dry_run)

    def _make_placement_result(self, document: Mapping[str, Any], *, is_dry: bool) -> Result:
        placements, unplaced_uuids = document["placements"], document["unplaced"]
        rows: list[tuple[Any, ...]] = [
            (
                placement["consumer"],
                _make_trees_cell([root["name"] for root in placement["root_providers"]]),
                Cell.of_amounts(
                    sum_amounts(amounts_by_provider(placement["allocations"]).values())
                ),
                # A consumer that was placed before the call has no mappings.
                placement["mappings"] is None,
            )
            for placement in placements
        ]
        no_trees, no_amounts = _make_trees_cell(()), Cell.of_amounts({})
        rows += [(consumer, no_trees, no_amounts, False) for consumer in unplaced_uuids]
        unplaced_text = f", no place for {len(unplaced_uuids)}" if unplaced_uuids else ""
        note = f"{len(placements)}{' would be' if is_dry else ''} placed{unplaced_text}"
        columns = (self.item, "Trees", "Takes", "Already Placed")
        return Result(columns, rows, document, notes=[note], status=1 if unplaced_uuids else 0)


class PlaceConsumers(PlacingCommand):
    """Find places for consumers and claim them in one transaction.

    A call with --consumer may be repeated: placed consumers stay where they are.
    Exit status: 0 if all are placed, 1 if not.
    """

    item = "Consumer"
    waiting_text = "placing"
    example = "resources=VCPU:4 --amount 50 --spread tree"

    arguments = f"""
        {QUERY_ARGUMENTS}
        --amount N = 1        number of new consumers
        --consumer UUID...    a consumer to place, instead of new ones
        {ORDER_OPTION}
        --spread DOMAINS      balance the consumers between domains: {DOMAINS_HELP}
        --most N              most consumers in a tree
        --together DOMAINS    place all consumers in one of these domains
        --partial             place as many as possible, instead of all or none
        --dry-run             claim nothing
        {_FROM_HOLD_OPTION}
        --project ID = {DEFAULT_OWNER}  project of the consumers
        --user ID = {DEFAULT_OWNER}     user of the consumers
        --consumer-type TYPE = {_DEFAULT_TYPE}  type of the consumers
    """

    def build_request(self, options: argparse.Namespace) -> dict[str, Any]:
        from_holds = [parse_consumer(text) for text in options.from_hold]
        request: dict[str, Any] = {"from_holds": from_holds} if from_holds else {}
        return request | {"consumer_type": options.consumer_type}

    def build_members(self, client: Client, options: argparse.Namespace) -> dict[str, Any]:
        rules: list[dict[str, Any]] = []
        if options.most is not None:
            rules.append({"domains": TREES, "max_per_domain": options.most})
        if options.spread is not None:
            rules.append({"domains": resolve_domains(client, options.spread), "max_skew": 1})
        if options.together is not None:
            domains = resolve_domains(client, options.together)
            rules.append({"domains": domains, "same_domain": True})
        return {"rules": rules, "partial": options.partial}


def _make_trees_cell(names: Sequence[str]) -> Cell:
    return Cell(list(names), lambda trees: [", ".join(trees) or "no place"])


def sum_amounts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums by resource class, sorted by name."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))
