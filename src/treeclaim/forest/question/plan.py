# SPDX-License-Identifier: Apache-2.0
"""What can be said of a request before any provider is looked at.

Schedulers ask the same few questions all day, one for each flavor, so all of this is worked out
once for each and kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.cache import ByteCache, size_of
from treeclaim.forest.question.contests import Contest, contests_of, relieved
from treeclaim.forest.question.wants import BEYOND_ALL_ROOM, Want, wants_of
from treeclaim.model.request import NO_GROUP, CandidateRequest, RequestGroup

_PLANS_BYTES = 12_000_000
_STEPS_BYTES = 12_000_000
"""Of plans and of their steps: some thousand of usual requests, or a few of very large ones."""

_PLAN_BYTES = 4_000
_STEP_BYTES = 16
"""Memory that is counted for a plan, and for each pair of slots in its steps."""

_GROUP_BYTES = 1_500
_RESOURCE_BYTES = 400
"""Memory that is counted for a group of a request, and for each resource that it asks for: a name
has 255 characters at most."""


@dataclass(frozen=True, slots=True)
class Summed:
    """Earlier slots that may take the same class from the same provider.

    Attributes:
        amount: What this step's slot takes.
        slots: The earlier slots.
        amounts: What each takes, int64, shape (k,).
    """

    amount: int
    slots: tuple[int, ...]
    amounts: npt.NDArray[np.int64]

    @property
    def is_uniform(self) -> bool:
        """Tell whether all earlier slots take the same."""
        return bool((self.amounts == self.amounts[0]).all())


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the search: guess the head of a same_subtree list, or fill a slot.

    Attributes:
        slot: The slot to fill; None to guess a head.
        subtree: The list whose head is guessed; -1 where a slot is filled.
        covers: Where a head is guessed: earlier slots that must lie in its subtree.
        spares: Where a head is guessed: earlier slots that must not lie in its subtree.
        within: The lists that the slot is named in.
        avoids: The lists that the slot must be outside of.
        completes: Those of them whose last slot this is.
        differs: Earlier slots whose provider must be another one.
        summed: By class name: earlier slots whose amounts add up with this one's.
        other_trees: Earlier slots that must be the same provider or in another tree (below 1.29).
        completes_unsuffixed: True if it fills the last slot of the unsuffixed group.
    """

    slot: int | None
    subtree: int = -1
    covers: tuple[int, ...] = ()
    spares: tuple[int, ...] = ()
    within: tuple[int, ...] = ()
    avoids: tuple[int, ...] = ()
    completes: tuple[int, ...] = ()
    differs: tuple[int, ...] = ()
    summed: Mapping[str, Summed] = field(default_factory=dict, hash=False)
    other_trees: tuple[int, ...] = ()
    completes_unsuffixed: bool = False

    @property
    def is_bound(self) -> bool:
        """Tell whether what fills the slot depends on the slots that were filled before."""
        return bool(self.differs or self.summed or self.other_trees)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A request in the form in which the search works on it. Plans are equal by value.

    Attributes:
        request: What was asked.
        groups: Its groups; of several that ask for the same, one.
        wants: What each slot asks for, in the order of the columns of a candidate.
        lists: The slots inside of each same_subtree list; lists that say nothing are left out.
        outside: For each of them the slots that must be outside.
        contests: Which slots compete.
        inner_contests: For each of the lists: which of its slots compete.
        unsuffixed: The slots of the unsuffixed group.
        required: The sets of traits that the providers of the unsuffixed group must cover
            together.
        split: Amounts of the classes of the unsuffixed group that several providers may give;
            no slot is for them.
        idle: Slots and names of classes for which no other slot can use the same provider.
    """

    request: CandidateRequest
    groups: tuple[RequestGroup, ...]
    wants: tuple[Want, ...]
    lists: tuple[tuple[int, ...], ...]
    outside: tuple[tuple[int, ...], ...]
    contests: tuple[Contest, ...]
    inner_contests: tuple[tuple[Contest, ...], ...]
    unsuffixed: tuple[int, ...]
    required: tuple[frozenset[str], ...]
    split: Mapping[str, int]
    idle: frozenset[tuple[int, str]] = frozenset()

    def __eq__(self, other: object) -> bool:
        """Compare by value: all of a plan follows from the request and what is idle."""
        return self is other or (
            isinstance(other, Plan) and self.request == other.request and self.idle == other.idle
        )

    def __hash__(self) -> int:
        """Return the hash of the value."""
        return hash((self.request, self.idle))

    @property
    def nbytes(self) -> int:
        """Return the memory that it takes, with the request."""
        return _PLAN_BYTES + _bytes_of(self.request)

    def relieved(self, idle: frozenset[tuple[int, str]]) -> "Plan":
        """Return the plan where some slots do not compete for a class; the same one each time.

        Args:
            idle: Slots and names of classes for which no other slot can use the same provider.
        """
        if not idle:
            return self
        return _plans.get((self, idle), lambda: self._without_contests(idle))

    def _without_contests(self, idle: frozenset[tuple[int, str]]) -> "Plan":
        return replace(
            self,
            contests=relieved(self.wants, self.contests, idle),
            inner_contests=tuple(
                relieved(self.wants, contests, idle) for contests in self.inner_contests
            ),
            idle=idle,
        )

    def steps(self, sizes: Sequence[int]) -> tuple["Step", ...]:
        """Put heads and slots into an order that prunes early, with what each must look at.

        Each head comes before those slots of its list that are not filled yet; the slots that are
        in no list come last. Among slots that could come next, those with fewest options are
        first.

        Args:
            sizes: How many providers may take each slot.
        """
        # The steps depend on the order of the sizes alone.
        order = tuple(sorted(range(len(sizes)), key=lambda slot: (sizes[slot], slot)))
        return _steps.get((self, order), lambda: _Steps(self._planned_steps(sizes), self)).steps

    def _planned_steps(self, sizes: Sequence[int]) -> tuple["Step", ...]:
        planner = _Planner(self, sizes)
        for subtree, members in enumerate(self.lists):
            planner.guess_head(subtree)
            planner.fill(members)
        planner.fill(range(len(self.wants)))
        return tuple(planner.steps)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps in a cache; their key keeps the plan alive."""

    steps: tuple[Step, ...]
    plan: Plan

    @property
    def nbytes(self) -> int:
        return self.plan.nbytes + _STEP_BYTES * len(self.steps) ** 2


