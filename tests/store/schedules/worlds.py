# SPDX-License-Identifier: Apache-2.0
"""All operations that write, in scripts of worlds, where each script runs concurrently with each other one.

A test fails for an operation of the store that is in no script.
"""

import math
from dataclasses import replace
from datetime import timedelta

from tests.store.hosts import write_inventories
from tests.store.schedules.places import BEGINNING
from tests.store.schedules.world import GENERATION, Operation, Script, World, text_of_refusal
from treeclaim.model.claim import HOLD_TYPE, ConsumerClaim, HoldTerms, Omission, ReshapedInventory
from treeclaim.model.extension.audit import FindingKind
from treeclaim.model.extension.batch import BatchEntry
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, TRAITS
from treeclaim.model.provider import Condition, Consumption, Effect, Inventory, Provider
from treeclaim.store import housekeeping
from treeclaim.store.audit import repairs
from treeclaim.store.operations import aggregate_names, mixes, reshaper
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.allocations import kept_requests
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue import resource_classes, standard_names
from treeclaim.store.operations.catalogue import traits as trait_names
from treeclaim.store.operations.providers import conditions, providers
from treeclaim.store.operations.providers.entries import write_entries, write_part
from treeclaim.store.operations.providers.part_writer import (
    GenerationRule,
    InventoryScope,
    WriteRules,
)
from treeclaim.store.takeover import data_migrations

UNCHECKED = Omission.OMITTED

NAMED_AGGREGATE, UNNAMED_AGGREGATE = (
    f"a0000000-0000-4000-8000-00000000000{number}" for number in (1, 2)
)
HOST, SPARE, SHARE = "host", "spare", "share"
CARD, SLICE = "card", "slice"
MINE, OTHER, NEW, HOLD = "mine", "other", "new", "held"
GOLD, SILVER, LEAD = "CUSTOM_GOLD", "CUSTOM_SILVER", "CUSTOM_LEAD"
CONSUMER_STATES = ("absent", "present", "unrecorded", "left-behind")
ONCE = Condition("ONCE", Effect.NO_NEW, on_use=True, began=False)
EVERYTHING = timedelta(seconds=-1)
OWNER = ("incomplete", "incomplete")


def write(function, *args, **kwargs):
    """A write of the store, as handlers call it."""
    return Operation(
        function, lambda session: _timeless(session.store.write(function, *args, **kwargs))
    )


def _timeless(result):
    return replace(result, modified_at=0.0) if isinstance(result, Provider) else result


def claim(consumer, generation, resource_class="VCPU", **amounts):
    """A claim for amounts by provider; without amounts it removes all allocations."""
    return ConsumerClaim(
        consumer_uuid=consumer,
        allocations={provider: {resource_class: amount} for provider, amount in amounts.items()},
        project_id="known",
        user_id="known",
        generation=generation,
    )


def put(*claims):
    """PUT of one claim, POST of several claims."""
    return write(allocations.write_request, ClaimRequest(claims))


def place(*claims):
    """Placements: claims of consumers without allocations that a search found."""
    return write(allocations.write_request, ClaimRequest(claims, is_placement=True))


def reshape(inventories, *claims):
    """POST of all inventories of some providers, by name, and of claims."""
    reshaped = [
        ReshapedInventory(name, GENERATION, inventories_by_class)
        for name, inventories_by_class in inventories.items()
    ]
    return write(reshaper.reshape, reshaped, claims)


def batch(*entries):
    """POST of many providers."""
    return write(write_entries, entries, lambda _rule: True, create_names=False)


def stock(**totals):
    """Inventories by class."""
    return {name: Inventory(total) for name, total in totals.items()}


def consuming(**amounts):
    """An inventory of eight units of memory, each of which consumes units of the host."""
    entries = tuple(Consumption(HOST, name, amount) for name, amount in amounts.items())
    return {"MEMORY_MB": Inventory(8, consumes=entries)}


def put_stock(provider, inventories, generation=GENERATION):
    """PUT of all inventories of a provider."""
    return write(write_inventories, provider, inventories, generation)


def set_stock(provider, **totals):
    """PUT of inventories with these totals."""
    return put_stock(provider, stock(**totals))


def change_stock(provider, scope, inventories, generation=None):
    """POST, PUT or DELETE of an inventory of a class that must be missing or present."""
    return write(write_inventories, provider, inventories, generation, scope=scope)


