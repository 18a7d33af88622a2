# SPDX-License-Identifier: Apache-2.0
"""The servers that tests start do not know of each other."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.databases import Mariadb, MissingServerError

TOGETHER = 8
"""Servers that are made at the same moment; half of them failed when they shared a folder."""


class Prepared(Mariadb):
    """A server whose data are made, and that is not started."""

    def start(self, *options):
        """Start nothing."""


@pytest.mark.slow
def test_servers_that_are_made_at_once_leave_each_other_alone():
    def make(_number):
        server = Prepared()
        server.stop()

    with ThreadPoolExecutor(TOGETHER) as threads:
        try:
            list(threads.map(make, range(2 * TOGETHER)))
        except MissingServerError as missing:
            pytest.skip(str(missing))
