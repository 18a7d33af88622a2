# SPDX-License-Identifier: Apache-2.0
"""The provider that a path names, and providers as JSON bytes (contract page 20, section 1).

All that differs from one provider to the next are uuids, a name and a generation, so the rest is
written once for each microversion that shows something else. Of a list, numpy copies the uuids to
their places in a block of that text: a thousand take half a millisecond instead of fifteen.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from treeclaim.api.protocol.errors import ApiError, api_error
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.short_cache import cache_short
from treeclaim.forest.listing.selection import ProviderList
from treeclaim.forest.table.columns import Mask
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
"""Providers written at a time: for three milliseconds, in which no other thread can go on."""

_WHOLE_LIST = 5_000
"""Providers in a list that is made in one piece, of four megabytes."""

_UUID, _PARENT, _ROOT = b"\0", b"\1", b"\2"
"""Stand for uuids in the texts below; no other JSON has these bytes in it."""

_HEAD = b'{"uuid":"\0","name":"'

_BELOW = b',"parent_provider_uuid":"\1","root_provider_uuid":"\2"'

_AT_THE_TOP = b',"parent_provider_uuid":null,"root_provider_uuid":"\2"'


def path_of(provider_uuid: str) -> str:
    """Return the path of a provider."""
    return f"/resource_providers/{provider_uuid}"


def provider_json(provider: Provider, call: Call) -> bytes:
    """Write a provider as clients see it."""
    form = _form(call.link(""), call.version)
    uuid, parent = provider.uuid.encode(), provider.parent_uuid
    text = form.top if parent is None else form.below.replace(_PARENT, parent.encode())
    return b"".join(
        (
            _HEAD.replace(_UUID, uuid),
            *_names([provider.name]),
            b'","generation":%d' % provider.generation,
            text.replace(_UUID, uuid).replace(_ROOT, provider.root_uuid.encode())[:-1],
        )
    )


def few_providers_json(providers: Sequence[Provider], call: Call) -> bytes:
    """Write a short list of providers."""
    written = b",".join([provider_json(provider, call) for provider in providers])
    return b'{"resource_providers":[%b]}' % written


def provider_list_json(providers: ProviderList, call: Call) -> Iterable[bytes]:
    """Write a list of providers: in one piece, or piece by piece while it is sent.

    So a long one takes little memory, and lets other threads go on in between.
    """
    form = _form(call.link(""), call.version)
    pieces = _pieces(providers, form)
    return pieces if len(providers) > _WHOLE_LIST else list(pieces)


def _pieces(providers: ProviderList, form: "_Form") -> Iterator[bytes]:
    yield b'{"resource_providers":['
    for first in range(0, len(providers), _AT_ONCE):
        if first:
            yield b","
        yield _join_texts(providers.part(first, first + _AT_ONCE), form)
    yield b"]}"


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a provider behind its generation at a microversion.

    Attributes:
        top: JSON for one without a parent, with a comma behind it.
        below: JSON for one with a parent, the same.
    """

    top: bytes
    below: bytes


def _join_texts(providers: ProviderList, form: _Form) -> bytes:
    """Write some providers, separated by commas, column by column."""
    generations = providers.generation.tolist()
    numbers = {number: b'","generation":%d' % number for number in set(generations)}
    uuids = {_UUID: providers.uuid, _PARENT: providers.parent, _ROOT: providers.root}
    columns: list[Iterable[bytes]] = [
        _fill_holes(_HEAD, uuids),
        _names(providers.name),
        map(numbers.__getitem__, generations),
        _rests(providers.is_root, form, uuids),
    ]
    return b"".join(chain.from_iterable(zip(*columns, strict=True)))[:-1]


def _names(names: list[str]) -> list[bytes]:
    """Return the JSON of some names without quotes around them; one call costs as much as all."""
    together = orjson.dumps(names)
    if b'\\"' in together:
        # With a quote in one of them, or a backslash at its end, they cannot be told apart.
        return [orjson.dumps(name)[1:-1] for name in names]
    return together[2:-2].split(b'","')


_Uuids = Mapping[bytes, npt.NDArray[np.bytes_]]
"""The uuids of some providers, by what stands for them."""


def _rests(is_root: Mask, form: _Form, uuids: _Uuids) -> list[bytes]:
    """Return what is behind the generation of some providers."""
    rests = np.empty(len(is_root), dtype=object)
    for text, which in ((form.top, is_root), (form.below, ~is_root)):
        if which.any():
            rests[which] = _fill_holes(
                text, {hole: column[which] for hole, column in uuids.items()}
            )
    texts: list[bytes] = rests.tolist()
    return texts


def _fill_holes(text: bytes, uuids: _Uuids) -> list[bytes]:
    """Return a text for each of some providers, with its uuids in all holes: a copy for each hole."""
    kind, count = uuids[_UUID].dtype, len(uuids[_UUID])
    for hole in uuids:
        text = text.replace(hole, hole * kind.itemsize)
    filled = bytearray(text) * count
    for hole, column in uuids.items():
        room = hole * kind.itemsize
        offset = text.find(room)
        while offset >= 0:
            np.ndarray((count,), kind, filled, offset, (len(text),))[:] = column
            offset = text.find(room, offset + kind.itemsize)
    texts: list[bytes] = np.frombuffer(filled, dtype=f"S{len(text)}").tolist()
    if b"\0" in filled:
        # numpy pads uuids with that; an old database may have shorter ones than the API makes.
        return [text.replace(b"\0", b"") for text in texts]
    return texts


@cache_short()
def _form(prefix: str, version: Version) -> _Form:
    """Return how providers are written under a mount prefix at a microversion."""
    relations = [name for feature, name in _LINKS if feature is None or version.has(feature)]
    is_nested = version.has(Feature.NESTED_PROVIDERS)
    path = orjson.dumps(f"{prefix}{path_of('')}")[1:-1] + _UUID
    links = [b'{"rel":"self","href":"%b"}' % path]
    links += [
        b'{"rel":"%b","href":"%b/%b"}' % (name.encode(), path, name.encode()) for name in relations
    ]
    text = b',"links":[' + b",".join(links) + b"]"
    if not is_nested:
        return _Form(text + b"},", text + b"},")
    return _Form(text + _AT_THE_TOP + b"},", text + _BELOW + b"},")


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


@contextmanager
def replacing_a_part() -> Iterator[None]:
    """Tell clients who replace a part of a provider if it has changed.

    Raises:
        ApiError: 409 for another generation.
    """
    try:
        yield
    except ProviderGenerationConflictError as error:
        raise ApiError(
            HTTPStatus.CONFLICT,
            "Resource provider's generation already changed. Please update the generation and "
            "try again.",
            api_error(error).code,
        ) from error
