# SPDX-License-Identifier: Apache-2.0
"""Providers as JSON bytes, and the provider of a path (contract page 20, section 1).

Providers differ only in UUIDs, name and generation. The remaining text is a template for each microversion. Filling
the template takes a fifteenth of the time of serializing a document.
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
from treeclaim.store.operations.providers.tree_writer import find_provider

_LINKS = (
    (None, "inventories"),
    (None, "usages"),
    (Feature.AGGREGATES, "aggregates"),
    (Feature.TRAITS, "traits"),
    (Feature.ALLOCATIONS_LINK, "allocations"),
)
"""Relations of a provider, and the feature that introduced each."""

_PIECE_SIZE = 500
"""Providers serialized at once: a millisecond, during which other threads wait."""

_UUID = b"\0"
"""Placeholder for the UUID of the provider; JSON never contains this byte."""

_WHOLE_LIST = 5_000
"""Most providers of a list that is sent as a whole: four megabytes."""


def make_provider_path(provider_uuid: str) -> str:
    """Return the path of a provider without the mount prefix."""
    return f"/resource_providers/{provider_uuid}"


def serialize_provider(provider: Provider, call: Call) -> bytes:
    """Serialize a provider."""
    row = (
        provider.uuid.encode(),
        provider.name,
        provider.generation,
        (provider.parent_uuid or "").encode(),
        provider.root_uuid.encode(),
        provider.parent_uuid is None,
    )
    return _serialize_rows(_make_template(call.link(""), call.version), [row])[0]


def serialize_provider_list(providers: ProviderList, call: Call) -> Iterable[bytes]:
    """Serialize a list of providers: as a list of pieces, or as an iterator for a long list.

    An iterator needs little memory, and other threads run between its pieces.
    """
    pieces = _serialize_pieces(providers, _make_template(call.link(""), call.version))
    return pieces if len(providers) > _WHOLE_LIST else list(pieces)


def _serialize_pieces(providers: ProviderList, template: bytes) -> Iterator[bytes]:
    yield b'{"resource_providers":['
    for begin in range(0, len(providers), _PIECE_SIZE):
        if begin:
            yield b","
        yield b",".join(_serialize_rows(template, providers.entries(begin, begin + _PIECE_SIZE)))
    yield b"]}"


def _serialize_rows(
    template: bytes, rows: Iterable[tuple[bytes, str, int, bytes, bytes, bool]]
) -> list[bytes]:
    """Serialize rows of UUID, name, generation, parent, root, and `is_root`."""
    return [
        (
            template
            % (orjson.dumps(name), generation, b"null" if is_root else b'"%b"' % parent, root)
        ).replace(_UUID, uuid)
        for uuid, name, generation, parent, root, is_root in rows
    ]


@cache_short()
def _make_template(prefix: str, version: Version) -> bytes:
    """Return the template of providers for a mount prefix and a microversion."""
    path = orjson.dumps(f"{prefix}{make_provider_path('')}")[1:-1].replace(b"%", b"%%") + _UUID
    links = [b'{"rel":"self","href":"%b"}' % path]
    links += [
        b'{"rel":"%b","href":"%b/%b"}' % (name.encode(), path, name.encode())
        for feature, name in _LINKS
        if feature is None or version.has(feature)
    ]
    is_nested = version.has(Feature.NESTED_PROVIDERS)
    # The precision 0 omits the argument.
    tree = b',"parent_provider_uuid":%b,"root_provider_uuid":"%b"' if is_nested else b"%.0b%.0b"
    opening = b'{"uuid":"' + _UUID + b'","name":%b,"generation":%d,"links":['
    return opening + b",".join(links) + b"]" + tree + b"}"


def require_row(forest: Forest, uuid: str) -> int:
    """Return the row of the provider with exactly this UUID, or raise ProviderNotFoundError."""
    row = forest.row_of(uuid)
    if row is None:
        raise ProviderNotFoundError(uuid)
    return row


def read_provider_body(call: Call) -> Any:
    """Return the validated body of a write to the provider of the path; see `Call.read_body`.

    Raises:
        ProviderNotFoundError: instead of the error of an invalid body, if the provider does not exist.
    """
    try:
        return call.read_body()
    except ApiError:
        call.services.store.read(find_provider, call.arguments["uuid"])
        raise


GENERATION_CHANGED = Refusal(
    "Resource provider's generation already changed. Please update the generation and try again.",
    ProviderGenerationConflictError,
)
"""The 409 for replacing a part of a provider that has changed."""
