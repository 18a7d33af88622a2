# SPDX-License-Identifier: Apache-2.0
"""Random operations of the store follow the model, alone and in groups, and so does a reader.

The machine is that of the calls over HTTP; nothing between the store and the database is left out here.
"""

from contextlib import closing
from typing import Any

import pytest
from hypothesis.stateful import invariant, rule

from tests.databases import EACH_DATABASE
from tests.properties.claim_calls import (
    CONSUMERS,
    NEWEST,
    PARENTS,
    PROVIDERS,
    TRAITS,
    flat,
    inventories_of,
    is_expected,
    minor_of,
    nested,
    several_claims,
    text_of,
)
from tests.properties.claim_histories import Clock, Picture, run_histories
from tests.properties.claim_machine import ClaimMachine
from tests.reference.model import HOLD
from tests.service import fresh_database_on
from tests.tiers import examples
from treeclaim.model import errors
from treeclaim.model.claim import ConsumerClaim, HoldTerms, Omission, ReshapedInventory
from treeclaim.model.extension import errors as extension_errors
from treeclaim.model.extension.batch import BatchEntry
from treeclaim.model.provider import EFFECTS, Consumption, Inventory
from treeclaim.model.provider import Condition as StoredCondition
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations import reshaper
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations.holds import change_terms
from treeclaim.store.operations.allocations.kept_requests import change_requests
from treeclaim.store.operations.allocations.locking import SeparateTransactionsError
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.providers import conditions, providers
from treeclaim.store.operations.providers.entries import write_entries
from treeclaim.store.reading.consumers import find_consumer_rows, load_allocations
from treeclaim.store.reading.holders import load_consumer_details

USUAL_STEPS = 240

REASONS = {
    errors.CapacityExceededError: "capacity",
    errors.UnitConstraintError: "units",
    errors.InventoryMissingError: "no inventory",
    errors.InventoryInUseError: "in use",
    errors.ConsumerGenerationConflictError: "generation",
    errors.NotFoundError: "nothing",
    extension_errors.ConsumerExistsError: "exists",
    errors.InvalidValueError: "misused",
}


def reason_of(refusal):
    """Return a refusal in the words of the model; None for none."""
    if isinstance(refusal, extension_errors.HoldRefusedError):
        return f"{refusal.reason} {refusal.uuid}"
    if isinstance(refusal, extension_errors.ConditionedError):
        return f"condition {refusal.provider_uuid} {refusal.key}"
    return None if refusal is None else REASONS.get(type(refusal), str(refusal))


def claim_of(claim, version):
    """Return a claim of the model as the store receives it from a client of a version."""
    kind = HOLD if claim.hold else claim.type
    return ConsumerClaim(
        claim.consumer,
        {uuid: share["resources"] for uuid, share in nested(claim.amounts).items()},
        claim.project,
        "u",
        Omission.OMITTED if claim.generation == "unchecked" else claim.generation,
        kind if minor_of(version) >= 38 else Omission.OMITTED,
        knows_holds=claim.knows_holds,
        hold=claim.hold and HoldTerms(**claim.hold | {"projects": tuple(claim.hold["projects"])}),
        from_holds=claim.sources,
        request=Omission.OMITTED if claim.request == "unchanged" else claim.request,
        tolerates=claim.tolerates,
    )


def stored_inventories(capacity, provider, **options):
    """Return the inventories of a provider as the store receives them."""
    inventories = {}
    for name, body in inventories_of(capacity, provider, **options).items():
        consumes = [Consumption(*entry.values()) for entry in body.pop("consumes", ())]
        inventories[name] = Inventory(**body, consumes=consumes or None)
    return inventories


