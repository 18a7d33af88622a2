# SPDX-License-Identifier: Apache-2.0
"""The queries of all requests in one scratch Forest."""

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import Query, query_of
from treeclaim.forest.placing.rules import EligibleDomains, RuleState
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.table.columns import Mask
from treeclaim.model.request import CandidateRequest


class QueryPool:
    """The queries in a scratch Forest, each made when it is first needed.

    Attributes:
        scratch: Where they search.
    """

    def __init__(self, scratch: Scratch, budget: Budget, most_bytes: int | None = None) -> None:
        """Create an empty pool.

        Args:
            scratch: The scratch Forest.
            budget: The budget of all queries together.
            most_bytes: The pool drops all queries that exceed this; None for the budget's memory.
        """
        self.scratch = scratch
        self._budget = budget
        self._most_bytes = most_bytes
        self._queries: dict[CandidateRequest, Query] = {}
        self._query_bytes = 0

    @property
    def nbytes(self) -> int:
        """Return the bytes that the queries and the scratch take, about."""
        return self.scratch.nbytes + self._query_bytes

    def query(self, request: CandidateRequest) -> Query:
        """Return the query of a request."""
        query = self._queries.get(request)
        if query is None:
            if self._most_bytes is not None and self.nbytes > self._most_bytes:
                self._queries.clear()
                self._query_bytes = 0
            self.scratch.copy_used(request.classes)
            query = query_of(self.scratch, request, self._budget)
            self._query_bytes += query.nbytes
            self._queries[request] = query
        return query

    def first(
        self,
        alternatives: Iterable[CandidateRequest],
        allowed: Mask,
        rules: Sequence[RuleState] = (),
        eligible: EligibleDomains = MappingProxyType({}),
        accepts: Callable[[Candidate], bool] = lambda _: True,
    ) -> tuple[int, Candidate] | None:
        """Return the first candidate of the first request with a candidate, and the number of that request.

        Args:
            alternatives: The requests.
            allowed: Trees that a candidate may use.
            rules: Rules for the candidate.
            eligible: The domains that count for rules on skew.
            accepts: A further condition on candidates; rarely false.
        """
        masks = [allowed, *(rule.open_trees(eligible) for rule in rules)]
        alone = allowed if len(masks) == 1 else np.logical_and.reduce(masks)

        def keeps(trees: Sequence[int]) -> bool:
            return bool(allowed[list(trees)].all()) and all(
                rule.keeps(trees, eligible) for rule in rules
            )

        for number, request in enumerate(alternatives):
            query = self.query(request)
            # Searches that are repeated for each consumer are not in memory at the same time.
            with self._budget.scope():
                candidate = query.first(alone, keeps)
                if candidate is not None and not accepts(candidate):
                    every = (
                        each for each in query.candidates() if keeps(each.trees) and accepts(each)
                    )
                    candidate = next(every, None)
            if candidate is not None:
                return number, candidate
        return None
