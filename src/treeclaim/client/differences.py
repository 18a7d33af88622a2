# SPDX-License-Identifier: Apache-2.0
"""Differences between the contents of two endpoints, object by object."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from treeclaim.client.contents import ConsumerContents, Contents
from treeclaim.client.states import changed_parts

REQUEST = "request"
"""A difference of consumers that is written apart from their allocations."""

Key = TypeVar("Key")


def consumer_differences(
    source: ConsumerContents, target: ConsumerContents | None, *, is_extended: bool
) -> set[str]:
    """Return the parts in which a consumer differs.

    Args:
        source: The consumer at the source.
        target: The consumer at the target; None if it does not exist.
        is_extended: Whether the source has the extension, and so holds and requests.
    """
    if target is None or not (target.held or target.hold):
        return {"existence"}
    parts = {"held", *({"hold", "drawn_from", REQUEST} if is_extended else ())}
    # A hold of which everything is drawn shows no owner.
    parts |= {
        part
        for part in ("project", "user", "kind")
        if None not in (getattr(source, part), getattr(target, part))
    }
    return {part for part in parts if getattr(source, part) != getattr(target, part)}


def differing_items(source: Mapping[Key, Any], target: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return the items of the source that the target lacks or has different."""
    return {key: value for key, value in source.items() if target.get(key) != value}


def find_differences(source: Contents, target: Contents) -> list[str]:
    """Return, in words, everything that the target lacks or has different.

    Objects that only the target has do not count, except for consumers of providers that both have.
    """
    return [
        *(f"trait {name} is missing" for name in sorted(source.traits - target.traits)),
        *(f"resource class {name} is missing" for name in sorted(source.classes - target.classes)),
        *(f"{title} differs" for title in _differing_titles(source, target)),
        *(
            f"consumer {uuid} holds something at the target only"
            for uuid in sorted(target.consumers.keys() - source.consumers.keys())
        ),
    ]


def _differing_titles(source: Contents, target: Contents) -> Iterator[str]:
    for aggregate in sorted(differing_items(source.aggregates, target.aggregates)):
        yield f"aggregate {aggregate}: name"
    for uuid, provider in source.providers.items():
        title = f"provider {uuid} ({provider.name})"
        present = target.providers.get(uuid)
        if present is None:
            yield f"{title}: existence"
            continue
        for member in ("name", "parent"):
            if getattr(provider, member) != getattr(present, member):
                yield f"{title}: {member}"
        yield from (f"{title}: {part.name}" for part in changed_parts(present, provider))
    for uuid, key in differing_items(source.conditions, target.conditions):
        yield f"provider {uuid} ({source.providers[uuid].name}): condition {key}"
    for mix in sorted(differing_items(source.mixes, target.mixes)):
        yield f"mix {mix}"
    for uuid, consumer in source.consumers.items():
        present_consumer = target.consumers.get(uuid)
        is_extended = source.is_extended
        parts = consumer_differences(consumer, present_consumer, is_extended=is_extended)
        yield from (f"{consumer.title}: {part}" for part in sorted(parts))
