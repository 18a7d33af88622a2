# SPDX-License-Identifier: Apache-2.0
"""Groups that consume of the same inventory get what the definition gives them, in any small world."""

import os

from hypothesis import HealthCheck, given, settings

from tests.properties.forest_adapter import every_path, forest_of, lowered
from tests.properties.test_candidates_match_the_definition import compare
from tests.reference.candidates import Reference
from tests.reference.strategies import cards
from tests.reference.world import Group, Provider, Request, Stock, World

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "1000"))


class OneByOne(Reference):
    """The definition, where nothing that groups consume adds up."""

    def uses(self, alloc):
        """Draw amounts that are taken alone."""
        return dict(alloc)


@every_path
def test_groups_consuming_one_inventory_match_the_reference(sizes):
    tried, meeting = 0, 0

    @settings(
        max_examples=WORLDS,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(cards())
    def compare_each(question):
        nonlocal tried, meeting
        world, request = question
        reference = Reference(world)
        expected = reference.candidates(request)
        compare(world, reference, forest_of(world), request, expected)
        tried += 1
        meeting += OneByOne(world).candidates(request) != expected

    with lowered(sizes):
        compare_each()
    # Otherwise these worlds would not tell whether what groups consume adds up.
    assert meeting >= tried // 20, (meeting, tried)


def test_split_amount_and_another_group_consume_together():
    """A partition cannot give two units besides the unit that the other group takes.

    The set of that partition alone is minimal, so the amount is divided over no larger set (page 97, section 2.2).
    """
    takes: dict[str, tuple[tuple[str, str, int], ...]] = {"FPGA": (("card", "DISK_GB", 2),)}
    world = World(
        (
            Provider("card", None, {"DISK_GB": Stock(5)}),
            Provider("one", "card", {"FPGA": Stock(4)}, consumes=takes),
            Provider("other", "card", {"FPGA": Stock(1)}),
        )
    )
    groups = Group("", {"FPGA": 2}), Group("_X", {"FPGA": 1})
    request = Request(groups, can_split=frozenset({"FPGA"}))
    expected = Reference(world).candidates(request)
    serving = [dict(mapping) for _, mapping in expected]
    assert serving == [{"": {"one"}, "_X": {"other"}}]
    compare(world, Reference(world), forest_of(world), request, expected)
