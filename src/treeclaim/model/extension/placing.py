# SPDX-License-Identifier: Apache-2.0
"""Placing many consumers in one call (contract page 98, section 4)."""

from collections.abc import Mapping
from dataclasses import dataclass

from treeclaim.model.claim import Amounts, ConsumerClaim, HoldTerms, Omission
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class PlacingRule:
    """A rule between the placements of several consumers; it has one of three limits.

    Attributes:
        domains: UUIDs of aggregates; None if each tree is a domain.
        max_per_domain: Most consumers in a domain.
        max_skew: Greatest difference between the numbers of consumers in a placement's domain and in the emptiest one.
        same_domain: Whether all consumers must be in one domain.
        others: Further consumers, which are counted in their domains before the call.
        requests: Indices of the requests whose consumers the rule applies to.
        soft: Whether the rule is ignored for a consumer that would otherwise have no candidate.
    """

    domains: tuple[str, ...] | None
    max_per_domain: int | None = None
    max_skew: int | None = None
    same_domain: bool = False
    others: tuple[str, ...] = ()
    requests: frozenset[int] = frozenset()
    soft: bool = False


@dataclass(frozen=True, slots=True)
class PlacingRequest:
    """Consumers with equal requests.

    Attributes:
        alternatives: Requests in order of preference; the first one with a candidate is used.
        from_holds: Uuids of holds to draw from, in this order.
        hold: Terms if the consumers are holds, else None.
        texts: The queries to store as the consumers' requests; None to store none.
    """

    alternatives: tuple[CandidateRequest, ...]
    consumers: tuple[str, ...]
    project_id: str
    user_id: str
    consumer_type: str
    from_holds: tuple[str, ...] = ()
    hold: HoldTerms | None = None
    texts: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlacingCall:
    """A call that places consumers.

    Attributes:
        partial: Whether to place as many consumers as possible, instead of all or none.
        explain: Whether to explain why the first unplaced consumer has no candidate.
    """

    requests: tuple[PlacingRequest, ...]
    rules: tuple[PlacingRule, ...]
    partial: bool = False
    explain: bool = False

    @property
    def is_single(self) -> bool:
        """Return whether the call places one consumer without rules."""
        return not self.rules and [len(request.consumers) for request in self.requests] == [1]


@dataclass(frozen=True, slots=True)
class PlacedConsumer:
    """A consumer with allocations before the call; `alternative` is -1 for a consumer in `PlacingRule.others`."""

    alternative: int
    allocations: Amounts
    generation: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The present or planned placement of a consumer of a call.

    Attributes:
        alternative: Index of the used alternative.
        mappings: Provider uuids by suffix; None for a `PlacedConsumer`.
        dropped: Indices of the violated soft rules, ascending.
        roots: UUID and name of the root of each tree.
        is_approximate: Whether a heuristic chose the placement, so that a better one may exist.
    """

    consumer: str
    alternative: int
    allocations: Amounts
    mappings: Mapping[str, list[str]] | None
    dropped: tuple[int, ...]
    roots: tuple[tuple[str, str], ...]
    is_approximate: bool = False


def make_claim(request: PlacingRequest, placement: Placement) -> ConsumerClaim:
    """Return the claim of a new consumer for its placement."""
    return ConsumerClaim(
        consumer_uuid=placement.consumer,
        allocations=placement.allocations,
        project_id=request.project_id,
        user_id=request.user_id,
        generation=None,
        consumer_type=request.consumer_type,
        knows_holds=request.hold is not None,
        hold=request.hold,
        from_holds=request.from_holds,
        request=Omission.OMITTED if request.texts is None else request.texts,
        tolerates=request.alternatives[placement.alternative].tolerated,
    )
