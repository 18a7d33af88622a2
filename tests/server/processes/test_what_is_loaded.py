# SPDX-License-Identifier: Apache-2.0
"""A process holds the libraries that its configuration asks for, and workers share those: a loader has them."""

import json
import subprocess
import sys
from contextlib import closing

import pytest

from tests.server.processes.test_loader import KEYSTONE, SETTINGS
from tests.servers import service_environment
from treeclaim.store import Store
from treeclaim.store.database.connecting.engine import DatabaseSettings
from treeclaim.store.schema import revisions

pytestmark = pytest.mark.slow

WORKER = """
import json, os, sys
from treeclaim.api import app
from treeclaim.server.processes import checks, generation, worker
from treeclaim.server.settings import ServerSettings

state = checks.check_service(ServerSettings.from_json(sys.argv[1]))
picture = checks.load_inventory(state)
shared = sorted(sys.modules)
app.application_of(worker.make_services(state), state.configuration)
made = {"shared": shared, "own": sorted(set(sys.modules) - set(shared)), "texts": app._openapi_document.cache_info().currsize}
print(json.dumps(made), flush=True)
os._exit(0)
"""
FIRST = """
import json, sys
from treeclaim.cli import serve
from treeclaim.server.processes import master

print(json.dumps(sorted(sys.modules)))
"""

OF_POSTGRESQL = {"psycopg", "sqlalchemy.dialects.postgresql.base"}
OF_MARIADB = {"pymysql"}
OF_KEYSTONE = {"keystonemiddleware", "keystoneauth1", "keystoneclient", "cryptography"}
OF_EXTRAS = {"rich", "treeclaim.api.middleware.tracing"}
"""Libraries that commands use, or services that trace."""
OF_SERVICES = {"numpy", "sqlalchemy", "falcon", "jsonschema", "orjson", "prometheus_client"}


def worker_of(tmp_path, strategy, **more):
    """The modules that a worker has imported, on a database with a schema."""
    url = f"sqlite:///{tmp_path}/placement.db"
    with closing(Store(DatabaseSettings(url))) as store:
        revisions.sync(store.engine)
    environment = service_environment(
        tmp_path,
        url,
        OS_API__AUTH_STRATEGY=strategy,
        OS_DEFAULT__LOG_FILE=str(tmp_path / "log"),
        **more,
    )
    result = subprocess.run(
        [sys.executable, "-c", WORKER, SETTINGS.to_json()],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(result.stdout)


def test_worker_does_not_load_unused_drivers_or_keystone(tmp_path):
    worker = worker_of(tmp_path, "noauth2")
    loaded = {*worker["shared"], *worker["own"]}
    assert loaded & (OF_POSTGRESQL | OF_MARIADB | OF_KEYSTONE | OF_EXTRAS) == set()
    assert loaded >= OF_SERVICES
    assert worker["texts"] == 0, "the description of the API is made when it is asked for"


def test_keystone_libraries_are_loaded_before_the_fork(tmp_path):
    keystone = {f"OS_KEYSTONE_AUTHTOKEN__{name}": value for name, value in KEYSTONE.items()}
    worker = worker_of(tmp_path, "keystone", **keystone)
    assert set(worker["shared"]) >= OF_KEYSTONE
    assert {name for name in worker["own"] if name.partition(".")[0] in OF_KEYSTONE} == set()


def test_supervisor_loads_no_service_modules():
    result = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(result.stdout))
    assert loaded & (OF_SERVICES | OF_POSTGRESQL | OF_KEYSTONE | OF_EXTRAS) == set()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("treeclaim.")}
    assert rooms & {"api", "config", "forest", "replica", "store", "wsgi"} == set()
