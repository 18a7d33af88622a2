# SPDX-License-Identifier: Apache-2.0
"""The effect of a write on holds, computed without a database (contract page 100, section 2).

The steps of a write:

1. A shrinking consumer releases draws, first those from the hold with the greatest UUID. A released amount
   passes to growing consumers of the write at the same inventory; then, in a reshape, to another provider
   where the consumer itself grows. The remaining amount returns to its hold.
2. The write sets the new amounts and terms of its holds.
3. A growing consumer draws from the holds that it names, and uses free capacity for the remaining amount.
4. A hold without amounts and draws ends.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from treeclaim.model.claim import HoldTerms
from treeclaim.model.extension.errors import HoldRefusedError
from treeclaim.store.database.transactions import Key

Draws = Mapping[Key, Mapping[str, int]]
"""The units that a consumer has drawn, by inventory and UUID of the hold."""

_NOTHING: Mapping[Key, int] = {}


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold; `is_drawn_by_others` is whether consumers outside of the transaction have drawn from it."""

    project_id: str
    terms: HoldTerms
    amounts: dict[Key, int]
    is_drawn_by_others: bool = False

    def is_drawable_by(self, project_id: str) -> bool:
        """Return whether consumers of a project may draw."""
        return project_id == self.project_id or project_id in self.terms.projects


@dataclass(frozen=True, slots=True)
class ConsumerChange:
    """The change of one consumer by a write.

    Attributes:
        project_id: The new project.
        amounts_before, amounts_after: Amounts of the consumer.
        is_hold: Whether the consumer is a hold after the write.
        terms: New terms of a hold; None to keep the current ones.
        sources: Holds to draw from.
        is_end: Whether the write removes a hold.
    """

    consumer: str
    project_id: str
    amounts_before: Mapping[Key, int]
    amounts_after: Mapping[Key, int]
    is_hold: bool = False
    terms: HoldTerms | None = None
    sources: Sequence[str] = ()
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class HoldBook:
    """The locked holds of a transaction, and the draws of its consumers, after the accepted writes.

    Attributes:
        original_holds: The holds before the first write, by UUID.
        steps: Increments of the generations of holds that are not consumers of a write.
    """

    original_holds: Mapping[str, Hold] = field(default_factory=dict)
    holds: Mapping[str, Hold] = field(default_factory=dict)
    draws: Mapping[str, Draws] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)

    def apply(self, changes: Sequence[ConsumerChange], *, is_reshape: bool = False) -> "HoldBook":
        """Return the book after a write.

        Raises:
            HoldRefusedError: for the first hold that is unknown, or that a consumer must not draw from.
        """
        self._require_sources(changes)
        write = _HoldWrite(self, changes)
        for change in changes:
            if not change.is_hold:
                write.release(change, is_reshape=is_reshape)
        for change in changes:
            if change.is_end:
                write.end(change.consumer)
            elif change.is_hold:
                write.set_hold(change)
        for change in changes:
            write.draw(change)
        write.end_empty_holds()
        book_after = replace(self, holds=write.holds, draws=write.draws)
        steps = Counter(self.steps)
        steps.update(self._find_changed(book_after, {change.consumer for change in changes}))
        return replace(book_after, steps=steps)

    def _require_sources(self, changes: Sequence[ConsumerChange]) -> None:
        for change in changes:
            for source in change.sources:
                hold = self.holds.get(source)
                if hold is None:
                    raise HoldRefusedError(source, "unknown")
                if not hold.is_drawable_by(change.project_id):
                    raise HoldRefusedError(source, "project")

    def get_amounts(self, uuid: str) -> Mapping[Key, int]:
        """Return the amounts of a hold, empty if it has ended."""
        return self.holds[uuid].amounts if uuid in self.holds else _NOTHING

    def compare(
        self, book_after: "HoldBook", consumers: Collection[str]
    ) -> tuple[Counter[Key], Counter[Key]]:
        """Return the amounts of changed holds before and after a write, except its `consumers`."""
        held_before: Counter[Key] = Counter()
        held_after: Counter[Key] = Counter()
        for uuid in self._find_changed(book_after, consumers):
            held_before.update(self.holds[uuid].amounts)
            held_after.update(book_after.get_amounts(uuid))
        return held_before, held_after

    def _find_changed(self, book_after: "HoldBook", consumers: Collection[str]) -> Iterator[str]:
        for uuid, hold in self.holds.items():
            if uuid not in consumers and hold.amounts != book_after.get_amounts(uuid):
                yield uuid


