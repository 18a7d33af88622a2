# SPDX-License-Identifier: Apache-2.0
"""Connections to the database are cut while claims are under way."""

import time

import pytest

from tests.faults.harness.load import Load, build
from tests.faults.harness.service import running
from tests.proxy import Proxy
from tests.servers import eventually

WRITES = 25
CUTS = 3

pytestmark = pytest.mark.slow


def test_cut_connections_lose_no_acknowledged_write(own_server, tmp_path):
    proxy = Proxy(own_server.port)
    with (
        own_server.database(tmp_path) as database,
        running(proxy.url(database), tmp_path) as service,
    ):
        load = Load([service.url], build(service.url))
        with load:
            for _ in range(CUTS):
                load.wait_for(WRITES)
                assert proxy.cut() > 0
            load.wait_for(WRITES)
            proxy.is_refusing = True
            proxy.cut()
            before = load.answers["unavailable"]
            eventually(lambda: load.answers["unavailable"] > before)
            began = time.monotonic()
            proxy.is_refusing = False
            load.wait_for(WRITES)
            assert time.monotonic() - began < 30
        load.judge()
    proxy.close()
