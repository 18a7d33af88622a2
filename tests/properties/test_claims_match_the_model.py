# SPDX-License-Identifier: Apache-2.0
"""Random calls of clients of all versions follow the model (contract pages 70, 100 and 102).

The service is called over HTTP, and a worker follows the change feed. TREECLAIM_STEPS=N in the environment makes N
calls on each database (`make steps STEPS=N`).
"""

import copy
import itertools
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.databases import EACH_DATABASE, empty_database
from tests.properties.claim_calls import (
    CONDITION_KEYS,
    CONSUMERS,
    HOLDS,
    INVENTORIES,
    NEWEST,
    PARENTS,
    PROVIDERS,
    SLICES,
    TRAITS,
    body_of,
    classes_of,
    flat,
    inventories_of,
    is_expected,
    placement_of,
    query_of,
    reason_of,
    several_claims,
    text_of,
)
from tests.properties.claim_histories import Clock, Picture, picture_of, run_histories
from tests.properties.claim_machine import ClaimMachine
from tests.reference.model import HOLD
from tests.service import client_of, schema_on, services_on_database
from tests.tiers import examples
from treeclaim.store.housekeeping import Housekeeper

STEPS = int(os.environ.get("TREECLAIM_STEPS", "0"))
USUAL_STEPS = 240
MANY_STEPS = 8_000


