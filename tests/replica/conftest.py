# SPDX-License-Identifier: Apache-2.0
"""A store, a replica of it, and the promise that no child is left."""

import gc

import pytest

from tests.replica.scripted import children, forget_others, pipes
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
    with made.current():
        pass
    return made


@pytest.fixture(scope="module", autouse=True)
def others_are_not_looked_at():
    """Exclude objects of earlier modules from garbage collection, which each of these tests runs."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves a child, a zombie or a pipe."""
    gc.collect()
    forget_others()
    before = pipes()
    yield
    gc.collect()
    assert children() == []
    assert pipes() <= before
