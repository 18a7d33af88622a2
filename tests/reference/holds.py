# SPDX-License-Identifier: Apache-2.0
"""The writes of contract page 100 by the definition: dictionaries, one write after the other."""

import copy
from dataclasses import dataclass, field
from datetime import timedelta

HOLD = "TREECLAIM_HOLD"
OUTLIVES = timedelta(days=1)


class RefusedError(Exception):
    """Why a write is refused."""


@dataclass
class Claim:
    """What a write says of one consumer; amounts by (provider, class)."""

    consumer: str
    amounts: dict
    project: str
    generation: object = "unchecked"
    type: str = "INSTANCE"
    knows_holds: bool = True
    hold: dict | None = None
    sources: list = field(default_factory=list)
    request: object = "unchanged"


class Model:
    """Consumers, holds and draws, which are in the order in which they began, and kept requests.

    A request is kept with the time at which its consumer's record went, None while there is one.
    """

    def __init__(self, capacity, steps):
        self.capacity, self.steps = capacity, steps
        self.consumers, self.holds, self.draws, self.requests = {}, {}, [], {}

    def amounts(self, consumer):
        """What a consumer holds."""
        return self.consumers.get(consumer, {}).get("amounts", {})

    def used(self, key):
        """How much is used of an inventory."""
        return sum(found["amounts"].get(key, 0) for found in self.consumers.values())

    def drawn(self, consumer, key=None):
        """What a consumer has drawn."""
        return [
            draw for draw in self.draws if draw[0] == consumer and (key is None or draw[1] == key)
        ]

    def end(self, hold):
        """A hold ends: its terms and draws are forgotten."""
        self.holds.pop(hold, None)
        self.consumers.pop(hold, None)
        self.draws = [draw for draw in self.draws if draw[2] != hold]

    def expire(self, now, holds=None):
        """End those of some holds, or of all, whose time is over."""
        for hold, terms in list(self.holds.items()):
            if (
                terms["until"] is not None
                and terms["until"] <= now
                and hold in (holds or self.holds)
            ):
                self.end(hold)
        self.age_requests(now)

    def age_requests(self, now):
        """Requests outlive the records of their consumers by a day."""
        for uuid, (queries, gone_at) in list(self.requests.items()):
            if uuid not in self.consumers and (gone_at or now) < now - OUTLIVES:
                del self.requests[uuid]
            else:
                self.requests[uuid] = (queries, None if uuid in self.consumers else gone_at or now)

    def keep(self, consumer, request, now):
        """Keep a consumer's request, or forget it; nothing new of whom is not there."""
        if request is None:
            self.requests.pop(consumer, None)
        elif consumer in self.consumers or consumer in self.requests:
            self.requests[consumer] = (request, None if consumer in self.consumers else now)

    def change_requests(self, requests, now):
        """Keep or forget the requests of those that exist; return how many these are."""
        found = [consumer for consumer in requests if consumer in self.consumers]
        for consumer in found:
            self.keep(consumer, requests[consumer], now)
        return len(found)

    def locked_by(self, claims):
        """The holds that a write locks."""
        named = {hold for claim in claims for hold in (claim.consumer, *claim.sources)}
        return named | {draw[2] for claim in claims for draw in self.drawn(claim.consumer)}

    def write(self, claims, now, kind="write", capacity=None):
        """Write, all or nothing; return why not, None if it is done.

        A reshape may change capacities; one that is None takes the inventory away in the end.
        """
        self.expire(now, self.locked_by(claims) or {None})
        after = copy.deepcopy(self)
        stock = capacity or {}
        after.capacity |= {key: total for key, total in stock.items() if total is not None}
        try:
            after.judge_consumers(claims, kind)
            after.judge_sources(claims)
            after.carry_out(claims, kind, self)
            after.take_inventories([key for key, total in stock.items() if total is None])
        except RefusedError as refused:
            return str(refused)
        for claim in claims:
            if claim.request != "unchanged":
                after.keep(claim.consumer, claim.request, now)
        after.age_requests(now)
        self.__dict__ = after.__dict__
        return None

    def take_inventories(self, keys):
        """Take inventories away, in which nobody has anything."""
        self.capacity |= dict.fromkeys(keys)
        if any(self.used(key) for key in keys):
            raise RefusedError("in use")

    def judge_consumers(self, claims, kind):
        """Who may be written, and become what."""
        for claim in claims:
            exists = self.amounts(claim.consumer) or claim.consumer in self.holds
            actual = self.consumers[claim.consumer]["generation"] if exists else None
            empty = exists and not self.amounts(claim.consumer) and claim.generation is None
            if claim.generation not in ("unchecked", actual) and not empty:
                raise RefusedError("placed" if kind == "place" else "generation")
        for claim in claims:
            holds, is_hold = self.amounts(claim.consumer), claim.consumer in self.holds
            if kind == "release":
                if not holds and not is_hold:
                    raise RefusedError("nothing")
                continue
            if kind == "place" and (holds or is_hold):
                raise RefusedError("placed")
            if claim.hold is not None:
                if holds and not is_hold:
                    raise RefusedError("exists")
            elif is_hold and claim.sources:
                raise RefusedError("misused")
            elif claim.knows_holds and is_hold and claim.type != HOLD:
                raise RefusedError("exists")
            elif claim.knows_holds and not is_hold and claim.type == HOLD and claim.amounts:
                raise RefusedError("misused")

    def may_draw(self, hold, project):
        """Whether a project's consumers may draw from a hold."""
        return project in (self.consumers[hold]["project"], *self.holds[hold]["projects"])

    def judge_sources(self, claims):
        """Holds must exist and let draw before anybody draws."""
        for claim in claims:
            for hold in claim.sources:
                if hold not in self.holds:
                    raise RefusedError(f"unknown {hold}")
                if not self.may_draw(hold, claim.project):
                    raise RefusedError(f"project {hold}")

    def carry_out(self, claims, kind, before):
        """Give up, pass on, return; then holds; then draw; then judge capacity."""
        others = [c for c in claims if c.consumer not in self.holds and c.hold is None]
        grow = {
            (claim.consumer, key): amount - before.amounts(claim.consumer).get(key, 0)
            for claim in others
            for key, amount in claim.amounts.items()
        }
        moved = {}
        for claim in others:
            for key in sorted({draw[1] for draw in self.drawn(claim.consumer)}):
                excess = -claim.amounts.get(key, 0)
                excess += sum(draw[3] for draw in self.drawn(claim.consumer, key))
                for draw in reversed(self.drawn(claim.consumer, key)):
                    given = max(min(excess, draw[3]), 0)
                    excess -= given
                    draw[3] -= given
                    self.give(draw[2], key, given, claim, others, grow, kind, moved)
        self.draws = [draw for draw in self.draws if draw[3]]
        for claim in claims:
            if claim in others:
                continue
            if kind == "release":
                self.end(claim.consumer)
                continue
            had = self.holds.get(claim.consumer)
            self.holds[claim.consumer] = dict(claim.hold or had)
            if not self.holds[claim.consumer]["returns"]:
                self.draws = [draw for draw in self.draws if draw[2] != claim.consumer]
            moved.pop(claim.consumer, None)
        for claim in claims:
            self.record(claim)
        for hold, amounts in moved.items():
            self.consumers[hold]["amounts"] = amounts
        for claim in others:
            for hold in claim.sources:
                self.draw(claim, hold, grow)
        if any(self.capacity[key] is None for claim in claims for key in claim.amounts):
            raise RefusedError("no inventory")
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
        for key in {key for claim in claims for key in claim.amounts}:
            if self.used(key) > max(self.capacity[key], before.used(key)):
                raise RefusedError("capacity")

    def give(self, hold, key, given, claim, others, grow, kind, moved):
        """What a consumer gives up passes on, or goes back."""
        takers = [(other, key) for other in others]
        if kind == "reshape":
            takers += [(claim, at) for at in claim.amounts if at[1] == key[1]]
        for taker, at in takers:
            passed = min(given, max(grow.get((taker.consumer, at), 0), 0))
            if passed and self.may_draw(hold, taker.project):
                grow[taker.consumer, at] -= passed
                given -= passed
                self.begin(taker.consumer, at, hold, passed)
        if given:
            back = moved.setdefault(hold, dict(self.amounts(hold)))
            back[key] = back.get(key, 0) + given

    def begin(self, consumer, key, hold, amount):
        """Note what is drawn."""
        for draw in self.drawn(consumer, key):
            if draw[2] == hold:
                draw[3] += amount
                return
        self.draws.append([consumer, key, hold, amount])

    def draw(self, claim, hold, grow):
        """Take what a hold has where the consumer grows."""
        held = self.amounts(hold)
        for key in claim.amounts:
            taken = min(max(grow[claim.consumer, key], 0), held.get(key, 0))
            if taken:
                grow[claim.consumer, key] -= taken
                held[key] -= taken
                if not held[key]:
                    del held[key]
                if self.holds[hold]["returns"]:
                    self.begin(claim.consumer, key, hold, taken)

    def record(self, claim):
        """Write the record of a consumer."""
        known = self.consumers.get(claim.consumer)
        is_hold = claim.consumer in self.holds
        if not claim.amounts and not is_hold:
            self.consumers.pop(claim.consumer, None)
            return
        self.consumers[claim.consumer] = {
            "generation": known["generation"] + 1 if known else 1,
            "project": claim.project,
            "type": HOLD if is_hold else claim.type,
            "amounts": dict(claim.amounts),
        }

    def change_terms(self, terms, now):
        """Change the named terms of holds; return how many exist."""
        self.expire(now, set(terms))
        found = [hold for hold in terms if hold in self.holds]
        for hold in found:
            self.holds[hold] |= terms[hold]
            if not self.holds[hold]["returns"]:
                self.draws = [draw for draw in self.draws if draw[2] != hold]
                if not self.amounts(hold):
                    self.end(hold)
        self.age_requests(now)
        return len(found)