def add_stock(provider, resource_class):
    """POST of an inventory."""
    return change_stock(provider, InventoryScope.MISSING, {resource_class: Inventory(8)})


def delete_stock(provider, resource_class):
    """DELETE of an inventory."""
    return change_stock(provider, InventoryScope.PRESENT, {resource_class: None})


def release(consumer):
    """DELETE of allocations."""
    return write(allocations.write_request, ClaimRequest.release(consumer))


def group(*clients):
    """Requests, or single claims, of several clients that one transaction writes; serial orders separate them."""
    requests = [
        client if isinstance(client, ClaimRequest) else ClaimRequest([client])
        for client in clients
    ]

    def commit(session):
        try:
            refusals = session.store.write(allocations.write_group, requests)
        except allocations.AllRefusedError as error:
            refusals = error.refusals
        return tuple(
            "None" if refusal is None else text_of_refusal(refusal) for refusal in refusals
        )

    operations = tuple(write(allocations.write_request, request) for request in requests)
    return Script(operations, commit)


def mend(kind, **item):
    """A repair of a finding."""
    return Operation(
        None, lambda session: repairs.repair(session.store, kind, item, OWNER, until=math.inf)
    )


def create(uuid, parent=None, name=None):
    """POST of a provider."""
    return write(providers.create, uuid=uuid, name=name or f"name of {uuid}", parent_uuid=parent)


def move(uuid, parent):
    """PUT of a provider with another parent."""
    return write(providers.update, uuid, name=f"name of {uuid}", parent=parent)


CATCH_UP = Operation(None, lambda session: session.read())
"""A worker that has read the initial world, and catches up."""


def _prune(session):
    session.store.housekeeper.prune(EVERYTHING)


PRUNE = Operation(housekeeping.delete_oldest, _prune)
"""Prunes all rows of the feed in several transactions."""

READ_AND_PRUNE = {"prune": PRUNE, "read": CATCH_UP}


def world_of_consumers(name, state):
    """A host with 8 units, of which another consumer uses 2, and a consumer in the state."""
    world = World(f"{name}-{state}", "host: {VCPU: 8}\nspare: {VCPU: 8}")
    world.add_consumer(OTHER, host=2)
    amounts = {HOST: 4} if state in {"present", "unrecorded"} else {}
    world.add_consumer(MINE, is_recorded=state in {"present", "left-behind"}, **amounts)
    return world


def groups_world(state):
    """Groups of claims and single writes, on the rows of `world_of_consumers`."""
    world = world_of_consumers("groups", state)
    own_claim, new_claim = claim(MINE, UNCHECKED, host=4), claim(NEW, UNCHECKED, host=4)
    world.add(
        {
            "group-one-fits": group(own_claim, new_claim),
            "group-refused-first": group(
                claim(NEW, None, host=7),
                claim(MINE, UNCHECKED, spare=3),
                claim(OTHER, 1, host=1, spare=6),
            ),
            "group-release-and-refill": group(
                ClaimRequest.release(MINE), claim(NEW, None, host=6)
            ),
            "group-all-refused": group(claim(NEW, None, host=9), claim(MINE, 7, host=1)),
            "group-exchange": group(
                ClaimRequest([claim(OTHER, UNCHECKED), new_claim]), claim(MINE, UNCHECKED)
            ),
            "group-with-placement": group(
                ClaimRequest([claim(MINE, None, host=4)], is_placement=True), new_claim
            ),
        }
    )
    single = {
        "put-null": put(claim(MINE, None, host=4)),
        "put-other": put(claim(NEW, None, host=6)),
        "move": put(claim(MINE, UNCHECKED, spare=4)),
        "delete": release(MINE),
        "shrink": set_stock(HOST, VCPU=2),
        "read": CATCH_UP,
    }
    world.add(single, are_explored=True)
    return world


