# SPDX-License-Identifier: Apache-2.0
"""The names of traits and resource classes that exist."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from treeclaim.model.names import CUSTOM_PREFIX, SHARING_TRAIT


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A trait or resource class.

    Attributes:
        id: The row's id in the database.
        name: As clients know it.
        modified_at: Last update (or creation), in seconds since the epoch; None if unknown.
    """

    id: int
    name: str
    modified_at: float | None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All traits and resource classes, by name and by id.

    Traits are in catalogue order: standard before custom ones, each in order of creation
    (contract page 90, section 5.2). Resource classes are in order of id.
    """

    traits: dict[str, CatalogueEntry]
    resource_classes: dict[str, CatalogueEntry]
    trait_by_id: dict[int, CatalogueEntry] = field(repr=False)
    class_by_id: dict[int, CatalogueEntry] = field(repr=False)
    trait_rank: dict[int, int] = field(repr=False)

    @classmethod
    def of(
        cls, traits: Iterable[CatalogueEntry], resource_classes: Iterable[CatalogueEntry]
    ) -> "Catalogue":
        """Build a catalogue from entries in any order."""
        ordered = sorted(
            traits, key=lambda entry: (entry.name.startswith(CUSTOM_PREFIX), entry.id)
        )
        classes = sorted(resource_classes, key=lambda entry: entry.id)
        return cls(
            traits={entry.name: entry for entry in ordered},
            resource_classes={entry.name: entry for entry in classes},
            trait_by_id={entry.id: entry for entry in ordered},
            class_by_id={entry.id: entry for entry in classes},
            trait_rank={entry.id: rank for rank, entry in enumerate(ordered)},
        )

    @property
    def sharing_trait_id(self) -> int | None:
        """Return the id of the trait that makes a provider a sharing one, if it exists."""
        entry = self.traits.get(SHARING_TRAIT)
        return None if entry is None else entry.id
