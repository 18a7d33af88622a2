# SPDX-License-Identifier: Apache-2.0
"""A candidate of a query: its amounts, providers and trees."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.answer.body import CandidateBody, ServedGroup, candidate_body
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.domains.filters import sharing_rows
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Placement


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate.

    Attributes:
        served: Group and row of each provider that serves a group.
        trees: Numbers of the candidate's trees, ascending.
        is_approximate: Whether a heuristic found the candidate, so that a better candidate may exist.
    """

    allocations: tuple[Allocation, ...]
    served: tuple[ServedGroup, ...]
    trees: tuple[int, ...]
    is_approximate: bool = False

    def body(self, forest: Forest) -> CandidateBody:
        """Return the candidate with UUIDs, as in responses."""
        return candidate_body(self.allocations, self.served, forest.uuid_of)


def find_rows(forest: Forest, uuids: Iterable[str]) -> list[int]:
    """Return the rows of the providers that exist."""
    return [row for row in map(forest.row_of, uuids) if row is not None]


def make_allocations(
    forest: Forest, holdings: Mapping[str, Mapping[str, int]]
) -> list[Allocation]:
    """Return amounts by provider uuid and class as allocations, without the amounts that have no inventory."""
    allocations: list[Allocation] = []
    classes = forest.catalogue.class_by_id
    for uuid, amounts in holdings.items():
        row = forest.row_of(uuid)
        if row is not None:
            names = {classes[number].name for number, _ in forest.inventory_indices(row)}
            allocations += [(row, name, n) for name, n in amounts.items() if name in names]
    return allocations


def find_trees(forest: Forest, rows: Sequence[int]) -> tuple[int, ...]:
    """Return the trees of giving providers; trees of sharing providers count only if all providers are sharing."""
    tree, sharing = forest.order.tree, sharing_rows(forest)
    not_lent = {int(tree[row]) for row in rows if not sharing[row]}
    return tuple(sorted(not_lent or {int(tree[row]) for row in rows}))


def make_placement(
    forest: Forest, consumer: str, alternative: int, candidate: Candidate, dropped: Sequence[int]
) -> Placement:
    """Return the placement of a consumer on a candidate; `dropped` are numbers of soft rules."""
    body = candidate.body(forest)
    return Placement(
        consumer,
        alternative,
        body.allocations,
        body.mappings,
        tuple(sorted(dropped)),
        find_roots(forest, candidate.trees),
        is_approximate=candidate.is_approximate,
    )


def find_roots(forest: Forest, trees: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return uuid and name of the root of each tree."""
    order = forest.order
    rows = [int(order.roots[tree]) for tree in trees]
    return tuple(
        (forest.uuid_of(row), name) for row, name in zip(rows, forest.names(rows), strict=True)
    )


def no_trees(forest: Forest) -> Mask:
    """Return a mask over trees that allows none."""
    return np.zeros(len(forest.order.roots), dtype=np.bool_)
