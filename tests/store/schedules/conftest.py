# SPDX-License-Identifier: Apache-2.0
"""A database for all cases of its kind."""

import pytest

from tests.databases import EACH_DATABASE
from tests.store.schedules.exploration import without_pauses
from tests.store.schedules.places import place_of


@pytest.fixture(scope="module", params=EACH_DATABASE)
def place(request, tmp_path_factory):
    """Sessions on a database of each kind."""
    with (
        pytest.MonkeyPatch.context() as patch,
        place_of(request.param, tmp_path_factory.mktemp("schedules")) as new_place,
    ):
        without_pauses(patch)
        yield new_place
