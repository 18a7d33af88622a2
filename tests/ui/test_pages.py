# SPDX-License-Identifier: Apache-2.0
"""Each page, in a real browser, with twelve trees (contract page 99, section 7)."""

from urllib.parse import quote

import pytest

from tests.ui.changes import changed, claimed, uuid_of
from tests.ui.worlds import HOPELESS, QUESTION

pytestmark = pytest.mark.slow

FULL = ".square.step-6"
"""The squares of trees that are full."""


def test_the_cloud_is_shown_as_totals_and_a_map(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open()
    visitor.see("12 trees")
    assert page.locator(".totals li").count() == 6
    assert page.locator(".totals li", has_text="VCPU").inner_text().startswith("VCPU")
    # The edge is full.
    assert page.locator(FULL).all_inner_texts() == ["edge\nVCPU\n100 %"]
    page.get_by_label("Group by").select_option("every aggregate")
    page.get_by_label("Colour by").select_option("DISK_GB")
    page.wait_for_function("() => location.hash.includes('class=DISK_GB')")
    page.locator(FULL).wait_for(state="detached")
    page.locator(".square").first.click()
    page.get_by_role("heading", name="host-0", level=1).wait_for()
    assert page.title() == "Tree · Treeclaim"


def test_cloud_table_is_sortable(visit, cloud):
    page = visit(cloud).open("#/cloud?view=table")
    rows = page.locator("table.trees tbody tr")
    rows.first.wait_for()
    assert rows.count() == 12
    assert rows.first.locator("th").inner_text() == "edge"
    page.get_by_role("button", name="Tree", exact=True).click()
    assert rows.first.locator("th").inner_text() == "edge"
    page.get_by_role("button", name="Tree", exact=True).click()
    assert rows.first.locator("th").inner_text() == "pool"


def test_map_shows_a_claim_of_another_client(visit, cloud, client):
    visitor = visit(cloud)
    page = visitor.page
    calls = []
    page.on("request", lambda request: calls.append(request.url))
    visitor.open("#/cloud?class=VGPU")
    visitor.see("0 of 40 used")
    visitor.see("live: changes come as they are made")
    assert page.locator(FULL).count() == 0
    with claimed(client, {uuid_of(client, "host-3_numa1_device"): {"VGPU": 4}}):
        visitor.see("4 of 40 used")
        page.locator(FULL, has_text="host-3").wait_for()
    visitor.see("0 of 40 used")
    # The page waits for changes by a long poll, and has read everything once.
    [_, *waiting] = [url for url in calls if "/treeclaim/changes" in url]
    assert all("wait=30" in url for url in waiting)
    assert len([url for url in calls if "by=tree" in url and "in_tree" not in url]) == 1


def test_list_of_trees_shows_a_claim_of_another_client(visit, cloud, client):
    visitor = visit(cloud)
    page = visitor.open("#/tree")
    visitor.see("live: changes come as they are made")
    row = page.locator("table.trees tbody tr", has_text="host-5")
    assert "0 / 4" in row.inner_text()
    with claimed(client, {uuid_of(client, "host-5_numa1_device"): {"VGPU": 3}}):
        row.get_by_text("3 / 4").wait_for()


def test_cloud_that_is_not_watched_shows_when_it_was_read(visit, cloud):
    visitor = visit(cloud)
    refusal = {"errors": [{"status": 403, "title": "Forbidden", "detail": "Not for you."}]}
    visitor.page.route(
        "**/treeclaim/changes*", lambda route: route.fulfill(status=403, json=refusal)
    )
    visitor.open()
    visitor.see("as of ")
    assert visitor.page.locator(".dot").count() == 0


def test_tree_page_shows_inventories_traits_pools_and_consumers(visit, cloud, client):
    page = visit(cloud).open(f"#/tree/{uuid_of(client, 'host-2')}")
    page.get_by_role("heading", name="host-2", level=1).wait_for()
    assert page.locator(".provider").count() == 8
    numa = page.locator(".provider", has=page.get_by_role("heading", name="numa0")).last
    assert "8 of 32 used (25 %)" in numa.inner_text()
    assert "CUSTOM_GOLD" in numa.inner_text()
    assert page.locator(".pools .provider h3").inner_text() == "pool"
    assert "8 VCPU of host-2_numa0" in page.locator("table.holdings").inner_text()


def test_a_tree_shows_attributes_with_the_types_of_their_values(visit, cloud, client):
    numa = uuid_of(client, "host-5_numa1")
    values = {"mem_gib": 80, "driver": "570.86", "ecc": True, "nodes": "80"}
    with changed(client, numa, "attributes", values):
        page = visit(cloud).open(f"#/tree/{numa}")
        shown = page.locator(f"#provider-{numa}").get_by_label("Attributes").locator("li")
        shown.first.wait_for()
        assert shown.all_inner_texts() == [
            'attribute driver="570.86"',
            "attribute ecc=true",
            "attribute mem_gib=80",
            'attribute nodes="80"',
        ]


def test_tree_page_shows_holds_with_project_and_deadline(visit, cloud, client):
    numa = uuid_of(client, "host-4_numa0")
    terms = {"until": "2099-12-01T08:00:00Z", "note": "rack <7>"}
    with claimed(client, {numa: {"VCPU": 8}}, project_id="blue", hold=terms):
        visitor = visit(cloud)
        page = visitor.open(f"#/tree/{numa}")
        page.get_by_role("heading", name="host-4", level=1).wait_for()
        box = page.locator(".provider", has=page.get_by_role("heading", name="numa0")).last
        assert "24 of 32 used (75 %) · 8 of that held" in box.inner_text()
        assert "8 held for blue until 2099-12-01T08:00:00Z: rack <7>" in box.inner_text()
        used, held = (
            box.locator(f".bar .{name}").first.bounding_box()["width"] for name in ("used", "held")
        )
        assert used == pytest.approx(2 * held, rel=0.05)
        page.goto(f"{page.url.partition('#')[0]}#/cloud")
        visitor.see("12 trees")
        assert "8 of that held" in page.locator(".totals li", has_text="VCPU").inner_text()


def test_query_draws_its_candidates(visit, cloud):
    page = visit(cloud).open(f"#/ask?{QUESTION}&limit=4")
    page.locator(".candidate").first.wait_for()
    assert page.locator(".candidate").count() == 4
    first = page.locator(".candidate").first
    assert "+4 VCPU" in first.inner_text()
    assert "+1 SRIOV_NET_VF" in first.inner_text()
    assert first.locator(".provider.taken").count() == 2
    assert "_CPU" in page.locator(".group legend").first.inner_text()


def test_query_without_candidates_shows_its_funnel(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open(f"#/ask?{HOPELESS}")
    visitor.see("None of 12 trees matches. It would not fit even if nothing were allocated.")
    steps = page.locator(".funnel li")
    assert "all trees" in steps.first.inner_text()
    assert "no subtree in common" in steps.last.inner_text()
    assert page.locator(".nearest > li").count() == 5
    page.locator(".advice li", has_text="same_subtree").wait_for()


def test_form_writes_the_query_into_a_permalink(visit, cloud):
    page = visit(cloud).open("#/ask")
    page.get_by_label("Amount 1 of Unsuffixed group").fill("6")
    page.get_by_role("button", name="+ trait").click()
    page.get_by_label("Trait 1 of Unsuffixed group", exact=True).fill("CUSTOM_GOLD")
    page.get_by_label("Query").wait_for()
    expected = "resources=VCPU:6,MEMORY_MB:8192&required=CUSTOM_GOLD&limit=100"
    assert page.get_by_label("Query").input_value() == expected
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".candidate").first.wait_for()
    assert page.url.endswith(f"#/ask?{expected}")
    page.reload()
    page.locator(".candidate").first.wait_for()
    assert page.get_by_label("Amount 1 of Unsuffixed group").input_value() == "6"
    assert "admin" not in page.url


def test_copied_query_contains_no_token_and_runs(visit, cloud, client, monkeypatch):
    query = f"{QUESTION}&required_CPU=in:CUSTOM_GOLD,HW_NUMA_ROOT"
    page = visit(cloud).open(f"#/ask?{query}")
    for title, part in (
        ("curl", f"{cloud}/allocation_candidates?resources_CPU=VCPU:4,MEMORY_MB:4096"),
        ("flavor extra specs", "'resources_CPU:VCPU=4'"),
        ("Python", "client.candidates("),
    ):
        page.get_by_role("button", name=title).click()
        text = page.get_by_label(title, exact=True).inner_text()
        assert part in text
        assert "admin" not in text
    monkeypatch.setenv("OS_TOKEN", "admin")
    namespace = {}
    exec(text, namespace)
    assert namespace["answer"] == client.candidates(query)


def test_consumers_page_shows_consumers_of_a_project_with_providers(visit, cloud, client):
    page = visit(cloud).open("#/consumers?project_id=bench")
    page.locator("table.holdings").wait_for()
    assert page.locator("table.holdings tbody tr").count() == 11
    page.locator("table.holdings tbody a").first.click()
    page.wait_for_function(
        "() => document.querySelectorAll('table.holdings tbody tr').length === 1"
    )
    assert "/consumers/" in page.url
    page.get_by_label("Project").fill("nobody")
    page.get_by_label("Consumer", exact=True).fill("")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("No consumer passes these filters.").wait_for()


def test_amounts_of_one_page_of_consumers_are_not_summed(visit, cloud, client):
    visitor = visit(cloud)
    page = visitor.open("#/consumers")
    caption = page.locator("table.holdings caption")
    caption.wait_for()
    assert ": " in caption.inner_text()
    answer = client.get("/treeclaim/allocations", limit=2)

    page.route("**/treeclaim/allocations?*", lambda route: route.fulfill(json=answer))
    visitor.go("#/consumers?project_id=bench")
    page.get_by_role("button", name="Next").wait_for()
    assert caption.inner_text() == "2 consumers on this page"


def test_fit_page_counts_flavors_overall_and_by_aggregate(visit, cloud):
    page = visit(cloud).open("#/fit")
    page.get_by_label("Flavors").fill("[m1]\nvcpus=4\nram=4096\n\ngpu: resources=VGPU:1")
    page.get_by_role("button", name="Count").click()
    rows = page.locator(".fit tbody tr")
    rows.first.wait_for()
    assert rows.count() == 2
    assert rows.last.locator("td.number").all_inner_texts() == ["40", "40", "40"]
    rows.last.get_by_text("2 aggregates").click()
    assert rows.last.locator(".parts .number").all_inner_texts() == ["20", "20"]


def test_count_is_cancelled_when_its_page_is_left(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open("#/fit")
    # The server is slow for as long as the page is shown.
    page.route("**/treeclaim/capacity", lambda route: None)
    with page.expect_request("**/treeclaim/capacity"):
        page.get_by_role("button", name="Count").click()
    with page.expect_event("requestfailed") as failed:
        page.get_by_role("link", name="Audit").click()
    assert failed.value.url.endswith("/treeclaim/capacity")
    page.locator(".findings").wait_for()
    assert page.url.endswith("#/audit")


def test_unfinished_count_is_not_shown_as_none(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open("#/fit")
    counts = {"fits": 2, "at_most": None, "when_empty": 3, "complete": False}
    page.route(
        "**/treeclaim/capacity", lambda route: route.fulfill(json={"capacity": {"m1": counts}})
    )
    page.get_by_label("Flavors").fill("m1: resources=VCPU:1")
    page.get_by_role("button", name="Count").click()
    row = page.locator(".fit tbody tr")
    row.wait_for()
    assert row.locator("td").all_inner_texts()[0] == "2 or more"
    assert row.locator("td").all_inner_texts()[3:] == ["unknown", "unknown"]


def test_invalid_flavor_key_is_named(visit, cloud):
    visitor = visit(cloud)
    page = visitor.open("#/fit")
    page.get_by_label("Flavors").fill("[m1]\nresources_CPU:vcpu=4")
    page.get_by_role("button", name="Count").click()
    visitor.see("m1: extra spec 'resources_CPU:vcpu'")


def test_findings_are_shown_by_kind(visit, cloud, client):
    client.call("PUT", "/traits/CUSTOM_NOBODY_HAS")
    page = visit(cloud).open("#/audit")
    page.get_by_role("heading", name="Custom traits that no provider has").wait_for()
    assert (
        "CUSTOM_NOBODY_HAS"
        in page.get_by_label("Custom traits that no provider has").last.inner_text()
    )
    assert "Kinds without findings" in page.locator(".findings").inner_text()


def test_missing_server_operation_is_reported(visit, cloud):
    visitor = visit(cloud)
    visitor.page.route("**/treeclaim/audit", lambda route: route.fulfill(status=404))
    visitor.open("#/audit")
    visitor.see("This server does not support this")


QUERIES = [
    QUESTION,
    HOPELESS,
    "resources=VCPU:80&can_split=VCPU&split_policy=even&limit=3",
    "resources1=A:1&required1=A,!B&required1=in:C,D&member_of1=!in:x,y&in_tree1=z&group_policy=none",
    "resources=VCPU:1&preferred=A*3,!B&order_by=pack:VCPU*2,near:_A:_B&root_in_tree=!in:x,y",
    "resources=VCPU:1&strange=1&strange=2&same_subtree=_A,_B&same_subtree=_B,!_C&root_required=A",
    f"resources=VCPU:1&required={quote('A+C&D=E')}",
]


def test_form_round_trips_queries(visit, cloud):
    page = visit(cloud).open("#/ask")
    for query in QUERIES:
        read, written = page.evaluate(
            "async query => { const {pairsOf, readQuery, writeQuery} = await import('./model/query.js');"
            " return [pairsOf(query), pairsOf(writeQuery(readQuery(query)))]; }",
            query,
        )
        assert sorted(map(tuple, read)) == sorted(map(tuple, written)), query
