# SPDX-License-Identifier: Apache-2.0
"""Random calls with holds, of clients of all versions, do what the definition says (contract page 100).

The definition is `tests.reference.holds`; the service is asked over HTTP. What must hold whatever the
definition says, as that nothing gets lost between a hold and who draws, is judged by answers alone.
TREECLAIM_STEPS=N in the environment makes N calls on each database (`make steps STEPS=N`).
"""

import copy
import itertools
import os
import re
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
from tests.reference.holds import HOLD, Claim, Model
from tests.service import client_of, schema_on, services_on_database
from treeclaim.store import Store
from treeclaim.store.database import transactions
from treeclaim.store.operations.allocations import holds as hold_writes

STEPS = int(os.environ.get("TREECLAIM_STEPS", "0"))
USUAL_STEPS = 240
STEPS_A_HISTORY = 40

CONSUMERS = [f"c0000000-0000-0000-0000-{number:012}" for number in range(8)]
HOLDS, OTHERS = CONSUMERS[:4], CONSUMERS[4:]
"""Who is a hold, and who is none, in most writes."""

PROVIDERS = [f"a0000000-0000-0000-0000-{number:012}" for number in range(2)]
TOTALS = {"VCPU": 12, "MEMORY_MB": 8}
STEP_SIZES = {"VCPU": 1, "MEMORY_MB": 2}
KEYS = [(provider, name) for provider in PROVIDERS for name in TOTALS]
START = datetime(2026, 1, 1)  # noqa: DTZ001 - as the service keeps it

NEWEST = "1.39, treeclaim 1.0"
VERSIONS = ("1.7", "1.12", "1.13", "1.28", "1.39", "1.39, treeclaim 1.0", *[NEWEST] * 8)
INCOMPLETE = "00000000-0000-0000-0000-000000000000"
"""Project of whom a client below 1.8 writes."""

WORDS = {
    "over_capacity": "capacity",
    "amount_unit": "units",
    "no_inventory": "no inventory",
    "inventory_in_use": "in use",
    "consumer_generation": "generation",
}
"""What the definition calls the kinds of conflict."""

TERMS = st.fixed_dictionaries(
    {
        "until": st.sampled_from([None, None, 3, 9]),
        "returns": st.sampled_from([True, True, True, False]),
        "projects": st.sampled_from([["p", "q"], ["p"], []]),
    }
)


QUERIES = [
    "resources=VCPU:2",
    "resources=VCPU:1&resources_B=VCPU:1,MEMORY_MB:2&group_policy=none",
    "resources=MEMORY_MB:4&required=!HW_CPU_X86_AVX2",
    "resources=VCPU:3,MEMORY_MB:2&limit=7",
]
REQUESTS = ["unchanged", "unchanged", "unchanged", None, *[[q] for q in QUERIES], QUERIES[1:]]
"""What a write says of the request that is kept with a consumer."""

DAY = 86_400
"""Seconds."""


class Clock:
    """The clock of the database, as the tests set it."""

    time = START

    @classmethod
    def now(cls, _connection):
        """The present time."""
        return cls.time


def text_of(time):
    """A time as it is shown."""
    return None if time is None else f"{time.isoformat()}Z"


@st.composite
def amounts(draw, most):
    """Amounts, nearly all of them in steps."""
    found = draw(st.dictionaries(st.sampled_from(KEYS), st.integers(1, most), max_size=3))
    if draw(st.integers(0, 19)) == 7:
        return found
    return {key: -(-n // STEP_SIZES[key[1]]) * STEP_SIZES[key[1]] for key, n in found.items()}


@st.composite
def several_claims(draw, most=3):
    """Claims of different consumers; nobody draws from a consumer of the write."""
    pool = draw(st.sampled_from([*[OTHERS] * 5, *[CONSUMERS] * 3, HOLDS]))
    named = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=most, unique=True))
    sources = [uuid for uuid in HOLDS if uuid not in named] or OTHERS[:1]
    return [draw(one_claim(consumer, sources)) for consumer in named]


