# SPDX-License-Identifier: Apache-2.0
"""docs/upgrade.md in small: two services on one database, one of which knows a later revision, and back again."""

import json
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.service import client_of, fresh_database, start_on
from tests.store.schema.test_later_releases import LATER, migrate_as_later_release, synced
from treeclaim.admin.app import make_admin_application
from treeclaim.server.settings import ServerSettings
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.schema import later_releases
from treeclaim.store.schema.tables import OWN_REVISIONS

SYNC = {"placement_database.sync_on_startup": True}
"""The options of the manifests in deploy/."""


class Services:
    """Services that run at the same time on one database, each with a client."""

    def __init__(self, url, folder):
        self._url, self._folder = url, folder
        self._running = {}
        self._names = []

    def start(self, name, *, is_later=False):
        """Start one, of a release that knows the later revision or of one that does not."""
        stack = ExitStack()
        with pytest.MonkeyPatch.context() as patch:
            if is_later:
                patch.setattr(later_releases, "OWN_REVISIONS", (*OWN_REVISIONS, LATER))
            folder = self._folder / name
            folder.mkdir(exist_ok=True)
            application = stack.enter_context(start_on(self._url, folder, **SYNC))
        self._running[name] = (stack, client_of(application))

    def stop(self, name):
        self._running.pop(name)[0].close()

    def stop_all(self):
        for name in list(self._running):
            self.stop(name)

    def require_same(self):
        """Write through each that runs; all see all that was ever written."""
        for name, (_, client) in self._running.items():
            provider = f"{name}-{len(self._names)}"
            answer = client.post("/resource_providers", json={"name": provider})
            assert answer.status_code == 200, answer.text
            self._names.append(provider)
            for _, other in self._running.values():
                listed = other.get("/resource_providers").json()["resource_providers"]
                assert [one["name"] for one in listed] == self._names


def ready(url):
    """Return the body of `/ready` of a service of this release."""
    store = Store(DatabaseSettings(url))
    answer = client_of(make_admin_application(store, [])).get("/ready")
    store.close()
    return answer.status_code, answer.text


@pytest.mark.slow
def test_rolling_upgrade_and_rollback_keep_responses(tmp_path, capsys):
    url = fresh_database(tmp_path)
    services = Services(url, tmp_path)
    services.start("old-1")
    services.start("old-2")
    services.require_same()
    # `db sync` of the new release, while the former one serves.
    migrate_as_later_release(url, OWN_REVISIONS[-1])
    services.require_same()
    assert ready(url) == (200, "ready\n")
    services.start("new-1", is_later=True)
    services.require_same()
    # One of the former release is started again in the middle of it.
    services.stop("old-1")
    services.start("old-1")
    services.require_same()
    for name in ("old-1", "old-2"):
        services.stop(name)
    services.start("new-2", is_later=True)
    services.require_same()
    # And back.
    code, said = synced(url, tmp_path, capsys)
    assert (code, "Nothing was changed" in said) == (0, True)
    services.start("old-1")
    services.require_same()
    services.stop("new-1")
    services.stop("new-2")
    services.require_same()
    services.stop_all()


def test_former_release_is_not_ready_on_incompatible_tables(tmp_path):
    url = fresh_database(tmp_path)
    assert ready(url)[0] == 200
    migrate_as_later_release(url, LATER)
    status, text = ready(url)
    assert status == 503
    assert "made by a later release" in text


def test_loader_understands_settings_of_another_release():
    settings = ServerSettings(workers=2, threads=3)
    text = json.dumps(json.loads(settings.to_json()) | {"mood": "good"})
    assert ServerSettings.from_json(text) == settings


FIRST_PROCESS = """
import sys
from treeclaim.server.processes.master import Master
from treeclaim.server.settings import ServerSettings

sys.executable = sys.argv[1]
Master(ServerSettings()).run()
"""


def failure_with(folder, *messages):
    """Return what a first process says whose loader sends these messages."""
    program = folder / "python"
    sends = "".join(f"os.write(3, {message})\n" for message in messages)
    program.write_text(f"#!{sys.executable}\nimport os, time\n{sends}time.sleep(60)\n")
    program.chmod(0o700)
    result = subprocess.run(
        [sys.executable, "-c", FIRST_PROCESS, str(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "message", [b'["word"]', b'{"mood": "good"}', b'{"kind": "checked"}', b"?"]
)
def test_loader_of_unknown_release_is_refused(message, tmp_path):
    assert "another release" in failure_with(tmp_path, message)


@pytest.mark.slow
def test_unknown_messages_and_members_of_a_loader_are_ignored(tmp_path):
    refused = b'{"kind": "refused", "why": "no inventory", "mood": "bad"}'
    assert failure_with(tmp_path, b'{"kind": "mood"}', refused).endswith(": no inventory")
