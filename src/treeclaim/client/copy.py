# SPDX-License-Identifier: Apache-2.0
"""Copies all that one endpoint holds to another; equal objects are left alone."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.contents import (
    Amounts,
    Consumer,
    Contents,
    Progress,
    read_contents,
)
from treeclaim.client.differences import (
    REQUEST,
    conditions_to_copy,
    consumer_differences,
    differences,
    mixes_to_copy,
    names_to_copy,
    provider_differences,
)
from treeclaim.client.errors import ClientError
from treeclaim.client.patience import retried
from treeclaim.client.reports import Reports, in_batches
from treeclaim.client.requests import bodies
from treeclaim.client.states import (
    CONSUMPTION,
    State,
    applied_in_bulk,
    call_part,
    changed_parts,
    entry_of,
    is_moved,
    parts_at,
)
from treeclaim.model.microversions import Feature
from treeclaim.model.parts import AGGREGATES, INVENTORIES, PARTS, TRAITS, ProviderPart

_CUSTOM = "CUSTOM_"
_UNKNOWN = "unknown"
"""How Placement shows a consumer without a type; it cannot be written."""

_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}
_BEFORE_TYPES = Feature.CONSUMER_TYPES - 1
"""The last minor version without consumer types."""


@dataclass(slots=True)
class CopyOutcome:
    """What was done.

    Attributes:
        providers, consumers: How many were written.
        unchanged: How many of both were equal already.
        refused: What the target refused, in words.
        differences: What differs in the end, in words.
    """

    providers: int = 0
    consumers: int = 0
    unchanged: int = 0
    refused: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def copy(source: Client, target: Client, progress: Progress, *, threads: int = 4) -> CopyOutcome:
    """Copy everything that a source holds to a target, then compare the two.

    It may be interrupted and run again. Nothing is ever deleted at the target.

    Args:
        source: Where to read; it is not changed.
        target: Where to write.
        progress: Told how far it is.
        threads: How many requests that read are made at once.

    Raises:
        ClientError: if an endpoint fails, or the target cannot hold what the source has.
    """
    wanted = read_contents(source, progress, title="source", threads=threads)
    present = read_contents(
        target, progress, title="target", threads=threads, only=wanted.providers
    )
    outcome = CopyOutcome()
    _copy_names(target, wanted, present)
    _copy_providers(target, wanted, present, outcome, progress)
    if present.aggregates is not None and (names := names_to_copy(wanted, present)):
        Reports(target).name_aggregates(names)
    if present.mixes is not None:
        _copy_mixes(target, mixes_to_copy(wanted, present), outcome)
    _copy_consumers(target, wanted, present, outcome, progress)
    if present.has_holds and wanted.has_holds:
        _copy_requests(target, wanted, present, outcome)
    if present.conditions is not None:
        # They would stop the claims.
        _copy_conditions(target, wanted, present, outcome)
    outcome.differences = compare(source, target, progress, threads=threads)
    return outcome


def compare(source: Client, target: Client, progress: Progress, *, threads: int = 4) -> list[str]:
    """Read both endpoints; return, in words, all that the target lacks or has different.

    Raises:
        ClientError: if an endpoint fails.
    """
    wanted = read_contents(source, progress, title="checking source", threads=threads)
    copied = read_contents(
        target, progress, title="checking target", threads=threads, only=wanted.providers
    )
    return differences(wanted, copied)


def _copy_names(target: Client, wanted: Contents, present: Contents) -> None:
    traits = sorted(wanted.traits - present.traits)
    classes = sorted(wanted.classes - present.classes)
    _require_standard_names(wanted, {*traits, *classes})
    target.ensure_names(_custom(traits), _custom(classes))


def _custom(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(_CUSTOM)]


def _require_standard_names(wanted: Contents, missing: set[str]) -> None:
    """Check before anything is written that the target has the standard names in use."""
    used = {
        name
        for provider in wanted.providers.values()
        for part in (TRAITS, INVENTORIES)
        for name in part.or_empty(provider.values)
    }
    unknown = sorted((used & missing) - set(_custom(missing)))
    if unknown:
        raise ClientError(
            f"the target does not know these standard names: {', '.join(unknown)}; install newer "
            "os-traits and os-resource-classes there and restart it"
        )


def _copy_providers(
    target: Client, wanted: Contents, present: Contents, outcome: CopyOutcome, progress: Progress
) -> None:
    """Make or change providers; one that is refused does not stop the others.

    What a target of another version cannot store is left out, and reported as a difference.
    """
    known = parts_at(target, PARTS)
    pairs = [
        (provider.limited_to(known), present.providers.get(provider.uuid))
        for provider in wanted.providers.values()
    ]
    if not target.versions.has(CONSUMPTION):
        pairs = [(_without_consumption(provider), existing) for provider, existing in pairs]
    waiting = _consumers_last([pair for pair in pairs if provider_differences(*pair)])
    outcome.unchanged += len(pairs) - len(waiting)
    done = 0
    for batch in in_batches(waiting):
        if applied_in_bulk(target, [entry_of(existing, provider) for provider, existing in batch]):
            outcome.providers += len(batch)
        else:
            _copy_one_by_one(target, batch, outcome)
        done += len(batch)
        progress("writing providers", done, len(waiting))


def _without_consumption(provider: State) -> State:
    """Return a provider for a target that does not know what inventories consume."""
    stock = {
        name: {field: value for field, value in fields.items() if field != "consumes"}
        for name, fields in INVENTORIES.or_empty(provider.values).items()
    }
    return replace(provider, values={**provider.values, INVENTORIES.name: stock})


def _consumers_last(
    pairs: Sequence[tuple[State, State | None]],
) -> list[tuple[State, State | None]]:
    """Move those whose inventories consume others to the end, with all that is below them."""
    later: set[str] = set()
    for provider, _ in pairs:
        stock = INVENTORIES.or_empty(provider.values).values()
        if provider.parent in later or any(fields.get("consumes") for fields in stock):
            later.add(provider.uuid)
    return sorted(pairs, key=lambda pair: pair[0].uuid in later)


def _copy_one_by_one(
    target: Client, pairs: Sequence[tuple[State, State | None]], outcome: CopyOutcome
) -> None:
    for provider, present in pairs:
        try:
            _copy_provider(target, provider, present)
            outcome.providers += 1
        except ClientError as error:
            _require_refusal(error)
            outcome.refused.append(f"provider {provider.uuid} ({provider.name}): {error}")


def _require_refusal(error: ClientError) -> None:
    """Raise an error again that is about the service or the caller's rights, not an object."""
    if error.status not in _REFUSALS:
        raise error


