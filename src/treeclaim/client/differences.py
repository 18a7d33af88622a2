# SPDX-License-Identifier: Apache-2.0
"""Differences between the contents of two endpoints, object by object."""

from collections.abc import Iterator, Mapping
from typing import Any

from treeclaim.client.contents import Consumer, Contents
from treeclaim.client.states import State, changed_parts

REQUEST = "request"
"""A difference of consumers that is written apart from their allocations."""


def consumer_differences(
    source: Consumer, target: Consumer | None, *, is_extended: bool
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


def names_to_copy(source: Contents, target: Contents) -> dict[str, str]:
    """Return the names of aggregates that the target lacks or has different, by uuid."""
    return _differing(source.aggregates, target.aggregates)


def mixes_to_copy(source: Contents, target: Contents) -> dict[str, Mapping[str, Any]]:
    """Return the mixes that the target lacks or has different, by name."""
    return _differing(source.mixes, target.mixes)


def conditions_to_copy(source: Contents, target: Contents) -> Iterator[tuple[str, str, Any]]:
    """Yield provider, key and members of conditions that the target lacks or has different."""
    for uuid, conditions in source.conditions.items():
        present = target.conditions.get(uuid, {})
        for key, members in _differing(conditions, present).items():
            yield uuid, key, members


def _differing(source: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if target.get(name) != value}


def find_differences(source: Contents, target: Contents) -> list[str]:
    """Return, in words, everything that the target lacks or has different.

    Objects that only the target has do not count, except for consumers of providers that both have.
    """
    return [
        *(f"trait {name} is missing" for name in sorted(source.traits - target.traits)),
        *(f"resource class {name} is missing" for name in sorted(source.classes - target.classes)),
        *(f"aggregate {uuid}: name differs" for uuid in sorted(names_to_copy(source, target))),
        *_provider_differences(source, target),
        *(f"mix {name} differs" for name in sorted(mixes_to_copy(source, target))),
        *_consumer_differences(source, target),
    ]


def _provider_differences(source: Contents, target: Contents) -> Iterator[str]:
    for uuid, provider in source.providers.items():
        for part in _provider_parts(provider, target.providers.get(uuid)):
            yield f"provider {uuid} ({provider.name}): {part} differs"
    for uuid, key, _ in conditions_to_copy(source, target):
        yield f"provider {uuid} ({source.providers[uuid].name}): condition {key} differs"


def _provider_parts(source: State, target: State | None) -> Iterator[str]:
    if target is None:
        yield "existence"
        return
    for member in ("name", "parent"):
        if getattr(source, member) != getattr(target, member):
            yield member
    yield from (part.name for part in changed_parts(target, source))


def _consumer_differences(source: Contents, target: Contents) -> Iterator[str]:
    for uuid, consumer in source.consumers.items():
        parts = consumer_differences(
            consumer, target.consumers.get(uuid), is_extended=source.is_extended
        )
        for part in sorted(parts):
            yield f"{consumer.title}: {part} differs"
    for uuid in sorted(target.consumers.keys() - source.consumers.keys()):
        yield f"consumer {uuid} holds something at the target only"
