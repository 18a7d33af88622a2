# SPDX-License-Identifier: Apache-2.0
"""Copies the contents of one endpoint to another; does not write equal objects."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from treeclaim.client.aggregates import name_aggregates
from treeclaim.client.client import Client
from treeclaim.client.contents import (
    Amounts,
    ConsumerContents,
    Contents,
    find_differences,
    find_differing_consumers,
    find_differing_items,
    read_contents,
)
from treeclaim.client.errors import ClientError
from treeclaim.client.provider_batches import Action, PlannedChange, group_by_tree, write_trees
from treeclaim.client.session import Progress, escape_url, split_batches
from treeclaim.model.names import UNKNOWN_TYPE, is_custom_name
from treeclaim.model.parts import INVENTORIES, TRAITS

_NOBODY = "00000000-0000-0000-0000-000000000000"
"""Project and user of claims without a known owner."""

_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}


@dataclass(slots=True)
class CopyOutcome:
    """Numbers of written and of equal objects, and texts of rejected writes and of remaining differences."""

    providers: int = 0
    consumers: int = 0
    unchanged_count: int = 0
    refusal_texts: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def copy(source: Client, target: Client, progress: Progress) -> CopyOutcome:
    """Copy the contents of a source to a target, then compare the two.

    It may be interrupted and repeated. It deletes nothing at the target, which must have the extension and all
    standard names in use.
    """
    target.require_extension("the target of a copy")
    contents = read_contents(source, progress, title="source")
    target_contents = read_contents(target, progress, title="target")
    copier = _Copier(target, contents, target_contents, progress)
    copier.copy_names()
    copier.copy_providers()
    copier.copy_mixes()
    copier.copy_consumers()
    copier.copy_requests()
    # Conditions would stop the claims.
    copier.copy_conditions()
    copier.outcome.differences = compare(source, target, progress)
    return copier.outcome


def compare(source: Client, target: Client, progress: Progress) -> list[str]:
    """Read both endpoints; return a text for each object that is missing or different in the target."""
    source_contents = read_contents(source, progress, title="checking source")
    target_contents = read_contents(target, progress, title="checking target")
    return list(find_differences(source_contents, target_contents))


class _Copier:
    def __init__(
        self, target: Client, source: Contents, target_contents: Contents, progress: Progress
    ) -> None:
        self.outcome = CopyOutcome()
        self._target = target
        self._source = source
        self._target_contents = target_contents
        self._progress = progress

    @contextmanager
    def _collect_refusals(self, title: str) -> Iterator[None]:
        """Record the rejection of an object; reraise errors of the service or of the caller's rights."""
        try:
            yield
        except ClientError as error:
            if error.status not in _REFUSALS:
                raise
            self.outcome.refusal_texts.append(f"{title}: {error}")

    def copy_names(self) -> None:
        """Create custom names and names of aggregates; raise ClientError if standard names in use are missing."""
        traits = self._source.traits - self._target_contents.traits
        classes = self._source.classes - self._target_contents.classes
        names_in_use = {
            name
            for provider in self._source.providers.values()
            for part in (TRAITS, INVENTORIES)
            for name in part.or_empty(provider.values)
        }
        missing_names = names_in_use & (traits | classes)
        unknown_names = sorted(name for name in missing_names if not is_custom_name(name))
        if unknown_names:
            raise ClientError(
                f"the target lacks these standard names: {', '.join(unknown_names)}; install "
                "newer os-traits and os-resource-classes there and restart it"
            )
        for kind, names in (("traits", traits), ("resource_classes", classes)):
            for name in sorted(filter(is_custom_name, names)):
                self._target.call("PUT", f"/{kind}/{name}")
        if aggregates := find_differing_items(
            self._source.aggregates, self._target_contents.aggregates
        ):
            name_aggregates(self._target, aggregates)

    def copy_providers(self) -> None:
        providers, outcome = self._source.providers, self.outcome
        changes = [
            PlannedChange(self._target_contents.providers.get(uuid), provider)
            for uuid, provider in providers.items()
        ]
        unchanged_count = sum(change.action is Action.KEEP for change in changes)
        outcome.unchanged_count += unchanged_count

        def note(written_changes: Sequence[PlannedChange]) -> None:
            outcome.providers += len(written_changes)
            self._progress("writing providers", outcome.providers, len(changes) - unchanged_count)

        parents = {uuid: provider.parent for uuid, provider in providers.items()}
        refusals = write_trees(self._target, group_by_tree(changes, parents), note=note)
        outcome.refusal_texts += [
            f"provider {uuid} ({providers[uuid].name}): {reason}"
            for uuid, reason in refusals.items()
        ]

    def copy_mixes(self) -> None:
        for name, requests in find_differing_items(
            self._source.mixes, self._target_contents.mixes
        ).items():
            with self._collect_refusals(f"mix {name}"):
                path = f"/treeclaim/mixes/{escape_url(name)}"
                self._target.call("PUT", path, {"requests": requests})

    def copy_conditions(self) -> None:
        conditions = find_differing_items(
            self._source.conditions, self._target_contents.conditions
        )
        for (uuid, key), members in conditions.items():
            with self._collect_refusals(f"condition {key} of provider {uuid}"):
                path = f"/treeclaim/providers/{uuid}/conditions/{escape_url(key)}"
                self._target.call("PUT", path, members)

    def copy_requests(self) -> None:
        requests = find_differing_items(self._source.requests, self._target_contents.requests)
        for batch in split_batches(list(requests.items())):
            with self._collect_refusals(f"requests of {len(batch)} consumers"):
                self._target.call("POST", "/treeclaim/requests", {"requests": dict(batch)})

    def copy_consumers(self) -> None:
        consumers = self._source.consumers
        changed_consumers = [
            consumers[uuid]
            for uuid in find_differing_consumers(self._source, self._target_contents)
        ]
        self.outcome.unchanged_count += len(consumers) - len(changed_consumers)
        drawing_consumers = [consumer for consumer in changed_consumers if consumer.drawn_from]
        drawn_holds = sorted(
            {hold for consumer in drawing_consumers for hold in consumer.drawn_from}
        )
        # A drawn hold gets its own amounts after the consumers that draw from it.
        holds = [consumers[uuid] for uuid in drawn_holds if uuid in consumers]
        dependent_uuids = {consumer.uuid for consumer in drawing_consumers} | set(drawn_holds)
        independent_consumers = [
            consumer for consumer in changed_consumers if consumer.uuid not in dependent_uuids
        ]

        def write(consumer: ConsumerContents) -> None:
            if consumer.drawn_from:
                self._draw(consumer)
            else:
                _claim(self._target, consumer, consumer.held)
            self.outcome.consumers += 1
            self._progress("writing consumers", self.outcome.consumers, len(changed_consumers))

        for group in (independent_consumers, drawing_consumers, holds):
            self._write_in_rounds(group, write)

    def _write_in_rounds(
        self,
        waiting_consumers: Sequence[ConsumerContents],
        write: Callable[[ConsumerContents], None],
    ) -> None:
        """Write consumers; retry rejected ones as long as a round writes any, which may free room."""
        refusal_count = len(self.outcome.refusal_texts)
        while waiting_consumers:
            del self.outcome.refusal_texts[refusal_count:]
            refused_consumers = []
            for consumer in waiting_consumers:
                count = len(self.outcome.refusal_texts)
                with self._collect_refusals(consumer.title):
                    write(consumer)
                if len(self.outcome.refusal_texts) > count:
                    refused_consumers.append(consumer)
            if len(refused_consumers) == len(waiting_consumers):
                return
            waiting_consumers = refused_consumers

    def _draw(self, consumer: ConsumerContents) -> None:
        """Write a consumer so that it draws each amount from the right hold.

        The consumer first gets the amounts that it did not draw. Each hold then gets, for a moment, exactly the
        amounts that the consumer draws from it.
        """
        amounts = {uuid: Counter(resources) for uuid, resources in consumer.held.items()}
        for drawn_amounts in consumer.drawn_from.values():
            for uuid, resources in drawn_amounts.items():
                amounts[uuid].subtract(resources)
        _claim(self._target, consumer, _select_positive(amounts))
        for hold, drawn_amounts in consumer.drawn_from.items():
            if hold in self._source.consumers:
                _claim(self._target, self._source.consumers[hold], drawn_amounts)
            for uuid, resources in drawn_amounts.items():
                amounts[uuid].update(resources)
            _claim(self._target, consumer, _select_positive(amounts), from_holds=[hold])


def _select_positive(amounts: Mapping[str, Mapping[str, int]]) -> Amounts:
    positive_amounts = {
        uuid: {name: amount for name, amount in resources.items() if amount > 0}
        for uuid, resources in amounts.items()
    }
    return {uuid: resources for uuid, resources in positive_amounts.items() if resources}


def _claim(
    target: Client,
    consumer: ConsumerContents,
    held_amounts: Amounts,
    *,
    from_holds: Sequence[str] = (),
) -> None:
    """Replace the allocations of a consumer."""
    is_untyped = consumer.hold is None and consumer.kind in (None, UNKNOWN_TYPE)
    target.claim(
        consumer.uuid,
        {
            "allocations": {
                uuid: {"resources": resources} for uuid, resources in held_amounts.items()
            }
        },
        project_id=consumer.project or _NOBODY,
        user_id=consumer.user or _NOBODY,
        consumer_type=None if is_untyped and not from_holds else consumer.kind or UNKNOWN_TYPE,
        replace=True,
        from_holds=from_holds,
        hold=consumer.hold,
    )
