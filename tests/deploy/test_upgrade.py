# SPDX-License-Identifier: Apache-2.0
"""Processes of two releases: the tables of a later one, and a loader that speaks otherwise."""

import json
import subprocess
import sys

import pytest

from tests.service import client_of, fresh_database
from tests.store.schema.test_revisions import LATER, migrate_as_later_release
from treeclaim.admin.app import make_admin_application
from treeclaim.server.settings import ServerSettings
from treeclaim.store import DatabaseSettings, Store


def ready(url):
    """Return the body of `/ready` of a service of this release."""
    store = Store(DatabaseSettings(url))
    answer = client_of(make_admin_application(store, [])).get("/ready")
    store.close()
    return answer.status_code, answer.text


def test_service_is_not_ready_on_tables_of_a_later_release(tmp_path):
    url = fresh_database(tmp_path)
    assert ready(url)[0] == 200
    migrate_as_later_release(url)
    status, text = ready(url)
    assert status == 503
    assert f"at revision {LATER}" in text


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
    """Return the output of a first process with a loader that sends these messages."""
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
