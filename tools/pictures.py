# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.pictures`: draw the pictures of the documentation from the example topology.

The topology is loaded into a service in this process, and what is drawn is what the service
answers: a host's tree, the pool that two hosts share, and a candidate. So the pictures stay true.
"""

import html
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import peer
from treeclaim.client import Client
from treeclaim.client.claims import amounts_by_provider
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology import read_topology

ROOT = Path(__file__).parents[1]
TOPOLOGY = ROOT / "examples" / "topology.yaml"
PICTURES = ROOT / "docs" / "pictures"

CANDIDATE = (
    "resources=DISK_GB:500&resources_CPU=VCPU:4,MEMORY_MB:4096&resources_FPGA=FPGA:1"
    "&same_subtree=_CPU,_FPGA&group_policy=none&limit=1"
)

_SHARES = "MISC_SHARES_VIA_AGGREGATE"

Provider = Mapping[str, Any]
"""A provider with inventories and traits, as GET /treeclaim/providers has it."""

_WIDTH, _LINE, _PAD, _GAP_X, _GAP_Y = 206, 16, 9, 14, 34
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2933 }
.name { font-weight: 600 } .trait { fill: #52606d; font-size: 10.5px } .amount { fill: #0b7285 }
.taken { fill: #9c3d00; font-weight: 600 }
rect { fill: #f5f7fa; stroke: #9aa5b1; rx: 6 } .chosen { fill: #fff3e0; stroke: #e8590c; stroke-width: 2 }
.sharing { fill: #e6fcf5; stroke: #0ca678 }
path { fill: none; stroke: #9aa5b1; stroke-width: 1.5 } .lends { stroke: #0ca678; stroke-dasharray: 5 4 }
.note { fill: #52606d; font-style: italic }
.paper { fill: #ffffff; stroke: none; rx: 0 }
"""


@dataclass(slots=True)
class Box:
    """A provider's place in a picture; x and y are its left upper corner."""

    provider: Provider
    lines: Sequence[tuple[str, str]]
    children: Sequence["Box"]
    chosen: bool
    x: float = 0
    y: float = 0

    @property
    def height(self) -> float:
        """Return the height of the box alone."""
        return 2 * _PAD + _LINE * len(self.lines)

    @property
    def span(self) -> float:
        """Return the width of the box with all that is below it."""
        below = sum(child.span for child in self.children)
        return max(_WIDTH, below + _GAP_X * max(len(self.children) - 1, 0))

    def put(self, x: float, y: float) -> float:
        """Place the box in the middle above its children; return the lowest y that is used."""
        self.x, self.y = x + (self.span - _WIDTH) / 2, y
        lowest = y + self.height
        for child in self.children:
            lowest = max(lowest, child.put(x, y + self.height + _GAP_Y))
            x += child.span + _GAP_X
        return lowest

    def all(self) -> Iterator["Box"]:
        """Yield the box and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def main() -> None:
    """Draw all pictures into the folder that the command line names, or into the documentation."""
    pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    pictures.mkdir(exist_ok=True)
    with (
        peer.new_folder() as folder,
        peer.treeclaim_on(f"sqlite:///{folder}/pictures.db", Path(folder)) as (url, _),
        Client(url, "admin") as client,
    ):
        apply_topology(client, read_topology(TOPOLOGY))
        _draw_all(client, pictures)


def _draw_all(client: Client, pictures: Path) -> None:
    providers = list(client.provider_states(("inventories", "traits")))
    by_name = {provider["name"]: provider for provider in providers}
    pool = by_name["rack-1-pool"]
    write(pictures / "tree.svg", [box_of(by_name["host-1"], providers, {})], [], "")
    edges = [box_of(by_name[name], providers, {}) for name in ("edge-1", "edge-2")]
    shared = box_of(pool, providers, {})
    lends = [(shared, box) for box in edges]
    write(
        pictures / "pool.svg",
        [edges[0], shared, edges[1]],
        lends,
        "lends DISK_GB to its aggregate",
    )
    candidate = client.candidates(CANDIDATE)["allocation_requests"][0]
    taken = amounts_by_provider(candidate["allocations"])
    host = box_of(by_name["host-1"], providers, taken)
    shared = box_of(pool, providers, taken)
    write(pictures / "candidate.svg", [host, shared], [(shared, host)], "lends 500 DISK_GB")


def box_of(
    provider: Provider, providers: Sequence[Provider], taken: Mapping[str, Mapping[str, int]]
) -> Box:
    """Return a provider's box with those of all below it; what is taken of each is marked."""
    own = taken.get(provider["uuid"], {})
    lines = [("name", provider["name"])]
    for name, fields in provider["inventories"].items():
        lines.append(("amount", f"{name} {fields['total']:,}"))
        if name in own:
            lines.append(("taken", f"  takes {own[name]:,}"))
    lines += [("trait", trait) for trait in provider["traits"]]
    below = [
        box_of(child, providers, taken)
        for child in providers
        if child["parent_provider_uuid"] == provider["uuid"]
    ]
    return Box(provider, lines, below, bool(own))


def write(path: Path, boxes: Sequence[Box], lends: Sequence[tuple[Box, Box]], note: str) -> None:
    """Write a picture of trees side by side, with lines from those that lend to their borrowers."""
    x, lowest = 10.0, 0.0
    for box in boxes:
        lowest = max(lowest, box.put(x, 10))
        x += box.span + 3 * _GAP_X
    width, height = x - 3 * _GAP_X + 10, lowest + 10 + (_LINE if note else 0)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" role="img"><style>{_STYLE}</style>'
            '<rect class="paper" width="100%" height="100%"/>'
        )
    ]
    parts += [_lending(source, target) for source, target in lends]
    for box in boxes:
        parts += [part for inner in box.all() for part in _drawn(inner)]
    if note and lends:
        source = lends[0][0]
        parts.append(
            f'<text class="note" x="{source.x:.0f}" y="{source.y + source.height + _LINE:.0f}">'
            f"{html.escape(note)}</text>"
        )
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def _drawn(box: Box) -> Iterator[str]:
    """Yield the lines to a box's children, the box, and what stands in it."""
    middle, bottom = box.x + _WIDTH / 2, box.y + box.height
    for child in box.children:
        end = child.x + _WIDTH / 2
        half = (bottom + child.y) / 2
        yield f'<path d="M{middle:.1f} {bottom:.1f} V{half:.1f} H{end:.1f} V{child.y:.1f}"/>'
    kind = "chosen" if box.chosen else "sharing" if _SHARES in box.provider["traits"] else "plain"
    yield (
        f'<rect class="{kind}" x="{box.x:.1f}" y="{box.y:.1f}" '
        f'width="{_WIDTH}" height="{box.height:.1f}"/>'
    )
    for number, (style, text) in enumerate(box.lines, 1):
        y = box.y + _PAD + _LINE * number - 4
        yield (
            f'<text class="{style}" x="{box.x + _PAD:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
        )


def _lending(source: Box, target: Box) -> str:
    """Return the line between a sharing provider and a root that it lends to."""
    y = min(source.y + source.height, target.y + target.height) / 2 + 5
    left, right = sorted((source, target), key=lambda box: box.x)
    if left.y == right.y:
        return f'<path class="lends" d="M{left.x + _WIDTH:.1f} {y:.1f} H{right.x:.1f}"/>'
    begin, end = (box.y + box.height / 2 for box in (left, right))
    return f'<path class="lends" d="M{left.x + _WIDTH:.1f} {begin:.1f} L{right.x:.1f} {end:.1f}"/>'


if __name__ == "__main__":
    main()