@st.composite
def one_claim(draw, consumer, sources):
    """A claim of a consumer; one in ten mistakes who it is."""
    is_hold = (consumer in HOLDS) != (draw(st.integers(0, 9)) == 7)
    terms = draw(st.one_of(TERMS, TERMS, st.none())) if is_hold else None
    drawn = draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2, unique=True))
    return Claim(
        consumer,
        draw(amounts(6 if is_hold else 4)),
        draw(st.sampled_from("pppq")),
        draw(st.sampled_from([*["actual"] * 9, None])),
        HOLD if is_hold else "INSTANCE",
        hold=terms,
        sources=[] if is_hold or draw(st.integers(0, 9)) == 7 else drawn,
        request=draw(st.sampled_from(REQUESTS)),
    )


def alive_of(alive, source):
    """A hold that exists, for most of those that are named."""
    position = CONSUMERS.index(source)
    return alive[position % len(alive)] if alive and position in range(3) else source


def minor_of(version):
    """The microversion of Placement."""
    return int(re.match(r"1\.(\d+)", version)[1])


def nested(found):
    """Amounts as a body has them."""
    body = {}
    for (provider, name), amount in found.items():
        body.setdefault(provider, {"resources": {}})["resources"][name] = amount
    return body


def flat(body):
    """Amounts by provider and class, of a body's."""
    return {
        (provider, name): amount
        for provider, part in body.items()
        for name, amount in part.get("resources", part).items()
    }


def body_of(claim, version):
    """The body of a claim at a version."""
    minor = minor_of(version)
    allocations = nested(claim.amounts)
    body = {"allocations": allocations}
    if minor < 12:
        body["allocations"] = [
            {"resource_provider": {"uuid": uuid}, **part} for uuid, part in allocations.items()
        ]
    if minor >= 8:
        body |= {"project_id": claim.project, "user_id": "u"}
    if minor >= 28:
        body["consumer_generation"] = claim.generation
    if minor >= 38 and claim.hold is None:
        body["consumer_type"] = claim.type
    if claim.hold is not None:
        body["hold"] = claim.hold | {"until": text_of(claim.hold["until"]), "note": "ä 🦆"}
    if claim.sources:
        body["from_holds"] = claim.sources
    if claim.request != "unchanged":
        body["request"] = claim.request
    return body


def classes_of(query):
    """What a query asks for, by class."""
    wanted = Counter()
    for part in re.findall(r"resources\w*=([^&]+)", query):
        wanted.update({name: int(n) for name, n in (one.split(":") for one in part.split(","))})
    return wanted


def word_of(answer):
    """Why a call is refused, as the definition calls it; None if it is not."""
    if answer.is_success:
        return None
    (error,) = answer.json()["errors"]
    conflict = error.get("conflict", {})
    if error.get("code") == "treeclaim.hold":
        return f"{conflict['reason']} {conflict['uuid']}"
    if error.get("code") == "treeclaim.consumer_exists":
        return "exists"
    return {400: "misused", 404: "nothing"}.get(answer.status_code) or WORDS.get(
        conflict.get("kind"), "conflict"
    )


