# SPDX-License-Identifier: Apache-2.0
"""The provider that a path names, and providers as JSON bytes (contract page 20, section 1).

Providers differ in uuids, a name and a generation. The rest is written once for each microversion: to fill a template
takes a fifteenth of the time of writing a document.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.operations import Call, Refusal
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.forest.listing.selection import ProviderList
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ProviderGenerationConflictError, ProviderNotFoundError
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.provider import Provider
from treeclaim.store.operations.providers.providers import require_exists

_LINKS = (
    (None, "inventories"),
    (None, "usages"),
    (Feature.AGGREGATES, "aggregates"),
    (Feature.TRAITS, "traits"),
    (Feature.ALLOCATIONS_LINK, "allocations"),
)
"""Relations of a provider, and the feature that brought each."""

_AT_ONCE = 500
"""Providers written at a time: for a millisecond, in which no other thread can go on."""

_UUID = b"\0"
"""Stands for the uuid of the provider; no JSON has this byte."""

_WHOLE_LIST = 5_000
"""Providers in a list that is made in one piece, of four megabytes."""


def path_of(provider_uuid: str) -> str:
    """Return the path of a provider."""
    return f"/resource_providers/{provider_uuid}"


def provider_json(provider: Provider, call: Call) -> bytes:
    """Write a provider as clients see it."""
    row = (
        provider.uuid.encode(),
        provider.name,
        provider.generation,
        (provider.parent_uuid or "").encode(),
        provider.root_uuid.encode(),
        provider.parent_uuid is None,
    )
    return _write_rows(_template(call.link(""), call.version), [row])[0]


def provider_list_json(providers: ProviderList, call: Call) -> Iterable[bytes]:
    """Write a list of providers: in one piece, or piece by piece while it is sent.

    So a long one takes little memory, and lets other threads go on in between.
    """
    pieces = _pieces(providers, _template(call.link(""), call.version))
    return pieces if len(providers) > _WHOLE_LIST else list(pieces)


def _pieces(providers: ProviderList, template: bytes) -> Iterator[bytes]:
    yield b'{"resource_providers":['
    for first in range(0, len(providers), _AT_ONCE):
        if first:
            yield b","
        part = providers.part(first, first + _AT_ONCE)
        arrays = (part.generation, part.parent, part.root, part.is_root)
        columns = (part.uuid.tolist(), part.name, *(array.tolist() for array in arrays))
        yield b",".join(_write_rows(template, zip(*columns, strict=True)))
    yield b"]}"


def _write_rows(
    template: bytes, rows: Iterable[tuple[bytes, str, int, bytes, bytes, bool]]
) -> list[bytes]:
    """Write rows of uuid, name, generation, parent, root, and whether there is no parent."""
    return [
        (
            template
            % (orjson.dumps(name), generation, b"null" if is_root else b'"%b"' % parent, root)
        ).replace(_UUID, uuid)
        for uuid, name, generation, parent, root, is_root in rows
    ]


@cache_short()
def _template(prefix: str, version: Version) -> bytes:
    """Return how providers are written under a mount prefix at a microversion."""
    path = orjson.dumps(f"{prefix}{path_of('')}")[1:-1].replace(b"%", b"%%") + _UUID
    links = [b'{"rel":"self","href":"%b"}' % path]
    links += [
        b'{"rel":"%b","href":"%b/%b"}' % (name.encode(), path, name.encode())
        for feature, name in _LINKS
        if feature is None or version.has(feature)
    ]
    is_nested = version.has(Feature.NESTED_PROVIDERS)
    # An argument with the precision 0 is left out.
    tree = b',"parent_provider_uuid":%b,"root_provider_uuid":"%b"' if is_nested else b"%.0b%.0b"
    opening = b'{"uuid":"' + _UUID + b'","name":%b,"generation":%d,"links":['
    return opening + b",".join(links) + b"]" + tree + b"}"


def require_row(forest: Forest, uuid: str) -> int:
    """Return the row of a provider by exactly this uuid.

    Raises:
        ProviderNotFoundError: if there is none.
    """
    row = forest.row_of(uuid)
    if row is None:
        raise ProviderNotFoundError(uuid)
    return row


def json_for_provider(call: Call) -> Any:
    """Return the checked body of a write to the path's provider.

    If the body is refused, a provider that does not exist is reported first. For a good body the
    write itself finds out.

    Raises:
        ProviderNotFoundError: if the body is refused and the provider does not exist.
        ApiError: as `Call.json`.
    """
    try:
        return call.json()
    except ApiError:
        call.services.store.read(require_exists, call.arguments["uuid"])
        raise


GENERATION_CHANGED = Refusal(
    "Resource provider's generation already changed. Please update the generation and try again.",
    ProviderGenerationConflictError,
)
"""The 409 for clients that replace a part of a provider that has changed."""