def _bytes_of(request: CandidateRequest) -> int:
    """Return about how much memory a request takes; to measure all of it would take long."""
    conditions = [request.root, *(group.conditions for group in request.groups)]
    amounts = [amount for group in request.groups for amount in group.resources.values()]
    return (
        _GROUP_BYTES * len(request.groups)
        + _RESOURCE_BYTES * len(amounts)
        + sum(map(int.bit_length, amounts)) // 8
        + sum(size_of(condition) for condition in conditions if not condition.is_empty)
        + size_of(request.same_subtree)
    )


_plans = ByteCache(_PLANS_BYTES, lambda _: 0)
"""Plans by request, and by plan and what is idle there; a plan counts its request."""

_steps = ByteCache(_STEPS_BYTES, lambda _: 0)
"""The steps of plans by plan and order of the slots, which the state of the cloud chooses."""


def plan_of(request: CandidateRequest) -> Plan:
    """Return the plan of a request; mostly the same one for the same request."""
    return _plans.get(request, lambda: _planned(request))


def _planned(request: CandidateRequest) -> Plan:
    split, required = _split(request)
    asked = (
        request.groups if not split else tuple(_without(split, group) for group in request.groups)
    )
    groups, wants = wants_of(asked)
    unsuffixed = tuple(slot for slot, want in enumerate(wants) if want.suffix == NO_GROUP)
    lists = _subtree_lists(request, wants)
    return Plan(
        request=request,
        groups=groups,
        wants=wants,
        lists=tuple(inside for inside, _ in lists),
        outside=tuple(outside for _, outside in lists),
        contests=contests_of(wants, request, range(len(wants))),
        inner_contests=tuple(contests_of(wants, request, inside) for inside, _ in lists),
        unsuffixed=unsuffixed,
        # The provider of a single class is chosen by its traits in the first place.
        required=required if split or len(unsuffixed) > 1 else (),
        split=split,
    )


def _split(request: CandidateRequest) -> tuple[Mapping[str, int], tuple[frozenset[str], ...]]:
    """Return the amounts to split, and the traits that the unsuffixed group requires."""
    for group in request.groups:
        if group.suffix == NO_GROUP:
            names = [name for name in group.resources if name in request.can_split]
            split = {name: min(group.resources[name], BEYOND_ALL_ROOM) for name in names}
            return split, group.conditions.required
    return {}, ()