def claims_world(state):
    """Single claims and conflicting writes, on the rows of `world_of_consumers`."""
    world = world_of_consumers("claims", state)
    fill, refill = (put(claim(NEW, generation, host=6)) for generation in (UNCHECKED, None))
    born, away = put(claim(MINE, UNCHECKED, host=4)), put(claim(MINE, UNCHECKED, spare=4))
    world.add(
        {
            "put-null": put(claim(MINE, None, host=4)),
            "put-old": born,
            "move": away,
            "put-away": put(claim(MINE, 1, spare=4)),
            "put-empty-null": put(claim(MINE, None)),
            "put-empty": put(claim(MINE, 1)),
            "post-exchange": put(claim(MINE, UNCHECKED), claim(NEW, UNCHECKED, host=6)),
            "post-two": put(claim(NEW, UNCHECKED, spare=8), claim(MINE, UNCHECKED, host=1)),
            "place-two": place(claim(MINE, None, spare=4), claim(NEW, None, host=6)),
            "place-mine": place(claim(MINE, None, host=4)),
            "delete": release(MINE),
            "delete-and-refill": (release(MINE), refill),
            "born-and-gone": (born, release(MINE), fill),
            "born-and-moved": (born, away),
            "reshape": reshape(
                {HOST: stock(VCPU=2), SPARE: stock(VCPU=8)}, claim(MINE, UNCHECKED, spare=4)
            ),
            "record-owners": write(data_migrations.create_incomplete_consumers, 100, OWNER),
        }
    )
    # These scripts do not touch the consumer. The last two states differ only in its record.
    other_scripts = {
        "put-other": put(claim(NEW, None, host=6)),
        "shrink": set_stock(HOST, VCPU=2),
        "delete-inventory": delete_stock(HOST, "VCPU"),
        "delete-all-inventories": write(write_inventories, SPARE, {}),
        "delete-provider": write(providers.delete, SPARE),
        **READ_AND_PRUNE,
    }
    world.add(other_scripts, are_explored=state not in {"absent", "present"})
    if state == "left-behind":
        world.add({"repair-empty": mend(FindingKind.EMPTY_CONSUMER, consumer=MINE)})
    if state == "unrecorded":
        world.add({"repair-record": mend(FindingKind.WITHOUT_CONSUMER, consumer=MINE)})
    return world


def trees_world():
    """Trees of three and of one provider, and a provider without a root below `child`, as in old data."""
    world = World("trees", "root:\n  child:\n    leaf:\nother:")
    rootless = {"uuid": "rootless", "name": "rootless", "generation": GENERATION}
    world.add_row("resource_providers", id=9, parent_provider_id=2, **rootless)
    world.add(
        {
            "create-root": create("made"),
            "create-below": create("made", "leaf"),
            "create-namesake": create("second", "other", "name of made"),
            "rename": write(providers.update, "leaf", name="name of made"),
            "move-child": move("child", "other"),
            "move-root": move("root", "other"),
            "move-other": move("other", "leaf"),
            "unparent": move("child", None),
            "delete-leaf": write(providers.delete, "leaf"),
            "replace-leaf": (write(providers.delete, "leaf"), create("made", "child")),
            "delete-other": write(providers.delete, "other"),
            "repair-root": mend(FindingKind.BROKEN_ROOT, provider="rootless"),
            "move-rootless": move("rootless", "leaf"),
            "set-roots": write(data_migrations.set_root_provider_ids, 100, OWNER),
            **READ_AND_PRUNE,
        }
    )
    return world


def classes_world(*, stocked):
    """A custom class, with its last inventory or without any."""
    name, resource_class = ("stocked", GOLD) if stocked else ("free", "VCPU")
    world = World(f"classes-{name}", f"host: {{{resource_class}: 8}}")
    world.id_of("resource_classes", name=GOLD)
    swap = [write(resource_classes.delete, GOLD), write(resource_classes.create, SILVER)]
    if stocked:
        swap = [delete_stock(HOST, GOLD), *swap, add_stock(HOST, SILVER)]
    gold = {GOLD: Inventory(2)}
    world.add(
        {
            "delete-class": write(resource_classes.delete, GOLD),
            "create-class": write(resource_classes.create, SILVER),
            "ensure-class": write(resource_classes.ensure, SILVER),
            "rename-class": write(resource_classes.rename, GOLD, LEAD),
            "swap-class": tuple(swap),
            "add-inventory": add_stock(HOST, GOLD),
            "replace-inventories": set_stock(HOST, **{GOLD: 4}),
            "replace-inventory": change_stock(HOST, InventoryScope.PRESENT, gold, GENERATION),
            "delete-inventory": delete_stock(HOST, GOLD),
            "claim": put(claim(NEW, None, GOLD, host=2)),
            "claim-silver": put(claim(NEW, None, SILVER, host=2)),
            "create-class-and-host": (
                write(resource_classes.ensure, SILVER),
                create(SPARE),
                add_stock(SPARE, SILVER),
            ),
            "claim-spare": put(claim(NEW, None, SILVER, spare=2)),
            "reshape": reshape({HOST: stock(**{GOLD: 4})}, claim(NEW, None, GOLD, host=2)),
            "read": CATCH_UP,
        }
    )
    return world


