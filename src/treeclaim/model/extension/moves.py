# SPDX-License-Identifier: Apache-2.0
"""Goals and limits of a plan of moves (contract page 101, section 5)."""

from dataclasses import dataclass, field

from treeclaim.model.extension.planning import PlanRule
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class Empty:
    """A goal: no consumer holds anything in some trees, or where conditions say so.

    Attributes:
        providers: Uuids of providers of these trees.
        aggregate: Or the uuid of the aggregate in which their roots are.
        leave: Or whether it is at and below the providers with the condition `leave` (page 102).
    """

    providers: tuple[str, ...] = ()
    aggregate: str | None = None
    leave: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """A number of further consumers of a request fit."""

    request: CandidateRequest
    amount: int


@dataclass(frozen=True, slots=True)
class Keep:
    """The most empty trees, if requested, and then the most room for a mix.

    Attributes:
        requests: Requests of the mix with their weights.
        empty_trees: Whether empty trees count, and count first.
    """

    requests: tuple[tuple[CandidateRequest, int], ...]
    empty_trees: bool = False


Goal = Empty | Fit | Keep


@dataclass(frozen=True, slots=True)
class Movable:
    """The consumers that may be moved; all given members must apply.

    Attributes:
        consumer_types: Their types; None for all but holds.
        projects: Their projects; None for all.
        excepted: Uuids of consumers that stay.
    """

    consumer_types: frozenset[str] | None = None
    projects: frozenset[str] | None = None
    excepted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Moves:
    """A whole call.

    Attributes:
        goal: What is to be reached.
        movable: Who may be moved.
        rules: What must hold between consumers.
        max_moves: The most moves.
        both_at_once: Whether the new place is taken while the old one is still held.
        explain: Whether to tell why the first one that is left has no room.
    """

    goal: Goal
    movable: Movable = field(default_factory=Movable)
    rules: tuple[PlanRule, ...] = ()
    max_moves: int = 100
    both_at_once: bool = True
    explain: bool = False
