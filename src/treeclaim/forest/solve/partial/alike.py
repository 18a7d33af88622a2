# SPDX-License-Identifier: Apache-2.0
"""Anchors that a search cannot tell apart: where one has a candidate, so have all others of its kind.

Where inventories consume others, no count rules out trees in which each group has room but not all
together, so each is searched to the end (contract page 102, section 2). Clouds have many hosts of few
models, and most of those are empty or full, so it is enough to search one of each kind.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import NO_CODE
from treeclaim.forest.domains.domain import Domain
from treeclaim.forest.feasibility.subtrees import Heads
from treeclaim.forest.solve.partial.rules import Rules
from treeclaim.forest.table.columns import Integers

_Matrix = npt.NDArray[np.int64]


def kinds_of_anchors(
    anchors: Integers,
    domains: Sequence[Domain],
    heads: Sequence[Heads],
    rules: Rules,
    budget: Budget,
) -> Integers:
    """Return a number for each of some anchors, the same for those whose candidates are alike.

    Args:
        anchors: Indices, int64.
        domains: The domains of all slots, with options in the anchors' own trees alone.
        heads: The heads of all same_subtree lists.
        rules: What else is judged of options.
        budget: What it may cost.
    """
    distinct = {id(domain): domain for domain in domains}.values()
    with budget.scope():
        parts = [
            (heads_of_list.starts, _of_heads(heads_of_list, rules)) for heads_of_list in heads
        ]
        for domain in distinct:
            budget.check()
            parts.append((domain.starts, _of_options(domain, rules)))
        budget.hold(sum(matrix.nbytes for _, matrix in parts))
        known: dict[tuple[bytes, ...], int] = {}
        kinds = np.empty(len(anchors), dtype=np.int64)
        for at, anchor in enumerate(anchors.tolist()):
            budget.check()
            likeness = tuple(
                matrix[starts[anchor] : starts[anchor + 1]].tobytes() for starts, matrix in parts
            )
            if likeness not in known:
                budget.hold(sum(map(len, likeness)))
            kinds[at] = known.setdefault(likeness, len(known))
    return kinds


def _of_heads(heads: Heads, rules: Rules) -> _Matrix:
    positions = heads.positions
    return np.stack(
        [positions - rules.roots[positions], rules.ends[positions] - positions], axis=1
    )


def _of_options(domain: Domain, rules: Rules) -> _Matrix:
    """Return all that is judged of each option, with places relative to the root; a row for each."""
    return np.concatenate(list(_columns(domain, rules)), axis=1)


def _columns(domain: Domain, rules: Rules) -> Iterator[_Matrix]:
    positions = domain.positions
    root = rules.roots[positions][:, None]
    yield positions[:, None] - root
    for numbers in (*domain.room.values(), *(each[positions] for each in rules.values.values())):
        yield numbers[:, None]
    for has in rules.required:
        yield has[positions].astype(np.int64)[:, None]
    if domain.uses is not None:
        codes = domain.uses.codes
        yield np.where(codes == NO_CODE, NO_CODE, codes - root)
        yield domain.uses.amounts
        yield domain.uses.free
