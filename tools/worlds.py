# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.worlds`: draw the small worlds of the tests, and write the page about them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.worlds.small import SmallWorld
from tests.worlds.table import WORLDS
from tools.pictures import ROOT, Box, Provider, box_of, write

_HEAD = """# Small worlds

What the search does, in worlds small enough to check by eye. `make pictures` writes this page from
`tests/worlds/table.py`. The tests check each answer against the formal definition
([contract, page 90](contract/90-allocation-candidates.md)), the search in memory, its explanations,
and the service over HTTP. The notation is that of
[page 95](contract/95-worked-examples.md); dashed lines lead from a pool to the trees that it
lends to.
"""


def main() -> None:
    """Write page and pictures into the folder that the command line names, or into docs."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    pictures = folder / "pictures" / "worlds"
    pictures.mkdir(parents=True, exist_ok=True)
    for small in WORLDS:
        _draw(small, pictures / f"{slug(small)}.svg")
    (folder / "worlds.md").write_text("\n".join(_page()))


def slug(small: SmallWorld) -> str:
    """Return a world's name as a file has it."""
    return re.sub(r"[^a-z0-9]+", "-", small.name.lower())


def _draw(small: SmallWorld, path: Path) -> None:
    providers = [
        Provider(
            uuid=provider.name,
            name=provider.name,
            parent=provider.parent,
            inventories={name: stock.total for name, stock in provider.stock.items()},
            traits=sorted(provider.traits),
        )
        for provider in small.world.providers
    ]
    roots = [box_of(one, providers, {}) for one in providers if one.parent is None]
    aggregates = {one.name: one.aggregates for one in small.world.providers}
    write(path, roots, list(_lending(roots, aggregates)), "")


def _lending(roots: list[Box], aggregates: dict[str, frozenset[str]]) -> Iterator[tuple[Box, Box]]:
    """Yield each tree with a provider that lends, and each tree that it lends to."""
    for tree in roots:
        for lender in tree.all():
            if not lender.provider.is_sharing:
                continue
            for other in roots:
                names = (aggregates[one.provider.name] for one in other.all())
                if other is not tree and any(
                    one & aggregates[lender.provider.name] for one in names
                ):
                    yield lender, other


def _page() -> Iterator[str]:
    yield _HEAD
    for small in WORLDS:
        title = small.name[0].upper() + small.name[1:]
        yield f"## {title}\n"
        yield f"![{title}](pictures/worlds/{slug(small)}.svg)\n"
        yield f"```text\n{small.model.strip()}\n```\n"
        for question in small.questions:
            yield f"`{question.query}` — {question.why}:\n"
            yield "\n".join(f"- `{text}`" for text in question.answer or ("none",)) + "\n"


if __name__ == "__main__":
    main()
