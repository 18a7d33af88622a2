# SPDX-License-Identifier: Apache-2.0
"""Calls that place consumers, and their answers (contract page 98, sections 4 and 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from treeclaim.client.requests.queries import CandidateQuery
from treeclaim.client.versions import LATEST_MINOR, Need
from treeclaim.model.microversions import ExtensionFeature

TREES = "tree"
"""Domains of a rule, or parts of a capacity, that are trees."""

Domains = str | Sequence[str]
"""`TREES`, or uuids of aggregates."""

NEED = Need("placing", LATEST_MINOR, extension=ExtensionFeature.ALL)


@dataclass(frozen=True, slots=True)
class PlacingRule:
    """A rule between the placements of consumers, of one of the next three kinds.

    Attributes:
        domains: What is compared.
        max_per_domain: The most that any domain may have.
        max_skew: How many more than the emptiest domain any domain may have.
        same_domain: All in one.
        others: Uuids of consumers that count too.
        requests: Numbers of the requests that it is for; None for all.
        soft: Whether a consumer without a candidate may do without it.
    """

    domains: Domains = TREES
    max_per_domain: int | None = None
    max_skew: int | None = None
    same_domain: bool = False
    others: Sequence[str] = ()
    requests: Sequence[int] | None = None
    soft: bool = False

    def body(self) -> dict[str, Any]:
        """Return it as it is sent."""
        domains = self.domains if isinstance(self.domains, str) else list(self.domains)
        body: dict[str, Any] = {"domains": domains}
        if self.max_per_domain is not None:
            body["max_per_domain"] = self.max_per_domain
        if self.max_skew is not None:
            body["max_skew"] = self.max_skew
        if self.same_domain:
            body["same_domain"] = True
        if self.others:
            body["with"] = list(self.others)
        if self.requests is not None:
            body["requests"] = list(self.requests)
        if self.soft:
            body["soft"] = True
        return body


HOLDS = Need("holds", LATEST_MINOR, extension=ExtensionFeature.ALL)
"""What a server must have to know of holds (contract page 100)."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Terms of holds.

    Attributes:
        until: When they end, as RFC 3339 has it; None for never.
        returns: Whether what is drawn comes back when it is released.
        projects: Those beside its own whose consumers may draw.
        note: For people; None for none.
    """

    until: str | None = None
    returns: bool = False
    projects: Sequence[str] = ()
    note: str | None = None

    @classmethod
    def read(cls, terms: Mapping[str, Any]) -> "Hold":
        """Read terms as the service shows them, without what is drawn."""
        return cls(terms["until"], terms["returns"], tuple(terms["projects"]), terms["note"])

    def body(self) -> dict[str, Any]:
        """Return it as it is sent."""
        return asdict(self) | {"projects": list(self.projects)}


@dataclass(frozen=True, slots=True)
class PlacingRequest:
    """Consumers that want the same.

    Attributes:
        alternatives: Queries; the first that has a candidate is taken.
        consumers: Uuids.
        project_id, user_id, consumer_type: Their owner and type; holds have a type of their own.
        from_holds: Uuids of the holds from which they draw.
        hold: Terms of the holds that they become; None for other consumers.
    """

    alternatives: Sequence[str | CandidateQuery]
    consumers: Sequence[str]
    project_id: str
    user_id: str
    consumer_type: str = "INSTANCE"
    from_holds: Sequence[str] = ()
    hold: Hold | None = None

    @property
    def need(self) -> Need:
        """Return what a server must have for it."""
        return NEED if self.hold is None and not self.from_holds else HOLDS

    def body(self) -> dict[str, Any]:
        """Return it as it is sent."""
        body: dict[str, Any] = {
            "alternatives": [str(query) for query in self.alternatives],
            "consumers": list(self.consumers),
            "project_id": self.project_id,
            "user_id": self.user_id,
        }
        if self.hold is None:
            body["consumer_type"] = self.consumer_type
        else:
            body["hold"] = self.hold.body()
        if self.from_holds:
            body["from_holds"] = list(self.from_holds)
        return body


@dataclass(frozen=True, slots=True)
class PlacedConsumer:
    """The placement of a consumer.

    Attributes:
        consumer: Its uuid.
        alternative: Which query it took.
        roots: Names of the roots of its trees.
        allocations: Amounts by provider uuid and resource class.
        dropped: Numbers of the soft rules that it does without.
        held_before: True if it was placed already when the call began.
    """

    consumer: str
    alternative: int
    roots: tuple[str, ...]
    allocations: Mapping[str, Mapping[str, int]]
    dropped: tuple[int, ...]
    held_before: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """The outcome of a call.

    Attributes:
        placements: The consumers that have a place, in the order of the call.
        unplaced: Uuids of those who have none.
        document: The whole answer.
    """

    placements: tuple[PlacedConsumer, ...]
    unplaced: tuple[str, ...]
    document: Mapping[str, Any]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Placed":
        """Read an answer."""
        return cls(
            tuple(_consumer(consumer) for consumer in document["placements"]),
            tuple(document["unplaced"]),
            document,
        )


def _consumer(told: Mapping[str, Any]) -> PlacedConsumer:
    return PlacedConsumer(
        consumer=told["consumer"],
        alternative=told["alternative"],
        roots=tuple(root["name"] for root in told["root_providers"]),
        allocations={uuid: claimed["resources"] for uuid, claimed in told["allocations"].items()},
        dropped=tuple(told["dropped"]),
        held_before=told["mappings"] is None,
    )


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many consumers of a request fit.

    Attributes:
        fits: How many could be placed one after the other.
        at_most: An upper bound for any order of placing; None if there was no time to prove one.
        when_empty: How many if nothing were allocated.
        is_complete: False where counting took too long: numbers are what was counted.
        domains: How many fit in each part: its name, or else its uuid, and the number.
    """

    fits: int
    at_most: int | None
    when_empty: int
    is_complete: bool
    domains: tuple[tuple[str, int], ...] = ()

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Capacity":
        """Read one of an answer."""
        return cls(
            told["fits"],
            told["at_most"],
            told["when_empty"],
            told["complete"],
            tuple(
                (domain["name"] or domain["uuid"], domain["fits"])
                for domain in told.get("domains", [])
            ),
        )
