# SPDX-License-Identifier: Apache-2.0
"""The effect of a write on holds: rules without a database (contract page 100, section 2).

A `HoldBook` has the holds that a transaction has locked, and what its consumers have drawn. Each of
its writes works on a `HoldWrite`, which becomes the book when the write is accepted. In this order:

1. Consumers whose amount falls give up what they had drawn, first of the hold with the greatest UUID.
   It passes to others of the write that grow there, in a reshape to where the consumer itself grows,
   otherwise it returns to its hold.
2. Holds of the write get their new amounts and terms.
3. Consumers that grow take from the holds that they name, and the rest from what is free.
4. A hold that has nothing left, and from which nothing is drawn, ends.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from treeclaim.model.errors import HoldRefusedError
from treeclaim.model.extension.holds import HoldTerms

Key = tuple[int, int]
"""Provider id and class id."""

Draws = Mapping[Key, tuple["Draw", ...]]
"""The draws of a consumer, by inventory in the order of the UUIDs of the holds."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The amount of a class at a provider that a consumer has drawn from a hold.

    Attributes:
        hold: Uuid.
        amount: Units.
    """

    hold: str
    amount: int


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold.

    Attributes:
        project_id: Its own.
        terms: Its terms.
        held: What it holds.
        is_drawn_by_others: Whether anybody draws who is not a consumer of this transaction.
    """

    project_id: str
    terms: HoldTerms
    held: Mapping[Key, int]
    is_drawn_by_others: bool = False

    def lets_draw(self, project_id: str) -> bool:
        """Return whether the consumers of a project may draw."""
        return project_id == self.project_id or project_id in self.terms.projects


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one consumer of a write.

    Attributes:
        consumer: Uuid.
        project_id: As it will be.
        before, after: What it holds.
        is_hold: Whether it will be one.
        terms: New terms of a hold, None if they stay.
        sources: Holds to draw from.
        is_end: Whether it is a hold that is removed, whatever is drawn from it.
    """

    consumer: str
    project_id: str
    before: Mapping[Key, int]
    after: Mapping[Key, int]
    is_hold: bool = False
    terms: HoldTerms | None = None
    sources: Sequence[str] = ()
    is_end: bool = False


@dataclass(slots=True)
class HoldBook:
    """The holds of a transaction, and what its consumers have drawn, as its writes change them.

    Attributes:
        holds: By uuid, those that exist.
        draws: By consumer, those of the transaction's consumers.
        found: The holds before anything was written.
        ended: Uuids of holds that have ended.
        forgotten: Uuids of holds from which nothing counts as drawn any more.
        steps: By how much the generation of a hold rises that is not a consumer of a write.
        is_one_write: Whether all its requests are parts of one write.
    """

    holds: dict[str, Hold] = field(default_factory=dict)
    draws: dict[str, Draws] = field(default_factory=dict)
    found: Mapping[str, Hold] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    steps: Counter[str] = field(default_factory=Counter)
    is_one_write: bool = False

    def __post_init__(self) -> None:
        """Note the holds before any write."""
        self.found = dict(self.holds)

    def write(self, changes: Sequence[Change], *, is_reshape: bool) -> "HoldWrite":
        """Work out one write; `accept` makes it count.

        Raises:
            HoldRefusedError: for the first hold that a consumer must not draw from.
        """
        self._require_sources(changes)
        write = HoldWrite(self, changes)
        for change in changes:
            if not change.is_hold:
                write.give_up(change, is_reshape=is_reshape)
        for change in changes:
            if change.is_end:
                write.end(change.consumer)
            elif change.is_hold:
                write.set_hold(change)
        for change in changes:
            write.draw(change)
        write.end_what_is_empty()
        return write

    def _require_sources(self, changes: Sequence[Change]) -> None:
        usable = self.found if self.is_one_write else self.holds
        for change in changes:
            for source in change.sources:
                hold = usable.get(source)
                if hold is None:
                    raise HoldRefusedError(source, "unknown")
                if not hold.lets_draw(change.project_id):
                    raise HoldRefusedError(source, "project")

    def accept(self, write: "HoldWrite", consumers: Collection[str]) -> None:
        """Let a write count.

        Args:
            write: Worked out on this book as it is.
            consumers: The consumers of the write.
        """
        for uuid in write.touched.difference(consumers):
            if write.held_of(uuid) != self.holds[uuid].held:
                self.steps[uuid] = 1 if self.is_one_write else self.steps[uuid] + 1
        self.holds, self.draws = write.holds, write.draws
        self.ended |= write.ended
        self.forgotten |= write.forgotten


class HoldWrite:
    """A book as one write leaves it.

    Attributes:
        holds, draws: As in `HoldBook`.
        touched: Holds that have changed, or that are new.
        ended, forgotten: As in `HoldBook`, by this write.
    """

    def __init__(self, book: HoldBook, changes: Sequence[Change]) -> None:
        self._before = book.holds
        self._projects = {change.consumer: change.project_id for change in changes}
        self._growth = _growth(changes)
        self.holds = dict(book.holds)
        self.draws = dict(book.draws)
        self.touched: set[str] = set()
        self.ended: set[str] = set()
        self.forgotten: set[str] = set()
        self._held: dict[str, dict[Key, int]] = {}

    def held_of(self, uuid: str) -> Mapping[Key, int]:
        """Return what a hold holds, nothing if it has ended."""
        return self.holds[uuid].held if uuid in self.holds else MappingProxyType({})

    def held_beside(self, consumers: Collection[str]) -> tuple[Counter[Key], Counter[Key]]:
        """Return what the touched holds that are not consumers of the write held before, and hold."""
        before: Counter[Key] = Counter()
        after: Counter[Key] = Counter()
        for uuid in self.touched.difference(consumers):
            before.update(self._before[uuid].held)
            after.update(self.held_of(uuid))
        return before, after

    def give_up(self, change: Change, *, is_reshape: bool) -> None:
        """Let a consumer give up what it has drawn beyond what it will have."""
        drawn = dict(self.draws.get(change.consumer, {}))
        for key in sorted(drawn):
            remaining_units = change.after.get(key, 0)
            kept: list[Draw] = []
            released_draws: list[tuple[str, int]] = []
            for draw in drawn[key]:
                stays = min(draw.amount, remaining_units)
                remaining_units -= stays
                if stays:
                    kept.append(replace(draw, amount=stays))
                if stays < draw.amount:
                    released_draws.append((draw.hold, draw.amount - stays))
            drawn[key] = tuple(kept)
            if not released_draws:
                continue
            self.draws[change.consumer] = {at: draws for at, draws in drawn.items() if draws}
            takers = [(consumer, key) for consumer in self._growth.get(key, ())]
            if is_reshape:
                takers += [(change.consumer, at) for at in change.after if at[1] == key[1]]
            for hold, amount in reversed(released_draws):
                self._pass_on(hold, key, amount, takers)
            drawn = dict(self.draws.get(change.consumer, {}))

    def _pass_on(
        self, uuid: str, key: Key, amount: int, takers: Iterable[tuple[str, Key]]
    ) -> None:
        """Let consumers that grow take what was given up from a hold, and return the rest."""
        hold = self.holds[uuid]
        for consumer, at in takers:
            growth = self._growth.get(at, {}).get(consumer, 0)
            if growth and amount and hold.lets_draw(self._projects[consumer]):
                passed = min(growth, amount)
                self._growth[at][consumer] -= passed
                amount -= passed
                self._note(consumer, at, uuid, passed)
        if amount:
            held = self._held_to_change(uuid)
            held[key] = held.get(key, 0) + amount

    def set_hold(self, change: Change) -> None:
        """Give a hold its new amounts and terms."""
        existing_hold = self.holds.get(change.consumer)
        terms = change.terms or (existing_hold.terms if existing_hold else HoldTerms())
        is_drawn = existing_hold is not None and existing_hold.is_drawn_by_others and terms.returns
        self._held.pop(change.consumer, None)
        self.holds[change.consumer] = Hold(change.project_id, terms, dict(change.after), is_drawn)
        self.touched.add(change.consumer)
        if existing_hold is not None and existing_hold.terms.returns and not terms.returns:
            self._forget(change.consumer)

    def draw(self, change: Change) -> None:
        """Let a consumer take what its holds have where it grows."""
        for source in change.sources:
            hold = self.holds.get(source)
            if hold is None:
                continue
            for key in change.after:
                growth = self._growth.get(key, {}).get(change.consumer, 0)
                drawn_units = min(growth, self.holds[source].held.get(key, 0))
                if not drawn_units:
                    continue
                self._growth[key][change.consumer] -= drawn_units
                held = self._held_to_change(source)
                held[key] -= drawn_units
                if not held[key]:
                    del held[key]
                if hold.terms.returns:
                    self._note(change.consumer, key, source, drawn_units)

    def end_what_is_empty(self) -> None:
        """End the holds that hold nothing, and from which nothing is drawn."""
        empty = [
            uuid
            for uuid, hold in self.holds.items()
            if not hold.held and not hold.is_drawn_by_others
        ]
        if not empty:
            return
        drawn = {
            draw.hold
            for by_key in self.draws.values()
            for draws in by_key.values()
            for draw in draws
        }
        for uuid in empty:
            if uuid not in drawn:
                self.end(uuid)

    def end(self, uuid: str) -> None:
        """Forget a hold; consumers that drew from it keep what they have."""
        del self.holds[uuid]
        self.touched.add(uuid)
        self.ended.add(uuid)
        self._forget(uuid)

    def _forget(self, uuid: str) -> None:
        self.forgotten.add(uuid)
        for consumer, by_key in self.draws.items():
            remaining_draws = {
                key: kept
                for key, draws in by_key.items()
                if (kept := tuple(draw for draw in draws if draw.hold != uuid))
            }
            self.draws[consumer] = remaining_draws

    def _held_to_change(self, uuid: str) -> dict[Key, int]:
        """Return what a hold holds, to be changed only by this write."""
        held = self._held.get(uuid)
        if held is None:
            held = self._held[uuid] = dict(self.holds[uuid].held)
            self.holds[uuid] = replace(self.holds[uuid], held=held)
            self.touched.add(uuid)
        return held

    def _note(self, consumer: str, key: Key, uuid: str, amount: int) -> None:
        """Note that a consumer has drawn from a hold."""
        by_key = self.draws.get(consumer, {})
        amounts = {draw.hold: draw.amount for draw in by_key.get(key, ())}
        amounts[uuid] = amounts.get(uuid, 0) + amount
        draws = tuple(Draw(hold, drawn) for hold, drawn in sorted(amounts.items()))
        self.draws[consumer] = {**by_key, key: draws}


def _growth(changes: Sequence[Change]) -> dict[Key, dict[str, int]]:
    """Return by how much consumers that are not holds grow, in the order of the write."""
    growth: dict[Key, dict[str, int]] = {}
    for change in changes:
        for key, amount in change.after.items():
            grown = amount - change.before.get(key, 0)
            if grown > 0 and not change.is_hold:
                growth.setdefault(key, {})[change.consumer] = grown
    return growth
