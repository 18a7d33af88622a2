# SPDX-License-Identifier: Apache-2.0
"""Groups that compete for providers and are compared by attributes: what is left out has no candidate."""

import pytest
from hypothesis import strategies as st

from tests.forest.building import LimitedBudget, record
from tests.forest.building import forest_of as forest_of_records
from tests.properties.forest_adapter import FoundCandidates, ask, forest_of, property_of
from tests.reference.candidates import Reference
from tests.reference.strategies import comparisons
from tests.reference.world import Group, Provider, Request, Stock, World
from treeclaim.forest.search import search
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions, ValueList

DEVICES = st.fixed_dictionaries(
    {}, optional={"node": st.sampled_from([0, 1, 2, True]), "mem_gib": st.integers(0, 2)}
)


@st.composite
def questions(draw):
    """A host or two with devices that have attributes, and groups that want them."""
    providers = []
    for number in range(draw(st.integers(1, 2))):
        providers.append(Provider(f"h{number}"))
        providers += [
            Provider(
                f"h{number}d{device}",
                f"h{number}",
                {"FPGA": Stock(draw(st.integers(1, 2)))},
                attributes=draw(DEVICES),
            )
            for device in range(draw(st.integers(2, 5)))
        ]
    suffixes = [f"_{number}" for number in range(draw(st.integers(2, 4)))]
    groups = tuple(
        Group(suffix, {"FPGA": 1}, where=draw(st.sampled_from([(), ("exists mem_gib",)])))
        for suffix in suffixes
    )
    isolated = draw(st.sampled_from([frozenset(), frozenset(suffixes), frozenset(suffixes[:2])]))
    values = draw(comparisons(suffixes))
    return World(tuple(providers)), Request(groups, isolated=isolated, values=values)


@pytest.mark.slow
@property_of(60, questions())
def test_candidates_equal_the_reference(question):
    world, request = question
    result = FoundCandidates(world, ask(forest_of(world), request))
    assert result.candidates == Reference(world).candidates(request), (str(world), request)


@pytest.mark.parametrize("is_isolated", [True, False])
@pytest.mark.parametrize(("groups", "is_same"), [(17, True), (9, False)])
def test_infeasible_comparison_is_detected_early(groups, is_same, is_isolated):
    """Two nodes have sixteen devices each, or eight have four: one group too many is seen as that."""
    records: list[ProviderRecord] = []
    nodes, each = (2, 16) if is_same else (8, 4)
    for host in range(3):
        root = host * 100 + 1
        records.append(record(root))
        records += [
            record(
                root + 1 + device,
                root,
                root,
                {"CUSTOM_DEVICE": 1},
                attributes={"node": device % nodes},
            )
            for device in range(nodes * each)
        ]
    suffixes = tuple(f"_{number}" for number in range(groups))
    request = CandidateRequest(
        tuple(RequestGroup(suffix, {"CUSTOM_DEVICE": 1}) for suffix in suffixes),
        isolated=frozenset(suffixes if is_isolated else ()),
        values=(ValueList("node", suffixes, is_same),),
    )
    answer = search(
        forest_of_records(records), request, SearchOptions(), budget=LimitedBudget(20_000)
    )
    assert b'"allocation_requests":[]' in b"".join(answer.pieces()).replace(b" ", b"")