class HttpCalls(ClaimMachine):
    """Calls to the service over HTTP."""

    client: Any

    def __init__(self):
        super().__init__()
        self.turn = 0

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

    def send_claim(self, claim, version):
        path = f"/allocations/{claim.consumer}"
        return reason_of(self.call("PUT", path, body_of(claim, version), version))

    def send_claims(self, claims, version):
        body = {claim.consumer: body_of(claim, version) for claim in claims}
        return reason_of(self.call("POST", "/allocations", body, version))

    def send_release(self, consumer, version):
        return reason_of(self.call("DELETE", f"/allocations/{consumer}", version=version))

    def send_reshape(self, claims, capacity, providers, version):
        body = {
            "inventories": {
                uuid: {
                    "inventories": inventories_of(
                        capacity, uuid, with_consumption=version == NEWEST
                    ),
                    "resource_provider_generation": self.get(f"/resource_providers/{uuid}")[
                        "generation"
                    ],
                }
                for uuid in providers
            },
            "allocations": {claim.consumer: body_of(claim, version) for claim in claims},
        }
        return reason_of(self.call("POST", "/reshaper", body, version))

    def send_providers(self, capacity, providers, *, is_whole=False):
        entries = [
            {"uuid": uuid, "inventories": inventories_of(capacity, uuid)}
            | (
                {"name": uuid, "parent_provider_uuid": PARENTS[uuid], "traits": [TRAITS[uuid]]}
                if is_whole
                else {}
            )
            for uuid in providers
        ]
        response = self.call("POST", "/treeclaim/providers", {"providers": entries})
        assert response.status_code == 200, response.text

    def send_parent(self, provider, parent):
        body = {"name": provider, "parent_provider_uuid": parent}
        return reason_of(self.call("PUT", f"/resource_providers/{provider}", body))

    def send_terms(self, terms):
        body = {uuid: term | {"until": text_of(term["until"])} for uuid, term in terms.items()}
        response = self.call("POST", "/treeclaim/holds", {"holds": body})
        assert response.status_code == 200, response.text
        return response.json()["updated"]

    def send_requests(self, requests):
        response = self.call("POST", "/treeclaim/requests", {"requests": requests})
        assert response.status_code == 200, response.text
        unknown = response.json()["unknown"]
        assert response.json()["updated"] == len(requests) - len(unknown)
        return unknown

    def send_condition(self, provider, key, condition):
        body = {
            "effect": condition.effect,
            "until": text_of(condition.until),
            "on_use": condition.on_use,
            "began": condition.began,
        }
        response = self.call("PUT", condition_path(provider, key), body)
        assert response.status_code == 204, response.text

    def send_no_condition(self, provider, key):
        response = self.call("DELETE", condition_path(provider, key))
        assert response.status_code in (204, 404), response.text
        return response.status_code == 204

    def read_picture(self):
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
            for hold, drawn_amounts in entry.get("drawn_from", {}).items():
                draws[uuid, hold] = flat(drawn_amounts)
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
        picture = self.read_picture()
        for order in itertools.permutations(range(len(claims))):
            trial = copy.deepcopy(self.model)
            expected = {at: self.write_model([copy.deepcopy(claims[at])], trial) for at in order}
            is_this_order = all(
                is_expected(reason, expected[at]) for at, reason in enumerate(reasons)
            )
            if is_this_order and picture == picture_of(trial):
                self.model = trial
                break
        else:
            raise AssertionError((reasons, expected, picture))
        self.changed = {claim.consumer for claim in claims}

    @rule(
        claims=several_claims(),
        partial=st.booleans(),
        dry=st.sampled_from([False, False, False, True]),
    )
    def place(self, claims, partial, dry):
        """POST /treeclaim/placements for new consumers, and the same call again."""
        self.remove_ended()
        new_claims = []
        for claim in self.adapted(claims, NEWEST):
            if claim.consumer in self.model.consumers:
                continue
            claim.generation, provider = None, min(claim.amounts, default=INVENTORIES[0])[0]
            claim.amounts = {
                key: amount for key, amount in claim.amounts.items() if key[0] == provider
            } or {INVENTORIES[0]: 1}
            claim.type = HOLD if claim.hold else "INSTANCE"
            if SLICES in claim.amounts:
                # The search counts the slices that held parts consume as free; only parts are drawn.
                claim.sources = []
            claim.request = [query_of(claim)]
            new_claims.append(claim)
        if not new_claims:
            return
        body = {
            "requests": list(map(placement_of, new_claims)),
            "partial": partial,
            "dry_run": dry,
        }
        response = self.call("POST", "/treeclaim/placements", body)
        placed = self.placed(new_claims)
        self.changed = {claim.consumer for claim in new_claims}
        if isinstance(placed, str):
            assert reason_of(response) == placed, response.text
        elif len(placed) < len(new_claims) and not partial:
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
            units = dict.fromkeys(INVENTORIES, 1) if claim.hold else trial.steps
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

    @invariant()
    def further_reads_match_the_model(self):
        """Compare other reads with the model; they take turns."""
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
        extended = self.get(f"/allocations/{uuid}")
        plain = self.call("GET", f"/allocations/{uuid}", version="1.12").json()
        assert (
            flat(extended["allocations"]) == flat(plain["allocations"]) == self.model.amounts(uuid)
        )
        assert (extended.get("hold") is not None) == (uuid in self.model.holds)
        assert "hold" not in plain
        assert bool(self.model.amounts(uuid)) == ("project_id" in plain)

    def read_requests(self, _turn):
        """GET /allocations/{uuid}: the kept requests of consumers, present and past."""
        for uuid in CONSUMERS:
            document = self.get(f"/allocations/{uuid}")
            stored_request, _ = self.model.requests.get(uuid, (None, None))
            assert document["request"] == stored_request, uuid
            assert document["request_valid"] == (
                stored_request and self.is_valid(uuid, stored_request)
            )

    def is_valid(self, uuid, request):
        """Return whether the allocations of a consumer, and draws from it, add up to a query."""
        sums = Counter()
        for (_, name), amount in self.model.amounts(uuid).items():
            sums[name] += amount
        for draw in self.model.draws:
            if draw.hold == uuid:
                sums[draw.inventory[1]] += draw.amount
        return any(classes_of(query) == sums for query in request)

    def read_sums(self, turn):
        """GET /resource_providers/{uuid}/usages, GET /treeclaim/totals."""
        provider = PROVIDERS[turn % len(PROVIDERS)]
        names = [
            key[1]
            for key in INVENTORIES
            if key[0] == provider and self.model.capacity[key] is not None
        ]
        usages = self.get(f"/resource_providers/{provider}/usages")["usages"]
        assert usages == {name: self.model.used((provider, name)) for name in names}
        totals = self.get("/treeclaim/totals")["totals"]
        for name, sums in totals.items():
            keys = [key for key in INVENTORIES if key[1] == name]
            assert sums["used"] == sum(self.model.used(key) for key in keys)
            assert sums["held"] == sum(
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
                provider
                for provider, resource_class in INVENTORIES
                if resource_class == name
                and model.has_room({(provider, name): amount}, sources, Clock.time)
                and not model.is_barred({(provider, name): amount}, tolerates, model)
            }
            for model in (self.model, later)
        )
        assert least <= providers <= most

    def teardown(self):
        """Check that an audit finds no fault of the service."""
        findings = self.get("/treeclaim/audit")["findings"]
        for kind in ("broken_hold", "broken_draw", "without_consumer", "empty_consumer"):
            assert findings[kind]["count"] == 0, findings[kind]


def condition_path(provider, key):
    return f"/treeclaim/providers/{provider}/conditions/{key}"


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
    # The work of the threads is a rule here, so that calls before it are tried too.
    monkeypatch.setattr(Housekeeper, "start", lambda _housekeeper: None)
    with (
        services_on_database(database_url, folder) as (services, application),
        client_of(application, **{"x-roles": "admin,service"}) as client,
    ):
        client.put("/resource_classes/CUSTOM_SLICE")
        client.put("/resource_classes/CUSTOM_PART")
        for trait in TRAITS.values():
            client.put(f"/traits/{trait}")
        run_histories(HttpCalls, monkeypatch, steps, client=client, store=services.store)