def _copy_provider(target: Client, wanted: State, present: State | None) -> None:
    """Make or change a provider that differs."""
    path = f"/resource_providers/{wanted.uuid}"
    body = {"name": wanted.name, "parent_provider_uuid": wanted.parent}
    if present is None:
        target.call("POST", "/resource_providers", json=body | {"uuid": wanted.uuid})
    elif is_moved(present, wanted):
        target.call("PUT", path, json=body)
    for part in changed_parts(present or wanted.without_parts, wanted):
        _put(target, wanted.uuid, part, part.written(part.value_in(wanted.values)))


def _put(target: Client, provider_uuid: str, part: ProviderPart[Any], content: Any) -> None:
    def attempt() -> None:
        provider = target.get(f"/resource_providers/{provider_uuid}")
        body: Any = {
            "resource_provider_generation": provider["generation"],
            part.name: content,
        }
        if part is AGGREGATES and not target.versions.has_feature(Feature.AGGREGATE_GENERATION):
            body = content
        call_part(target, "PUT", provider_uuid, part, body)

    retried(attempt)


@contextmanager
def _noting_refusals(outcome: CopyOutcome, what: str) -> Iterator[None]:
    """Record the refusal of an object, and go on.

    Raises:
        ClientError: if the error is about the service or the caller's rights.
    """
    try:
        yield
    except ClientError as error:
        _require_refusal(error)
        outcome.refused.append(f"{what}: {error}")


def _copy_mixes(
    target: Client, mixes: Mapping[str, Mapping[str, Any]], outcome: CopyOutcome
) -> None:
    for name, mix in mixes.items():
        with _noting_refusals(outcome, f"mix {name}"):
            Reports(target).put_mix(name, mix["requests"])


