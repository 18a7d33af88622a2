# SPDX-License-Identifier: Apache-2.0
"""Documents that edit, load and copy write again without a change change nothing."""

import json
import uuid
from dataclasses import replace

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cli.hostile import NAME
from tests.cli.services import open_client, run_service, run_successful_command
from treeclaim.cli.providers.edit import _add_notes, _edit_text, _serialize
from treeclaim.client.copy import copy
from treeclaim.client.loading import apply_topology, make_plan
from treeclaim.client.provider_batches import Action, PlannedChange
from treeclaim.client.states import ProviderState, make_state
from treeclaim.client.topology.file import parse_topology
from treeclaim.model.parts import ATTRIBUTES as PART
from treeclaim.model.parts import PARTS
from treeclaim.model.provider import GREATEST_NUMBER, NAME_PATTERN, is_attribute_value

HOSTILE = (
    "host-{n}", "{{n:03}}", "}{", "{parent}", "{", "# no comment", "a: b", "- a", "null", "1_000", "0o17",
    "2026-11-24", "'", '"', "a\n# b\n\n", " a ", "\t", "\x85", "\u2028", "\ufeff", "%", "&a", "*a", "!!str a",
    "<<", "~", "[", "\\", "a\r", "true", NAME,
)  # fmt: skip
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
NAMES = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(CHARACTERS, min_size=1, max_size=200),
    st.text(st.sampled_from("{}n:03 parent#'\"\n\x85\\"), min_size=1, max_size=12),
)
WORDS = st.one_of(
    st.sampled_from(["NO", "ON", "Y", "NULL", "1_000", "0X1F", "_", "CUSTOM_E1", "1E5", "0"]),
    st.from_regex(r"[A-Z0-9_]{1,20}", fullmatch=True).filter(lambda word: word != "CUSTOM_"),
)
INVENTORIES = st.builds(
    lambda total, ratio, step: {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": total,
        "step_size": step,
        "allocation_ratio": ratio,
    },
    st.integers(1, 2_147_483_647),
    st.floats(0, 3e38),
    st.integers(1, 1000),
)
TEXTS = st.one_of(
    st.sampled_from([text for text in HOSTILE if is_attribute_value(text)]),
    st.sampled_from(
        ["1", "yes", "12:30", "1.0", "570.86", "\N{RIGHT-TO-LEFT OVERRIDE}\U0001f600"]
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=255),
)
ATTRIBUTES = st.dictionaries(
    st.from_regex(NAME_PATTERN.replace("$", r"\Z")),
    st.one_of(st.booleans(), st.integers(-GREATEST_NUMBER, GREATEST_NUMBER), TEXTS),
    max_size=5,
)
STATES = st.builds(
    ProviderState,
    uuid=st.uuids().map(str),
    name=NAMES,
    generation=st.just(1),
    parent=st.none(),
    values=st.fixed_dictionaries(
        {
            "inventories": st.dictionaries(WORDS, INVENTORIES, max_size=3),
            "traits": st.frozensets(WORDS, max_size=3),
            "aggregates": st.frozensets(st.uuids().map(str), max_size=3),
            "attributes": ATTRIBUTES,
        }
    ),
)


@given(STATES, st.lists(NAMES, max_size=3))
@example(ProviderState(str(uuid.UUID(int=1)), "host-{n}", None, 1), [])
def test_unchanged_editor_text_makes_no_change(tmp_path_factory, state, notes):
    file = tmp_path_factory.getbasetemp() / "edited.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDITOR", "true")
        text = _edit_text(file, _add_notes(_serialize(state), state.name, notes))
    assert text == _serialize(state)
    (planned,) = parse_topology(text, "edited").providers
    change = PlannedChange(state, replace(state, name=planned.name, values=planned.values))
    assert (change.after.name, planned.uuid) == (state.name, state.uuid)
    assert change.action is Action.KEEP


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two services, the first with providers of hostile names."""
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    with run_service(folders[0]) as source, run_service(folders[1]) as target:
        with open_client(source) as client:
            for name in HOSTILE:
                client.call("POST", "/resource_providers", json={"name": name})
        yield source, target


def read_names(environment):
    with open_client(environment) as client:
        return {row["uuid"]: row["name"] for row in client.providers()}


@pytest.mark.slow
def test_editing_traits_keeps_the_name(places, tmp_path):
    environment, _ = places
    before = read_names(environment)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/traits: .*/traits: [CUSTOM_EDITED]/" "$1"\n')
    editor.chmod(0o755)
    for provider in before:
        output = run_successful_command(environment | {"EDITOR": str(editor)}, "edit", provider)
        assert "CUSTOM_EDITED" in output
        assert "name" not in output.partition("\n")[2]
    assert read_names(environment) == before


@pytest.mark.slow
def test_copy_keeps_names_and_compares_equal(places):
    source, target = places
    ends = ["--from", source["TREECLAIM_ENDPOINT"], "--to", target["TREECLAIM_ENDPOINT"]]
    assert "The target has everything" in run_successful_command(source, "copy", *ends)
    assert read_names(target) == read_names(source)
    assert "The target has everything" in run_successful_command(
        source, "copy", *ends, "--compare"
    )
    assert set(read_names(target).values()) == set(HOSTILE)
    assert json.dumps(sorted(read_names(target))) == json.dumps(sorted(read_names(source)))


DESCRIBED = str(uuid.UUID(int=99))


def read_described_provider(client):
    """Return a provider, and its attributes as a text in which 1 and true differ."""
    (row,) = client.provider_states([part.name for part in PARTS], uuid=DESCRIBED)
    state = make_state(row, PARTS)
    return state, json.dumps(PART.value_in(state.values), sort_keys=True)


def check_round_trips(places, several):
    """Write attributes in every way; check that they and their types are preserved."""
    with open_client(places[0]) as source, open_client(places[1]) as target:
        for attributes in several:
            entry = {"name": "described", "uuid": DESCRIBED, "attributes": attributes}
            text = yaml.safe_dump({"providers": [entry]}, allow_unicode=bool(len(attributes) % 2))
            for _ in range(2):
                outcome = apply_topology(source, parse_topology(text, "file"), prune=True)
            assert len(outcome.list_names(Action.KEEP)) == 1
            state, description = read_described_provider(source)
            assert description == json.dumps(attributes, sort_keys=True)
            edited = parse_topology(_serialize(state), "edited")
            assert make_plan(source, edited, prune=True).changes[0].action is Action.KEEP
            assert copy(source, target, lambda *_: None).differences == []
            assert read_described_provider(target)[1] == description


@pytest.mark.slow
@pytest.mark.parametrize(
    "several",
    [
        [{"a": 1}, {"a": True}, {"a": "true"}],
        [{"a": text} for text in ("12:30", "\\u0041'\"", "\u202e")],
    ],
)
def test_attributes_survive_load_edit_and_copy(places, several):
    check_round_trips(places, several)
