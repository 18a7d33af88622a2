# SPDX-License-Identifier: Apache-2.0
"""Messages of pages that have nothing to show (contract page 99, section 7)."""

import sqlite3
from contextlib import closing

import pytest
import yaml

from tests.cli.processes import run
from tests.ports import free_port
from tests.servers import eventually, service_environment, serving
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
    visitor.see("12 trees")
    page.reload()
    visitor.see("12 trees")
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
    visitor.see("12 trees")
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


def prune_all(environment):
    """Prune until the feed has no row; rows of the present second are not old enough at first."""
    connection = environment["OS_PLACEMENT_DATABASE__CONNECTION"]

    def is_pruned():
        assert run(environment, "db", "prune", "--keep-hours=0").returncode == 0
        with closing(sqlite3.connect(connection.removeprefix("sqlite:///"))) as database:
            ((rows,),) = database.execute("SELECT count(*) FROM treeclaim_feed")
        return not rows

    eventually(is_pruned, "the feed is empty")


@pytest.mark.parametrize("is_pruned", [False, True], ids=["short", "until the feed is pruned"])
def test_changes_during_an_outage_are_shown_after_it(visit, tmp_path, is_pruned):
    environment = service_environment(tmp_path)
    url = f"http://127.0.0.1:{free_port()}"
    with serving(environment, tmp_path, url=url) as server:
        visitor = visit(url)
        page = visitor.page
        answers = []
        page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        visitor.open()
        visitor.see("There is no resource provider yet")
        server.stop()
        visitor.see("The server does not answer.")
        # The shown values stay.
        visitor.see("There is no resource provider yet")
        # Another server on the same database.
        with serving(environment, tmp_path) as running, Client(running.url, "admin") as client:
            client.call("POST", "/resource_providers", json={"name": "meanwhile"})
        if is_pruned:
            prune_all(environment)
            # Otherwise the page could list everything again before its stream reconnects.
            page.route("**/treeclaim", lambda route: route.abort())
        server.start()
        visitor.see("1 tree")
        page.locator(".notice.lost").wait_for(state="detached")
        streams = [status for address, status in answers if "/treeclaim/changes" in address]
        assert (410 in streams) == is_pruned
        if not is_pruned:
            # The whole cloud is read again at most once for it.
            listings = [url for url, _ in answers if "by=tree" in url and "in_tree" not in url]
            assert len(listings) <= 2
        page.unroute("**/treeclaim")
        with Client(url, "admin") as client:
            client.call("POST", "/resource_providers", json={"name": "afterwards"})
        # Watching goes on, from a new cursor or the former one.
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


def test_names_are_escaped_in_pages(visit, cloud):
    name = "<img src=x onerror=\"document.title='taken'\">"
    with Client(cloud, "admin") as client:
        made = client.call("POST", "/resource_providers", json={"name": name})
        visitor = visit(cloud)
        for route in ("#/cloud?view=table", f"#/cloud?name={name}", f"#/tree/{made['uuid']}"):
            page = visitor.go(route)
            page.locator("main h1").wait_for()
            visitor.see(name)
            assert page.title() == f"{'Tree' if 'tree' in route else 'Cloud'} · Treeclaim"
        client.call("DELETE", f"/resource_providers/{made['uuid']}")
