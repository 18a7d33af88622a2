# SPDX-License-Identifier: Apache-2.0
"""Stores with hosts in them, and questions, for the tests of the replica."""

import uuid

from tests.service import fresh_database
from tests.store.hosts import write_inventories
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.microversions import NEWEST
from treeclaim.model.provider import Inventory
from treeclaim.model.request import BodyForm, CandidateRequest, RequestGroup, SearchOptions
from treeclaim.replica.questions import candidate_question, make_question_key
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.providers import providers

ONE_VCPU = CandidateRequest((RequestGroup("", {"VCPU": 1}),))
"""Matches each host."""


def question(request=ONE_VCPU, key="one", **options):
    return candidate_question(
        request, SearchOptions(**options), BodyForm(), make_question_key(key, NEWEST)
    )


def store_of(folder, hosts):
    """A store with hosts of eight VCPU; the uuid of host `n` is `n`, from 1."""
    made = Store(DatabaseSettings(fresh_database(folder)))
    for number in range(hosts):
        plant(made, number + 1)
    return made


def plant(store, number):
    """Add a host."""
    host = str(uuid.UUID(int=number))
    store.write(providers.create, uuid=host, name=f"host {number}", parent_uuid=None)
    stock = {"VCPU": Inventory(total=8)}
    store.write(write_inventories, host, stock, 0)


def claim(store, number, amount=8):
    """Claim units of a host."""
    allocations = {str(uuid.UUID(int=number)): {"VCPU": amount}}
    claimed = ConsumerClaim(str(uuid.uuid4()), allocations, "project", "user", None, "INSTANCE")
    store.replace_allocations([claimed])
