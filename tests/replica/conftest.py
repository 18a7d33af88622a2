# SPDX-License-Identifier: Apache-2.0
"""A store, its replica, and a check for leftover children and pipes."""

import gc

import pytest

from tests.replica.scripted import children, ignore_running_children, pipes
from tests.replica.worlds import store_of
from treeclaim.replica import Replica


@pytest.fixture
def store(tmp_path):
    """A store with twenty hosts."""
    made = store_of(tmp_path, 20)
    yield made
    made.close()


@pytest.fixture
def replica(store):
    """A replica that is up to date."""
    made = Replica(store)
    with made.borrow_forest():
        pass
    return made


@pytest.fixture(scope="module", autouse=True)
def freeze_earlier_objects():
    """Exclude objects of earlier modules from garbage collection, which each of these tests runs."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def check_leftovers():
    """Fail a test that leaves a child, a zombie or a pipe."""
    gc.collect()
    ignore_running_children()
    before = pipes()
    yield
    gc.collect()
    assert children() == []
    assert pipes() <= before
