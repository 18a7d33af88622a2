# SPDX-License-Identifier: Apache-2.0
"""`treeclaim watch` as a person, or a script, runs it."""

import json
import signal
import subprocess
import uuid
from contextlib import contextmanager

import pytest

from tests.cli.services import run_refused_command
from tests.servers import TREECLAIM
from treeclaim.model.parts import Part


@contextmanager
def watching(environment, *options):
    """A command that watches, ended in the end."""
    with subprocess.Popen(
        [*TREECLAIM, "watch", *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watcher:
        try:
            yield watcher
        finally:
            watcher.kill()


def read_cursor(client):
    """Return the cursor of the next change."""
    return client.call("GET", "/treeclaim/changes", extended=True)["cursor"]


def create_provider(client, parent=None):
    """Create a provider; return its uuid."""
    provider = str(uuid.uuid4())
    body = {"name": f"host {provider}", "uuid": provider, "parent_provider_uuid": parent}
    client.call("POST", "/resource_providers", json=body)
    return provider


def set_inventory(client, provider, generation):
    body = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": generation}
    client.call("PUT", f"/resource_providers/{provider}/inventories", json=body)


@pytest.mark.slow
def test_watch_prints_one_line_per_change_until_ctrl_c(environment, client):
    with watching(environment, "--since", read_cursor(client)) as watcher:
        provider = create_provider(client)
        words = ",".join(part.word for part in Part)
        assert watcher.stdout.readline() == f"{provider} 0 {words} host {provider}\n"
        set_inventory(client, provider, 0)
        assert watcher.stdout.readline() == f"{provider} 1 inventories host {provider}\n"
        client.call("PUT", f"/traits/CUSTOM_{uuid.uuid4().hex.upper()}")
        assert watcher.stdout.readline() == "catalogue\n"
        client.call("DELETE", f"/resource_providers/{provider}")
        assert watcher.stdout.readline() == f"{provider} deleted\n"
        watcher.send_signal(signal.SIGINT)
        _, errors = watcher.communicate(timeout=60)
        assert watcher.returncode == 130
        assert "Traceback" not in errors


@pytest.mark.slow
def test_json_change_has_the_cursor_for_a_later_watch(environment, client):
    with watching(environment, "-f", "json", "--since", read_cursor(client)) as watcher:
        provider = create_provider(client)
        first = json.loads(watcher.stdout.readline())
        assert [change["uuid"] for change in first["changes"]] == [provider]
        assert (first["changes"][0]["generation"], first["catalogue"]) == (0, False)
    set_inventory(client, provider, 0)
    with watching(environment, "-f", "json", "--since", first["cursor"]) as watcher:
        [change] = json.loads(watcher.stdout.readline())["changes"]
        assert change == {"uuid": provider, "generation": 1, "what": ["inventories"]}
        client.call("DELETE", f"/resource_providers/{provider}")
        [change] = json.loads(watcher.stdout.readline())["changes"]
        assert change == {"uuid": provider, "deleted": True}


@pytest.mark.slow
def test_watch_shows_only_the_named_trees(environment, client):
    root, other_root = create_provider(client), create_provider(client)
    child = create_provider(client, root)
    (named,) = client.providers(uuid=root)
    trees = ["--in-tree", named["name"], "--in-tree", str(uuid.uuid4())]
    options = [*trees, "--since", read_cursor(client)]
    with watching(environment, *options) as watcher:
        set_inventory(client, other_root, 0)
        set_inventory(client, child, 0)
        assert watcher.stdout.readline() == f"{child} 1 inventories host {child}\n"


@pytest.mark.parametrize("cursor", ["nonsense!", "AQAAAAAAAAAA"])
def test_invalid_or_expired_cursor_is_refused(environment, cursor):
    message = run_refused_command(environment, "watch", "--since", cursor)
    assert "cursor" in message.lower()
