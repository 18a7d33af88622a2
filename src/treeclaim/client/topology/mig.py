# SPDX-License-Identifier: Apache-2.0
"""Lists of MIG profiles by card, for topology files: from NVIDIA's public tables of placements.

A card has slices of memory, the first of which also have slices of compute. A profile may begin only at
some slices, and covers a number of memory slices, the first of which also count for compute. Each slice is an
inventory of the card, of a class of its own. Each position is a provider below the card that consumes exactly
the slices that it covers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMPUTE, MEMORY = "CUSTOM_MIG_COMPUTE_SLICE", "CUSTOM_MIG_MEMORY_SLICE"


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of partition.

    Attributes:
        name: As the vendor writes it.
        compute, memory: Slices that it covers.
        begins: At which slices it may begin.
    """

    name: str
    compute: int
    memory: int
    begins: Sequence[int]

    @property
    def resource_class(self) -> str:
        """Return the class of its inventories."""
        return f"CUSTOM_MIG_{self.name.upper().replace('.', '_')}"


@dataclass(frozen=True, slots=True)
class Card:
    """A card that can be divided.

    Attributes:
        compute, memory: How many slices it has.
        profiles: The kinds of partitions.
    """

    compute: int
    memory: int
    profiles: Sequence[Profile]

    def slices(self) -> Mapping[str, Any]:
        """Return the inventories of the card itself, as a file has them."""
        counts = ((COMPUTE, self.compute), (MEMORY, self.memory))
        return {f"{name}_{n}": {"total": 1} for name, count in counts for n in range(count)}

    def positions(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the providers below the card: the end of a name, and inventories."""
        for profile in self.profiles:
            for begin in profile.begins:
                consumes = [
                    {"provider": "{parent}", "resource_class": f"{name}_{number}", "amount": 1}
                    for name, count in ((COMPUTE, profile.compute), (MEMORY, profile.memory))
                    for number in range(begin, begin + count)
                ]
                stock = {"total": 1, "consumes": consumes}
                yield f"{profile.name}_at{begin}", {profile.resource_class: stock}


def _seven(unit: int, total: int) -> Card:
    """Return a card of seven slices of compute and eight of memory, of so many GB each."""
    each = range(7)
    return Card(
        7,
        8,
        (
            Profile(f"1g.{unit}gb", 1, 1, each),
            Profile(f"1g.{2 * unit}gb", 1, 2, (0, 2, 4, 6)),
            Profile(f"2g.{2 * unit}gb", 2, 2, (0, 2, 4)),
            Profile(f"3g.{4 * unit}gb", 3, 4, (0, 4)),
            Profile(f"4g.{4 * unit}gb", 4, 4, (0,)),
            Profile(f"7g.{total}gb", 7, 8, (0,)),
        ),
    )


CARDS: Mapping[str, Card] = {
    "a100-40gb": _seven(5, 40),
    "a100-80gb": _seven(10, 80),
    "h100-80gb": _seven(10, 80),
    "a30": Card(
        4,
        4,
        (
            Profile("1g.6gb", 1, 1, range(4)),
            Profile("2g.12gb", 2, 2, (0, 2)),
            Profile("4g.24gb", 4, 4, (0,)),
        ),
    ),
}
"""Cards by the name that files use for them."""
