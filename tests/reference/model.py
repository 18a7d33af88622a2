# SPDX-License-Identifier: Apache-2.0
"""The state that the service must have after each write: dictionaries, one write after the other.

Claims (contract page 70), holds and kept requests (page 100), consumption and conditions (page 102).
Providers are names; an inventory is a pair (provider, resource class).
"""

import copy
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

HOLD = "TREECLAIM_HOLD"
REQUEST_OUTLIVES_CONSUMER = timedelta(days=1)


class RefusedError(Exception):
    """A write is refused; the text is the reason."""


@dataclass
class Claim:
    """The new allocations of one consumer.

    Attributes:
        consumer, project, type: The claiming consumer.
        amounts: By inventory.
        generation: A number, None for a consumer that must be new, or "unchecked".
        knows_holds: Whether the client opts in to the extension.
        hold: The terms of a hold, None for any other consumer.
        sources: The holds from which it draws.
        request: The request to keep, None to forget it, or "unchanged".
        tolerates: Keys of conditions.
    """

    consumer: str
    amounts: dict
    project: str
    generation: object = "unchecked"
    type: str = "INSTANCE"
    knows_holds: bool = True
    hold: dict | None = None
    sources: list = field(default_factory=list)
    request: object = "unchanged"
    tolerates: frozenset = frozenset()


@dataclass(frozen=True)
class Condition:
    """A condition of a provider."""

    effect: str = "no_new"
    until: datetime | None = None
    on_use: bool = False
    began: bool = True

    def is_present(self, now):
        """Return whether its time is not over."""
        return self.until is None or self.until > now


