# SPDX-License-Identifier: Apache-2.0
"""A state machine of claims for all drivers: random calls with the same effects as in the model.

The model is `tests.reference.model` (contract pages 70, 100 and 102). Invariants beside the model, such as that no
amount is lost between a hold and its consumers, are checked in the state that the driver returns.
"""

import copy
import itertools
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from tests.properties.claim_calls import (
    CHILD,
    CONDITION_KEYS,
    CONDITIONS,
    CONSUMERS,
    CONSUMES,
    HOLDS,
    INCOMPLETE,
    INVENTORIES,
    MOVER,
    NEWEST,
    PARENTS,
    PLAIN_CONSUMERS,
    PROVIDERS,
    REQUESTS,
    ROOT,
    SHARED,
    STEP_SIZES,
    TERMS,
    TOTALS,
    VERSIONS,
    is_expected,
    minor_of,
    several_claims,
)
from tests.properties.claim_histories import Clock, Judge, picture_of
from tests.reference.model import HOLD, Claim, Condition, Model

DAY = 86_400
"""Seconds."""


class ClaimMachine(RuleBasedStateMachine):
    """A history of calls to a driver and to the model.

    A subclass is the driver. Its methods send calls and return the reason of a refusal in the words of the model, or
    None; exceptions are listed below.

    Attributes:
        store: Store of the database.
        send_claim, send_claims: Write claims of the model as a client of a version does.
        send_release: Remove the allocations of a consumer.
        send_reshape: Write claims and all inventories of some providers, whose capacities are given.
        send_providers: Write the inventories of providers; with `is_whole` create them, and move them to where they
            are at first. It is never refused.
        send_parent: Move a provider.
        send_terms: Change terms of holds; returns how many exist.
        send_requests: Keep or forget requests; returns the consumers that do not exist.
        send_condition, send_no_condition: Write and delete a condition; the latter returns whether there was one.
        shown: Return the `Picture` of the database.
        judge: Compares the last two pictures.
        changed: The holds whose sums the last call may have changed; None: all.
    """

    store: Any
    send_claim: Any
    send_claims: Any
    send_release: Any
    send_reshape: Any
    send_providers: Any
    send_parent: Any
    send_terms: Any
    send_requests: Any
    send_condition: Any
    send_no_condition: Any
    read_picture: Any

    def __init__(self):
        super().__init__()
        self.model = Model(
            {(provider, name): TOTALS[name] for provider, name in INVENTORIES},
            {(provider, name): STEP_SIZES[name] for provider, name in INVENTORIES},
            PARENTS,
            CONSUMES,
        )
        self.remove_everything()
        self.judge, self.changed = Judge(self.model), None

    def remove_everything(self):
        """Bring the database to the state of a new model."""
        for uuid in CONSUMERS:
            self.send_release(uuid, NEWEST)
        for _ in range(2):
            self.store.housekeeper.prune(timedelta(days=30))
            Clock.time += timedelta(days=2)
        for provider, key in itertools.product(PROVIDERS, CONDITION_KEYS):
            self.send_no_condition(provider, key)
        self.store.housekeeper.end_expired()
        self.send_providers(self.model.capacity, PROVIDERS, is_whole=True)

    def adapted(self, claims, version):
        """Return the claims as a client of a version can write them."""
        minor = minor_of(version)
        holds = sorted(self.model.holds.keys() - {claim.consumer for claim in claims})
        for claim in claims:
            record = self.model.consumers.get(claim.consumer)
            claim.sources = list(
                dict.fromkeys(nearby_hold(holds, source) for source in claim.sources)
            )
            claim.knows_holds = version == NEWEST
            if not claim.knows_holds:
                claim.hold, claim.sources, claim.request = None, [], "unchanged"
                claim.tolerates = frozenset()
            if claim.hold is not None and isinstance(claim.hold["until"], int):
                until = Clock.time + timedelta(seconds=claim.hold["until"])
                claim.hold = claim.hold | {"until": until}
            if claim.generation == "actual":
                claim.generation = record["generation"] if record else None
            if minor < 28:
                claim.generation = "unchecked"
            if minor < 38:
                claim.type = record["type"] if record else "unknown"
            if minor < 8:
                claim.project = INCOMPLETE
        return claims

    def present_consumers(self):
        """Return the consumers with allocations, without holds."""
        return sorted(self.model.consumers.keys() - self.model.holds.keys())

    def absent_consumers(self):
        """Return consumers without allocations that are no holds in most writes."""
        return [uuid for uuid in PLAIN_CONSUMERS if uuid not in self.model.consumers]

    def write_model(self, claims, model=None, **options):
        """Return why the model refuses a write."""
        return (model or self.model).write(claims, Clock.time, **options)

    @staticmethod
    def compare(reason, expected, *, exactly):
        """Compare outcomes; of several reasons the driver may name another one."""
        assert (reason is None) == (expected is None), (reason, expected)
        if exactly and reason != "conflict":
            assert is_expected(reason, expected), (reason, expected)

    @initialize(place=st.sampled_from(PROVIDERS))
    def begin_with_holds_and_a_condition(self, place):
        """Create holds to draw from, and a condition that waits for its first use."""
        self.make_holds()
        self.put_condition(place, "ONCE", Condition(on_use=True, began=False))

    @rule()
    def make_holds(self):
        """Create the holds that do not exist."""
        hold_amounts = {INVENTORIES[0]: 3, INVENTORIES[1]: 2, INVENTORIES[2]: 1, INVENTORIES[5]: 1}
        for uuid, returns, projects in zip(
            HOLDS, (True, True, False), (["q"], [], []), strict=False
        ):
            if uuid not in self.model.holds:
                terms = {"until": None, "returns": returns, "projects": projects}
                claim = Claim(uuid, dict(hold_amounts), "p", "actual", HOLD, hold=terms)
                self.replace([claim], NEWEST)

    @rule(claims=several_claims(1), version=st.sampled_from(VERSIONS))
    def replace(self, claims, version):
        """Write one claim."""
        (claim,) = self.adapted(claims, version)
        if minor_of(version) < 28 and not claim.amounts:
            return
        self.compare(self.send_claim(claim, version), self.write_model([claim]), exactly=True)
        self.changed = {claim.consumer}

    @rule(claims=several_claims(), version=st.sampled_from(VERSIONS))
    def replace_several(self, claims, version):
        """Write several claims, all or nothing."""
        if minor_of(version) < 13:
            return
        claims = self.adapted(claims, version)
        reason = self.send_claims(claims, version)
        self.compare(reason, self.write_model(claims), exactly=len(claims) == 1)
        self.changed = {claim.consumer for claim in claims}

    @rule(
        number=st.integers(0, 3),
        version=st.sampled_from(VERSIONS[2:]),
        moves_all=st.booleans(),
        project=st.sampled_from([None, None, "p", "q"]),
    )
    def hand_over(self, number, version, moves_all, project):
        """Give most or all of a consumer's allocations to a new one, as a migration of Nova does."""
        absent = self.absent_consumers()
        if not self.present_consumers() or not absent:
            return
        source = self.present_consumers()[number % len(self.present_consumers())]
        record = self.model.consumers[source]
        kept_amounts = {} if moves_all else dict.fromkeys(list(record["amounts"])[:1], 2)
        claims = [
            Claim(source, kept_amounts, record["project"], "actual"),
            Claim(absent[0], dict(record["amounts"]), project or record["project"], "actual"),
        ]
        self.replace_several(claims[:: 1 if number else -1], version)

    @rule(
        number=st.integers(0, 3), amount=st.integers(1, 8), version=st.sampled_from(VERSIONS[1:])
    )
    def resize(self, number, amount, version):
        """Change one amount of a consumer, which may draw from all holds."""
        present = self.present_consumers()
        if not present:
            return
        consumer = present[number % len(present)]
        record = self.model.consumers[consumer]
        sources = [HOLDS[:3], HOLDS[2::-1], HOLDS[1:3], []][number]
        amounts = record["amounts"] | {INVENTORIES[0]: amount}
        claim = Claim(consumer, amounts, record["project"], "actual", sources=sources)
        self.replace([claim], version)

    @rule(
        many=st.integers(2, 9),
        few=st.integers(1, 8),
        order=st.permutations(HOLDS[:3]),
        taker=st.sampled_from([None, "p", "q"]),
        version=st.sampled_from(VERSIONS[2:]),
    )
    def draw_from_several(self, many, few, order, taker, version):
        """Draw from holds one after the other, and give part back, or pass it on."""
        absent = self.absent_consumers()
        if len(absent) < 2:
            return
        drawer, successor = absent[:2]
        drawing = Claim(drawer, {INVENTORIES[0]: many}, "p", "actual", sources=list(order))
        self.replace([drawing], NEWEST)
        if taker is None:
            self.replace([Claim(drawer, {INVENTORIES[0]: few}, "p", "actual")], version)
        else:
            growing = Claim(successor, {INVENTORIES[0]: few}, taker, "actual")
            self.replace_several([Claim(drawer, {}, "p", "actual"), growing], version)

    @rule(number=st.integers(0, 15), version=st.sampled_from(VERSIONS))
    def delete(self, number, version):
        """Remove all allocations, mostly of a consumer that exists."""
        present = self.present_consumers() or CONSUMERS
        consumer = [*present * 8][number] if number < 8 else CONSUMERS[number - 8]
        reason = self.send_release(consumer, version)
        claim = Claim(consumer, {}, "", "unchecked", knows_holds=False)
        self.compare(reason, self.model.write([claim], Clock.time, "release"), exactly=True)
        self.changed = {consumer}

    @rule(
        claims=several_claims(),
        totals=st.dictionaries(
            st.sampled_from(SHARED), st.sampled_from([None, 4, 10, 12, 12]), max_size=2
        ),
        version=st.sampled_from(["1.30", "1.39", NEWEST, NEWEST]),
    )
    def reshape(self, claims, totals, version):
        """Reshape: create, change and delete inventories with their allocations."""
        claims = self.adapted(claims, version)
        for claim in claims:
            claim.sources, claim.tolerates = [], frozenset()
        capacity = self.model.capacity | totals
        providers = {uuid for uuid, _ in totals} or {ROOT}
        vcpus = [(provider, "VCPU") for provider in (ROOT, CHILD)]
        if any(capacity[inventory] is None for inventory in vcpus):
            # Without free capacity for the moved amounts, nearly all calls would be refused.
            capacity |= {key: 20 for key in vcpus if capacity[key] is not None}
            providers = {ROOT, CHILD}
        totals = {key: capacity[key] for key in INVENTORIES if key[0] in providers}
        reason = self.send_reshape(claims, capacity, providers, version)
        expected = self.write_model(claims, kind="reshape", capacity=totals)
        self.compare(reason, expected, exactly=False)
        self.changed = None

    @rule(provider=st.sampled_from([ROOT, CHILD]))
    def reshape_vcpus(self, provider):
        """Move the VCPU of a provider with all its allocations to another one, as a driver does."""
        if not self.model.draws:
            return
        source, target = (provider, "VCPU"), (CHILD if provider == ROOT else ROOT, "VCPU")
        claims = []
        for uuid, record in sorted(self.model.consumers.items()):
            amounts = dict(record["amounts"])
            if uuid in self.model.holds and source not in amounts:
                continue
            amounts[target] = amounts.pop(source, 0) + amounts.get(target, 0)
            moved_amounts = {where: amount for where, amount in amounts.items() if amount}
            consumer_type = HOLD if uuid in self.model.holds else "INSTANCE"
            claims.append(Claim(uuid, moved_amounts, record["project"], "actual", consumer_type))
        self.reshape(claims, {source: None, target: 20}, NEWEST)

    @rule(inventory=st.sampled_from(INVENTORIES), total=st.sampled_from([4, 10, 12, 12]))
    def change_total(self, inventory, total):
        """Change the total of an inventory, also to less than is used."""
        capacity = self.model.capacity | {inventory: total}
        self.send_providers(capacity, [inventory[0]])
        self.model.capacity = capacity
        self.changed = set()

    @rule(
        provider=st.sampled_from([MOVER, MOVER, CHILD, ROOT]),
        parent=st.sampled_from([None, *PROVIDERS]),
    )
    def move_provider(self, provider, parent):
        """Give a provider another parent: consumption must stay in reach."""
        reason = self.send_parent(provider, parent)
        model_after = copy.deepcopy(self.model)
        model_after.parents[provider] = parent
        is_loop = parent is not None and provider in self.model.ancestors(parent)
        is_legal = not is_loop and all(
            consumed_provider in model_after.ancestors(consuming_provider)
            for (consuming_provider, _), consumed in CONSUMES.items()
            for consumed_provider, _ in consumed
        )
        assert (reason is None) == is_legal, reason
        if is_legal:
            self.model = model_after
        self.changed = set()

    @rule(holds=st.dictionaries(st.sampled_from(CONSUMERS), TERMS, min_size=1, max_size=2))
    def change_terms(self, holds):
        """Change terms of holds."""
        terms = {}
        for uuid, changes in holds.items():
            seconds = changes["until"]
            until = None if seconds is None else Clock.time + timedelta(seconds=seconds)
            terms[uuid] = changes | {"until": until}
        assert self.send_terms(terms) == self.model.change_terms(terms, Clock.time)
        self.changed = set(holds)

    @rule(
        requests=st.dictionaries(
            st.sampled_from(CONSUMERS), st.sampled_from(REQUESTS[3:]), min_size=1
        )
    )
    def change_requests(self, requests):
        """Keep or forget requests."""
        unknown = self.send_requests(requests)
        assert unknown == sorted(requests.keys() - self.model.consumers.keys())
        self.model.change_requests(requests)
        self.changed = set()

    @rule(
        provider=st.sampled_from(PROVIDERS),
        key=st.sampled_from(CONDITION_KEYS),
        condition=CONDITIONS,
    )
    def put_condition(self, provider, key, condition):
        if isinstance(condition, int):
            condition = Condition(until=Clock.time + timedelta(seconds=condition))
        self.send_condition(provider, key, condition)
        self.model.conditions[provider, key] = condition
        self.changed = set()

    @rule(provider=st.sampled_from(PROVIDERS), key=st.sampled_from(CONDITION_KEYS))
    def delete_condition(self, provider, key):
        condition = self.model.conditions.get((provider, key))
        is_present = condition is not None and condition.is_present(Clock.time)
        assert self.send_no_condition(provider, key) == is_present
        if is_present:
            del self.model.conditions[provider, key]
        self.changed = set()

    @rule()
    def delete_all_conditions(self):
        """Remove all conditions, so that later claims are not all refused."""
        for provider, key in list(self.model.conditions):
            self.delete_condition(provider, key)

    @rule(seconds=st.sampled_from([1, 2, 1, 2, 1, 2, DAY, DAY + 1]), is_tidied=st.booleans())
    def wait(self, seconds, is_tidied):
        """Let time pass, without the removal of holds that have ended."""
        Clock.time += timedelta(seconds=seconds)
        if is_tidied:
            self.store.housekeeper.prune(timedelta(days=30))
            self.model.prune_requests(Clock.time)

    @rule()
    def remove_ended(self):
        """Remove ended holds and conditions, as each worker does in time."""
        self.store.housekeeper.end_expired()
        self.model.expire(Clock.time)
        self.model.remove_ended_conditions(Clock.time)
        self.changed = set()

    @invariant()
    def database_and_model_are_equal(self):
        """Compare the driver's picture with the model's."""
        picture = self.read_picture()
        assert picture == picture_of(self.model)
        self.judge.compare(picture, self.model.capacity, self.changed)


def nearby_hold(holds, source):
    """Return a hold that exists, for three of four sources."""
    position = CONSUMERS.index(source)
    return holds[position % len(holds)] if holds and position in range(3) else source
