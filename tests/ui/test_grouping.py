# SPDX-License-Identifier: Apache-2.0
"""The map grouped by aggregate, and the counted trees, while both change."""

import uuid
from contextlib import ExitStack

import pytest

from tests.ui.changes import changed, uuid_of
from tests.ui.conftest import read_map

pytestmark = pytest.mark.long
NAMES = "/treeclaim/aggregates/names"


def places(page):
    """Return the place of each tree on the map, in the order of the map."""
    texts = read_map(page.locator("main"))
    return [(text.partition(":")[0], text.rpartition(", in ")[2]) for text in texts]


@pytest.mark.parametrize("by", ["every aggregate", "one"])
def test_a_host_moves_on_the_map_when_its_aggregates_change(visit, cloud, client, by):
    host = uuid_of(client, "host-3")
    [before] = client.get(f"/resource_providers/{host}/aggregates")["aggregates"]
    page = visit(cloud).open(f"#/cloud?by={'aggregates' if by != 'one' else before}")
    options = page.get_by_label("Group by").locator("option")
    options.filter(has_text=f"{before[:8]}… (5 trees)").wait_for(state="attached")
    page.locator(".dot").wait_for()
    assert ("host-3", f"aggregate {before[:8]}…") in places(page)
    after = str(uuid.uuid4())
    with changed(client, host, "aggregates", [after]):
        options.filter(has_text=f"{before[:8]}… (4 trees)").wait_for(state="attached")
        options.filter(has_text=f"{after[:8]}… (1 tree)").wait_for(state="attached")
        where = f"aggregate {after[:8]}…" if by != "one" else "no such aggregate"
        assert [place for name, place in places(page) if name == "host-3"] == [where]
    options.filter(has_text=f"{before[:8]}… (5 trees)").wait_for(state="attached")
    assert [place for name, place in places(page) if name == "host-3"] == [
        f"aggregate {before[:8]}…"
    ]


def test_a_change_while_the_aggregates_are_read_is_not_lost(visit, cloud, client):
    """The pending answer is older than a change that arrives before it."""
    host = uuid_of(client, "host-3")
    visitor = visit(cloud)
    page = visitor.page
    held = []

    def hold(route):
        held.append(route)

    page.route("**/treeclaim/providers?include=aggregates*", hold)
    visitor.open("#/cloud?by=aggregates")
    page.locator(".dot").wait_for()
    [route] = held
    older = route.fetch()
    after = str(uuid.uuid4())
    with ExitStack() as changes:
        with page.expect_response(lambda answer: "in_tree=" in answer.url):
            changes.enter_context(changed(client, host, "aggregates", [after]))
        route.fulfill(response=older)
        option = page.get_by_label("Group by").locator("option")
        option.filter(has_text=f"{after[:8]}… (1 tree)").wait_for(state="attached")


def test_aggregates_are_shown_by_name(visit, cloud, client):
    host = uuid_of(client, "host-3")
    [rack] = client.get(f"/resource_providers/{host}/aggregates")["aggregates"]
    client.call("POST", NAMES, json={"names": {rack: "rack <7> {\u00e4}"}}, extended=True)
    try:
        visitor = visit(cloud)
        page = visitor.open("#/cloud?by=aggregates")
        options = page.get_by_label("Group by").locator("option")
        options.filter(has_text="rack <7> {ä} (5 trees)").wait_for(state="attached")
        assert ("host-3", "aggregate rack <7> {ä}") in places(page)
        page = visitor.open(f"#/tree/{host}")
        page.get_by_text("aggregate rack <7> {ä}").first.wait_for()
        page = visitor.open(f"#/ask?resources=VCPU:1&member_of=!{rack}&in_tree={host}")
        page.get_by_text("is in rack <7> {ä}, which is forbidden").first.wait_for()
        page = visitor.open("#/fit")
        page.get_by_role("button", name="Count").click()
        page.get_by_text("rack <7> {ä}").first.wait_for(state="attached")
    finally:
        client.call("POST", NAMES, json={"names": {rack: None}}, extended=True)