def _without(split: Mapping[str, int], group: RequestGroup) -> RequestGroup:
    """Return a group without what is split, and without traits that can be judged only then."""
    if group.suffix != NO_GROUP:
        return group
    resources = {name: n for name, n in group.resources.items() if name not in split}
    return replace(group, resources=resources, conditions=replace(group.conditions, required=()))


def _subtree_lists(
    request: CandidateRequest, wants: Sequence[Want]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the slots inside and outside of each list that says something."""
    by_suffix = {want.suffix: index for index, want in enumerate(wants)}

    def slots(suffixes: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted({by_suffix[suffix] for suffix in suffixes}))

    lists = {(slots(listed.inside), slots(listed.outside)) for listed in request.same_subtree}
    return sorted(
        slots_of_list for slots_of_list in lists if len(slots_of_list[0]) > 1 or slots_of_list[1]
    )


class _Planner:
    """Appends steps; knows what is filled and guessed so far."""

    def __init__(self, plan: Plan, sizes: Sequence[int]) -> None:
        self.steps: list[Step] = []
        self._wants = plan.wants
        self._sizes = sizes
        self._lists = plan.lists
        self._outside = plan.outside
        self._suffixed = [want.suffix != NO_GROUP for want in plan.wants]
        self._isolated = [
            want.suffix != NO_GROUP and want.suffix in plan.request.isolated for want in plan.wants
        ]
        self._rivals = {
            contest.resource_class: frozenset(contest.slots)
            for contest in plan.contests
            if contest.resource_class is not None
        }
        self._nested = plan.request.nested
        self._filled: list[int] = []
        self._guessed: list[int] = []
        self._unsuffixed = set(plan.unsuffixed)

    def guess_head(self, subtree: int) -> None:
        members = self._lists[subtree]
        self._guessed.append(subtree)
        self.steps.append(
            Step(
                slot=None,
                subtree=subtree,
                covers=tuple(slot for slot in members if slot in self._filled),
                spares=tuple(slot for slot in self._outside[subtree] if slot in self._filled),
                completes=(subtree,) if set(members) <= set(self._filled) else (),
            )
        )

    def fill(self, slots: Iterable[int]) -> None:
        unfilled = [slot for slot in slots if slot not in self._filled]
        for slot in sorted(unfilled, key=lambda slot: (self._sizes[slot], slot)):
            earlier = tuple(self._filled)
            self._filled.append(slot)
            self.steps.append(self._step(slot, earlier))

    def _step(self, new: int, earlier: tuple[int, ...]) -> Step:
        slot = self._wants[new]
        differs = self._apart_from(new, earlier)
        return Step(
            slot=new,
            within=tuple(subtree for subtree in self._guessed if new in self._lists[subtree]),
            avoids=tuple(subtree for subtree in self._guessed if new in self._outside[subtree]),
            completes=self._completed_by((new,)),
            differs=differs,
            summed=self._summed(new, differs, earlier),
            other_trees=(
                ()
                if self._nested or not slot.resources
                else tuple(other for other in earlier if self._wants[other].resources)
            ),
            completes_unsuffixed=(
                new in self._unsuffixed and self._unsuffixed.issubset(self._filled)
            ),
        )

    def _completed_by(self, new: Sequence[int]) -> tuple[int, ...]:
        """Return the guessed lists that are whole now, and were not before these slots."""
        if not self._guessed:
            return ()
        filled = set(self._filled)
        return tuple(
            subtree
            for subtree in self._guessed
            if set(self._lists[subtree]) <= filled and set(self._lists[subtree]) & set(new)
        )

    def _apart_from(self, new: int, earlier: Sequence[int]) -> tuple[int, ...]:
        """Return the earlier slots whose provider a new slot must not have."""
        if not self._suffixed[new]:
            return ()
        rivals = self._suffixed if self._isolated[new] else self._isolated
        return tuple(other for other in earlier if rivals[other])

    def _summed(
        self, new: int, differs: Sequence[int], earlier: Sequence[int]
    ) -> dict[str, Summed]:
        summed: dict[str, Summed] = {}
        if len(differs) == len(earlier):
            return summed
        apart = set(differs)
        for name, amount in self._wants[new].resources.items():
            rivals = self._rivals.get(name, frozenset())
            if new in rivals:
                others = [other for other in earlier if other in rivals and other not in apart]
                amounts = [self._wants[other].resources[name] for other in others]
                if others:
                    taken = np.array(amounts, dtype=np.int64)
                    summed[name] = Summed(amount, tuple(others), taken)
        return summed
