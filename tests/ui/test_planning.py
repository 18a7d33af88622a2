# SPDX-License-Identifier: Apache-2.0
"""The pages Survival and Plan (contract page 101, sections 4 and 5)."""

from urllib.parse import quote

import pytest

from tests.ui.changes import conditioned, uuid_of
from tests.ui.conftest import read_map, service_with
from tests.ui.test_access import LOOKS, STILL, violations_of
from tests.ui.worlds import small
from treeclaim.client import Client

pytestmark = pytest.mark.slow

LOST = ".square.over"
"""The squares of trees that cannot be lost."""

WHOLE_NODE = "resources_N=VCPU:32&required_N=HW_NUMA_ROOT"
"""Fits eleven times, into unused NUMA nodes."""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """The address of a service with twelve trees and stored requests of the consumers of VCPU.

    The consumer on host-9 has more than the capacity of a NUMA node, so it fits nowhere.
    """
    with service_with(tmp_path_factory.mktemp("planned"), small()) as server:
        with Client(server.url, "admin") as client:
            answer = client.get("/treeclaim/allocations", resource_class="VCPU")
            requests = {row["uuid"]: [request_of(row)] for row in answer["consumers"]}
            client.call("POST", "/treeclaim/requests", {"requests": requests})
            mix = {"requests": {"node": {"query": WHOLE_NODE, "weight": 1}}}
            client.call("PUT", "/treeclaim/mixes/large", mix)
        yield server.url


def request_of(consumer):
    amount = sum(
        allocation["resources"]["VCPU"] for allocation in consumer["allocations"].values()
    )
    return f"resources_N=VCPU:{amount}&required_N=HW_NUMA_ROOT"


@pytest.fixture
def client(planned):
    with Client(planned, "admin") as new_client:
        yield new_client


def consumer_on(client, name):
    path = f"/resource_providers/{uuid_of(client, name)}/allocations"
    [consumer] = client.get(path)["allocations"]
    return consumer


def numbers(page):
    """Return the texts of the page about before and after, by label."""
    rows = page.locator(".before-after tbody tr")
    return {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()
    }


def told_of(page, number, name):
    """Return the text of a map about a tree."""
    texts = read_map(page.locator(".tree-map").nth(number))
    return next(text for text in texts if text.startswith(f"{name}:"))


def test_survival_page_lists_critical_hosts_with_reasons(visit, planned, client):
    visitor = visit(planned)
    page = visitor.open("#/survival")
    page.get_by_role("button", name="Check").click()
    visitor.see("1 of 12 trees cannot be lost")
    assert page.url.endswith("#/survival?domains=tree")
    assert page.locator(LOST).count() == 1
    row, unknown = page.locator("table.worst tbody tr").all()
    assert row.locator("th").inner_text() == "host-9"
    assert unknown.locator("td").last.inner_text() == "unknown"
    first = row.locator("td a")
    assert first.get_attribute("title") == consumer_on(client, "host-9_numa0")
    visitor.see("Why host-9 cannot be lost")
    assert "has no room for 36 VCPU" in page.locator(".explanation").inner_text()
    page.locator(".map-box").focus()
    page.keyboard.press("End")
    result = page.locator(".map-told")
    assert result.inner_text() == "pool: unknown: 1 consumer of 1 without a valid request"
    visitor.see("10 may be lost, 1 cannot be lost, 1 unknown.")


def test_survival_page_checks_all_aggregates_or_one(visit, planned):
    visitor = visit(planned)
    page = visitor.open("#/survival")
    page.get_by_label("Lost domains").select_option("each aggregate")
    page.get_by_role("button", name="Check").click()
    visitor.see("1 of 2 aggregates cannot be lost")
    page.locator("table.worst tbody th a").first.click()
    visitor.see("1 of 1 aggregate cannot be lost")
    page.locator(".explanation").wait_for()


def test_survival_page_applies_assumptions(visit, planned, client):
    consumer = consumer_on(client, "host-9_numa0")
    visitor = visit(planned)
    page = visitor.open(f"#/survival?domains=tree&if_release={consumer}")
    # A consumer without a request is unknown, never good.
    visitor.see("It is unknown whether 1 of 12 trees may be lost")
    assert page.locator("h2 .good").count() == 0
    visitor.see("1 consumer released")
    assert page.locator(LOST).count() == 0
    visitor.go("#/survival?domains=tree&if_more=2:host-9")
    visitor.see("1 of 14 trees cannot be lost")
    visitor.go("#/survival?domains=tree&types=NOBODY")
    visitor.see("Each of 12 trees may be lost")


def test_plan_empties_a_host_and_the_map_shows_the_moves(visit, planned, client):
    visitor = visit(planned)
    page = visitor.open(f"#/tree/{uuid_of(client, 'host-2')}")
    page.get_by_role("link", name="Plan moves that empty it").click()
    visitor.see("1 move reaches the goal")
    visitor.see("No plan has fewer moves.")
    assert numbers(page)["consumers to move away"] == ["1", "0"]
    step = page.locator("table.steps tbody tr")
    consumer_link, *_ = step.get_by_role("link").all()
    assert consumer_link.get_attribute("title") == consumer_on(client, "host-2_numa0")
    assert "host-2\nnuma0: 8 VCPU" in step.inner_text()
    titles = [told_of(page, number, "host-2") for number in range(2)]
    assert titles == ["host-2: 13 % of VCPU used", "host-2: 0 % of VCPU used"]
    page.get_by_role("button", name="All trees").click()
    assert page.locator(".two-maps .square").count() == 24


