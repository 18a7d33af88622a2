# SPDX-License-Identifier: Apache-2.0
"""Random calls of clients of all versions do what the model says (contract pages 70, 100 and 102).

The model is `tests.reference.model`; the service is called over HTTP, and a worker follows the change feed.
What must hold whatever the model says, for example that no amount is lost between a hold and who draws from
it, is judged by the responses alone. TREECLAIM_STEPS=N in the environment makes N calls on each database
(`make steps STEPS=N`).
"""

import copy
import itertools
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.databases import EACH_DATABASE, empty_database
from tests.properties.claim_calls import (
    CHILD,
    CONDITION_KEYS,
    CONSUMERS,
    CONSUMES,
    HOLDS,
    INCOMPLETE,
    KEYS,
    MOVER,
    NEWEST,
    OTHERS,
    PARENTS,
    PROVIDERS,
    REQUESTS,
    ROOT,
    SHARED,
    SLICES,
    STEP_SIZES,
    TERMS,
    TOTALS,
    TRAITS,
    VERSIONS,
    Picture,
    body_of,
    classes_of,
    flat,
    inventories_of,
    is_expected,
    minor_of,
    placement_of,
    query_of,
    reason_of,
    several_claims,
    text_of,
)
from tests.reference.model import HOLD, Claim, Condition, Model
from tests.service import client_of, schema_on, services_on_database
from tests.tiers import examples
from treeclaim.store.database import transactions
from treeclaim.store.housekeeping import Housekeeper
from treeclaim.store.operations.allocations import conditions as condition_claims
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.providers import conditions as condition_writes

STEPS = int(os.environ.get("TREECLAIM_STEPS", "0"))
USUAL_STEPS = 240
MANY_STEPS = 8_000
STEPS_OF_A_HISTORY = 40
START = datetime(2026, 1, 1)  # noqa: DTZ001 - the tables have no time zones
DAY = 86_400
"""Seconds."""

CONDITIONS = st.sampled_from(
    [
        Condition(),
        Condition(effect="leave"),
        Condition(on_use=True, began=False),
        Condition(on_use=True, began=False),
        Condition(on_use=True),
        2,
    ]
)
"""Conditions; a number is one that ends so many seconds from now."""


class Clock:
    """The clock of the database, which the tests set."""

    time = START

    @classmethod
    def now(cls, _connection):
        """Return the present time."""
        return cls.time