class Model:
    """Consumers, holds, draws in the order in which they began, kept requests, conditions.

    Attributes:
        capacity: By inventory; None where there is no inventory.
        steps: Step sizes by inventory.
        parents: By provider.
        consumes: By inventory, the units of other inventories that each of its units consumes.
        requests: By consumer, the request and when it was marked as without a record.
    """

    def __init__(self, capacity, steps, parents, consumes):
        self.capacity, self.steps = dict(capacity), dict(steps)
        self.parents, self.consumes = dict(parents), dict(consumes)
        self.consumers, self.holds, self.draws, self.requests = {}, {}, [], {}
        self.conditions = {}

    def amounts(self, consumer):
        """Return the allocations of a consumer."""
        return self.consumers.get(consumer, {}).get("amounts", {})

    def with_consumed(self, amounts):
        """Return amounts by inventory with what they consume."""
        total = Counter(amounts)
        for key, amount in amounts.items():
            for consumed, units in self.consumes.get(key, {}).items():
                total[consumed] += amount * units
        return total

    def allocated(self, key):
        """Return how much of an inventory is allocated."""
        return sum(record["amounts"].get(key, 0) for record in self.consumers.values())

    def used(self, key):
        """Return how much of an inventory is allocated or consumed."""
        return sum(
            self.with_consumed(record["amounts"])[key] for record in self.consumers.values()
        )

    def drawn(self, consumer, key=None):
        """Return the draws of a consumer."""
        return [
            draw for draw in self.draws if draw[0] == consumer and (key is None or draw[1] == key)
        ]

    def has_room(self, amounts, sources, now):
        """Return whether a search finds room for amounts, where amounts of some holds are free.

        A hold that has ended has no free amounts to lend, though it is in the way until it is removed.
        """
        if any(self.capacity[key] is None for key in amounts):
            return False
        ends = {hold: self.holds[hold]["until"] for hold in sources if hold in self.holds}
        lenders = [hold for hold, until in ends.items() if until is None or until > now]
        free = sum((self.with_consumed(self.amounts(hold)) for hold in lenders), Counter())
        return all(
            self.used(key) - free[key] + amount <= self.capacity[key]
            for key, amount in self.with_consumed(amounts).items()
        )

    def ancestors(self, provider):
        """Yield a provider and all above it."""
        while provider is not None:
            yield provider
            provider = self.parents[provider]

    def is_barred(self, amounts, tolerates, before):
        """Return whether a search may not use the inventories of some amounts, or consume theirs.

        Args:
            amounts: By inventory.
            tolerates: Keys; a condition that began with a consumer of the same call bars even who tolerates it.
            before: The model before the call.
        """
        return any(
            head in self.ancestors(provider)
            and condition.began
            and (key not in tolerates or not before.conditions[head, key].began)
            for (head, key), condition in self.conditions.items()
            for provider, _ in self.with_consumed(amounts)
        )

    def grows_below(self, head, claims, before):
        """Return whether claims have more of a class, together, at and below a provider than before."""
        change = Counter()
        for claim in claims:
            after, former = self.with_consumed(claim.amounts), before.amounts(claim.consumer)
            for sign, amounts in ((1, after), (-1, self.with_consumed(former))):
                for (provider, name), amount in amounts.items():
                    if head in self.ancestors(provider):
                        change[name] += sign * amount
        return any(amount > 0 for amount in change.values())

    def judge_conditions(self, claims, before, now):
        """Refuse growth where a condition has begun, naming all such; begin those that wait for it."""
        begins, refusing = [], []
        for (head, key), condition in sorted(self.conditions.items()):
            if not condition.is_present(now):
                continue
            counted = [
                claim for claim in claims if not (condition.began and key in claim.tolerates)
            ]
            if self.grows_below(head, counted, before):
                (refusing if condition.began else begins).append((head, key))
        if refusing:
            raise RefusedError(" or ".join(f"condition {head} {key}" for head, key in refusing))
        for place in begins:
            self.conditions[place] = replace(self.conditions[place], began=True)

    def remove_ended_conditions(self, now):
        """Remove the conditions whose time is over."""
        self.conditions = {
            place: condition
            for place, condition in self.conditions.items()
            if condition.is_present(now)
        }

    def end(self, hold):
        """End a hold: its terms and draws are forgotten."""
        self.holds.pop(hold, None)
        self.consumers.pop(hold, None)
        self.draws = [draw for draw in self.draws if draw[2] != hold]

    def expire(self, now, holds=None):
        """End those of some holds, or of all, whose time is over."""
        for hold, terms in list(self.holds.items()):
            is_over = terms["until"] is not None and terms["until"] <= now
            if is_over and hold in (holds or self.holds):
                self.end(hold)

    def clear_marks(self):
        """Clear the marks of requests whose consumer has a record."""
        self.requests |= {
            uuid: (queries, None)
            for uuid, (queries, _) in self.requests.items()
            if uuid in self.consumers
        }

    def prune_requests(self, now):
        """Forget the requests that were marked a day ago, and mark those without a consumer."""
        self.clear_marks()
        for uuid in self.requests.keys() - self.consumers.keys():
            queries, marked_at = self.requests[uuid]
            if marked_at is not None and marked_at < now - REQUEST_OUTLIVES_CONSUMER:
                del self.requests[uuid]
            else:
                self.requests[uuid] = (queries, marked_at or now)

    def keep(self, consumer, request):
        """Keep or forget a request; a consumer that was never there keeps none."""
        if request is None:
            self.requests.pop(consumer, None)
        elif consumer in self.consumers or consumer in self.requests:
            self.requests[consumer] = (request, None)

    def change_requests(self, requests):
        """Keep or forget the requests of consumers that exist; return how many exist."""
        present = [consumer for consumer in requests if consumer in self.consumers]
        for consumer in present:
            self.keep(consumer, requests[consumer])
        return len(present)

    def locked_by(self, claims):
        """Return the holds that a write locks."""
        named = {hold for claim in claims for hold in (claim.consumer, *claim.sources)}
        return named | {draw[2] for claim in claims for draw in self.drawn(claim.consumer)}

    def write(self, claims, now, kind="write", capacity=None):
        """Write, all or nothing; return the reason of a refusal, else None.

        Args:
            claims: Claims of different consumers.
            now: The clock of the database.
            kind: "write", "place", "release" or "reshape".
            capacity: New capacities of a reshape, by inventory; None deletes one.
        """
        self.expire(now, self.locked_by(claims) or {None})
        after, totals = copy.deepcopy(self), capacity or {}
        after.capacity |= {key: total for key, total in totals.items() if total is not None}
        try:
            after.judge_consumers(claims, kind)
            after.judge(claims, self, now)
            after.carry_out(claims, kind, self)
            after.delete_inventories([key for key, total in totals.items() if total is None])
        except RefusedError as refused:
            return str(refused)
        for claim in claims:
            if claim.request != "unchanged":
                after.keep(claim.consumer, claim.request)
        after.clear_marks()
        self.__dict__ = after.__dict__
        return None

    def judge(self, claims, before, now):
        """Refuse claims; beside a condition, a missing hold or inventory may be the reason, too."""
        try:
            self.judge_conditions(claims, before, now)
        except RefusedError as refused:
            reasons = [str(refused)]
            try:
                self.judge_sources(claims)
                self.judge_inventories(claims)
            except RefusedError as another:
                if str(another) != "capacity":
                    reasons.append(str(another))
            raise RefusedError(" or ".join(reasons)) from None
        self.judge_sources(claims)
        self.judge_inventories(claims)

    def judge_inventories(self, claims):
        """Check that all inventories of the claims exist."""
        if any(self.capacity[key] is None for claim in claims for key in claim.amounts):
            raise RefusedError("no inventory")

    def delete_inventories(self, keys):
        """Delete inventories that nothing uses."""
        self.capacity |= dict.fromkeys(keys)
        if any(self.allocated(key) for key in keys):
            raise RefusedError("in use")

    def judge_consumers(self, claims, kind):
        """Check generations, and that a hold stays a hold."""
        for claim in claims:
            exists = self.amounts(claim.consumer) or claim.consumer in self.holds
            actual = self.consumers[claim.consumer]["generation"] if exists else None
            is_empty_hold = (
                exists and not self.amounts(claim.consumer) and claim.generation is None
            )
            if claim.generation not in ("unchecked", actual) and not is_empty_hold:
                raise RefusedError("placed" if kind == "place" else "generation")
        for claim in claims:
            has_amounts = bool(self.amounts(claim.consumer))
            self.judge_kind(claim, kind, has_amounts, claim.consumer in self.holds)

    @staticmethod
    def judge_kind(claim, kind, has_amounts, is_hold):
        """Check that a claim may be made by a consumer that is a hold, or none."""
        if kind == "release":
            if not has_amounts and not is_hold:
                raise RefusedError("nothing")
        elif kind == "place" and (has_amounts or is_hold):
            raise RefusedError("placed")
        elif claim.hold is not None:
            if has_amounts and not is_hold:
                raise RefusedError("exists")
        elif is_hold and claim.sources:
            raise RefusedError("misused")
        elif claim.knows_holds and is_hold and claim.type != HOLD:
            raise RefusedError("exists")
        elif claim.knows_holds and not is_hold and claim.type == HOLD and claim.amounts:
            raise RefusedError("misused")

    def may_draw(self, hold, project):
        """Return whether a project's consumers may draw from a hold."""
        return project in (self.consumers[hold]["project"], *self.holds[hold]["projects"])

    def judge_sources(self, claims):
        """Check that holds exist and admit the projects that draw."""
        for claim in claims:
            for hold in claim.sources:
                if hold not in self.holds:
                    raise RefusedError(f"unknown {hold}")
                if not self.may_draw(hold, claim.project):
                    raise RefusedError(f"project {hold}")

    def carry_out(self, claims, kind, before):
        """Give up, pass on and return amounts; then write holds; then draw; then judge capacity."""
        others = [c for c in claims if c.consumer not in self.holds and c.hold is None]
        growth = {
            (claim.consumer, key): amount - before.amounts(claim.consumer).get(key, 0)
            for claim in others
            for key, amount in claim.amounts.items()
        }
        returned = {}
        for claim in others:
            self.give_up(claim, others, growth, kind, returned)
        self.draws = [draw for draw in self.draws if draw[3]]
        for claim in claims:
            if claim not in others:
                self.write_hold(claim, kind)
                returned.pop(claim.consumer, None)
        for claim in claims:
            self.record(claim)
        for hold, amounts in returned.items():
            self.consumers[hold]["amounts"] = amounts
        for claim in others:
            for hold in claim.sources:
                self.draw(claim, hold, growth)
        self.judge_amounts(claims, others, before)

    def judge_amounts(self, claims, others, before):
        """Check units and capacity; end the holds that have nothing left."""
        for claim in others:
            for key, amount in claim.amounts.items():
                if amount % self.steps[key]:
                    raise RefusedError("units")
        for hold in list(self.holds):
            if not self.amounts(hold) and not any(draw[2] == hold for draw in self.draws):
                self.end(hold)
            elif before.amounts(hold) != self.amounts(hold) and all(
                claim.consumer != hold for claim in claims
            ):
                self.consumers[hold]["generation"] += 1
        for key in {key for claim in claims for key in self.with_consumed(claim.amounts)}:
            if self.used(key) > max(self.capacity[key], before.used(key)):
                raise RefusedError("capacity")

    def write_hold(self, claim, kind):
        """Write the terms of a hold, or end it."""
        if kind == "release":
            self.end(claim.consumer)
            return
        self.holds[claim.consumer] = dict(claim.hold or self.holds.get(claim.consumer))
        if not self.holds[claim.consumer]["returns"]:
            self.draws = [draw for draw in self.draws if draw[2] != claim.consumer]

    def give_up(self, claim, others, growth, kind, returned):
        """Take from the draws of a consumer what its new amounts exceed; the newest UUIDs first."""
        for key in sorted({draw[1] for draw in self.drawn(claim.consumer)}):
            draws = self.drawn(claim.consumer, key)
            excess = sum(draw[3] for draw in draws) - claim.amounts.get(key, 0)
            for draw in sorted(draws, key=lambda draw: draw[2], reverse=True):
                amount = max(min(excess, draw[3]), 0)
                excess -= amount
                draw[3] -= amount
                self.give(draw[2], key, amount, claim, others, growth, kind, returned)

    def give(self, hold, key, amount, claim, others, growth, kind, returned):
        """Pass an amount on to consumers of the write that grow, and return the rest to its hold."""
        takers = [(other, key) for other in others]
        if kind == "reshape":
            takers += [(claim, amount) for amount in claim.amounts if amount[1] == key[1]]
        for taker, place in takers:
            passed = min(amount, max(growth.get((taker.consumer, place), 0), 0))
            if passed and self.may_draw(hold, taker.project):
                growth[taker.consumer, place] -= passed
                amount -= passed
                self.begin_draw(taker.consumer, place, hold, passed)
        if amount:
            held = returned.setdefault(hold, dict(self.amounts(hold)))
            held[key] = held.get(key, 0) + amount

    def begin_draw(self, consumer, key, hold, amount):
        """Record an amount as drawn from a hold."""
        for draw in self.drawn(consumer, key):
            if draw[2] == hold:
                draw[3] += amount
                return
        self.draws.append([consumer, key, hold, amount])

    def draw(self, claim, hold, growth):
        """Draw from a hold where the consumer grows."""
        held = self.amounts(hold)
        for key in claim.amounts:
            taken = min(max(growth[claim.consumer, key], 0), held.get(key, 0))
            if taken:
                growth[claim.consumer, key] -= taken
                held[key] -= taken
                if not held[key]:
                    del held[key]
                if self.holds[hold]["returns"]:
                    self.begin_draw(claim.consumer, key, hold, taken)

    def record(self, claim):
        """Write the record of a consumer."""
        answer = self.consumers.get(claim.consumer)
        is_hold = claim.consumer in self.holds
        if not claim.amounts and not is_hold:
            self.consumers.pop(claim.consumer, None)
            return
        self.consumers[claim.consumer] = {
            "generation": answer["generation"] + 1 if answer else 1,
            "project": claim.project,
            "type": HOLD if is_hold else claim.type,
            "amounts": dict(claim.amounts),
        }

    def change_terms(self, terms, now):
        """Change the named terms of holds; return how many exist."""
        self.expire(now, set(terms))
        present = [hold for hold in terms if hold in self.holds]
        for hold in present:
            self.holds[hold] |= terms[hold]
            if not self.holds[hold]["returns"]:
                self.draws = [draw for draw in self.draws if draw[2] != hold]
                if not self.amounts(hold):
                    self.end(hold)
        return len(present)