def parts_world():
    """Two providers in an aggregate, one of them sharing, and a custom trait."""
    share = "share: traits[MISC_SHARES_VIA_AGGREGATE] aggs[rack]"
    world = World("parts", f"host: {{VCPU: 8}} aggs[rack]\n{share}")
    world.id_of("traits", name=GOLD)
    world.add_row("treeclaim_attributes", resource_provider_id=2, name="ecc", value="1")
    parts = {
        "traits": {GOLD},
        "aggregates": {"row"},
        "attributes": {"ecc": True},
        "inventories": stock(VCPU=2),
    }
    described = {HOST: {"ecc": 1, "gib": 80}, SHARE: {"ecc": True}}
    describe, describe_other = (
        write(write_part, name, ATTRIBUTES, values, GENERATION)
        for name, values in described.items()
    )
    rules, early_rules = WriteRules(GenerationRule.ALWAYS), WriteRules(GenerationRule.NEVER)
    world.add(
        {
            "join": write(write_part, HOST, AGGREGATES, ["rack", "row"], GENERATION, rules=rules),
            "join-other": write(write_part, SHARE, AGGREGATES, ["row"], rules=early_rules),
            "repair-aggregate": mend(FindingKind.UNUSED_AGGREGATE, uuid="row"),
            "leave": write(write_part, SHARE, AGGREGATES, [], rules=early_rules),
            "give-trait": write(write_part, HOST, TRAITS, {GOLD}, GENERATION),
            "clear-traits": write(write_part, SHARE, TRAITS, set()),
            "describe": describe,
            "describe-other": describe_other,
            "create-trait": write(trait_names.ensure, SILVER),
            "delete-trait": write(trait_names.delete, GOLD),
            "swap-trait": (write(trait_names.delete, GOLD), write(trait_names.ensure, SILVER)),
            "delete-provider": write(providers.delete, SHARE),
            "swap-provider": (write(providers.delete, SHARE), create("made")),
            "apply-all": batch(
                BatchEntry(HOST, None, values=parts),
                BatchEntry("made", "name of made", parent=HOST),
            ),
            "apply-parts": batch(
                BatchEntry(SHARE, None, parent=HOST, values={"aggregates": frozenset()}),
                BatchEntry(HOST, "renamed", parent=Omission.OMITTED, generation=GENERATION),
            ),
            **READ_AND_PRUNE,
        }
    )
    return world


def consumption_world():
    """A host with eight units, of which each unit of two providers below it consumes three."""
    below = "  spare: {MEMORY_MB: 8}\n  share: {MEMORY_MB: 8}"
    world = World("consumption", f"host: {{VCPU: 8}}\n{below}")
    for number in (2, 3):
        inventory = {"resource_provider_id": number, "resource_class_id": 1}
        consumed = {"consumed_provider_id": 1, "consumed_class_id": 0, "amount": 3}
        world.add_row("treeclaim_consumption", **inventory, **consumed)
    world.add_consumer(OTHER, host=2)
    world.add_consumer(HOLD, "MEMORY_MB", share=1)
    spare_entry = BatchEntry(SPARE, None, values={"inventories": consuming(VCPU=4)})
    world.add(
        {
            "claim-spare": put(claim(MINE, None, "MEMORY_MB", spare=1)),
            "claim-share": put(claim(NEW, None, "MEMORY_MB", share=1)),
            "claim-host": put(claim(NEW, None, host=3)),
            "place-spare": place(claim(MINE, None, "MEMORY_MB", spare=1)),
            "move": put(claim(HOLD, UNCHECKED, "MEMORY_MB", spare=1)),
            "release": release(HOLD),
            "consume-more": put_stock(SHARE, consuming(VCPU=4)),
            "consume-nothing": put_stock(SHARE, consuming()),
            "delete-inventory": delete_stock(HOST, "VCPU"),
            "delete-provider": write(providers.delete, SPARE),
            "part": move(SHARE, None),
            "reshape": reshape(
                {SPARE: consuming(VCPU=2)}, claim(HOLD, UNCHECKED, "MEMORY_MB", spare=2)
            ),
            "apply": batch(spare_entry),
            "read": CATCH_UP,
        }
    )
    return world