class _HoldWrite:
    def __init__(self, book: HoldBook, changes: Sequence[ConsumerChange]) -> None:
        self.holds = {
            uuid: replace(hold, amounts=dict(hold.amounts)) for uuid, hold in book.holds.items()
        }
        self.draws = dict(book.draws)
        self._projects = {change.consumer: change.project_id for change in changes}
        self._growth: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        """Growth of consumers that are not holds, by inventory, in the order of the write."""
        for change in changes:
            for key, amount in change.amounts_after.items():
                growth = amount - change.amounts_before.get(key, 0)
                if growth > 0 and not change.is_hold:
                    self._growth[key][change.consumer] = growth

    def release(self, change: ConsumerChange, *, is_reshape: bool) -> None:
        """Release the draws of a consumer beyond its new amounts."""
        for key in sorted(self.draws.get(change.consumer, ())):
            units_by_hold = self.draws[change.consumer][key]
            excess = sum(units_by_hold.values()) - change.amounts_after.get(key, 0)
            if excess <= 0:
                continue
            receivers = [(consumer, key) for consumer in self._growth[key]]
            if is_reshape:
                receivers += [
                    (change.consumer, grown_key)
                    for grown_key in change.amounts_after
                    if grown_key[1] == key[1]
                ]
            for hold in sorted(units_by_hold, reverse=True):
                released_units = min(excess, units_by_hold[hold])
                if released_units:
                    excess -= released_units
                    self._add_draw(change.consumer, key, hold, -released_units)
                    self._reassign(hold, key, released_units, receivers)

    def _reassign(
        self, uuid: str, key: Key, amount: int, receivers: Iterable[tuple[str, Key]]
    ) -> None:
        """Reassign a released amount to growing consumers; return the remaining amount to its hold."""
        hold = self.holds[uuid]
        for consumer, grown_key in receivers:
            passed_units = min(self._growth[grown_key].get(consumer, 0), amount)
            if passed_units and hold.is_drawable_by(self._projects[consumer]):
                self._growth[grown_key][consumer] -= passed_units
                amount -= passed_units
                self._add_draw(consumer, grown_key, uuid, passed_units)
        if amount:
            hold.amounts[key] = hold.amounts.get(key, 0) + amount

    def set_hold(self, change: ConsumerChange) -> None:
        """Set the new amounts and terms of a hold."""
        existing_hold = self.holds.get(change.consumer)
        terms = change.terms or (existing_hold.terms if existing_hold else HoldTerms())
        is_drawn = existing_hold is not None and existing_hold.is_drawn_by_others and terms.returns
        self.holds[change.consumer] = Hold(
            change.project_id, terms, dict(change.amounts_after), is_drawn
        )
        if existing_hold is not None and existing_hold.terms.returns and not terms.returns:
            self._delete_draws(change.consumer)

    def draw(self, change: ConsumerChange) -> None:
        """Draw the growth of a consumer from its sources."""
        for source in change.sources:
            hold = self.holds.get(source)
            if hold is None:
                continue
            for key in change.amounts_after:
                drawn_units = min(
                    self._growth[key].get(change.consumer, 0), hold.amounts.get(key, 0)
                )
                if not drawn_units:
                    continue
                self._growth[key][change.consumer] -= drawn_units
                hold.amounts[key] -= drawn_units
                if not hold.amounts[key]:
                    del hold.amounts[key]
                if hold.terms.returns:
                    self._add_draw(change.consumer, key, source, drawn_units)

    def end_empty_holds(self) -> None:
        """Remove the holds without amounts and draws."""
        empty_uuids = {
            uuid
            for uuid, hold in self.holds.items()
            if not hold.amounts and not hold.is_drawn_by_others
        }
        if empty_uuids:
            for by_key in self.draws.values():
                empty_uuids.difference_update(*by_key.values())
        for uuid in empty_uuids:
            self.end(uuid)

    def end(self, uuid: str) -> None:
        """Remove a hold; consumers that drew from it keep their amounts."""
        del self.holds[uuid]
        self._delete_draws(uuid)

    def _delete_draws(self, uuid: str) -> None:
        for consumer, by_key in self.draws.items():
            for key, units_by_hold in by_key.items():
                if uuid in units_by_hold:
                    self._add_draw(consumer, key, uuid, -units_by_hold[uuid])

    def _add_draw(self, consumer: str, key: Key, uuid: str, amount: int) -> None:
        by_key = dict(self.draws.get(consumer, {}))
        units_by_hold = {**by_key.pop(key, {})}
        units_by_hold[uuid] = units_by_hold.get(uuid, 0) + amount
        if not units_by_hold[uuid]:
            del units_by_hold[uuid]
        self.draws[consumer] = by_key | {key: units_by_hold} if units_by_hold else by_key
