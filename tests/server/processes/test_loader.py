# SPDX-License-Identifier: Apache-2.0
"""A forked process inherits no thread, acquired lock or connection of the loader."""

import json
import subprocess
import sys

import pytest

from tests.servers import service_environment
from treeclaim.server.settings import ServerSettings

pytestmark = pytest.mark.slow

SCRIPT = """
import _thread, gc, json, os, sys, threading
from treeclaim.server.processes import checks, generation
from treeclaim.server.settings import ServerSettings

state = checks.check_service(ServerSettings.from_json(sys.argv[1]))
checks.require_database(state.configuration)
inventory = checks.load_inventory(state)
kinds = (_thread.LockType, type(threading.RLock()))
locks = {id(one): one for owner in gc.get_objects() for one in gc.get_referents(owner) if isinstance(one, kinds)}
# It says that the main thread runs, and Python makes it anew after a fork.
for one in getattr(threading, "_shutdown_locks", ()):
    locks.pop(id(one), None)
descriptors = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
print(json.dumps({
    "locks": len(locks),
    "held": [repr(one) for one in locks.values() if repr(one).startswith("<locked")],
    "threads": [one.name for one in threading.enumerate()],
    "descriptors": descriptors,
}))
"""
SETTINGS = ServerSettings(workers=2, threads=3)
KEYSTONE = {
    "AUTH_URL": "http://127.0.0.1:1/v3",
    "AUTH_TYPE": "password",
    "USERNAME": "placement",
    "PASSWORD": "secret",
    "PROJECT_NAME": "service",
    "USER_DOMAIN_NAME": "Default",
    "PROJECT_DOMAIN_NAME": "Default",
    "MEMCACHED_SERVERS": "127.0.0.1:1",
}


@pytest.mark.parametrize("strategy", ["noauth2", "keystone"])
def test_fork_inherits_no_thread_held_lock_or_connection(tmp_path, strategy):
    keystone = {f"OS_KEYSTONE_AUTHTOKEN__{name}": value for name, value in KEYSTONE.items()}
    log = tmp_path / "log"
    environment = service_environment(
        tmp_path,
        OS_API__AUTH_STRATEGY=strategy,
        OS_DEFAULT__LOG_FILE=str(log),
        **(keystone if strategy == "keystone" else {}),
    )
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, SETTINGS.to_json()],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(result.stdout)
    assert document["locks"] > 50, "the locks of loggers, caches and libraries were found"
    assert document["held"] == []
    assert document["threads"] == ["MainThread"]
    expected_files = {str(log), "/dev/null"}
    others = {
        descriptor
        for descriptor in document["descriptors"]
        if not descriptor.startswith(("pipe:", "/proc/"))
    } - expected_files
    assert {file for file in others if "treeclaim-metrics-" not in file} == set()