def shared_shard_world():
    """Writers that wait for one shard of the feed."""
    world = World("shared-shard", "host: {VCPU: 8}", shares_a_shard=True)
    world.add(
        {
            "claim": put(claim(NEW, None, host=2)),
            "shrink": set_stock(HOST, VCPU=2),
            **READ_AND_PRUNE,
        }
    )
    return world


def followed_world():
    """Claims in different shards of the feed, and a reader that polls three times."""
    world = world_of_consumers("followed", "present")
    refill = claim(NEW, None, host=6)
    world.add(
        {
            "put-old": put(claim(MINE, UNCHECKED, host=3)),
            "move": put(claim(MINE, UNCHECKED, spare=4)),
            "post-two": put(claim(NEW, UNCHECKED, spare=1), claim(MINE, UNCHECKED, host=1)),
            "place-new": place(claim(NEW, None, spare=1, host=1)),
            "delete-and-refill": (release(MINE), put(refill)),
            "group-release-and-refill": group(ClaimRequest.release(MINE), refill),
            "shrink": set_stock(HOST, VCPU=2),
            "prune": PRUNE,
            "read-often": (CATCH_UP,) * 3,
        }
    )
    return world


def holds_world(*, ended):
    """A returning hold of 8 units, 2 of them drawn; it is expired or has no end."""
    world = World("holds-ended" if ended else "holds", "host: {VCPU: 12}\nspare: {VCPU: 8}")
    world.add_row("consumer_types", id=1, name=HOLD_TYPE)
    for consumer, used in ((HOLD, 6), (MINE, 2), (OTHER, 1)):
        world.add_consumer(consumer, host=used)
        world.rows["consumers"][-1]["consumer_type_id"] = 1 if consumer == HOLD else None
    ends_at = BEGINNING if ended else None
    world.add_row("treeclaim_holds", uuid=HOLD, ends_at=ends_at, returns=True)
    draw_values = {"provider_id": 1, "class_id": 0, "hold_uuid": HOLD, "amount": 2}
    world.add_row("treeclaim_draws", consumer_uuid=MINE, **draw_values)

    def drawing(consumer, amount, generation=UNCHECKED):
        return replace(claim(consumer, generation, host=amount), from_holds=[HOLD])

    terms = HoldTerms(returns=True, projects=("other",))
    claim_with_request = replace(claim(OTHER, UNCHECKED, host=1), request=["resources=VCPU:1"])
    requests_by_consumer = {OTHER: ["resources=VCPU:2"]}
    world.add(
        {
            "draw": put(drawing(NEW, 4)),
            "draw-all": put(drawing(OTHER, 7)),
            "claim": put(claim("more", None, host=3)),
            "return": release(MINE),
            "return-some": put(claim(MINE, UNCHECKED, host=1)),
            "pass-on": put(claim(MINE, UNCHECKED), claim(NEW, UNCHECKED, host=2)),
            "place": place(drawing(NEW, 4, None)),
            "write-hold": put(replace(claim(HOLD, UNCHECKED, host=3), hold=terms)),
            "end": release(HOLD),
            "end-by-time": write(hold_writes.end_expired, [HOLD]),
            "forget": write(hold_writes.change_terms, {HOLD: {"returns": False}}),
            "keep-alive": write(hold_writes.change_terms, {HOLD: {"note": "alive"}}),
            "mend": write(hold_writes.delete_excess_draws, MINE),
            "keep-request": (put(claim_with_request), release(OTHER)),
            "name-request": write(kept_requests.change_requests, requests_by_consumer),
            "prune-requests": (
                write(kept_requests.mark_without_record, [OTHER, NEW]),
                write(kept_requests.delete_old),
            ),
            "reshape": reshape({SPARE: stock(VCPU=8)}, claim(MINE, UNCHECKED, spare=2)),
            "group-draw-and-return": group(
                drawing(NEW, 4), ClaimRequest.release(MINE), drawing(OTHER, 4)
            ),
        }
    )
    if not ended:
        # Before a write, a separate transaction removes the expired hold. A reader may see the state between both.
        world.add({"read": CATCH_UP})
    return world