def test_plan_empties_hosts_with_leave_condition(visit, planned, client):
    visitor = visit(planned)
    page = visitor.open("#/plan")
    page.get_by_label("Goal").select_option("Empty where a condition says leave")
    page.get_by_role("button", name="Plan", exact=True).click()
    visitor.see("No move is needed")
    with conditioned(client, "host-2_numa0", "FAILING", effect="leave"):
        page.reload()
        visitor.see("1 move reaches the goal")
        assert page.locator("select[name=goal]").input_value() == "leave"
        assert numbers(page)["consumers to move away"] == ["1", "0"]
        consumer_link = page.locator("table.steps tbody tr th a")
        assert consumer_link.get_attribute("title") == consumer_on(client, "host-2_numa0")
        page = visitor.open("#/audit")
        page.get_by_role("link", name="Plan moves for these consumers").click()
        visitor.see("1 move reaches the goal")


def test_plan_makes_room_for_a_query(visit, planned):
    visitor = visit(planned)
    query = quote(WHOLE_NODE)
    page = visitor.open(f"#/plan?goal=fit&amount=12&query={query}")
    visitor.see("1 move reaches the goal")
    assert numbers(page)["consumers that fit"] == ["11", "12"]
    # With another host nothing needs to move; a plan without free hosts misses the goal.
    visitor.go(f"#/plan?goal=fit&amount=12&query={query}&if_more=1:host-0")
    visitor.see("No move is needed")
    page = visitor.go("#/ask?resources_N=VCPU:33&required_N=HW_NUMA_ROOT")
    page.get_by_role("link", name="Plan moves that make room for it").click()
    visitor.see("The goal is not reached")
    assert page.get_by_label("of", exact=True).input_value() == (
        "resources_N=VCPU:33&required_N=HW_NUMA_ROOT"
    )


def test_a_cloud_is_defragmented_for_a_mix(visit, planned):
    visitor = visit(planned)
    page = visitor.open("#/plan")
    page.get_by_label("Goal").select_option("Defragment")
    page.get_by_label("For the mix").fill("large")
    assert page.locator("datalist#mixes option").get_attribute("value") == "large"
    page.get_by_label("First").select_option("empty trees")
    page.get_by_label("Maximum of moves").fill("3")
    page.get_by_role("button", name="Plan", exact=True).click()
    visitor.see("3 moves")
    before, after, *_ = numbers(page)["trees without consumers"]
    assert int(after) == int(before) + 3
    assert page.locator("table.steps tbody tr").count() == 3
    page.reload()
    visitor.see("3 moves")
    assert page.get_by_label("For the mix").input_value() == "large"
    assert page.get_by_label("First").input_value() == "yes"


def test_stuck_consumers_are_listed_with_the_reason(visit, planned):
    visitor = visit(planned)
    page = visitor.open("#/plan?goal=empty&hosts=host-9,pool")
    visitor.see("The goal is not reached")
    visitor.see("Why there is no room")
    assert "has no room for 36 VCPU" in page.locator(".explanation").inner_text()
    stuck = page.locator(".stuck li")
    stuck.first.wait_for()
    assert sorted(text.split("\n")[-1] for text in stuck.all_inner_texts()) == [
        "has no room elsewhere",
        "has no valid request",
    ]


@pytest.mark.parametrize(
    ("route", "maps"),
    [
        ("#/survival?domains=tree", 1),
        ("#/survival?domains=aggregates", 1),
        ("#/plan?goal=empty&hosts=host-2", 2),
    ],
)
def test_planning_maps_mark_trees_with_conditions(visit, planned, client, route, maps):
    visitor = visit(planned)
    page = visitor.open(route)
    boxes = page.locator(".tree-map")
    boxes.last.wait_for()
    legend = page.get_by_label("Colours of the map")
    assert boxes.count() == maps
    assert "condition" not in legend.inner_text()
    assert boxes.locator(".sign").count() == 0
    with conditioned(client, "host-2_numa0", "FAILING", effect="no_new", reason="disk"):
        page.reload()
        legend.get_by_text("a provider has a condition").wait_for()
        for number in range(maps):
            assert boxes.nth(number).locator(".sign").count() > 0
            assert "host-2_numa0: FAILING (no_new): disk" in told_of(page, number, "host-2")


@pytest.mark.parametrize(
    "route", ["#/cloud", "#/survival?domains=tree", "#/plan?goal=empty&hosts=host-2"]
)
def test_maps_work_without_permission_for_conditions(visit, planned, route):
    visitor = visit(planned)
    refusal = {"errors": [{"status": 403, "title": "Forbidden", "detail": "Not for you."}]}
    visitor.page.route(
        "**/treeclaim/providers?include=conditions*",
        lambda route: route.fulfill(status=403, json=refusal),
    )
    visitor.open(route).locator(".square").first.wait_for()
    visitor.see("Not for you.")


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_axe_finds_no_violation_in_plans_with_steps(visit, planned, look):
    visitor = visit(planned, **dict(LOOKS[look], **STILL))
    violations = []
    for route, shown in {
        "#/survival?domains=tree": "table.worst tbody tr",
        "#/plan?goal=empty&hosts=host-2": "table.steps tbody tr",
    }.items():
        page = visitor.go(route)
        page.locator(shown).first.wait_for()
        violations += violations_of(page, route)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), route
    assert violations == []
