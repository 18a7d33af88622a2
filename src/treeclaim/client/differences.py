# SPDX-License-Identifier: Apache-2.0
"""Compares the contents of two endpoints, object by object."""

from collections.abc import Iterator, Mapping
from typing import Any

from treeclaim.client.contents import Consumer, Contents
from treeclaim.client.states import State, changed_parts

REQUEST = "request"
"""A difference of consumers that is written apart from their allocations."""


def provider_differences(source: State, target: State | None) -> list[str]:
    """Return what of a provider differs; existence counts as a part."""
    if target is None:
        return ["existence"]
    pairs = (("name", source.name, target.name), ("parent", source.parent, target.parent))
    return [
        *(what for what, ours, theirs in pairs if ours != theirs),
        *(part.name for part in changed_parts(target, source)),
    ]


def consumer_differences(
    source: Consumer, target: Consumer | None, *, has_holds: bool
) -> list[str]:
    """Return the parts in which a consumer differs; a part unknown to the source is not a difference.

    Args:
        source: The consumer at the source.
        target: The consumer at the target; None if it is not there.
        has_holds: Whether the source has holds and kept requests.
    """
    if target is None or not (target.held or target.hold):
        return ["existence"]
    parts = [] if source.held == target.held else ["held"]
    for part in ("project", "user", "kind"):
        pair = getattr(source, part), getattr(target, part)
        if None not in pair and pair[0] != pair[1]:
            parts.append(part)
    if has_holds:
        parts += [
            part
            for part in ("hold", "drawn_from", REQUEST)
            if getattr(source, part) != getattr(target, part)
        ]
    return parts


def names_to_copy(source: Contents, target: Contents) -> dict[str, str | None]:
    """Return the names of aggregates that the target lacks or has different."""
    if source.aggregates is None:
        return {}
    if target.aggregates is None:
        return dict(source.aggregates.names)
    return target.aggregates.changes_to(source.aggregates.names)


def conditions_to_copy(
    source: Contents, target: Contents
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return provider, key and members of conditions that the target lacks or has different."""
    present = target.conditions or {}
    return [
        (uuid, key, members)
        for uuid, conditions in (source.conditions or {}).items()
        for key, members in conditions.items()
        if present.get(uuid, {}).get(key) != members
    ]


def mixes_to_copy(source: Contents, target: Contents) -> dict[str, Mapping[str, Any]]:
    """Return the mixes that the target lacks or has different, by name."""
    present = target.mixes or {}
    return {name: mix for name, mix in (source.mixes or {}).items() if present.get(name) != mix}


def differences(source: Contents, target: Contents) -> list[str]:
    """Return, in words, all that the target lacks or has different.

    What only the target has does not count, except for consumers of providers that both have.
    """
    return [
        *_name_differences(source, target),
        *_provider_differences(source, target),
        *(f"mix {name} differs" for name in sorted(mixes_to_copy(source, target))),
        *_consumer_differences(source, target),
    ]


def _name_differences(source: Contents, target: Contents) -> Iterator[str]:
    for kind, ours, theirs in (
        ("trait", source.traits, target.traits),
        ("resource class", source.classes, target.classes),
    ):
        for name in sorted(ours - theirs):
            yield f"{kind} {name} is missing"
    for uuid in sorted(names_to_copy(source, target)):
        yield f"aggregate {uuid}: name differs"


def _provider_differences(source: Contents, target: Contents) -> Iterator[str]:
    for uuid, provider in source.providers.items():
        for part in provider_differences(provider, target.providers.get(uuid)):
            yield f"provider {uuid} ({provider.name}): {part} differs"
    for uuid, key, _ in conditions_to_copy(source, target):
        yield f"provider {uuid} ({source.providers[uuid].name}): condition {key} differs"


def _consumer_differences(source: Contents, target: Contents) -> Iterator[str]:
    for uuid, consumer in source.consumers.items():
        kind = "consumer" if consumer.hold is None else "hold"
        parts = consumer_differences(
            consumer, target.consumers.get(uuid), has_holds=source.has_holds
        )
        for part in parts:
            yield f"{kind} {uuid}: {part} differs"
    for uuid in sorted(target.consumers.keys() - source.consumers.keys()):
        yield f"consumer {uuid} holds something at the target only"
