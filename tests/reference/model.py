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


@dataclass
class Draw:
    """An amount of an inventory that a consumer has drawn from a hold that returns."""

    consumer: str
    inventory: tuple
    hold: str
    amount: int


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
        """Return amounts by inventory, with their consumption."""
        total = Counter(amounts)
        for inventory, amount in amounts.items():
            for consumed, units in self.consumes.get(inventory, {}).items():
                total[consumed] += amount * units
        return total

    def allocated(self, inventory):
        """Return how much of an inventory is allocated."""
        return sum(record["amounts"].get(inventory, 0) for record in self.consumers.values())

    def used(self, inventory):
        """Return how much of an inventory is allocated or consumed."""
        records = self.consumers.values()
        return sum(self.with_consumed(record["amounts"])[inventory] for record in records)

    def find_draws(self, consumer):
        """Return the draws of a consumer."""
        return [draw for draw in self.draws if draw.consumer == consumer]

    def forget_draws(self, hold):
        """Forget the draws from a hold."""
        self.draws = [draw for draw in self.draws if draw.hold != hold]

    def has_room(self, amounts, sources, now):
        """Return whether a search finds room for amounts, where amounts of some holds are free.

        A hold that has ended has no free amounts to lend, though it is in the way until it is removed.
        """
        if any(self.capacity[inventory] is None for inventory in amounts):
            return False
        ends = {hold: self.holds[hold]["until"] for hold in sources if hold in self.holds}
        lenders = [hold for hold, until in ends.items() if until is None or until > now]
        free_amounts = sum((self.with_consumed(self.amounts(hold)) for hold in lenders), Counter())
        return all(
            self.used(inventory) - free_amounts[inventory] + amount <= self.capacity[inventory]
            for inventory, amount in self.with_consumed(amounts).items()
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
            tolerates: Keys of conditions. A condition that began with a consumer of the same call bars
                consumers that tolerate it, too.
            before: The model before the call.
        """
        return any(
            top in self.ancestors(provider)
            and condition.began
            and (key not in tolerates or not before.conditions[top, key].began)
            for (top, key), condition in self.conditions.items()
            for provider, _ in self.with_consumed(amounts)
        )

    def grows_below(self, top, claims, before):
        """Return whether claims have more of a class, together, at and below a provider than before."""
        growth_by_class = Counter()
        for claim in claims:
            former = before.amounts(claim.consumer)
            for sign, amounts in ((1, claim.amounts), (-1, former)):
                for (provider, name), amount in self.with_consumed(amounts).items():
                    if top in self.ancestors(provider):
                        growth_by_class[name] += sign * amount
        return any(growth > 0 for growth in growth_by_class.values())

    def judge_conditions(self, claims, before, now):
        """Refuse growth where a condition has begun, naming all such; begin those that wait for it."""
        beginning, refusing = [], []
        for (provider, key), condition in sorted(self.conditions.items()):
            if not condition.is_present(now):
                continue
            affected_claims = [
                claim for claim in claims if not (condition.began and key in claim.tolerates)
            ]
            if self.grows_below(provider, affected_claims, before):
                (refusing if condition.began else beginning).append((provider, key))
        if refusing:
            raise RefusedError(" or ".join(f"condition {where} {key}" for where, key in refusing))
        for place in beginning:
            self.conditions[place] = replace(self.conditions[place], began=True)

    def remove_ended_conditions(self, now):
        """Remove expired conditions."""
        self.conditions = {
            place: condition
            for place, condition in self.conditions.items()
            if condition.is_present(now)
        }

    def end(self, hold):
        """End a hold: its terms and draws are forgotten."""
        self.holds.pop(hold, None)
        self.consumers.pop(hold, None)
        self.forget_draws(hold)

    def expire(self, now, holds=None):
        """End expired holds, among some or all holds."""
        for hold, terms in list(self.holds.items()):
            is_over = terms["until"] is not None and terms["until"] <= now
            if is_over and hold in (holds or self.holds):
                self.end(hold)

    def clear_marks(self):
        """Clear the marks of requests of consumers with a record."""
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
        named_holds = {hold for claim in claims for hold in (claim.consumer, *claim.sources)}
        return named_holds | {
            draw.hold for claim in claims for draw in self.find_draws(claim.consumer)
        }

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
        deleted = [inventory for inventory, total in totals.items() if total is None]
        after.capacity |= {key: total for key, total in totals.items() if key not in deleted}
        try:
            after.judge_consumers(claims, kind)
            after.judge(claims, self, now)
            after.carry_out(claims, kind, self)
            after.delete_inventories(deleted)
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
        if any(self.capacity[inventory] is None for c in claims for inventory in c.amounts):
            raise RefusedError("no inventory")

    def delete_inventories(self, inventories):
        """Delete inventories that nothing uses."""
        self.capacity |= dict.fromkeys(inventories)
        if any(map(self.allocated, inventories)):
            raise RefusedError("in use")

    def judge_consumers(self, claims, kind):
        """Check generations, and that a hold stays a hold."""
        for claim in claims:
            exists = self.amounts(claim.consumer) or claim.consumer in self.holds
            generation = self.consumers[claim.consumer]["generation"] if exists else None
            claims_empty_hold = (
                exists and not self.amounts(claim.consumer) and claim.generation is None
            )
            if claim.generation not in ("unchecked", generation) and not claims_empty_hold:
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
        plain_claims = [c for c in claims if c.consumer not in self.holds and c.hold is None]
        growth = {
            (claim.consumer, inventory): amount - before.amounts(claim.consumer).get(inventory, 0)
            for claim in plain_claims
            for inventory, amount in claim.amounts.items()
        }
        returned = {}
        for claim in plain_claims:
            self.give_up(claim, plain_claims, growth, kind, returned)
        self.draws = [draw for draw in self.draws if draw.amount]
        for claim in claims:
            if claim not in plain_claims:
                self.write_hold(claim, kind)
                returned.pop(claim.consumer, None)
        for claim in claims:
            self.record(claim)
        for hold, amounts in returned.items():
            self.consumers[hold]["amounts"] = amounts
        for claim in plain_claims:
            for hold in claim.sources:
                self.draw(claim, hold, growth)
        self.judge_amounts(claims, plain_claims, before)

    def judge_amounts(self, claims, plain_claims, before):
        """Check units and capacity; end the holds that have nothing left."""
        for claim in plain_claims:
            for inventory, amount in claim.amounts.items():
                if amount % self.steps[inventory]:
                    raise RefusedError("units")
        claimants = {claim.consumer for claim in claims}
        for hold in list(self.holds):
            if not self.amounts(hold) and not any(draw.hold == hold for draw in self.draws):
                self.end(hold)
            elif before.amounts(hold) != self.amounts(hold) and hold not in claimants:
                self.consumers[hold]["generation"] += 1
        for inventory in set().union(*(self.with_consumed(claim.amounts) for claim in claims)):
            if self.used(inventory) > max(self.capacity[inventory], before.used(inventory)):
                raise RefusedError("capacity")

    def write_hold(self, claim, kind):
        """Write the terms of a hold, or end it."""
        if kind == "release":
            self.end(claim.consumer)
            return
        self.holds[claim.consumer] = dict(claim.hold or self.holds.get(claim.consumer))
        if not self.holds[claim.consumer]["returns"]:
            self.forget_draws(claim.consumer)

    def give_up(self, claim, plain_claims, growth, kind, returned):
        """Take from the draws of a consumer what its new amounts exceed; the newest UUIDs first."""
        all_draws = self.find_draws(claim.consumer)
        for inventory in sorted({draw.inventory for draw in all_draws}):
            draws = [draw for draw in all_draws if draw.inventory == inventory]
            excess = sum(draw.amount for draw in draws) - claim.amounts.get(inventory, 0)
            for draw in sorted(draws, key=lambda draw: draw.hold, reverse=True):
                amount = max(min(excess, draw.amount), 0)
                excess -= amount
                draw.amount -= amount
                self.give(draw, amount, claim, plain_claims, growth, kind, returned)

    def give(self, draw, amount, claim, plain_claims, growth, kind, returned):
        """Pass an amount of a draw on to consumers of the write that grow; return the rest to its hold."""
        takers = [(other, draw.inventory) for other in plain_claims]
        if kind == "reshape":
            resource_class = draw.inventory[1]
            takers += [(claim, other) for other in claim.amounts if other[1] == resource_class]
        for taker, inventory in takers:
            passed = min(amount, max(growth.get((taker.consumer, inventory), 0), 0))
            if passed and self.may_draw(draw.hold, taker.project):
                growth[taker.consumer, inventory] -= passed
                amount -= passed
                self.begin_draw(taker.consumer, inventory, draw.hold, passed)
        if amount:
            hold_amounts = returned.setdefault(draw.hold, dict(self.amounts(draw.hold)))
            hold_amounts[draw.inventory] = hold_amounts.get(draw.inventory, 0) + amount

    def begin_draw(self, consumer, inventory, hold, amount):
        """Record an amount as drawn from a hold."""
        for draw in self.find_draws(consumer):
            if (draw.inventory, draw.hold) == (inventory, hold):
                draw.amount += amount
                return
        self.draws.append(Draw(consumer, inventory, hold, amount))

    def draw(self, claim, hold, growth):
        """Draw from a hold where the consumer grows."""
        hold_amounts = self.amounts(hold)
        for inventory in claim.amounts:
            taken_amount = min(
                max(growth[claim.consumer, inventory], 0), hold_amounts.get(inventory, 0)
            )
            if taken_amount:
                growth[claim.consumer, inventory] -= taken_amount
                hold_amounts[inventory] -= taken_amount
                if not hold_amounts[inventory]:
                    del hold_amounts[inventory]
                if self.holds[hold]["returns"]:
                    self.begin_draw(claim.consumer, inventory, hold, taken_amount)

    def record(self, claim):
        """Write the record of a consumer."""
        former = self.consumers.get(claim.consumer)
        is_hold = claim.consumer in self.holds
        if not claim.amounts and not is_hold:
            self.consumers.pop(claim.consumer, None)
            return
        self.consumers[claim.consumer] = {
            "generation": former["generation"] + 1 if former else 1,
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
                self.forget_draws(hold)
                if not self.amounts(hold):
                    self.end(hold)
        return len(present)
