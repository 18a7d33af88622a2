# SPDX-License-Identifier: Apache-2.0
"""docs/upgrade.md in small: two services on one database, one of which knows a later revision, and back again."""

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from tests.loops import in_a_loop
from tests.service import client_of, fresh_database, start_on
from tests.store.schema.test_later_releases import LATER, migrate_as_later_release, synced
from treeclaim.admin.app import make_admin_application
from treeclaim.admin.certificates import CertificateUse, Expiry, received
from treeclaim.server.processes import forking
from treeclaim.server.processes.orders import Checked, connected_sockets, packed, unpacked
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
def test_one_service_after_the_other_is_upgraded_and_goes_back(tmp_path, capsys):
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


def test_where_the_new_release_does_not_allow_it_the_former_is_not_ready(tmp_path):
    url = fresh_database(tmp_path)
    assert ready(url)[0] == 200
    migrate_as_later_release(url, LATER)
    status, text = ready(url)
    assert status == 503
    assert "made by a later release" in text


CHECKED = Checked("placement", {"debug": True}, ("127.0.0.1", 1), [])


def changed(message, **more):
    """Return the same message from a release with more members."""
    kind, content = json.loads(packed(message))
    return json.dumps([kind, content | more]).encode()


def test_a_first_process_understands_the_loader_of_a_release_that_says_more_or_less():
    assert unpacked(changed(CHECKED, mood="good")) == unpacked(packed(CHECKED))
    kind, content = json.loads(packed(CHECKED))
    del content["expiries"]
    understood = unpacked(json.dumps([kind, content]).encode())
    assert understood == replace(CHECKED, admin=["127.0.0.1", 1], expiries=())
    expiry = {"use": "server", "path": "/one.pem", "at": 1.0, "warned_from": 0.0}
    sent: list[dict[str, Any]] = [expiry | {"mood": "good"}, expiry | {"use": "moods"}]
    sent.append({"use": "server"})
    assert received(sent) == [Expiry(CertificateUse.SERVER, "/one.pem", 1.0, 0.0)]


def test_a_loader_understands_the_settings_of_a_release_that_has_more():
    settings = ServerSettings("127.0.0.1", 0, None, None, 2, 3, None, None, None, None, None)
    text = json.dumps(json.loads(settings.to_json()) | {"mood": "good"})
    assert ServerSettings.from_json(text) == settings


@pytest.mark.parametrize("data", [b'["Moody", {}]', b'["Checked", {}]', b"{}", b'"word"', b"?"])
def test_what_a_first_process_does_not_understand_is_no_loader(data):
    async def answered():
        ours, theirs = connected_sockets()
        ours.setblocking(False)
        with ours, theirs:
            theirs.send(data)
            await forking._answer(ours)

    with pytest.raises(forking.NoLoaderError, match="another release"):
        in_a_loop(answered)
