# SPDX-License-Identifier: Apache-2.0
"""Messages of pages that have nothing to show (contract page 99, section 7)."""

import sqlite3
import time
from contextlib import closing

import pytest
import yaml

from tests.cli.processes import run
from tests.clouds import World
from tests.ports import free_port
from tests.servers import service_environment, serving
from tests.ui.changes import uuid_of
from tests.ui.conftest import service_with
from tests.ui.worlds import small
from treeclaim.client import Client

pytestmark = pytest.mark.slow


def test_token_is_requested_kept_in_the_tab_and_forgotten(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open(token=None)
    visitor.see("This service believes every caller")
    page.get_by_label("Token").fill("admin")
    page.keyboard.press("Enter")
    visitor.see("11 trees and 1 pool")
    page.reload()
    visitor.see("11 trees and 1 pool")
    assert "admin" not in page.url
    assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


def test_token_is_not_shared_between_tabs(visit, cloud):
    visit(cloud).open()
    second_tab = visit(cloud)
    second_tab.page.goto(f"{cloud}/ui/")
    second_tab.page.get_by_label("Token").wait_for()


def test_refused_token_is_reported_and_requested_again(visit, cloud):
    visitor = visit(cloud)
    page = visitor.page
    # noauth2 believes every token, so what Keystone does to one that expired is put in between.
    page.route("**/treeclaim/totals*", lambda route: route.fulfill(status=401, body="expired"))
    visitor.open("#/cloud?class=VCPU", token="expired")
    visitor.see("The server refused this token. It may have expired.")
    assert page.evaluate("sessionStorage.length") == 0
    page.unroute("**/treeclaim/totals*")
    page.get_by_label("Token").fill("admin")
    page.get_by_role("button", name="Show the cloud").click()
    visitor.see("11 trees and 1 pool")
    assert "class=VCPU" in page.url


def test_empty_cloud_shows_how_to_fill_it(visit, tmp_path):
    with service_with(tmp_path) as server:
        visitor = visit(server.url)
        visitor.open()
        visitor.see("There is no resource provider yet")
        visitor.go("#/consumers")
        visitor.see("There are no claims in this cloud.")
        visitor.go("#/tree")
        visitor.see("There is no resource provider yet")
        visitor.go("#/ask?resources=VCPU:1")
        visitor.see("None of 0 trees matches.")


def change_meanwhile(environment, folder):
    """Create a provider by another server on the same database."""
    with serving(environment, folder) as running, Client(running.url, "admin") as client:
        client.call("POST", "/resource_providers", json={"name": "meanwhile"})


def test_changes_during_an_outage_are_shown_after_it(visit, tmp_path):
    environment = service_environment(tmp_path)
    url = f"http://127.0.0.1:{free_port()}"
    with serving(environment, tmp_path, url=url) as server:
        visitor = visit(url)
        page = visitor.page
        readings = []
        page.on("request", lambda request: readings.append(request.url))
        visitor.open()
        visitor.see("There is no resource provider yet")
        server.stop()
        visitor.see("The server does not answer.")
        # The shown values stay.
        visitor.see("There is no resource provider yet")
        change_meanwhile(environment, tmp_path)
        server.start()
        visitor.see("1 tree")
        page.locator(".notice.lost").wait_for(state="detached")
        # The whole cloud is read again at most once for it.
        assert len([url for url in readings if "by=tree" in url and "in_tree" not in url]) <= 2


def prune_all(environment):
    """Prune until the feed has no row: what was written in this very second is not older than now."""
    connection = environment["OS_PLACEMENT_DATABASE__CONNECTION"]
    deadline = time.monotonic() + 30
    while True:
        assert run(environment, "db", "prune", "--keep-hours=0").returncode == 0
        with closing(sqlite3.connect(connection.removeprefix("sqlite:///"))) as database:
            ((rows,),) = database.execute("SELECT count(*) FROM treeclaim_feed")
        if not rows:
            return
        assert time.monotonic() < deadline


def test_pruned_feed_causes_a_full_reload(visit, tmp_path):
    environment = service_environment(tmp_path)
    url = f"http://127.0.0.1:{free_port()}"
    with serving(environment, tmp_path, url=url) as server:
        visitor = visit(url)
        page = visitor.page
        statuses = []
        page.on("response", lambda answer: statuses.append((answer.url, answer.status)))
        visitor.open()
        visitor.see("There is no resource provider yet")
        server.stop()
        visitor.see("The server does not answer.")
        change_meanwhile(environment, tmp_path)
        prune_all(environment)
        # Or the page could find the server back, and list all again, before its stream asks.
        page.route("**/treeclaim", lambda route: route.abort())
        server.start()
        visitor.see("1 tree")
        page.locator(".notice.lost").wait_for(state="detached")
        assert 410 in [status for address, status in statuses if "/treeclaim/changes" in address]
        page.unroute("**/treeclaim")
        with Client(url, "admin") as client:
            client.call("POST", "/resource_providers", json={"name": "afterwards"})
        # Watching goes on from the new cursor.
        visitor.see("2 trees")


PLANS = (
    "ask?resources=VCPU:1&if_without=edge",
    "survival?domains=tree",
    "plan?goal=empty&hosts=edge",
)


def test_pages_show_a_message_when_the_policy_denies_reading(visit, cloud):
    visitor = visit(cloud)
    visitor.open(token="somebody:project")
    for page in ("cloud", "tree", "consumers", "ask?resources=VCPU:1", "audit", *PLANS):
        visitor.go(f"#/{page}")
        visitor.page.locator(".failure, .empty").first.wait_for()
        text = visitor.page.locator("main").inner_text()
        assert "You may not see this" in text or "does not have that yet" in text, page


def test_tree_parts_denied_by_policy_are_omitted_with_a_note(visit, tmp_path):
    rules = {"placement:allocations:list": "!", "placement:resource_providers:traits:list": "!"}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(rules))
    (tmp_path / "placement.conf").write_text("[oslo_policy]\npolicy_file = policy.yaml\n")
    with service_with(tmp_path, small()) as server:
        with Client(server.url, "admin") as client:
            uuid = uuid_of(client, "host-2")
        visitor = visit(server.url)
        page = visitor.open(f"#/tree/{uuid}")
        page.get_by_role("heading", name="host-2", level=1).wait_for()
        assert "8 of 32 used (25 %)" in page.locator(".provider").first.inner_text()
        result = " ".join(page.locator(".failure").all_inner_texts())
        assert "Consumers" in result
        assert "The traits" in result
        assert "CUSTOM_GOLD" not in page.locator("main").inner_text()


def test_names_are_escaped_in_pages(visit, tmp_path):
    name = "<img src=x onerror=\"document.title='taken'\">"
    with service_with(tmp_path, World("none", (), "", ())) as server:
        with Client(server.url, "admin") as client:
            made = client.call("POST", "/resource_providers", json={"name": name})
        visitor = visit(server.url)
        for route in (f"#/tree/{made['uuid']}", "#/cloud?view=table", f"#/cloud?name={name}"):
            page = visitor.go(route)
            page.locator("main h1").wait_for()
        assert page.title() == "Cloud · Treeclaim"
        visitor.open(f"#/tree/{made['uuid']}")
        visitor.see(name)
