# SPDX-License-Identifier: Apache-2.0
"""Providers as JSON bytes (contract page 20, section 1).

All that differs from one provider to the next are uuids, a name and a generation, so the rest is
written once for each microversion that shows something else; a list of a thousand takes two
milliseconds instead of fifteen.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import orjson

from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.remembering import remembering_short
from treeclaim.forest.answer.listing import ProviderColumns, ProviderList
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.provider import Provider

_LINKS = (
    (None, "inventories"),
    (None, "usages"),
    (Feature.AGGREGATES, "aggregates"),
    (Feature.TRAITS, "traits"),
    (Feature.ALLOCATIONS_LINK, "allocations"),
)
"""Relations of a provider, and the feature that brought each."""

_AT_ONCE = 500
"""Providers written at a time: for three milliseconds, in which no other thread can go on."""

_WHOLE_LIST = 5_000
"""Providers in a list that is made in one piece, of four megabytes."""

_REMEMBERED, _LONGEST_REMEMBERED = 64, 512
"""Forms, and characters of the mount prefix, which a proxy's header may name."""

_NULL = b"null"


def path_of(provider_uuid: str) -> str:
    """Return the path of a provider."""
    return f"/resource_providers/{provider_uuid}"


def provider_json(provider: Provider, call: Call) -> bytes:
    """Write a provider as clients see it."""
    parent = provider.parent_uuid
    columns = ProviderColumns(
        uuid=[provider.uuid.encode()],
        name=[provider.name],
        generation=[provider.generation],
        parent=[None if parent is None else parent.encode()],
        root=[provider.root_uuid.encode()],
        modified_at=[provider.modified_at],
    )
    return _written(columns, _form(call.link(""), call.version))


def provider_list_json(providers: ProviderList, call: Call) -> Iterable[bytes]:
    """Write a list of providers: in one piece, or piece by piece while it is sent.

    So a long one takes little memory, and lets other threads go on in between.
    """
    form = _form(call.link(""), call.version)
    pieces = _pieces(providers, form)
    return pieces if len(providers) > _WHOLE_LIST else [b"".join(pieces)]


def _pieces(providers: ProviderList, form: "_Form") -> Iterator[bytes]:
    yield b'{"resource_providers":['
    for first in range(0, len(providers), _AT_ONCE):
        if first:
            yield b","
        yield _written(providers.columns(first, first + _AT_ONCE), form)
    yield b"]}"


@dataclass(frozen=True, slots=True)
class _Form:
    """How a provider is written at a microversion.

    Attributes:
        template: JSON with `%` where a provider's own values belong, in their order.
        mentions: How often the uuid stands in it behind the generation.
        is_nested: Whether parent and root are shown.
    """

    template: bytes
    mentions: int
    is_nested: bool


def _written(providers: ProviderColumns, form: _Form) -> bytes:
    """Write some providers, separated by commas, all by one formatting."""
    columns: list[Iterable[bytes | int]] = [
        providers.uuid,
        map(orjson.dumps, providers.name),
        providers.generation,
        *([providers.uuid] * form.mentions),
    ]
    if form.is_nested:
        parents = [_NULL if parent is None else b'"%b"' % parent for parent in providers.parent]
        columns += [parents, providers.root]
    values = tuple(chain.from_iterable(zip(*columns, strict=True)))
    return b",".join([form.template] * len(providers.uuid)) % values


@remembering_short(_REMEMBERED, _LONGEST_REMEMBERED)
def _form(prefix: str, version: Version) -> _Form:
    """Return how providers are written under a mount prefix at a microversion."""
    relations = [name for feature, name in _LINKS if feature is None or version.has(feature)]
    is_nested = version.has(Feature.NESTED_PROVIDERS)
    # Every % of a prefix is one in the text, not a place for a value.
    path = orjson.dumps(f"{prefix}{path_of('')}")[1:-1].replace(b"%", b"%%") + b"%b"
    links = [b'{"rel":"self","href":"' + path + b'"}']
    links += [
        b'{"rel":"%s","href":"%s/%s"}' % (name.encode(), path, name.encode()) for name in relations
    ]
    fixed = b"[" + b",".join(links) + b"]"
    text = b'{"uuid":"%b","name":%b,"generation":%d,"links":' + fixed
    if is_nested:
        text += b',"parent_provider_uuid":%b,"root_provider_uuid":"%b"'
    return _Form(text + b"}", len(links), is_nested)
