# SPDX-License-Identifier: Apache-2.0
"""Cards with their MIG profiles, divided in every way that there is (contract page 102, section 2)."""

import json

import pytest

from tests.api.raw import send
from tests.bodies import claim_of
from tests.service import InProcess, client_of, make_application
from treeclaim.client import Client
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology

FILE = "providers: [{{name: host, children: [{{name: gpu, mig: {}}}]}}]"

A100 = {
    "1g.10gb": (1, range(7)),
    "1g.20gb": (2, (0, 2, 4, 6)),
    "2g.20gb": (2, (0, 2, 4)),
    "3g.40gb": (4, (0, 4)),
    "4g.40gb": (4, (0,)),
    "7g.80gb": (8, (0,)),
}
"""Memory slices of each profile, and at which it may begin, as the vendor's table has them."""

A30 = {
    "1g.6gb": (1, range(4)),
    "1g.6gb+me": (1, range(4)),
    "2g.12gb": (2, (0, 2)),
    "2g.12gb+me": (2, (0, 2)),
    "4g.24gb": (4, (0,)),
}


class Card:
    """A card in a service."""

    def __init__(self, application, name, table):
        self.application = application
        with client_of(application) as http:
            client = Client(adapter=InProcess(http))
            apply_topology(client, parse_topology(FILE.format(name), "file"))
            uuids = {provider["name"]: provider["uuid"] for provider in client.providers()}
        self.places = {
            (profile, begin): frozenset(range(begin, begin + size)) | list_media(profile)
            for profile, (size, begins) in table.items()
            for begin in begins
        }
        self.paths = {
            place: f"/allocations/00000000-0000-4000-8000-{number:012}"
            for number, place in enumerate(self.places)
        }
        self.claims = {
            (profile, begin): make_claim_body(uuids[f"gpu_{profile}_at{begin}"], profile)
            for profile, begin in self.places
        }

    def claim(self, place):
        """Divide the card further; return whether that was possible."""
        answer = send(self.application, "PUT", self.paths[place], body=self.claims[place])
        assert answer.status in (204, 409), answer.body
        return answer.status == 204

    def release(self, place):
        assert send(self.application, "DELETE", self.paths[place]).status == 204

    def explore(self, state, visited):
        """Try each further division of a state, and from each that is new go on; then undo it."""
        visited.add(state)
        covered = set().union(*(self.places[place] for place in state))
        for place, slices in self.places.items():
            if place in state:
                continue
            assert self.claim(place) == covered.isdisjoint(slices), (state, place)
            if covered.isdisjoint(slices):
                if state | {place} not in visited:
                    self.explore(state | {place}, visited)
                self.release(place)


def list_media(profile):
    """Return the media extensions of a profile; a card has one set."""
    return {"media"} if profile.endswith("+me") else set()


def make_claim_body(provider, profile):
    """Return the body of a claim of a partition."""
    name = f"CUSTOM_MIG_{profile.upper().replace('.', '_').replace('+', '_')}"
    return json.dumps(claim_of({provider: {"resources": {name: 1}}})).encode()


def list_independent_sets(places):
    """Return all sets of places without a common slice."""
    states = [frozenset()]
    for place, slices in places.items():
        states += [
            state | {place}
            for state in states
            if all(slices.isdisjoint(places[placed_profile]) for placed_profile in state)
        ]
    return set(states)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "table"),
    [("a30", A30), pytest.param("a100-80gb", A100, marks=pytest.mark.slow)],
)
def test_reachable_card_states_equal_the_table(tmp_path, name, table):
    card = Card(make_application(tmp_path), name, table)
    visited = set()
    card.explore(frozenset(), visited)
    assert visited == list_independent_sets(card.places)
