# SPDX-License-Identifier: Apache-2.0
"""Placing many consumers in one call (contract page 98, section 4)."""

from collections.abc import Mapping
from dataclasses import dataclass

from treeclaim.model.claim import ConsumerClaim, HoldTerms, Omission
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule between the placements of several consumers; one of three kinds.

    Attributes:
        domains: Uuids of aggregates; None where every tree is a domain.
        max_per_domain: The most that any domain may have.
        max_skew: How many more than the emptiest domain a consumer's domain may have.
        same_domain: All in one.
        others: Consumers that count too, where they are when the call begins.
        requests: Numbers of the requests whose consumers it is for, and counts.
        soft: Whether a consumer without a candidate may do without it.
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
        consumers: Lower-case dashed uuids.
        project_id, user_id, consumer_type: The owner and type of the consumers.
        from_holds: The holds to draw from, in this order.
        hold: Terms, if the consumers are to be holds; else None.
        texts: The queries to keep as the consumers' requests; None to keep none.
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
    """A whole call.

    Attributes:
        requests: The consumers with their requests.
        rules: Rules between consumers.
        partial: Whether to place as many as possible.
        explain: Whether to explain why the first unplaced consumer has no candidate.
    """

    requests: tuple[PlacingRequest, ...]
    rules: tuple[Rule, ...]
    partial: bool = False
    explain: bool = False

    @property
    def is_single(self) -> bool:
        """Return whether it places one consumer, by no rule."""
        return not self.rules and [len(request.consumers) for request in self.requests] == [1]


@dataclass(frozen=True, slots=True)
class Holder:
    """A consumer that holds something when the call begins.

    Attributes:
        alternative: The alternative of its request in the answer; -1 for one that only counts.
        allocations: Amounts by provider uuid and resource class.
        generation: The consumer's.
    """

    alternative: int
    allocations: Mapping[str, Mapping[str, int]]
    generation: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The present or planned placement of a consumer of a call.

    Attributes:
        consumer: Uuid of the consumer.
        alternative: Number of the alternative that was used.
        allocations: Amounts by provider uuid and resource class.
        mappings: Provider uuids by suffix; None for consumers that existed before.
        dropped: Numbers of the soft rules that it breaks, ascending.
        roots: Uuid and name of the root of each of its trees.
        is_approximate: Whether a heuristic found it, so that a better one may exist.
    """

    consumer: str
    alternative: int
    allocations: Mapping[str, Mapping[str, int]]
    mappings: Mapping[str, list[str]] | None
    dropped: tuple[int, ...]
    roots: tuple[tuple[str, str], ...]
    is_approximate: bool = False


def make_claim(request: PlacingRequest, placement: Placement) -> ConsumerClaim:
    """Return the claim of a new consumer of a request for what was found for it."""
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
