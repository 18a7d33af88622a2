# SPDX-License-Identifier: Apache-2.0
"""Candidates that an earlier question found, for one that must find the same.

Which candidates there are depends on the shape of the Forest and on who has room for what, not on
the amounts themselves. A scheduler asks for the same flavor again and again, and a claim in between
rarely fills a provider up; other flavors often fit the same hosts. So what was found is kept with
all that it depends on, until the shape of the Forest changes. Where slots share what there is of a
class, it depends on more, and nothing is kept.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.solve.search import Search
from treeclaim.forest.solve.selection import gathered
from treeclaim.model.request import NO_GROUP

BLOCK = 2048
"""Candidates that are given together, where there are as many."""

_MOST_BYTES = 2_000_000
"""The longest list of candidates that is kept."""


@dataclass(frozen=True, slots=True)
class _Found:
    blocks: tuple[Choices, ...]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.blocks)


def candidates(search: Search) -> Iterator[Choices]:
    """Yield the candidates that a search selects, in blocks, drawn now or by an earlier one."""
    key = _dependencies(search)
    known = None if key is None else search.forest.memory.find(key)
    if isinstance(known, _Found):
        yield from known.blocks
        return
    blocks = []
    size = 0
    for block in gathered(search.selected(search.all_blocks()), BLOCK):
        size += block.nbytes
        if size <= _MOST_BYTES:
            blocks.append(block)
        yield block
    if key is not None and size <= _MOST_BYTES:
        search.forest.memory.keep(key, _Found(tuple(blocks)))


def _dependencies(search: Search) -> Hashable | None:
    """Return what the candidates depend on besides the shape; None if they are not to be kept."""
    plan, options = search.plan, search.options
    request = plan.request
    is_shared = any(one.resource_class is not None for one in plan.contests)
    if is_shared or options.randomize or not request.nested:
        return None
    outcast = [
        one.conditions.forbidden_aggregates for one in request.groups if one.suffix == NO_GROUP
    ]
    return (
        "candidates",
        search.rules.steps,
        search.rules.lists,
        plan.unsuffixed,
        plan.required,
        tuple(
            (one.pairs.serial, None if one.fits is None else np.packbits(one.fits).tobytes())
            for one in search.relations
        ),
        request.root,
        tuple(outcast),
        request.limit,
        options.maximum,
        options.breadth_first,
    )
