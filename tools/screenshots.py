# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.screenshots`: take the pictures of the pages that the documentation shows.

Starts a service, loads a cloud of four racks with several hundred claims, the same each time, and takes the
pictures with Chromium.
"""

import random
import shutil
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests import peer
from treeclaim.client import Client
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

_RACK = """
  - name: "r{rack}-host-{{n}}"
    count: 28
    traits: [COMPUTE_VOLUME_MULTI_ATTACH]
    aggregates: [rack-{rack}]
    inventories: {{DISK_GB: {{total: 800, reserved: 40}}}}
    children:
      - name: "{{parent}}_numa0"
        traits: [HW_NUMA_ROOT]
        inventories:
          VCPU: {{total: 16, allocation_ratio: 2.0}}
          MEMORY_MB: {{total: 65536, reserved: 2048, step_size: 256}}
        children:
          - {{name: "{{parent}}_fpga", traits: [CUSTOM_FPGA_ARRIA10], inventories: {{FPGA: 1}}}}
          - {{name: "{{parent}}_nic", traits: [CUSTOM_PHYSNET_BLUE], inventories: {{SRIOV_NET_VF: 8}}}}
      - name: "{{parent}}_numa1"
        traits: [HW_NUMA_ROOT]
        inventories:
          VCPU: {{total: 16, allocation_ratio: 2.0}}
          MEMORY_MB: {{total: 65536, reserved: 2048, step_size: 256}}
        children:
          - {{name: "{{parent}}_gpu", traits: [CUSTOM_GPU_A100], inventories: {{VGPU: 7}}}}
  - name: r{rack}-pool
    traits: [MISC_SHARES_VIA_AGGREGATE, STORAGE_DISK_SSD]
    aggregates: [rack-{rack}]
    inventories: {{DISK_GB: {{total: 40000, reserved: 2000}}}}
"""
_RACKS = 4

_CLAIMS = (
    ("web", "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20"),
    ("web", "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40"),
    ("batch", "resources=VCPU:12,MEMORY_MB:24576,DISK_GB:300"),
    ("lab", "resources_CPU=VCPU:4,MEMORY_MB:8192&resources_GPU=VGPU:2&same_subtree=_CPU,_GPU"),
    (
        "lab",
        "resources_CPU=VCPU:2,MEMORY_MB:4096&resources_NET=SRIOV_NET_VF:2&same_subtree=_CPU,_NET",
    ),
)
_CLAIM_COUNT = 420

_QUESTION = (
    "resources_CPU=VCPU:4,MEMORY_MB:8192&resources_FPGA=FPGA:1&required_FPGA=CUSTOM_FPGA_ARRIA10"
    "&resources=DISK_GB:100&same_subtree=_CPU,_FPGA&limit=6"
)
_HOPELESS = (
    "resources_GPU=VGPU:4&required_GPU=CUSTOM_GPU_A100&resources_NET=SRIOV_NET_VF:1"
    "&required_NUMA=HW_NUMA_ROOT&same_subtree=_NUMA,_GPU,_NET"
)

_WIDTH = 1200
_MOST_MILLISECONDS = 60_000
_SETTLE_MILLISECONDS = 800
"""Wait for the groups of the map, which are drawn after the first picture."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture to take.

    Attributes:
        route: Address of the page; `{tree}` is the uuid of a host.
        awaited_selector: CSS selector of an element to wait for.
        height: Height of the picture in pixels.
        press: A button to press first; empty for none.
    """

    route: str
    awaited_selector: str
    height: int
    press: str = ""


SHOTS: Mapping[str, Picture] = {
    "page-cloud": Picture("#/cloud?by=aggregates", ".map-told", 920),
    "page-tree": Picture("#/tree/{tree}", "table.holdings tr", 860),
    "page-ask": Picture(f"#/ask?{_QUESTION}", ".candidate .bar", 1180),
    "page-why": Picture(f"#/ask?{_HOPELESS}", ".nearest li", 1100),
    "page-fit": Picture("#/fit", ".fit tbody tr, .failure", 780, "Count"),
    "page-survival": Picture(
        "#/survival?domains=tree&if_place=303:resources%3DVCPU:12,MEMORY_MB:24576",
        "table.worst tr",
        1180,
    ),
    "page-plan": Picture("#/plan?goal=empty&hosts={tree}", "table.steps tr", 1180),
    "page-consumers": Picture("#/consumers?project_id=batch", "table.holdings tr", 700),
    "page-audit": Picture("#/audit", ".findings, .failure", 620),
}
"""Pictures by the names of their files."""


def main() -> None:
    """Take all pictures."""
    program = shutil.which("chromium") or sys.exit("Chromium is not installed.")
    with (
        peer.new_folder() as folder,
        peer.treeclaim_on(f"sqlite:///{folder}/cloud.db", Path(folder)) as (url, _),
        sync_playwright() as playwright,
    ):
        tree = _fill(url)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, picture in SHOTS.items():
            _take(browser, url, tree, picture, PICTURES / f"{name}.png")
        browser.close()


def _take(browser: Browser, url: str, tree: str, picture: Picture, file: Path) -> None:
    context = browser.new_context(
        viewport={"width": _WIDTH, "height": picture.height}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(_MOST_MILLISECONDS)
    _sign_in(page, url)
    page.goto(f"{url}/ui/{picture.route.format(tree=tree)}")
    if picture.press:
        page.get_by_role("button", name=picture.press).click()
    page.locator(picture.awaited_selector).first.wait_for()
    page.wait_for_timeout(_SETTLE_MILLISECONDS)
    page.screenshot(path=file)
    context.close()
    print(f"{file.name}: {file.stat().st_size // 1024} kB")


def _sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/icon.svg")
    page.evaluate("sessionStorage.setItem('treeclaim.token', 'admin')")


def _fill(url: str) -> str:
    """Load the cloud, claim, and return the uuid of a host to show."""
    text = "providers:" + "".join(_RACK.format(rack=rack) for rack in range(1, _RACKS + 1))
    chance = random.Random(16)
    with Client(url, "admin") as client:
        apply_topology(client, parse_topology(text, "the cloud of the screenshots"))
        requests = {}
        for _ in range(_CLAIM_COUNT):
            project, query = chance.choice(_CLAIMS)
            candidates = client.candidates(query)["allocation_requests"]
            # Earlier hosts are filled more, so that the map shows differences.
            candidate = candidates[int(len(candidates) * chance.random() ** 2)]
            consumer = str(uuid.UUID(int=chance.getrandbits(128), version=4))
            client.claim(consumer, candidate, project_id=project, user_id=f"{project}-user")
            requests[consumer] = [query]
        client.call("POST", "/treeclaim/requests", {"requests": requests})
        [host] = client.providers(name="r1-host-3")
        # Findings for the audit: leftovers, and a renamed host.
        client.call("PUT", "/traits/CUSTOM_OLD_NIC")
        client.call("POST", "/resource_providers", json={"name": "r2-host-7.example.org"})
    return str(host["uuid"])


if __name__ == "__main__":
    main()
