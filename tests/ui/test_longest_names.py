# SPDX-License-Identifier: Apache-2.0
"""The longest names that the API allows, and a deep tree, on each page and at each width."""

import uuid

import pytest

from tests.ui.conftest import service_with
from tests.ui.worlds import small
from treeclaim.client import Client

pytestmark = pytest.mark.long

CLASS, TRAIT = "CUSTOM_" + "W" * 248, "CUSTOM_" + "T" * 248
OWNER, KIND = "p" * 255, "K" * 255
LONGEST, POOL, TOP, CONSUMER, HOLD = (str(uuid.UUID(int=number)) for number in range(1, 6))
LEVELS = 45
MOST = 2**31 - 1


def fill(client):
    """Make a host and a pool with the longest names, a deep tree, claims and findings."""
    racks = [str(uuid.UUID(int=100 + number)) for number in range(30)]
    host = {"uuid": LONGEST, "name": "L" * 200, "traits": [TRAIT], "aggregates": racks}
    inventories = {CLASS: {"total": MOST}, "VCPU": {"total": 8}}
    pool = {"uuid": POOL, "name": "P" * 200, "traits": [TRAIT, "MISC_SHARES_VIA_AGGREGATE"]}
    entries = [
        host | {"inventories": inventories},
        pool | {"inventories": {CLASS: {"total": MOST}}, "aggregates": racks[:2]},
    ]
    above = None
    for level in range(LEVELS):
        one = TOP if not level else str(uuid.UUID(int=200 + level))
        entry = {
            "uuid": one,
            "name": f"{level}_" + "d" * 190,
            "inventories": {CLASS: {"total": 9}},
        }
        entries.append(entry | ({"parent_provider_uuid": above} if above else {}))
        above = one
    body = {"providers": entries, "create_names": True}
    client.call("POST", "/treeclaim/providers", json=body, extended=True)
    owner = {"project_id": OWNER, "user_id": OWNER, "consumer_generation": None}
    amounts = {LONGEST: {"resources": {CLASS: MOST, "VCPU": 1}}, above: {"resources": {CLASS: 9}}}
    body = owner | {"allocations": amounts, "consumer_type": KIND}
    client.call("PUT", f"/allocations/{CONSUMER}", json=body)
    held = {"allocations": {LONGEST: {"resources": {"VCPU": 7}}}, "hold": {"note": "n" * 255}}
    client.call("PUT", f"/allocations/{HOLD}", json=owner | held, extended=True)
    generation = client.get(f"/resource_providers/{LONGEST}")["generation"]
    body = {"resource_provider_generation": generation, "total": 4}
    client.call("PUT", f"/resource_providers/{LONGEST}/inventories/VCPU", json=body)
    client.call("PUT", f"/traits/CUSTOM_{'N' * 248}")
    client.call("PUT", f"/resource_classes/CUSTOM_{'M' * 248}")
    for name in ("h" * 180, "h" * 180 + ".example.org"):
        client.call("POST", "/resource_providers", json={"name": name})


@pytest.fixture(scope="module")
def longest(tmp_path_factory):
    """The address of a service with the longest names."""
    with service_with(tmp_path_factory.mktemp("longest"), small()) as server:
        with Client(server.url, "admin") as client:
            fill(client)
        yield server.url


SUFFIX = "_" + "S" * 63
ROUTES = {
    f"#/cloud?by=aggregates&class={CLASS}": ".map-told",
    "#/cloud?view=table": "table.trees tbody tr",
    "#/tree": "table.trees tbody tr",
    f"#/tree/{LONGEST}": "table.holdings tbody tr",
    f"#/tree/{TOP}": "table.holdings tbody tr",
    f"#/ask?resources{SUFFIX}={CLASS}:1&required{SUFFIX}={TRAIT}&group_policy=none": ".candidate .bar",
    f"#/ask?resources={CLASS}:1&can_split={CLASS}&limit=2": ".candidate .bar",
    f"#/ask?resources{SUFFIX}={CLASS}:{MOST}&required{SUFFIX}=!{TRAIT}": ".nearest li",
    f"#/ask?resources=VCPU:1&required={'X' * 255}": ".failure",
    f"#/ask?{'x' * 300}={'y' * 300}": ".failure",
    f"#/ask?resources={CLASS}:1&if_without={'L' * 200}&if_more=2:{'P' * 200}": ".candidate .bar, .failure",
    f"#/ask?resources=VCPU:1&if_place=2:{'q' * 300}": ".failure",
    "#/fit": ".fit tbody tr",
    "#/survival?domains=tree": ".map-told",
    f"#/survival?domains={'x' * 300}": ".failure",
    f"#/plan?goal=empty&hosts={LONGEST}": ".stuck li",
    f"#/plan?goal=fit&query=resources%3D{CLASS}:1&amount=9": ".before-after",
    f"#/plan?goal=empty&hosts={'x' * 300}": ".failure",
    "#/consumers": "table.holdings tbody tr",
    f"#/consumers/{CONSUMER}": "table.holdings tbody tr",
    f"#/consumers?project_id={OWNER}&consumer_type={KIND}": "table.holdings tbody tr",
    "#/audit": ".findings",
    f"#/{'x' * 300}": ".empty",
    f"#/tree/{'x' * 300}": ".empty",
    f"#/consumers/{'x' * 300}": ".empty, .failure",
}