class Calls(RuleBasedStateMachine):
    """A history of calls to the service and to the model.

    Attributes:
        sums: By returning hold, its held and drawn amounts after the last call.
        used: By inventory, the used amounts after the last call.
        changed: The holds whose sums the last call may have changed; None: all.
    """

    client: Any
    store: Any

    def __init__(self):
        super().__init__()
        self.model = Model(
            {key: TOTALS[key[1]] for key in KEYS},
            {key: STEP_SIZES[key[1]] for key in KEYS},
            PARENTS,
            CONSUMES,
        )
        self.remove_everything()
        self.sums, self.used, self.changed = {}, {}, None
        self.turn = 0

    def remove_everything(self):
        """Bring the service to the state of a new model."""
        for uuid in CONSUMERS:
            self.call("DELETE", f"/allocations/{uuid}")
        for _ in range(2):
            self.store.housekeeper.prune(timedelta(days=30))
            Clock.time += timedelta(days=2)
        for provider, key in itertools.product(PROVIDERS, CONDITION_KEYS):
            self.call("DELETE", condition_path(provider, key))
        self.store.housekeeper.end_expired()
        entries = [
            {
                "uuid": uuid,
                "name": uuid,
                "parent_provider_uuid": PARENTS[uuid],
                "traits": [TRAITS[uuid]],
                "inventories": inventories_of(self.model.capacity, uuid),
            }
            for uuid in PROVIDERS
        ]
        response = self.call("POST", "/treeclaim/providers", {"providers": entries})
        assert response.status_code == 200, response.text

    # -- calls ----------------------------------------------------------------------------------

    def call(self, method, path, body=None, version=NEWEST):
        """Return the response to a call, which is no error of the service."""
        headers = {"openstack-api-version": f"placement {version}"}
        response = self.client.request(method, path, json=body, headers=headers)
        assert response.status_code < 500, response.text
        return response

    def get(self, path):
        response = self.call("GET", path)
        assert response.status_code == 200, response.text
        return response.json()

    def adapted(self, claims, version):
        """Return the claims as a client of a version can write them."""
        minor = minor_of(version)
        present = sorted(self.model.holds.keys() - {claim.consumer for claim in claims})
        for claim in claims:
            record = self.model.consumers.get(claim.consumer)
            claim.sources = list(
                dict.fromkeys(nearby_hold(present, source) for source in claim.sources)
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

    def write_model(self, claims, model=None, **options):
        """Return why the model refuses a write."""
        return (model or self.model).write(claims, Clock.time, **options)

    @staticmethod
    def compare(response, expected, *, exactly):
        """Compare outcomes; of several reasons the service may name another one."""
        reason = reason_of(response)
        assert (reason is None) == (expected is None), (reason, expected, response.text)
        if exactly and reason != "conflict":
            assert is_expected(reason, expected), response.text

    # -- claims ---------------------------------------------------------------------------------

    @initialize(place=st.sampled_from(PROVIDERS))
    def begin_with_holds_and_a_condition(self, place):
        """Create holds to draw from, and a condition that waits for its first use."""
        self.make_holds()
        self.put_condition(place, "ONCE", Condition(on_use=True, began=False))

    @rule()
    def make_holds(self):
        """Create the holds that do not exist."""
        held = {KEYS[0]: 3, KEYS[1]: 2, KEYS[2]: 1, KEYS[5]: 1}
        for uuid, returns, projects in zip(
            HOLDS, (True, True, False), (["q"], [], []), strict=False
        ):
            if uuid not in self.model.holds:
                terms = {"until": None, "returns": returns, "projects": projects}
                claim = Claim(uuid, dict(held), "p", "actual", HOLD, hold=terms)
                self.replace([claim], NEWEST)

    @rule(claims=several_claims(1), version=st.sampled_from(VERSIONS))
    def replace(self, claims, version):
        """PUT /allocations/{uuid}."""
        (claim,) = self.adapted(claims, version)
        if minor_of(version) < 28 and not claim.amounts:
            return
        path = f"/allocations/{claim.consumer}"
        response = self.call("PUT", path, body_of(claim, version), version)
        self.compare(response, self.write_model([claim]), exactly=True)
        self.changed = {claim.consumer}

    @rule(claims=several_claims(), version=st.sampled_from(VERSIONS))
    def replace_several(self, claims, version):
        """POST /allocations."""
        if minor_of(version) < 13:
            return
        claims = self.adapted(claims, version)
        body = {claim.consumer: body_of(claim, version) for claim in claims}
        response = self.call("POST", "/allocations", body, version)
        self.compare(response, self.write_model(claims), exactly=len(claims) == 1)
        self.changed = {claim.consumer for claim in claims}

    @rule(
        number=st.integers(0, 3),
        version=st.sampled_from(VERSIONS[2:]),
        moves_all=st.booleans(),
        project=st.sampled_from([None, None, "p", "q"]),
    )
    def hand_over(self, number, version, moves_all, project):
        """Give most or all of a consumer's allocations to a new one, as a migration of Nova does."""
        present = sorted(self.model.consumers.keys() - self.model.holds.keys())
        absent = [uuid for uuid in OTHERS if uuid not in self.model.consumers]
        if not present or not absent:
            return
        old = present[number % len(present)]
        record = self.model.consumers[old]
        kept = {} if moves_all else dict.fromkeys(list(record["amounts"])[:1], 2)
        claims = [
            Claim(old, kept, record["project"], "actual"),
            Claim(absent[0], dict(record["amounts"]), project or record["project"], "actual"),
        ]
        self.replace_several(claims[:: 1 if number else -1], version)

    @rule(
        number=st.integers(0, 3), amount=st.integers(1, 8), version=st.sampled_from(VERSIONS[1:])
    )
    def resize(self, number, amount, version):
        """Change one amount of a consumer, which may draw from all holds."""
        present = sorted(self.model.consumers.keys() - self.model.holds.keys())
        if not present:
            return
        consumer = present[number % len(present)]
        record = self.model.consumers[consumer]
        sources = [HOLDS[:3], HOLDS[2::-1], HOLDS[1:3], []][number]
        amounts = record["amounts"] | {KEYS[0]: amount}
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
        absent = [uuid for uuid in OTHERS if uuid not in self.model.consumers]
        if len(absent) < 2:
            return
        drawing = Claim(absent[0], {KEYS[0]: many}, "p", "actual", sources=list(order))
        self.replace([drawing], NEWEST)
        if taker is None:
            self.replace([Claim(absent[0], {KEYS[0]: few}, "p", "actual")], version)
        else:
            growing = Claim(absent[1], {KEYS[0]: few}, taker, "actual")
            self.replace_several([Claim(absent[0], {}, "p", "actual"), growing], version)

    @rule(number=st.integers(0, 15), version=st.sampled_from(VERSIONS))
    def delete(self, number, version):
        """DELETE /allocations/{uuid}, mostly of a consumer that exists."""
        present = sorted(self.model.consumers.keys() - self.model.holds.keys()) or CONSUMERS
        consumer = [*present * 8][number] if number < 8 else CONSUMERS[number - 8]
        response = self.call("DELETE", f"/allocations/{consumer}", version=version)
        claim = Claim(consumer, {}, "", "unchecked", knows_holds=False)
        self.compare(response, self.model.write([claim], Clock.time, "release"), exactly=True)
        self.changed = {consumer}

    @rule(claims=several_claims())
    def replace_at_once(self, claims):
        """PUT /allocations/{uuid} by several clients at once: as in some order, grouped or not."""
        claims = self.adapted(claims, NEWEST)
        with ThreadPoolExecutor(len(claims)) as pool:
            responses = list(
                pool.map(
                    lambda claim: self.call(
                        "PUT", f"/allocations/{claim.consumer}", body_of(claim, NEWEST)
                    ),
                    claims,
                )
            )
        reasons = [reason_of(response) for response in responses]
        shown = self.shown()
        for order in itertools.permutations(range(len(claims))):
            trial = copy.deepcopy(self.model)
            expected = {at: self.write_model([copy.deepcopy(claims[at])], trial) for at in order}
            is_this_order = all(
                is_expected(reason, expected[at]) for at, reason in enumerate(reasons)
            )
            if is_this_order and shown == picture_of(trial):
                self.model = trial
                break
        else:
            raise AssertionError((reasons, expected, shown))
        self.changed = {claim.consumer for claim in claims}

    # -- inventories ----------------------------------------------------------------------------

    @rule(
        claims=several_claims(),
        totals=st.dictionaries(
            st.sampled_from(SHARED), st.sampled_from([None, 4, 10, 12, 12]), max_size=2
        ),
        version=st.sampled_from(["1.30", "1.39", NEWEST, NEWEST]),
    )
    def reshape(self, claims, totals, version):
        """POST /reshaper: create, change and delete inventories with their allocations."""
        claims = self.adapted(claims, version)
        for claim in claims:
            claim.sources, claim.tolerates = [], frozenset()
        capacity = self.model.capacity | totals
        providers = {uuid for uuid, _ in totals} or {ROOT}
        if any(capacity[key] is None and key[1] == "VCPU" for key in SHARED):
            # Without room for what is moved, nearly all calls would be refused.
            capacity |= {
                key: 20 for key in SHARED if key[1] == "VCPU" and capacity[key] is not None
            }
            providers = {ROOT, CHILD}
        totals = {key: capacity[key] for key in KEYS if key[0] in providers}
        body = {
            "inventories": {
                uuid: {
                    "inventories": inventories_of(
                        capacity, uuid, with_consumption=version == NEWEST
                    ),
                    "resource_provider_generation": self.generation(uuid),
                }
                for uuid in providers
            },
            "allocations": {claim.consumer: body_of(claim, version) for claim in claims},
        }
        response = self.call("POST", "/reshaper", body, version)
        expected = self.write_model(claims, kind="reshape", capacity=totals)
        self.compare(response, expected, exactly=False)
        self.changed = None

    def generation(self, provider):
        return self.get(f"/resource_providers/{provider}")["generation"]

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
            kept = {key: amount for key, amount in amounts.items() if amount}
            kind = HOLD if uuid in self.model.holds else "INSTANCE"
            claims.append(Claim(uuid, kept, record["project"], "actual", kind))
        self.reshape(claims, {source: None, target: 20}, NEWEST)

    @rule(key=st.sampled_from(KEYS), total=st.sampled_from([4, 10, 12, 12]))
    def change_total(self, key, total):
        """Change what there is, also below what is used."""
        capacity = self.model.capacity | {key: total}
        entry = {"uuid": key[0], "inventories": inventories_of(capacity, key[0])}
        response = self.call("POST", "/treeclaim/providers", {"providers": [entry]})
        assert response.status_code == 200, response.text
        self.model.capacity = capacity
        self.changed = set()

    @rule(
        provider=st.sampled_from([MOVER, MOVER, CHILD, ROOT]),
        parent=st.sampled_from([None, *PROVIDERS]),
    )
    def move_provider(self, provider, parent):
        """PUT /resource_providers/{uuid} with another parent: consumption must stay in reach."""
        body = {"name": provider, "parent_provider_uuid": parent}
        response = self.call("PUT", f"/resource_providers/{provider}", body)
        moved = copy.deepcopy(self.model)
        moved.parents[provider] = parent
        is_loop = parent is not None and provider in self.model.ancestors(parent)
        is_legal = not is_loop and all(
            at in moved.ancestors(uuid)
            for (uuid, _), consumed in CONSUMES.items()
            for at, _ in consumed
        )
        assert response.status_code == (200 if is_legal else 400), response.text
        if is_legal:
            self.model = moved
        self.changed = set()

    # -- placements -----------------------------------------------------------------------------

    @rule(
        claims=several_claims(),
        partial=st.booleans(),
        dry=st.sampled_from([False, False, False, True]),
    )
    def place(self, claims, partial, dry):
        """POST /treeclaim/placements for new consumers, and the same call again."""
        self.remove_ended()
        new = []
        for claim in self.adapted(claims, NEWEST):
            if claim.consumer in self.model.consumers:
                continue
            claim.generation, provider = None, min(claim.amounts, default=KEYS[0])[0]
            claim.amounts = {
                key: amount for key, amount in claim.amounts.items() if key[0] == provider
            } or {KEYS[0]: 1}
            claim.type = HOLD if claim.hold else "INSTANCE"
            if SLICES in claim.amounts:
                # The search counts the slices that held parts consume as free; only parts are drawn.
                claim.sources = []
            claim.request = [query_of(claim)]
            new.append(claim)
        if not new:
            return
        body = {"requests": list(map(placement_of, new)), "partial": partial, "dry_run": dry}
        response = self.call("POST", "/treeclaim/placements", body)
        placed = self.placed(new)
        self.changed = {claim.consumer for claim in new}
        if isinstance(placed, str):
            assert reason_of(response) == placed, response.text
        elif len(placed) < len(new) and not partial:
            assert response.json()["errors"][0]["code"] == "treeclaim.unplaced", response.text
        else:
            is_new = bool(placed) and not dry
            assert response.status_code == (201 if is_new else 200), response.text
            consumers = [placement["consumer"] for placement in response.json()["placements"]]
            assert consumers == [claim.consumer for claim in placed]
            if is_new:
                assert self.model.write(placed, Clock.time, "place") is None
                again = self.call("POST", "/treeclaim/placements", body)
                assert again.status_code == 200, again.text

    def placed(self, claims):
        """Return which claims are placed, or why the call is refused."""
        for claim in claims:
            for hold in claim.sources:
                if hold not in self.model.holds:
                    return f"unknown {hold}"
                if not self.model.may_draw(hold, claim.project):
                    return f"project {hold}"
        trial, placed = copy.deepcopy(self.model), []
        for claim in claims:
            units = dict.fromkeys(KEYS, 1) if claim.hold else trial.steps
            if (
                trial.has_room(claim.amounts, claim.sources, Clock.time)
                and not trial.is_barred(claim.amounts, claim.tolerates, self.model)
                and all(amount % units[key] == 0 for key, amount in claim.amounts.items())
            ):
                drawing = copy.deepcopy(claim)
                # A hold that the consumers before have emptied is gone.
                drawing.sources = [hold for hold in claim.sources if hold in trial.holds]
                assert trial.write([drawing], Clock.time, "place") is None
                placed.append(claim)
        return placed

    # -- terms, requests, conditions and time ---------------------------------------------------

    @rule(holds=st.dictionaries(st.sampled_from(CONSUMERS), TERMS, min_size=1, max_size=2))
    def change_terms(self, holds):
        """POST /treeclaim/holds."""
        terms = {}
        for uuid, changes in holds.items():
            seconds = changes["until"]
            until = None if seconds is None else Clock.time + timedelta(seconds=seconds)
            terms[uuid] = changes | {"until": until}
        body = {uuid: term | {"until": text_of(term["until"])} for uuid, term in terms.items()}
        response = self.call("POST", "/treeclaim/holds", {"holds": body})
        assert response.status_code == 200, response.text
        assert response.json()["updated"] == self.model.change_terms(terms, Clock.time)
        self.changed = set(holds)

    @rule(
        requests=st.dictionaries(
            st.sampled_from(CONSUMERS), st.sampled_from(REQUESTS[3:]), min_size=1
        )
    )
    def change_requests(self, requests):
        """POST /treeclaim/requests."""
        response = self.call("POST", "/treeclaim/requests", {"requests": requests})
        assert response.status_code == 200, response.text
        unknown = sorted(requests.keys() - self.model.consumers.keys())
        updated = self.model.change_requests(requests)
        assert response.json() == {"updated": updated, "unknown": unknown}
        self.changed = set()

    @rule(
        provider=st.sampled_from(PROVIDERS),
        key=st.sampled_from(CONDITION_KEYS),
        condition=CONDITIONS,
    )
    def put_condition(self, provider, key, condition):
        if isinstance(condition, int):
            condition = Condition(until=Clock.time + timedelta(seconds=condition))
        body = {
            "effect": condition.effect,
            "until": text_of(condition.until),
            "on_use": condition.on_use,
            "began": condition.began,
        }
        response = self.call("PUT", condition_path(provider, key), body)
        assert response.status_code == 204, response.text
        self.model.conditions[provider, key] = condition
        self.changed = set()

    @rule(provider=st.sampled_from(PROVIDERS), key=st.sampled_from(CONDITION_KEYS))
    def delete_condition(self, provider, key):
        condition = self.model.conditions.get((provider, key))
        is_present = condition is not None and condition.is_present(Clock.time)
        response = self.call("DELETE", condition_path(provider, key))
        assert response.status_code == (204 if is_present else 404), response.text
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

    # -- comparison -----------------------------------------------------------------------------

    def shown(self):
        """Return consumers, holds, draws, requests and conditions as the service shows them."""
        consumers, holds, drawn_by_hold, draws = {}, {}, {}, {}
        listed = self.get("/treeclaim/allocations?limit=1000&include=requests")["consumers"]
        for entry in [*listed, *self.get("/treeclaim/holds")["holds"]]:
            uuid = entry["uuid"]
            consumers[uuid] = {
                "generation": entry["consumer_generation"],
                "project": entry["project_id"],
                "type": entry.get("consumer_type", HOLD),
                "amounts": flat(entry["allocations"]),
            }
            if entry["hold"] is not None:
                holds[uuid] = {
                    name: entry["hold"][name] for name in ("until", "returns", "projects")
                }
                drawn_by_hold[uuid] = flat(entry["hold"]["drawn"])
            for hold, drawn in entry.get("drawn_from", {}).items():
                draws[uuid, hold] = flat(drawn)
        requests = {entry["uuid"]: entry["request"] for entry in listed}
        return Picture(consumers, holds, drawn_by_hold, draws, requests, self.shown_conditions())

    def shown_conditions(self):
        """Return the conditions that a reader of the change feed knows; ended ones left out."""
        listed = self.get("/treeclaim/providers?include=conditions&limit=1000")
        conditions = {
            (provider["uuid"], key): tuple(
                condition[name] for name in ("effect", "until", "on_use", "began")
            )
            for provider in listed["providers"]
            for key, condition in provider["conditions"].items()
        }
        return {
            place: terms
            for place, terms in conditions.items()
            if terms[1] is None or terms[1] > text_of(Clock.time)
        }

    @invariant()
    def service_and_model_are_equal(self):
        """Compare what the service shows with the model; further reads take turns."""
        shown = self.shown()
        assert shown == picture_of(self.model)
        self.judge_responses(shown)
        self.turn += 1
        reads = (
            self.read_one_consumer,
            self.read_sums,
            self.read_candidates,
            self.read_requests,
        )
        reads[self.turn % len(reads)](self.turn // len(reads))

    def read_one_consumer(self, turn):
        """GET /allocations/{uuid} with and without the opt-in."""
        uuid = CONSUMERS[turn % len(CONSUMERS)]
        new = self.get(f"/allocations/{uuid}")
        old = self.call("GET", f"/allocations/{uuid}", version="1.12").json()
        assert flat(new["allocations"]) == flat(old["allocations"]) == self.model.amounts(uuid)
        assert (new.get("hold") is not None) == (uuid in self.model.holds)
        assert "hold" not in old
        assert bool(self.model.amounts(uuid)) == ("project_id" in old)

    def read_requests(self, _turn):
        """GET /allocations/{uuid}: the kept requests of consumers, present and past."""
        for uuid in CONSUMERS:
            shown = self.get(f"/allocations/{uuid}")
            kept, _ = self.model.requests.get(uuid, (None, None))
            assert shown["request"] == kept, uuid
            assert shown["request_valid"] == (kept and self.is_valid(uuid, kept))

    def is_valid(self, uuid, request):
        """Return whether the allocations of a consumer, and draws from it, add up to a query."""
        parts = [*self.model.amounts(uuid).items()]
        parts += [(key, amount) for _, key, hold, amount in self.model.draws if hold == uuid]
        sums = Counter()
        for (_, name), amount in parts:
            sums[name] += amount
        return any(classes_of(query) == sums for query in request)

    def read_sums(self, turn):
        """GET /resource_providers/{uuid}/usages, GET /treeclaim/totals."""
        provider = PROVIDERS[turn % len(PROVIDERS)]
        names = [
            key[1] for key in KEYS if key[0] == provider and self.model.capacity[key] is not None
        ]
        usages = self.get(f"/resource_providers/{provider}/usages")["usages"]
        assert usages == {name: self.model.used((provider, name)) for name in names}
        totals = self.get("/treeclaim/totals")["totals"]
        for name, shown in totals.items():
            keys = [key for key in KEYS if key[1] == name]
            assert shown["used"] == sum(self.model.used(key) for key in keys)
            assert shown["held"] == sum(
                self.model.with_consumed(self.model.amounts(hold))[key]
                for hold in self.model.holds
                for key in keys
            )

    def read_candidates(self, turn):
        """GET /allocation_candidates: amounts of holds are free, conditions bar, parts consume."""
        name, amount = ("VCPU", 1 + turn % 6) if turn % 3 else ("CUSTOM_PART", 1 + turn % 2)
        sources = HOLDS[turn % 3 :][: turn % 3]
        tolerates = CONDITION_KEYS[: turn % 2]
        query = f"resources_X={name}:{amount}"
        if sources:
            query += f"&from_holds={','.join(sources)}"
        if tolerates:
            query += f"&tolerates_X={','.join(tolerates)}"
        requests = self.get(f"/allocation_candidates?{query}")["allocation_requests"]
        providers = {uuid for request in requests for uuid in request["allocations"]}
        # A condition that has ended bars until a worker removes it.
        later = copy.deepcopy(self.model)
        later.remove_ended_conditions(Clock.time)
        least, most = (
            {
                key[0]
                for key in KEYS
                if key[1] == name
                and model.has_room({key: amount}, sources, Clock.time)
                and not model.is_barred({key: amount}, tolerates, model)
            }
            for model in (self.model, later)
        )
        assert least <= providers <= most

    def judge_responses(self, shown):
        """Check by the responses alone that nothing is promised twice, and nothing is lost."""
        used = Counter()
        for record in shown.consumers.values():
            used.update(self.model.with_consumed(record["amounts"]))
        for key in KEYS:
            assert used[key] <= max(self.model.capacity[key] or 0, self.used.get(key, 0))
        drawn_by_hold = {uuid: Counter() for uuid in shown.holds}
        drawn_by_consumer = Counter()
        for (uuid, hold), drawn in shown.draws.items():
            drawn_by_hold[hold].update(drawn)
            drawn_by_consumer.update({(uuid, key): amount for key, amount in drawn.items()})
        for (uuid, key), amount in drawn_by_consumer.items():
            assert amount <= shown.consumers[uuid]["amounts"][key]
        assert drawn_by_hold == shown.drawn_by_hold
        sums = {
            uuid: Counter(shown.consumers[uuid]["amounts"]) + drawn_by_hold[uuid]
            for uuid, terms in shown.holds.items()
            if terms["returns"]
        }
        if self.changed is not None:
            for uuid in sums.keys() & self.sums.keys() - self.changed:
                assert sums[uuid] == self.sums[uuid]
        self.sums, self.used = sums, used

    def teardown(self):
        """Check that an audit finds no fault of the service."""
        findings = self.get("/treeclaim/audit")["findings"]
        for kind in ("broken_hold", "broken_draw", "without_consumer", "empty_consumer"):
            assert findings[kind]["count"] == 0, findings[kind]


def nearby_hold(present, source):
    """Return a hold that exists, for three of four sources."""
    position = CONSUMERS.index(source)
    return present[position % len(present)] if present and position in range(3) else source


def condition_path(provider, key):
    return f"/treeclaim/providers/{provider}/conditions/{key}"


def picture_of(model):
    """Return what the service must show of a model."""
    holds = {
        uuid: terms | {"until": text_of(terms["until"])} for uuid, terms in model.holds.items()
    }
    drawn_by_hold, draws = {uuid: {} for uuid in holds}, {}
    for uuid, key, hold, amount in model.draws:
        draws.setdefault((uuid, hold), {})[key] = amount
        drawn_by_hold[hold][key] = drawn_by_hold[hold].get(key, 0) + amount
    requests = {
        uuid: model.requests[uuid][0] if uuid in model.requests else None
        for uuid, record in model.consumers.items()
        if record["amounts"]
    }
    conditions = {
        place: (condition.effect, text_of(condition.until), condition.on_use, condition.began)
        for place, condition in model.conditions.items()
        if condition.is_present(Clock.time)
    }
    return Picture(model.consumers, holds, drawn_by_hold, draws, requests, conditions)


@pytest.fixture(params=EACH_DATABASE)
def database_url(request, tmp_path):
    with empty_database(request.param, tmp_path) as url:
        schema_on(url)
        yield url


def test_random_calls_match_the_model(database_url, tmp_path, monkeypatch):
    make_calls(database_url, tmp_path, monkeypatch, STEPS or examples(USUAL_STEPS))


@pytest.mark.long
def test_many_more_random_calls_match_the_model(database_url, tmp_path, monkeypatch):
    make_calls(database_url, tmp_path, monkeypatch, MANY_STEPS)


def make_calls(database_url, folder, monkeypatch, steps):
    """Make random calls, so many on a database."""
    Clock.time = START
    for module in (transactions, hold_writes, condition_claims, condition_writes):
        monkeypatch.setattr(module, "read_clock", Clock.now)
    # The work of this thread is a rule here, so that calls before it are tried too.
    monkeypatch.setattr(Housekeeper, "start", lambda _housekeeper: None)
    with (
        services_on_database(database_url, folder) as (services, application),
        client_of(application, **{"x-roles": "admin,service"}) as client,
    ):
        client.put("/resource_classes/CUSTOM_SLICE")
        client.put("/resource_classes/CUSTOM_PART")
        for trait in TRAITS.values():
            client.put(f"/traits/{trait}")
        run_state_machine_as_test(
            type("CallsHere", (Calls,), {"client": client, "store": services.store}),
            settings=settings(
                max_examples=max(1, steps // STEPS_OF_A_HISTORY),
                stateful_step_count=STEPS_OF_A_HISTORY,
                deadline=None,
                # Shrinking would take minutes, and such histories are short enough to read.
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            ),
        )
