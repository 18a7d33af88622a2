# SPDX-License-Identifier: Apache-2.0
"""What each room of `docs/architecture.md` imports: the last column of its table of rooms.

A room is a module or a folder, told by the most exact row. `model` is left out, which all may know, and
so is what a room's folder has besides. A room within the same folder goes by its own name.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from tests.paths import ROOT

PAGE = ROOT / "docs" / "architecture.md"
SOURCES = ROOT / "src" / "treeclaim"

_TABLE = re.compile(r"^\| room \|.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
_KNOWN_TO_ALL = "model"


def page() -> str:
    """Return the text of the page with the column as it ought to be."""
    text = PAGE.read_text()
    found = _TABLE.search(text)
    if found is None:
        raise ValueError(f"{PAGE} has no table of rooms")
    head, rule, *rows = found[0].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    rooms = [_rooms_of(row[0]) for row in cells]
    imports = _imports({room for group in rooms for room in group})
    lines = [
        f"| {' | '.join([*row[:-1], _told(group, imports)])} |"
        for row, group in zip(cells, rooms, strict=True)
    ]
    return text.replace(found[0], "\n".join([head, rule, *lines]))


def _rooms_of(cell: str) -> list[str]:
    """Return the paths that a cell names; a name without its folder stands beside the one before."""
    rooms: list[str] = []
    for name in re.findall(r"`([^`]+)`", cell):
        path = Path(name)
        if not (SOURCES / path).exists() and rooms:
            path = Path(rooms[-1]).parent / name
        if not (SOURCES / path).exists():
            raise ValueError(f"there is no {name} among the sources")
        rooms.append(str(path))
    return rooms


def _imports(rooms: AbstractSet[str]) -> Mapping[str, AbstractSet[str]]:
    """Return the rooms that each room imports."""
    most_exact = sorted(rooms, key=len, reverse=True)
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES.rglob("*.py"):
        importer = _room_at(path, most_exact)
        if importer is not None:
            imported = {_room_at(module, most_exact) for module in _modules_in(path)}
            found[importer] |= {room for room in imported if room is not None} - {importer}
    return found


def _room_at(path: Path, most_exact: Sequence[str]) -> str | None:
    place = path.relative_to(SOURCES)
    return next((room for room in most_exact if place.is_relative_to(room)), None)


def _modules_in(path: Path) -> Iterator[Path]:
    """Yield the files and folders of the product that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("treeclaim"):
            continue
        folder = SOURCES.joinpath(*(node.module or "").split(".")[1:])
        for name in node.names:
            inner = folder / name.name
            yield next(
                there
                for there in (inner, inner.with_suffix(".py"), folder, folder.with_suffix(".py"))
                if there.exists()
            )


def _told(group: Sequence[str], imports: Mapping[str, AbstractSet[str]]) -> str:
    """Return the cell: rooms of the same folder by name, of other folders by that folder."""
    inside = Path(group[0]).parent
    told = set()
    for room in set().union(*(imports.get(room, set()) for room in group)):
        is_beside = Path(room).parent == inside
        told.add(Path(room).name if is_beside else Path(room).parts[0])
    told -= {_KNOWN_TO_ALL, *(Path(room).name for room in group), *Path(group[0]).parts[:1]}
    return ", ".join(f"`{name.removesuffix('.py')}`" for name in sorted(told)) or "nothing"