class StoreCalls(ClaimMachine):
    """Operations of a store."""

    replica: Any

    def write(self, function, *arguments, **options):
        """Return the reason of a refusal."""
        try:
            self.store.write(function, *arguments, **options)
        except errors.TreeclaimError as refusal:
            return reason_of(refusal)
        return None

    def send_claim(self, claim, version):
        return self.send_claims([claim], version)

    def send_claims(self, claims, version):
        request = ClaimRequest([claim_of(claim, version) for claim in claims])
        return self.write(claim_writes.write_request, request)

    def send_release(self, consumer, _version):
        return self.write(claim_writes.write_request, ClaimRequest.release(consumer))

    def send_reshape(self, claims, capacity, providers, version):
        query = "SELECT uuid, generation FROM resource_providers"
        generations = dict(map(tuple, self.store.read(lambda reading: reading.rows(query))))
        reshaped = [
            ReshapedInventory(
                uuid,
                generations[uuid],
                stored_inventories(capacity, uuid, with_consumption=version == NEWEST),
            )
            for uuid in providers
        ]
        return self.write(
            reshaper.reshape, reshaped, [claim_of(claim, version) for claim in claims]
        )

    def send_providers(self, capacity, uuids, *, is_whole=False):
        entries = []
        for uuid in uuids:
            values = {"inventories": stored_inventories(capacity, uuid)}
            if is_whole:
                values["traits"] = frozenset({TRAITS[uuid]})
                entries.append(BatchEntry(uuid, uuid, parent=PARENTS[uuid], values=values))
            else:
                entries.append(BatchEntry(uuid, None, values=values))
        self.store.write(write_entries, entries, lambda _rule: True, create_names=True)

    def send_parent(self, provider, parent):
        return self.write(providers.update, provider, name=provider, parent=parent)

    def send_terms(self, terms):
        changes = {
            uuid: term | {"projects": tuple(term["projects"])} for uuid, term in terms.items()
        }
        return len(terms) - len(self.store.write(change_terms, changes))

    def send_requests(self, requests):
        return self.store.write(change_requests, requests)

    def send_condition(self, provider, key, condition):
        effect = EFFECTS[condition.effect]
        stored_condition = StoredCondition(
            key, effect, condition.until, condition.on_use, condition.began
        )
        self.store.write(conditions.put, provider, stored_condition)

    def send_no_condition(self, provider, key):
        return self.write(conditions.delete, provider, key) is None

    @rule(claims=several_claims(4))
    def write_group(self, claims):
        """Write the claims of several clients in one transaction, or apart: as one after the other."""
        claims = self.adapted(claims, NEWEST)
        requests = [ClaimRequest([claim_of(claim, NEWEST)]) for claim in claims]
        try:
            reasons = list(map(reason_of, self.store.write(claim_writes.write_group, requests)))
        except claim_writes.AllRefusedError as error:
            reasons = list(map(reason_of, error.refusals))
        except SeparateTransactionsError:
            reasons = [self.send_claim(claim, NEWEST) for claim in claims]
        expected = [self.write_model([claim]) for claim in claims]
        assert all(map(is_expected, reasons, expected)), (reasons, expected)
        self.changed = {claim.consumer for claim in claims}

    def read_picture(self):
        """Return all that is recorded of consumers, and the conditions that a reader of the feed has."""
        owners, shares, details = self.store.read(
            lambda reading: (
                find_consumer_rows(reading, CONSUMERS),
                load_allocations(reading, CONSUMERS),
                load_consumer_details(reading, CONSUMERS),
            )
        )
        consumers = {
            uuid: {
                "generation": row.generation,
                "project": row.project,
                "type": row.type or "unknown",
                "amounts": flat(shares.get(uuid, {})),
            }
            for uuid, row in owners.items()
        }
        terms = {uuid: stored.to_document() for uuid, stored in details.holds.items()}
        return Picture(
            consumers,
            {
                uuid: {name: document[name] for name in ("until", "returns", "projects")}
                for uuid, document in terms.items()
            },
            {uuid: flat(document["drawn"]) for uuid, document in terms.items()},
            {
                (uuid, hold): flat(drawn)
                for uuid, by_hold in details.draws.items()
                for hold, drawn in by_hold.items()
            },
            {uuid: details.requests.get(uuid) for uuid in shares},
            self.shown_conditions(),
        )

    def shown_conditions(self):
        """Return the conditions that a reader of the feed has, but for ended ones."""
        with self.replica.borrow_forest() as forest:
            return {
                (provider, condition.key): (
                    condition.effect.word,
                    text_of(condition.until),
                    condition.on_use,
                    condition.began,
                )
                for provider in PROVIDERS
                for condition in forest.conditions(forest.row_of(provider))
                if not condition.has_ended(Clock.time)
            }

    @invariant()
    def reader_has_the_used_amounts(self):
        with self.replica.borrow_forest() as forest:
            used = {
                (provider, view.resource_class): view.used
                for provider in PROVIDERS
                for view in forest.inventories(forest.row_of(provider))
            }
        assert used == {
            inventory: self.model.used(inventory)
            for inventory, total in self.model.capacity.items()
            if total is not None
        }


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_random_operations_match_the_model(kind, tmp_path, monkeypatch):
    with (
        fresh_database_on(kind, tmp_path) as url,
        closing(Store(DatabaseSettings(url, sqlite_synchronous=False))) as store,
    ):
        members = {"store": store, "replica": Replica(store)}
        run_histories(StoreCalls, monkeypatch, examples(USUAL_STEPS), **members)
