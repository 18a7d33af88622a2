# SPDX-License-Identifier: Apache-2.0
"""The number of mixes that concurrent writers create (contract page 101, section 2)."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.databases import EACH_DATABASE
from tests.service import fresh_database_on
from treeclaim.model.extension.errors import MixesFullError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations import mixes
from treeclaim.store.schema.tables import MOST_MIXES


@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_concurrent_creations_respect_the_limit_of_mixes(kind, tmp_path):
    with (
        fresh_database_on(kind, tmp_path) as url,
        closing(Store(DatabaseSettings(url))) as first_store,
        closing(Store(DatabaseSettings(url))) as second_store,
    ):
        for number in range(MOST_MIXES - 4):
            first_store.write(mixes.put, f"mix-{number}", {})

        def attempt(number):
            try:
                (first_store, second_store)[number % 2].write(mixes.put, f"late-{number}", {})
            except MixesFullError:
                return False
            return True

        with ThreadPoolExecutor(12) as threads:
            result = list(threads.map(attempt, range(12)))
        assert result.count(True) == 4
        kept = first_store.read(mixes.load_mixes)
        assert len(kept) == MOST_MIXES
        assert {f"late-{number}" for number in range(12) if result[number]} < kept.keys()