OUTSIDE = """
() => {
  const told = (one) => `${one.tagName}.${one.className} ${Math.round(one.getBoundingClientRect().right)}`;
  const outside = [];
  for (const one of document.querySelectorAll("body *")) {
    const { left, right, width } = one.getBoundingClientRect();
    if (!width || one.closest(".sr, .skip") || !one.checkVisibility()) continue;
    const box = one.parentElement.closest(".table-box, header nav");
    // A table may be wider than its box, which scrolls; no column of it may be wider than the window.
    if (box ? /^T[DH]$/.test(one.tagName) && width > innerWidth : left < -1 || right > innerWidth + 1) outside.push(told(one));
    const isField = /^(INPUT|TEXTAREA|SELECT|OPTION)$/.test(one.tagName);
    const isBlock = getComputedStyle(one).display !== "inline";
    // What an element cuts off, or what runs over its edge.
    if (!isField && !one.matches(".table-box, nav, .table-box table *, table") && isBlock && one.scrollWidth > one.clientWidth + 1 && one.clientWidth)
      outside.push(`${told(one)}: ${one.scrollWidth} in ${one.clientWidth}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) outside.push(`the page: ${document.documentElement.scrollWidth}`);
  return outside;
}
"""
"""Return the elements that cannot be seen without scrolling sideways."""

NARROW = """
() => [...document.querySelectorAll("main :is(h1, h2, h3, p, li, th, td, a, span.class, .fine)")].filter((one) => {
  const { width } = one.getBoundingClientRect();
  return one.checkVisibility() && !one.closest(".sr, .legend") && one.textContent.trim().length > 12 && width && width < 48;
}).map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 30)}`)
"""
"""Longer texts that have fewer than some six letters in a line."""

BROKEN = """
() => {
  const broken = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (!node.parentElement.checkVisibility() || node.parentElement.closest("option, textarea, .sr, noscript")) continue;
    for (const { 0: word, index } of node.data.matchAll(/(?<!\\S)[A-Za-z_]{2,12}(?!\\S)/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(`broken: ${word}`);
    }
  }
  return broken;
}
"""
"""Words of at most twelve letters that go on in the next line."""


@pytest.mark.parametrize("width", [360, 1200])
def test_longest_names_do_not_overflow_and_are_readable(visit, longest, width):
    visitor = visit(longest, viewport={"width": width, "height": 800}, reduced_motion="reduce")
    faults = {}
    for route, shown in ROUTES.items():
        page = visitor.go(route)
        if route == "#/fit":
            page.get_by_role("textbox").fill(f"[{'f' * 255}]\nresources:{CLASS}=1")
            page.get_by_role("button", name="Count").click()
        page.locator(shown).first.wait_for()
        page.wait_for_function("() => !document.querySelector('.busy')")
        page.evaluate(
            "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
        )
        if found := [fault for each in (OUTSIDE, NARROW, BROKEN) for fault in page.evaluate(each)]:
            faults[route[:40]] = found[:5]
    assert faults == {}


def test_a_deep_tree_is_drawn_whole(visit, longest):
    page = visit(longest, viewport={"width": 400, "height": 800}).open(f"#/tree/{TOP}")
    boxes = page.locator(".provider")
    boxes.first.wait_for()
    names = [text.partition("_")[0] for text in page.locator(".provider h3").all_inner_texts()]
    assert names[:LEVELS] == [str(level) for level in range(LEVELS)]
    last = page.locator(".provider", has=page.get_by_role("heading", name=f"{LEVELS - 1}_d")).last
    assert f"below {LEVELS - 2}_d" in last.inner_text()
    assert "9 of 9 used (100 %)" in last.inner_text()
