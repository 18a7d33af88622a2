# SPDX-License-Identifier: Apache-2.0
"""The first candidates of a whole ordered list (contract page 98, section 2)."""

import numpy as np

from treeclaim.forest.order.best_first import BestFirst
from treeclaim.forest.order.scoring import scoring_of
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.solve.search import Search
from treeclaim.model.order import DEFAULT_CANDIDATES, MOST_CANDIDATES, Order


def most_wanted(search: Search) -> int:
    """Return how many candidates an ordered search is to give at most."""
    limit = search.plan.request.limit
    wanted = min(DEFAULT_CANDIDATES if limit is None else limit, MOST_CANDIDATES)
    maximum = search.options.maximum
    return wanted if maximum is None else min(wanted, maximum)


def first_of(search: Search, order: Order) -> tuple[Choices, Floats]:
    """Return the first candidates of the whole ordered list, with their scores."""
    wanted = most_wanted(search)
    chosen: list[Choices] = []
    scores: list[Floats] = []
    found = 0
    for some in BestFirst(search, scoring_of(search, order)):
        chosen.append(some.chosen[: wanted - found])
        scores.append(some.score[: wanted - found])
        found += len(chosen[-1])
        if found >= wanted:
            break
    if not chosen:
        return np.empty((0, len(search.relations)), dtype=np.int64), np.empty(0)
    return np.concatenate(chosen), np.concatenate(scores)
