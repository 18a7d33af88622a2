# SPDX-License-Identifier: Apache-2.0
"""A list of providers is what each of them is by itself, whatever they are called."""

import json
import uuid
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treeclaim.api.resources.providers import provider_json
from treeclaim.forest.listing.selection import ProviderList
from treeclaim.model.microversions import MAXIMUM, MINIMUM, Version
from treeclaim.model.provider import Provider

NAMES = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",\\\0%'), max_size=8)
# Databases of long ago have uuids in other forms too.
UUIDS = st.uuids().map(str) | st.uuids().map(lambda made: made.hex) | st.just("short")
PROVIDERS = st.lists(
    st.builds(
        Provider,
        uuid=UUIDS,
        name=NAMES,
        generation=st.integers(0, 2**31 - 1),
        parent_uuid=st.none() | UUIDS,
        root_uuid=UUIDS,
        modified_at=st.just(0.0),
    ),
    max_size=7,
)
VERSIONS = st.sampled_from([MINIMUM, Version(1, 1), Version(1, 10), Version(1, 14), MAXIMUM])
PREFIXES = st.sampled_from(["", "/placement", "/100%b", '/a%%"\\\0b', "/ü"])


def called(prefix, version):
    """A call at a version, under a mount prefix."""
    return SimpleNamespace(link=lambda path: f"{prefix}{path}", version=version)


def listed(providers):
    column = {
        name: np.array([getattr(provider, name) or "" for provider in providers], dtype="S36")
        for name in ("uuid", "parent_uuid", "root_uuid")
    }
    return ProviderList(
        name=[provider.name for provider in providers],
        uuid=column["uuid"],
        parent=column["parent_uuid"],
        root=column["root_uuid"],
        is_root=np.array([provider.parent_uuid is None for provider in providers], dtype=np.bool_),
        generation=np.array([provider.generation for provider in providers], dtype=np.int64),
        modified_at=np.zeros(len(providers)),
    )


def named(name):
    return Provider(str(uuid.UUID(int=1)), name, 0, None, str(uuid.UUID(int=1)), 0.0)


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    """Lists of some providers are written in several parts."""
    monkeypatch.setattr(provider_json, "_PIECE_SIZE", 3)


@given(PROVIDERS, VERSIONS, PREFIXES)
@example([named('x",'), named(",")], MAXIMUM, "")
@example([named("x\\"), named("")], MAXIMUM, "")
def test_a_list_is_each_provider_by_itself(providers, version, prefix):
    call = called(prefix, version)
    written = b"".join(provider_json.serialize_provider_list(listed(providers), call))
    alone = [provider_json.serialize_provider(provider, call) for provider in providers]
    assert written == b'{"resource_providers":[' + b",".join(alone) + b"]}"
    for single, text in zip(providers, alone, strict=True):
        document = json.loads(text)
        assert (document["uuid"], document["name"]) == (single.uuid, single.name)
        assert document["generation"] == single.generation
        assert {"rel": "self", "href": f"{prefix}/resource_providers/{single.uuid}"} in document[
            "links"
        ]
        if version >= Version(1, 14):
            assert document["parent_provider_uuid"] == single.parent_uuid
            assert document["root_provider_uuid"] == single.root_uuid
