# SPDX-License-Identifier: Apache-2.0
"""MIG profiles by card for topology files, from NVIDIA's public tables of placements.

A card has memory slices; the first of them are compute slices, too. A profile begins at one of its allowed slices. It
covers a number of memory slices, of which the first also count as compute slices. Each slice is an inventory of the
card with its own resource class. Each position of a profile is a provider below the card that consumes exactly the
covered slices. A profile with media extensions (`+me`) also consumes the card's single unit of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMPUTE, MEMORY = "CUSTOM_MIG_COMPUTE_SLICE", "CUSTOM_MIG_MEMORY_SLICE"
MEDIA = "CUSTOM_MIG_MEDIA_EXTENSIONS"


Profiles = Mapping[str, tuple[int, int, Sequence[int]]]
"""Compute slices, memory slices, and allowed first slices by NVIDIA's name of the profile."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card that can be partitioned: its numbers of compute and memory slices, and its profiles."""

    compute: int
    memory: int
    profiles: Profiles

    def list_slices(self) -> Mapping[str, Any]:
        """Return the inventories of the card in the form of a file."""
        counts = ((COMPUTE, self.compute), (MEMORY, self.memory))
        slices = {f"{name}_{n}": {"total": 1} for name, count in counts for n in range(count)}
        return {**slices, MEDIA: {"total": 1}}

    def list_positions(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the name suffix and the inventories of each provider below the card."""
        for profile, (compute, memory, begins) in self.profiles.items():
            resource_class = f"CUSTOM_MIG_{re.sub('[.+]', '_', profile.upper())}"
            for begin in begins:
                classes = [
                    f"{name}_{number}"
                    for name, count in ((COMPUTE, compute), (MEMORY, memory))
                    for number in range(begin, begin + count)
                ]
                if profile.endswith("+me"):
                    classes.append(MEDIA)
                consumes = [
                    {"provider": "{parent}", "resource_class": name, "amount": 1}
                    for name in classes
                ]
                stock = {resource_class: {"total": 1, "consumes": consumes}}
                yield f"{profile}_at{begin}", stock


def _make_card(eighth: int, quarter: int, half: int, total: int) -> Card:
    """Return a card of seven compute and eight memory slices; the arguments are the GB in profile names."""
    return Card(
        7,
        8,
        {
            f"1g.{eighth}gb": (1, 1, range(7)),
            f"1g.{eighth}gb+me": (1, 1, range(7)),
            f"1g.{quarter}gb": (1, 2, (0, 2, 4, 6)),
            f"2g.{quarter}gb": (2, 2, (0, 2, 4)),
            f"3g.{half}gb": (3, 4, (0, 4)),
            f"4g.{half}gb": (4, 4, (0,)),
            f"7g.{total}gb": (7, 8, (0,)),
        },
    )


CARDS: Mapping[str, Card] = {
    "a100-40gb": _make_card(5, 10, 20, 40),
    "a100-80gb": _make_card(10, 20, 40, 80),
    "h100-80gb": _make_card(10, 20, 40, 80),
    "h200-141gb": _make_card(18, 35, 71, 141),
    "b200-180gb": _make_card(23, 45, 90, 180),
    "a30": Card(
        4,
        4,
        {
            "1g.6gb": (1, 1, range(4)),
            "1g.6gb+me": (1, 1, range(4)),
            "2g.12gb": (2, 2, (0, 2)),
            "2g.12gb+me": (2, 2, (0, 2)),
            "4g.24gb": (4, 4, (0,)),
        },
    ),
}
"""Cards by their name in files."""