def conditions_world(*, armed):
    """A host with a card and its slice, and another host; if `armed`, a condition waits for its first use."""
    trees = "host: {VCPU: 8}\n  card: {VCPU: 8}\n    slice: {VCPU: 8}\nspare: {VCPU: 8}"
    world = World("conditions-armed" if armed else "conditions", trees)
    world.add_consumer(MINE, card=2)
    if armed:
        row = {"effect": 1, "reason": '""'}
        for number, name, end in ((1, "ONCE", None), (2, "ENDED", BEGINNING)):
            times = {"ends_at": end, "on_use": end is None, "began": end is not None}
            world.add_row(
                "treeclaim_conditions", resource_provider_id=number, name=name, **row, **times
            )
    tolerant = replace(claim("tolerant", None, slice=1), tolerates=frozenset({"CLEANING", "ONCE"}))
    cleaning = Condition("CLEANING", Effect.NO_NEW)
    world.add(
        {
            "put": write(conditions.put, HOST, cleaning),
            "put-below": write(conditions.put, SLICE, Condition("CLEANING", Effect.LEAVE)),
            "arm": write(conditions.put, HOST, replace(ONCE, reason="again")),
            "put-and-delete": (
                write(conditions.put, CARD, cleaning),
                write(conditions.delete, CARD, "CLEANING"),
            ),
            "delete": write(conditions.delete, HOST, "ONCE"),
            "end": write(conditions.end_expired, [(2, "ENDED"), (1, "ONCE")]),
            "claim-host": put(claim(NEW, None, host=2)),
            "claim-slice": put(claim("more", None, slice=2)),
            "claim-both": put(claim("both", None, slice=1), claim("two", None, spare=1)),
            "claim-tolerant": put(tolerant),
            "hand-over": put(claim(MINE, UNCHECKED), claim(NEW, None, slice=2)),
            "release": release(MINE),
            "place-two": place(claim("first", None, host=1), claim("second", None, card=1)),
            "move-below": move(SPARE, SLICE),
            "move-away": move(CARD, SPARE),
            "claim-spare": put(claim("third", None, spare=2)),
            "create-below": (
                create("made", SLICE),
                add_stock("made", "VCPU"),
                put(claim(OTHER, None, made=2)),
            ),
            "delete-slice": write(providers.delete, SLICE),
            "group-of-two": group(claim(NEW, None, card=1), claim(OTHER, None, slice=1)),
            "read": CATCH_UP,
        }
    )
    return world


def names_world():
    """An empty database, which two services fill with the standard names."""
    world = World("names")
    world.rows["traits"].clear()
    world.rows["resource_classes"].clear()
    world.add(
        {
            "sync-names": write(standard_names.sync_standard_names),
            "create-trait": write(trait_names.ensure, GOLD),
            "create-class": write(resource_classes.ensure, GOLD),
        }
    )
    return world


def words_world():
    """A mix, and an aggregate with a name: data outside of Placement's tables."""
    world = World("words")
    world.add_row("treeclaim_mixes", name="day", slot=0, body="{}")
    world.add_row("treeclaim_aggregate_names", uuid=NAMED_AGGREGATE, name='"rack"')
    new_names = {NAMED_AGGREGATE: "rack 7", UNNAMED_AGGREGATE: "rack 8"}
    world.add(
        {
            "replace-mix": write(mixes.put, "day", {"requests": {}}),
            "replace-mix-otherwise": write(mixes.put, "day", {"requests": {"a": {}}}),
            "make-mix": write(mixes.put, "night", {"requests": {}}),
            "make-mix-otherwise": write(mixes.put, "night", {"requests": {"a": {}}}),
            "delete-mix": write(mixes.delete, "day"),
            "rename": write(aggregate_names.change_names, new_names),
            "name": write(aggregate_names.change_names, {UNNAMED_AGGREGATE: "rack 9"}),
            "take-name": write(aggregate_names.change_names, {NAMED_AGGREGATE: None}),
        }
    )
    return world


WORLDS = {
    world.name: world
    for world in (
        *map(claims_world, CONSUMER_STATES),
        *map(groups_world, CONSUMER_STATES),
        trees_world(),
        classes_world(stocked=True),
        classes_world(stocked=False),
        parts_world(),
        shared_shard_world(),
        followed_world(),
        consumption_world(),
        names_world(),
        words_world(),
        holds_world(ended=False),
        holds_world(ended=True),
        conditions_world(armed=False),
        conditions_world(armed=True),
    )
}