def _copy_conditions(
    target: Client, wanted: Contents, present: Contents, outcome: CopyOutcome
) -> None:
    for uuid, key, members in conditions_to_copy(wanted, present):
        with _noting_refusals(outcome, f"condition {key} of provider {uuid}"):
            Reports(target).put_condition(uuid, key, **members)


def _copy_requests(
    target: Client, wanted: Contents, present: Contents, outcome: CopyOutcome
) -> None:
    reports = Reports(target)
    known = {uuid: consumer.request for uuid, consumer in present.consumers.items()}
    requests = [
        (consumer.uuid, consumer.request)
        for consumer in wanted.consumers.values()
        if consumer.request != known.get(consumer.uuid)
    ]
    for batch in in_batches(requests):
        try:
            reports.keep_requests(dict(batch))
        except ClientError as error:
            _require_refusal(error)
            for uuid, request in batch:
                with _noting_refusals(outcome, f"request of consumer {uuid}"):
                    reports.keep_requests({uuid: request})


def _copy_consumers(
    target: Client, wanted: Contents, present: Contents, outcome: CopyOutcome, progress: Progress
) -> None:
    """Write the allocations; retry those that found no room after the others have moved."""
    has_holds = wanted.has_holds and present.has_holds
    changed = [
        consumer
        for consumer in wanted.consumers.values()
        if set(
            consumer_differences(
                consumer, present.consumers.get(consumer.uuid), has_holds=has_holds
            )
        )
        - {REQUEST}
    ]
    outcome.unchanged += len(wanted.consumers) - len(changed)
    total = len(changed)
    drawn = {hold for consumer in changed for hold in consumer.drawn_from} if has_holds else set()
    drawing = [consumer for consumer in changed if has_holds and consumer.drawn_from]
    # A hold from which others draw gets its own amounts after them.
    holds = [wanted.consumers[uuid] for uuid in sorted(drawn) if uuid in wanted.consumers]
    apart = {consumer.uuid for consumer in drawing} | drawn
    waiting = [consumer for consumer in changed if consumer.uuid not in apart]
    # A consumer without a type is written as it was before there were types.
    untyped = target.limited_to(_BEFORE_TYPES)

    def write(consumer: Consumer) -> None:
        if has_holds and consumer.drawn_from:
            _draw(target, consumer, wanted)
        elif consumer.hold is None and consumer.kind in {None, _UNKNOWN}:
            _claim(untyped, consumer, consumer.held)
        else:
            _claim(target, consumer, consumer.held, keeps_hold=has_holds)

    for consumers in (waiting, drawing, holds):
        _write_in_turns(
            consumers, write, outcome, lambda done: progress("writing consumers", done, total)
        )


def _write_in_turns(
    waiting: Sequence[Consumer],
    write: Callable[[Consumer], None],
    outcome: CopyOutcome,
    progress: Callable[[int], None],
) -> None:
    """Write consumers; repeat those that are refused for as long as others succeed."""
    while waiting:
        refused: list[tuple[Consumer, ClientError]] = []
        for consumer in waiting:
            try:
                write(consumer)
            except ClientError as error:
                _require_refusal(error)
                refused.append((consumer, error))
            else:
                outcome.consumers += 1
                progress(outcome.consumers)
        if len(refused) == len(waiting):
            outcome.refused += [
                f"{'consumer' if consumer.hold is None else 'hold'} {consumer.uuid}: {error}"
                for consumer, error in refused
            ]
            return
        waiting = [consumer for consumer, _ in refused]


def _draw(target: Client, consumer: Consumer, wanted: Contents) -> None:
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
        if hold in wanted.consumers:
            _claim(target, wanted.consumers[hold], drawn)
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
    target: Client,
    consumer: Consumer,
    held: Amounts,
    *,
    from_holds: Sequence[str] = (),
    keeps_hold: bool = True,
) -> None:
    """Write allocations of a consumer, in place of those that it has."""
    allocations = {uuid: {"resources": resources} for uuid, resources in held.items()}
    target.claim(
        consumer.uuid,
        {"allocations": allocations},
        project_id=consumer.project or bodies.NOBODY,
        user_id=consumer.user or bodies.NOBODY,
        consumer_type=consumer.kind or _UNKNOWN,
        replace=True,
        from_holds=from_holds,
        hold=consumer.hold if keeps_hold else None,
    )
