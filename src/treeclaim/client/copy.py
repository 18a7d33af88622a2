# SPDX-License-Identifier: Apache-2.0
"""Copies everything that one endpoint holds to another; equal objects are left alone."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from treeclaim.client.aggregates import name_aggregates
from treeclaim.client.client import Client
from treeclaim.client.contents import Amounts, Consumer, Contents, Progress, read_contents
from treeclaim.client.differences import (
    REQUEST,
    consumer_differences,
    differing_items,
    find_differences,
)
from treeclaim.client.errors import ClientError
from treeclaim.client.provider_batches import Action, PlannedChange, in_trees, write_trees
from treeclaim.client.session import escape_url, in_batches
from treeclaim.model.names import UNKNOWN_TYPE, is_custom_name
from treeclaim.model.parts import INVENTORIES, TRAITS

_NOBODY = "00000000-0000-0000-0000-000000000000"
"""Project and user of claims without a known owner."""

_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}


@dataclass(slots=True)
class CopyOutcome:
    """The result of a copy.

    Attributes:
        providers, consumers: How many were written.
        unchanged: How many of both were equal already.
        refused: What the target refused, in words.
        differences: What the target lacks or has different in the end, in words.
    """

    providers: int = 0
    consumers: int = 0
    unchanged: int = 0
    refused: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def copy(source: Client, target: Client, progress: Progress) -> CopyOutcome:
    """Copy everything that a source holds to a target, then compare the two.

    It may be interrupted and run again. Nothing is ever deleted at the target.

    Args:
        source: Where to read; it is not changed.
        target: Where to write.
        progress: Called after each batch of objects.

    Raises:
        UnsupportedFeatureError: if the target does not have the extension.
        ClientError: if an endpoint fails, or the target cannot hold what the source has.
    """
    target.require_extension("the target of a copy")
    source_contents = read_contents(source, progress, title="source")
    present = read_contents(target, progress, title="target", only=source_contents.providers)
    outcome = CopyOutcome()
    _copy_names(target, source_contents, present)
    _copy_providers(target, source_contents, present, outcome, progress)
    if names := differing_items(source_contents.aggregates, present.aggregates):
        name_aggregates(target, names)
    for name, requests in differing_items(source_contents.mixes, present.mixes).items():
        with _noting_refusals(outcome, f"mix {name}"):
            path = f"/treeclaim/mixes/{escape_url(name)}"
            target.call("PUT", path, {"requests": requests})
    _copy_consumers(target, source_contents, present, outcome, progress)
    if source_contents.is_extended:
        _copy_requests(target, source_contents, present, outcome)
    # Conditions come last: they would stop the claims.
    conditions = differing_items(source_contents.conditions, present.conditions)
    for (uuid, key), members in conditions.items():
        with _noting_refusals(outcome, f"condition {key} of provider {uuid}"):
            path = f"/treeclaim/providers/{uuid}/conditions/{escape_url(key)}"
            target.call("PUT", path, members)
    outcome.differences = compare(source, target, progress)
    return outcome


def compare(source: Client, target: Client, progress: Progress) -> list[str]:
    """Read both endpoints; return, in words, all that the target lacks or has different."""
    source_contents = read_contents(source, progress, title="checking source")
    copied = read_contents(
        target, progress, title="checking target", only=source_contents.providers
    )
    return find_differences(source_contents, copied)


def _copy_names(target: Client, source_contents: Contents, present: Contents) -> None:
    """Create custom names; require that the target has the standard names in use."""
    traits, classes = (
        source_contents.traits - present.traits,
        source_contents.classes - present.classes,
    )
    used = {
        name
        for provider in source_contents.providers.values()
        for part in (TRAITS, INVENTORIES)
        for name in part.or_empty(provider.values)
    }
    unknown = sorted(name for name in used & (traits | classes) if not is_custom_name(name))
    if unknown:
        raise ClientError(
            f"the target does not know these standard names: {', '.join(unknown)}; install newer "
            "os-traits and os-resource-classes there and restart it"
        )
    for kind, names in (("traits", traits), ("resource_classes", classes)):
        for name in sorted(filter(is_custom_name, names)):
            target.call("PUT", f"/{kind}/{name}")


def _copy_providers(
    target: Client,
    source_contents: Contents,
    present: Contents,
    outcome: CopyOutcome,
    progress: Progress,
) -> None:
    changes = [
        PlannedChange(present.providers.get(uuid), provider)
        for uuid, provider in source_contents.providers.items()
    ]
    kept = sum(change.action is Action.KEEP for change in changes)
    outcome.unchanged += kept

    def note(written: Sequence[PlannedChange]) -> None:
        outcome.providers += len(written)
        progress("writing providers", outcome.providers, len(changes) - kept)

    parents = {uuid: provider.parent for uuid, provider in source_contents.providers.items()}
    refusals = write_trees(target, in_trees(changes, parents), note=note)
    outcome.refused += [
        f"provider {uuid} ({source_contents.providers[uuid].name}): {reason}"
        for uuid, reason in refusals.items()
    ]


@contextmanager
def _noting_refusals(outcome: CopyOutcome, title: str) -> Iterator[None]:
    """Record the refusal of an object, and go on.

    Raises:
        ClientError: if the error is about the service or the caller's rights.
    """
    try:
        yield
    except ClientError as error:
        if error.status not in _REFUSALS:
            raise
        outcome.refused.append(f"{title}: {error}")


def _copy_requests(
    target: Client, source_contents: Contents, present: Contents, outcome: CopyOutcome
) -> None:
    source_requests, present_requests = (
        {uuid: consumer.request for uuid, consumer in contents.consumers.items()}
        for contents in (source_contents, present)
    )
    for batch in in_batches(list(differing_items(source_requests, present_requests).items())):
        with _noting_refusals(outcome, f"requests of {len(batch)} consumers"):
            target.call("POST", "/treeclaim/requests", {"requests": dict(batch)})


def _copy_consumers(
    target: Client,
    source_contents: Contents,
    present: Contents,
    outcome: CopyOutcome,
    progress: Progress,
) -> None:
    """Write the allocations; retry those that found no room after the others have moved."""
    changed = [
        consumer
        for uuid, consumer in source_contents.consumers.items()
        if consumer_differences(
            consumer, present.consumers.get(uuid), is_extended=source_contents.is_extended
        )
        - {REQUEST}
    ]
    outcome.unchanged += len(source_contents.consumers) - len(changed)
    drawing = [consumer for consumer in changed if consumer.drawn_from]
    drawn = sorted({hold for consumer in drawing for hold in consumer.drawn_from})
    # A hold from which others draw gets its own amounts after them.
    holds = [
        source_contents.consumers[uuid] for uuid in drawn if uuid in source_contents.consumers
    ]
    apart = {consumer.uuid for consumer in drawing} | set(drawn)
    waiting = [consumer for consumer in changed if consumer.uuid not in apart]

    def write(consumer: Consumer) -> None:
        if consumer.drawn_from:
            _draw(target, consumer, source_contents)
        else:
            _claim(target, consumer, consumer.held)
        outcome.consumers += 1
        progress("writing consumers", outcome.consumers, len(changed))

    for consumers in (waiting, drawing, holds):
        _write_in_turns(consumers, write, outcome)


def _write_in_turns(
    waiting: Sequence[Consumer], write: Callable[[Consumer], None], outcome: CopyOutcome
) -> None:
    """Write consumers; repeat those that are refused for as long as others succeed."""
    while waiting:
        refused: list[Consumer] = []
        refusals = CopyOutcome()
        for consumer in waiting:
            with _noting_refusals(refusals, consumer.title):
                write(consumer)
            if len(refusals.refused) > len(refused):
                refused.append(consumer)
        if len(refused) == len(waiting):
            outcome.refused += refusals.refused
            return
        waiting = refused


def _draw(target: Client, consumer: Consumer, source_contents: Contents) -> None:
    """Write a consumer that draws from holds, so that each amount is drawn from its own hold.

    The consumer gets first the amounts that it did not draw. Then each hold gets for a moment exactly the
    amounts that the consumer draws from it.
    """
    amounts = {uuid: Counter(resources) for uuid, resources in consumer.held.items()}
    for drawn in consumer.drawn_from.values():
        for uuid, resources in drawn.items():
            amounts[uuid].subtract(resources)
    _claim(target, consumer, _positive(amounts))
    for hold, drawn in consumer.drawn_from.items():
        if hold in source_contents.consumers:
            _claim(target, source_contents.consumers[hold], drawn)
        for uuid, resources in drawn.items():
            amounts[uuid].update(resources)
        _claim(target, consumer, _positive(amounts), from_holds=[hold])


def _positive(amounts: Mapping[str, Mapping[str, int]]) -> Amounts:
    positive = {
        uuid: {name: amount for name, amount in resources.items() if amount > 0}
        for uuid, resources in amounts.items()
    }
    return {uuid: resources for uuid, resources in positive.items() if resources}


def _claim(
    target: Client, consumer: Consumer, held: Amounts, *, from_holds: Sequence[str] = ()
) -> None:
    """Write allocations of a consumer, in place of those that it has."""
    is_untyped = consumer.hold is None and consumer.kind in (None, UNKNOWN_TYPE)
    target.claim(
        consumer.uuid,
        {"allocations": {uuid: {"resources": resources} for uuid, resources in held.items()}},
        project_id=consumer.project or _NOBODY,
        user_id=consumer.user or _NOBODY,
        consumer_type=None if is_untyped and not from_holds else consumer.kind or UNKNOWN_TYPE,
        replace=True,
        from_holds=from_holds,
        hold=consumer.hold,
    )