class Calls(RuleBasedStateMachine):
    """One call after the other, to the service and to the definition.

    Attributes:
        seen: What the service showed of consumers after the last call.
        moved: The holds of which the last call may have changed held + drawn; None: of all.
    """

    client: Any
    store: Any

    def __init__(self):
        super().__init__()
        self.model = Model(
            {key: TOTALS[key[1]] for key in KEYS}, {key: STEP_SIZES[key[1]] for key in KEYS}
        )
        for uuid in CONSUMERS:
            self.call("DELETE", f"/allocations/{uuid}")
        # Nobody keeps requests for so long.
        Clock.time += timedelta(days=2)
        self.stock(self.model.capacity)
        self.seen, self.used, self.moved = {}, {}, None
        self.turn = 0

    # -- calls ----------------------------------------------------------------------------------

    def call(self, method, path, body=None, version=NEWEST):
        """The answer to a call, which is no error of the service."""
        headers = {"openstack-api-version": f"placement {version}"}
        answer = self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 500, answer.text
        return answer

    def get(self, path):
        """What is shown there."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def stock(self, capacity):
        """Write inventories, as an operator does who writes many."""
        entries = [
            {"uuid": uuid, "name": uuid, "inventories": inventories_of(capacity, uuid)}
            for uuid in PROVIDERS
        ]
        return self.call("POST", "/treeclaim/providers", {"providers": entries})

    def prepared(self, claims, version):
        """The same claims as a client of a version can write them."""
        minor = minor_of(version)
        alive = sorted(self.model.holds.keys() - {claim.consumer for claim in claims})
        for claim in claims:
            known = self.model.consumers.get(claim.consumer)
            claim.sources = list(dict.fromkeys(alive_of(alive, one) for one in claim.sources))
            claim.knows_holds = version == NEWEST
            if not claim.knows_holds:
                claim.hold, claim.sources, claim.request = None, [], "unchanged"
            if claim.hold is not None and isinstance(claim.hold["until"], int):
                until = Clock.time + timedelta(seconds=claim.hold["until"])
                claim.hold = claim.hold | {"until": until}
            if claim.generation == "actual":
                claim.generation = known["generation"] if known else None
            if minor < 28:
                claim.generation = "unchecked"
            if minor < 38:
                claim.type = known["type"] if known else "unknown"
            if minor < 8:
                claim.project = INCOMPLETE
        return claims

    def written(self, claims, model=None, **more):
        """What the definition says of a write; one that finds no room removes what has ended."""
        model = model or self.model
        said = model.write(claims, Clock.time, **more)
        if said != "capacity":
            return said
        model.expire(Clock.time)
        return model.write(claims, Clock.time, **more)

    def compare(self, answer, said, *, exactly):
        """The service says what the definition does; of several reasons it may tell another one."""
        told = word_of(answer)
        assert (told is None) == (said is None), (told, said, answer.text)
        if exactly and told != "conflict":
            assert told == said, answer.text

    # -- rules ----------------------------------------------------------------------------------

    @initialize()
    def begin_with_holds(self):
        """There is something to draw from the beginning."""
        self.make_holds()

    @rule()
    def make_holds(self):
        """So that most histories have something to draw, until their ends."""
        held = {KEYS[0]: 3, KEYS[1]: 2, KEYS[2]: 1}
        for uuid, returns, projects in zip(
            HOLDS, (True, True, False), (["q"], [], []), strict=False
        ):
            if uuid not in self.model.holds:
                terms = {"until": None, "returns": returns, "projects": projects}
                self.replace([Claim(uuid, held, "p", "actual", HOLD, hold=terms)], NEWEST)

    @rule(claims=several_claims(1), version=st.sampled_from(VERSIONS))
    def replace(self, claims, version):
        """PUT /allocations/{uuid}."""
        (claim,) = self.prepared(claims, version)
        if minor_of(version) < 28 and not claim.amounts:
            return
        path = f"/allocations/{claim.consumer}"
        answer = self.call("PUT", path, body_of(claim, version), version)
        self.compare(answer, self.written([claim]), exactly=True)
        self.moved = {claim.consumer}

    @rule(claims=several_claims(), version=st.sampled_from(VERSIONS))
    def replace_several(self, claims, version):
        """POST /allocations."""
        if minor_of(version) < 13:
            return
        claims = self.prepared(claims, version)
        body = {claim.consumer: body_of(claim, version) for claim in claims}
        answer = self.call("POST", "/allocations", body, version)
        said = self.written(claims)
        self.compare(answer, said, exactly=len(claims) == 1)
        self.moved = {claim.consumer for claim in claims}

    @rule(
        number=st.integers(0, 3),
        version=st.sampled_from(VERSIONS[2:]),
        whole=st.booleans(),
        project=st.sampled_from([None, None, "p", "q"]),
    )
    def move(self, number, version, whole, project):
        """What a consumer has, or most of it, goes to another one, as with Nova's migrations."""
        there = sorted(self.model.consumers.keys() - self.model.holds.keys())
        new = [uuid for uuid in OTHERS if uuid not in self.model.consumers]
        if not there or not new:
            return
        old = there[number % len(there)]
        given = self.model.consumers[old]
        kept = {} if whole else dict.fromkeys(list(given["amounts"])[:1], 2)
        claims = [
            Claim(old, kept, given["project"], "actual"),
            Claim(new[0], dict(given["amounts"]), project or given["project"], "actual"),
        ]
        self.replace_several(claims[:: 1 if number else -1], version)

    @rule(
        number=st.integers(0, 3), amount=st.integers(1, 8), version=st.sampled_from(VERSIONS[1:])
    )
    def resize(self, number, amount, version):
        """A consumer grows or shrinks somewhere, and may draw from all holds where it grows."""
        there = sorted(self.model.consumers.keys() - self.model.holds.keys())
        if not there:
            return
        consumer = there[number % len(there)]
        known = self.model.consumers[consumer]
        changed = known["amounts"] | {KEYS[0]: amount}
        sources = [HOLDS[:3], HOLDS[2::-1], HOLDS[1:3], []][number]
        self.replace(
            [Claim(consumer, changed, known["project"], "actual", sources=sources)], version
        )

    @rule(
        many=st.integers(2, 9),
        few=st.integers(1, 8),
        order=st.permutations(HOLDS[:3]),
        taker=st.sampled_from([None, "p", "q"]),
        version=st.sampled_from(VERSIONS[2:]),
    )
    def draw_from_several(self, many, few, order, taker, version):
        """A new consumer draws from holds one after the other, and gives back part, or passes it on."""
        new = [uuid for uuid in OTHERS if uuid not in self.model.consumers]
        if len(new) < 2:
            return
        drawing = Claim(new[0], {KEYS[0]: many}, "p", "actual", sources=list(order))
        self.replace([drawing], NEWEST)
        if taker is None:
            self.replace([Claim(new[0], {KEYS[0]: few}, "p", "actual")], version)
        else:
            given = Claim(new[1], {KEYS[0]: few}, taker, "actual")
            self.replace_several([Claim(new[0], {}, "p", "actual"), given], version)

    @rule(number=st.integers(0, 15), version=st.sampled_from(VERSIONS))
    def delete(self, number, version):
        """DELETE /allocations/{uuid}, of one that is there, if not of a hold."""
        there = sorted(self.model.consumers.keys() - self.model.holds.keys()) or CONSUMERS
        consumer = [*there * 8][number] if number < 8 else CONSUMERS[number - 8]
        answer = self.call("DELETE", f"/allocations/{consumer}", version=version)
        claim = Claim(consumer, {}, "", "unchecked", knows_holds=False)
        self.compare(answer, self.model.write([claim], Clock.time, "release"), exactly=True)
        self.moved = {consumer}

    @rule(
        claims=several_claims(),
        totals=st.dictionaries(
            st.sampled_from(KEYS), st.sampled_from([None, 4, 10, 12, 12]), max_size=2
        ),
        version=st.sampled_from(["1.30", "1.39", NEWEST, NEWEST]),
    )
    def reshape(self, claims, totals, version):
        """POST /reshaper: inventories come, go and change with what is held."""
        claims = self.prepared(claims, version)
        for claim in claims:
            claim.sources = []
        changed = self.model.capacity | totals
        providers = {uuid for uuid, _ in totals} or {PROVIDERS[0]}
        if any(changed[key] is None and key[1] == "VCPU" for key in KEYS):
            # Where something is moved there is room for it, else nearly all are refused.
            changed |= {key: 20 for key in KEYS if key[1] == "VCPU" and changed[key] is not None}
            providers = set(PROVIDERS)
        totals = {key: changed[key] for key in KEYS if key[0] in providers}
        body = {
            "inventories": {
                uuid: {
                    "inventories": inventories_of(changed, uuid),
                    "resource_provider_generation": self.generation(uuid),
                }
                for uuid in providers
            },
            "allocations": {claim.consumer: body_of(claim, version) for claim in claims},
        }
        answer = self.call("POST", "/reshaper", body, version)
        said = self.written(claims, kind="reshape", capacity=totals)
        self.compare(answer, said, exactly=False)
        self.moved = None

    def generation(self, provider):
        """The generation of a provider."""
        return self.get(f"/resource_providers/{provider}")["generation"]

    @rule(provider=st.sampled_from(PROVIDERS))
    def split(self, provider):
        """A reshape as a driver makes it: VCPU goes elsewhere with all who have any, holds too."""
        if not self.model.draws:
            return
        elsewhere = PROVIDERS[1 - PROVIDERS.index(provider)]
        there, here = (provider, "VCPU"), (elsewhere, "VCPU")
        claims = []
        for uuid, known in sorted(self.model.consumers.items()):
            taken = dict(known["amounts"])
            if uuid in self.model.holds and there not in taken:
                continue
            taken[here] = taken.pop(there, 0) + taken.get(here, 0)
            kept = {key: amount for key, amount in taken.items() if amount}
            kind = HOLD if uuid in self.model.holds else "INSTANCE"
            claims.append(Claim(uuid, kept, known["project"], "actual", kind))
        self.reshape(claims, {there: None, here: 20}, NEWEST)

    @rule(key=st.sampled_from(KEYS), total=st.sampled_from([4, 10, 12, 12]))
    def change_stock(self, key, total):
        """An operator changes what there is, below what is used too."""
        changed = self.model.capacity | {key: total}
        answer = self.stock(changed)
        assert answer.status_code == 200, answer.text
        self.model.capacity = changed
        self.moved = set()

    @rule(
        claims=several_claims(),
        partial=st.booleans(),
        dry=st.sampled_from([False, False, False, True]),
    )
    def place(self, claims, partial, dry):
        """POST /treeclaim/placements, for consumers that are new, and the same call again."""
        self.remove_ended()
        given = []
        for claim in self.prepared(claims, NEWEST):
            if claim.consumer in self.model.consumers:
                continue
            claim.generation, provider = None, min(claim.amounts, default=KEYS[0])[0]
            claim.amounts = {
                key: amount for key, amount in claim.amounts.items() if key[0] == provider
            } or {KEYS[0]: 1}
            claim.type = HOLD if claim.hold else "INSTANCE"
            claim.request = [query_of(claim)]
            given.append(claim)
        if not given:
            return
        body = {"requests": list(map(request_of, given)), "partial": partial, "dry_run": dry}
        answer = self.call("POST", "/treeclaim/placements", body)
        placed = self.found(given)
        self.moved = {claim.consumer for claim in given}
        if isinstance(placed, str):
            assert word_of(answer) == placed, answer.text
        elif len(placed) < len(given) and not partial:
            assert answer.json()["errors"][0]["code"] == "treeclaim.unplaced", answer.text
        else:
            is_new = bool(placed) and not dry
            assert answer.status_code == (201 if is_new else 200), answer.text
            told = [one["consumer"] for one in answer.json()["placements"]]
            assert told == [claim.consumer for claim in placed]
            if is_new:
                assert self.model.write(placed, Clock.time, "place") is None
                again = self.call("POST", "/treeclaim/placements", body)
                assert again.status_code == 200, again.text

    def found(self, claims):
        """Which of some claims are placed, or why none is."""
        for claim in claims:
            for hold in claim.sources:
                if hold not in self.model.holds:
                    return f"unknown {hold}"
                if not self.model.may_draw(hold, claim.project):
                    return f"project {hold}"
        trial, placed = copy.deepcopy(self.model), []
        for claim in claims:
            units = dict.fromkeys(KEYS, 1) if claim.hold else trial.steps
            if all(
                self.has_room(trial, key, amount, claim.sources) and amount % units[key] == 0
                for key, amount in claim.amounts.items()
            ):
                drawing = copy.deepcopy(claim)
                # Of a hold that those before have emptied nothing is left to draw.
                drawing.sources = [hold for hold in claim.sources if hold in trial.holds]
                assert trial.write([drawing], Clock.time, "place") is None
                placed.append(claim)
        return placed

    @staticmethod
    def has_room(model, key, amount, sources):
        """Whether a search finds room, where it counts what some holds have as free.

        Those that have ended hold nothing, though they may be in the way for a second.
        """
        if model.capacity[key] is None:
            return False
        ends = {hold: model.holds[hold]["until"] for hold in sources if hold in model.holds}
        lent = (hold for hold, until in ends.items() if until is None or until > Clock.time)
        free = sum(model.amounts(hold).get(key, 0) for hold in lent)
        return model.used(key) - free + amount <= model.capacity[key]

    @rule(claims=several_claims())
    def replace_at_once(self, claims):
        """PUT /allocations/{uuid} of several clients at once, in a group or one after the other."""
        claims = self.prepared(claims, NEWEST)
        with ThreadPoolExecutor(len(claims)) as pool:
            answers = list(
                pool.map(
                    lambda claim: self.call(
                        "PUT", f"/allocations/{claim.consumer}", body_of(claim, NEWEST)
                    ),
                    claims,
                )
            )
        told = [word_of(answer) for answer in answers]
        shown = self.shown()
        for order in itertools.permutations(range(len(claims))):
            trial = copy.deepcopy(self.model)
            said = {at: self.written([copy.deepcopy(claims[at])], trial) for at in order}
            if told == [said[at] for at in range(len(claims))] and shown == picture_of(trial):
                self.model = trial
                break
        else:
            raise AssertionError((told, said, shown))
        self.moved = {claim.consumer for claim in claims}

    @rule(holds=st.dictionaries(st.sampled_from(CONSUMERS), TERMS, min_size=1, max_size=2))
    def change_terms(self, holds):
        """POST /treeclaim/holds."""
        terms = {}
        for uuid, all_terms in holds.items():
            seconds = all_terms["until"]
            until = None if seconds is None else Clock.time + timedelta(seconds=seconds)
            terms[uuid] = all_terms | {"until": until}
        shown = {uuid: one | {"until": text_of(one["until"])} for uuid, one in terms.items()}
        answer = self.call("POST", "/treeclaim/holds", {"holds": shown})
        assert answer.status_code == 200, answer.text
        assert answer.json()["updated"] == self.model.change_terms(terms, Clock.time)
        self.moved = set(holds)

    @rule(given=st.dictionaries(st.sampled_from(CONSUMERS), st.sampled_from(REQUESTS[3:])))
    def change_requests(self, given):
        """POST /treeclaim/requests."""
        if not given:
            return
        answer = self.call("POST", "/treeclaim/requests", {"requests": given})
        assert answer.status_code == 200, answer.text
        unknown = sorted(given.keys() - self.model.consumers.keys())
        updated = self.model.change_requests(given, Clock.time)
        assert answer.json() == {"updated": updated, "unknown": unknown}
        self.moved = set()

    @rule(seconds=st.sampled_from([1, 2, 1, 2, 1, 2, DAY, DAY + 1]), is_tidied=st.booleans())
    def wait(self, seconds, is_tidied):
        """Time goes on, and nobody has removed yet what has ended."""
        Clock.time += timedelta(seconds=seconds)
        self.store.look_for_ends()
        if is_tidied:
            self.store.prune(timedelta(days=30))

    @rule()
    def remove_ended(self):
        """What each worker does when the time of a hold has come."""
        self.store.remove_ended(self.store.look_for_ends())
        self.model.expire(Clock.time)
        self.moved = set()

    # -- what is judged -------------------------------------------------------------------------

    def shown(self):
        """Consumers, holds and draws as the service shows them."""
        consumers, holds, of_holds, draws = {}, {}, {}, {}
        listed = self.get("/treeclaim/allocations?limit=1000&include=requests")["consumers"]
        kept = self.get("/treeclaim/holds")["holds"]
        for one in [*listed, *kept]:
            uuid, is_hold = one["uuid"], one["hold"] is not None
            consumers[uuid] = {
                "generation": one["consumer_generation"],
                "project": one["project_id"],
                "type": one.get("consumer_type", HOLD),
                "amounts": flat(one["allocations"]),
            }
            if is_hold:
                holds[uuid] = {
                    name: one["hold"][name] for name in ("until", "returns", "projects")
                }
                of_holds[uuid] = flat(one["hold"]["drawn"])
            for hold, drawn in one.get("drawn_from", {}).items():
                draws[uuid, hold] = flat(drawn)
        requests = {one["uuid"]: one["request"] for one in listed}
        return consumers, holds, of_holds, draws, requests

    @invariant()
    def both_are_equal(self):
        """All that the service shows is what the definition has; other looks take turns."""
        shown = self.shown()
        assert shown == picture_of(self.model)
        self.judge_answers(*shown[:4])
        self.turn += 1
        looks = (self.look_alone, self.look_at_sums, self.look_for_room, self.look_at_requests)
        looks[self.turn % len(looks)](self.turn // len(looks))

    def look_alone(self, turn):
        """GET /allocations/{uuid} at 1.2 and below."""
        uuid = CONSUMERS[turn % len(CONSUMERS)]
        new = self.get(f"/allocations/{uuid}")
        old = self.call("GET", f"/allocations/{uuid}", version="1.12").json()
        assert flat(new["allocations"]) == flat(old["allocations"]) == self.model.amounts(uuid)
        assert (new.get("hold") is not None) == (uuid in self.model.holds)
        assert "hold" not in old
        assert bool(self.model.amounts(uuid)) == ("project_id" in old)

    def look_at_requests(self, _turn):
        """GET /allocations/{uuid}: requests of those who are there, and of those who were."""
        for uuid in CONSUMERS:
            shown = self.get(f"/allocations/{uuid}")
            kept, gone_at = self.model.requests.get(uuid, (None, None))
            if gone_at is not None and gone_at < Clock.time - timedelta(days=1):
                kept = None
            assert shown["request"] == kept, uuid
            assert shown["request_valid"] == (kept and self.is_valid(uuid, kept))

    def is_valid(self, uuid, request):
        """Whether what a consumer holds, and others have drawn from it, is what a query asks for."""
        parts = [*self.model.amounts(uuid).items()]
        parts += [(key, amount) for _, key, hold, amount in self.model.draws if hold == uuid]
        held = Counter()
        for (_, name), amount in parts:
            held[name] += amount
        return any(classes_of(query) == held for query in request)

    def look_at_sums(self, turn):
        """GET /resource_providers/{uuid}/usages, GET /treeclaim/totals."""
        provider = PROVIDERS[turn % len(PROVIDERS)]
        names = [name for name in TOTALS if self.model.capacity[provider, name] is not None]
        usages = self.get(f"/resource_providers/{provider}/usages")["usages"]
        assert usages == {name: self.model.used((provider, name)) for name in names}
        totals = self.get("/treeclaim/totals")["totals"]
        for name in totals:
            held = sum(
                self.model.amounts(hold).get((one, name), 0)
                for hold in self.model.holds
                for one in PROVIDERS
            )
            assert totals[name]["held"] == held

    def look_for_room(self, turn):
        """GET /allocation_candidates: what holds have is free for who draws from them."""
        amount, sources = 1 + turn % 6, HOLDS[turn % 3 :][: turn % 3]
        query = f"resources=VCPU:{amount}" + (
            f"&from_holds={','.join(sources)}" if sources else ""
        )
        summaries = self.get(f"/allocation_candidates?{query}")["provider_summaries"]
        assert set(summaries) == {
            uuid
            for uuid in PROVIDERS
            if self.has_room(self.model, (uuid, "VCPU"), amount, sources)
        }

    def judge_answers(self, consumers, holds, of_holds, draws):
        """What must be so by the answers alone: nothing is promised twice, and nothing gets lost."""
        used = {key: sum(one["amounts"].get(key, 0) for one in consumers.values()) for key in KEYS}
        for key in KEYS:
            assert used[key] <= max(self.model.capacity[key] or 0, self.used.get(key, 0))
        by_hold = {uuid: {} for uuid in holds}
        for (uuid, hold), drawn in draws.items():
            for key, amount in drawn.items():
                by_hold[hold][key] = by_hold[hold].get(key, 0) + amount
                of_all = (d.get(key, 0) for (one, _), d in draws.items() if one == uuid)
                assert sum(of_all) <= consumers[uuid]["amounts"][key]
        assert by_hold == of_holds
        kept = {
            uuid: {
                key: consumers[uuid]["amounts"].get(key, 0) + by_hold[uuid].get(key, 0)
                for key in KEYS
            }
            for uuid in holds
            if holds[uuid]["returns"]
        }
        if self.moved is not None:
            for uuid in kept.keys() & self.seen.keys() - self.moved:
                assert kept[uuid] == self.seen[uuid]
        self.seen, self.used = kept, used

    def teardown(self):
        """An audit finds nothing that is the service's fault."""
        findings = self.get("/treeclaim/audit")["findings"]
        for kind in ("broken_hold", "broken_draw", "without_consumer", "empty_consumer"):
            assert findings[kind]["count"] == 0, findings[kind]


def inventories_of(capacity, provider):
    """The inventories of a provider as they are written."""
    return {
        name: {"total": total, "step_size": STEP_SIZES[name]}
        for (uuid, name), total in capacity.items()
        if uuid == provider and total is not None
    }


def query_of(claim):
    """A query that finds what a claim names."""
    ((provider, _), *_) = claim.amounts
    resources = ",".join(f"{name}:{amount}" for (_, name), amount in claim.amounts.items())
    return f"resources={resources}&in_tree={provider}"


def request_of(claim):
    """A request that places the consumer of a claim, and keeps by what."""
    body = body_of(claim, NEWEST)
    del body["allocations"], body["consumer_generation"]
    return body | {"alternatives": body.pop("request"), "consumers": [claim.consumer]}


def picture_of(model):
    """What the service has to show, of the definition."""
    holds = {uuid: one | {"until": text_of(one["until"])} for uuid, one in model.holds.items()}
    of_holds, draws = {uuid: {} for uuid in holds}, {}
    for uuid, key, hold, amount in model.draws:
        draws.setdefault((uuid, hold), {})[key] = amount
        of_holds[hold][key] = of_holds[hold].get(key, 0) + amount
    requests = {
        uuid: model.requests[uuid][0] if uuid in model.requests else None
        for uuid, one in model.consumers.items()
        if one["amounts"]
    }
    return model.consumers, holds, of_holds, draws, requests


@pytest.fixture(params=EACH_DATABASE)
def database_url(request, tmp_path):
    """The URL of a database with the schema."""
    with empty_database(request.param, tmp_path) as url:
        schema_on(url)
        yield url


@pytest.mark.slow
def test_random_calls_with_holds_do_what_the_page_says(database_url, tmp_path, monkeypatch):
    Clock.time = START
    monkeypatch.setattr(transactions, "now_of", Clock.now)
    monkeypatch.setattr(hold_writes, "now_of", Clock.now)
    # What its thread does is a step here, so that what comes before it is tried too.
    monkeypatch.setattr(Store, "keep_watch", lambda _store: None)
    with (
        services_on_database(database_url, tmp_path) as (services, application),
        client_of(application, **{"x-roles": "admin,service"}) as client,
    ):
        run_state_machine_as_test(
            type("CallsHere", (Calls,), {"client": client, "store": services.store}),
            settings=settings(
                max_examples=-(-(STEPS or USUAL_STEPS) // STEPS_A_HISTORY),
                stateful_step_count=STEPS_A_HISTORY,
                deadline=None,
                # Shrinking would take minutes, and such histories are short enough to read.
                phases=[Phase.explicit, Phase.reuse, Phase.generate],
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            ),
        )
