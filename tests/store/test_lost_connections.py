# SPDX-License-Identifier: Apache-2.0
"""A connection may be lost at any message of an operation, including the first ones of a process."""

import uuid
from contextlib import closing, suppress

import pytest

from tests.databases import EACH_SERVER, server_of
from tests.proxy import Proxy
from tests.store.hosts import create_host, make_claim
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.model.timing import WAIT, Stages
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.reading.holders import find_holders
from treeclaim.store.schema import revisions as schema
from treeclaim.store.store import NotWrittenError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=EACH_SERVER)
def server(request):
    return server_of(request.param)


@pytest.fixture(scope="module")
def database(server, tmp_path_factory):
    """The URL of a database with a host, and the host."""
    with server.database(tmp_path_factory.mktemp("database")) as url:
        with closing(Store(DatabaseSettings(url))) as store:
            schema.sync(store.engine)
            store.write(standard_names.sync_standard_names)
            host = create_host(store, 10_000)
        yield url, host


@pytest.fixture
def proxy(server):
    """A proxy that can cut connections to the server."""
    new_proxy = Proxy(server.port)
    yield new_proxy
    new_proxy.close()


def _claims(host, count):
    return [make_claim(str(uuid.uuid4()), {host: 1}) for _ in range(count)]


def follow(store, host):
    """Load everything, and poll the feed."""
    replica = Replica(store)
    for _ in range(2):
        with replica.borrow_forest() as forest:
            assert forest.row_of(host) is not None


def read(store, _host):
    assert store.read(find_holders, [str(uuid.uuid4())]) == {}


def write(store, _host):
    create_host(store)


def claim(store, host):
    store.replace_allocations(_claims(host, 1))


def claim_together(store, host):
    """Claim as several concurrent clients."""
    claims = _claims(host, 3)
    stages = [Stages(WAIT) for _ in claims]
    for claim, refusal in zip(claims, store.place_each(claims, stages), strict=True):
        if isinstance(refusal, NotWrittenError):
            store.place([claim])
        elif refusal is not None:
            raise refusal


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize("work", [follow, read, write, claim, claim_together])
def test_lost_message_ends_in_success_or_a_reported_error(work, is_heard, database, proxy):
    url, host = database
    proxy.is_heard = is_heard
    messages = 0
    is_over = False
    while not is_over:
        with closing(Store(DatabaseSettings(proxy.url(url)))) as store:
            proxy.cut_in = messages
            # Any other failure would be a 500.
            with suppress(StoreUnavailableError):
                work(store, host)
            is_over = proxy.cut_in >= 0
            proxy.cut_in = None
            work(store, host)
        messages += 1
    assert messages > 5
