# SPDX-License-Identifier: Apache-2.0
"""A Forest becomes small though nobody asks anything any more."""

import threading
import uuid

from tests.properties.forest_adapter import lowered
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.replica import Replica
from treeclaim.store.operations.providers import traits


def test_a_replica_is_tidied_between_turns_and_whoever_is_in_the_middle_is_told(store):
    with lowered({"FEWEST_DEAD_ROWS": 2, "ROWS_COPIED_TOGETHER": 2}):
        replica = Replica(store)
        number = 0
        with replica.current() as forest:
            before = replica.version
        while forest.is_tidy:
            number += 1
            give_trait(store, str(uuid.UUID(int=number)))
            with replica.current() as forest:
                version = replica.version
        for thread in threading.enumerate():
            if thread.name == "tidying":
                thread.join(30)
        assert forest.is_tidy
        assert version > before
        with replica.current() as forest:
            assert replica.version > version
            assert len(forest) == forest.row_count == 20
            assert len(forest.rows_with_trait(forest.catalogue.traits[SHARING_TRAIT].id)) == number


def give_trait(store, provider):
    """A provider lends what it has."""
    store.write(traits.replace, provider, 1, [SHARING_TRAIT])
