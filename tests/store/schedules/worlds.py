# SPDX-License-Identifier: Apache-2.0
"""The one table of all that writes, and the worlds in which the writes meet.

Whoever adds an operation to the store gives it to a script of a world here; a test fails for
those that have none. From then on it is explored against all other scripts of its world.
"""

import math
from dataclasses import replace
from datetime import timedelta

from tests.store.schedules.places import BEGINNING
from tests.store.schedules.world import GENERATION, Operation, Script, World, script, told
from treeclaim.model.claim import HOLD_TYPE, ConsumerClaim, HoldTerms, Omission, ReshapedInventory
from treeclaim.model.extension.audit import FindingKind
from treeclaim.model.extension.batches.batch import BatchEntry
from treeclaim.model.provider import Condition, Consumes, Effect, Inventory, Provider
from treeclaim.store.audit import repairs
from treeclaim.store.feed import pruning
from treeclaim.store.operations import aggregate_names, mixes, reshaper
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.allocations import kept_requests, placements
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue import resource_classes, standard_names
from treeclaim.store.operations.catalogue import traits as trait_names
from treeclaim.store.operations.providers import (
    conditions,
    providers,
)
from treeclaim.store.operations.providers.entries import apply
from treeclaim.store.operations.providers.part_writer import Classes
from treeclaim.store.takeover import data_migrations

UNCHECKED = Omission.OMITTED

NAMED, UNNAMED = (f"a0000000-0000-4000-8000-00000000000{number}" for number in (1, 2))
HOST, SPARE, SHARE = "host", "spare", "share"
CARD, SLICE = "card", "slice"
MINE, OTHER, NEW, HELD = "mine", "other", "new", "held"
GOLD, SILVER, LEAD = "CUSTOM_GOLD", "CUSTOM_SILVER", "CUSTOM_LEAD"
CONSUMER_STATES = ("absent", "present", "unrecorded", "left-behind")
ONCE = Condition("ONCE", Effect.NO_NEW, on_use=True, began=False)
EVERYTHING = timedelta(seconds=-1)
OWNER = ("incomplete", "incomplete")


def write(function, *args, **kwargs):
    """An operation of `treeclaim.store.operations`, as handlers call it."""
    return Operation(
        (function,), lambda session: _timeless(session.store.write(function, *args, **kwargs))
    )


def _timeless(result):
    return replace(result, modified_at=0.0) if isinstance(result, Provider) else result


def claim(consumer, generation, resource_class="VCPU", **amounts):
    """A claim on providers by name; without amounts it removes all."""
    return ConsumerClaim(
        consumer_uuid=consumer,
        allocations={provider: {resource_class: amount} for provider, amount in amounts.items()},
        project_id="known",
        user_id="known",
        generation=generation,
    )


def put(*claims):
    """PUT of one, POST of several."""
    return write(allocations.write_request, ClaimRequest(claims))


def place(*claims):
    """Placements: claims of consumers that hold nothing yet, found by a search."""
    return write(placements.place, claims)


def batch(*entries):
    """POST of many providers."""
    return write(apply, entries, lambda _rule: True, create_names=False)


def stock(**totals):
    """Inventories by class."""
    return {name: Inventory(total) for name, total in totals.items()}


def set_stock(provider, generation=GENERATION, **totals):
    """PUT of all inventories of a provider."""
    return write(providers.write_inventories, provider, stock(**totals), generation)


def add_stock(provider, resource_class, total=8):
    """POST of an inventory."""
    return write(
        providers.write_inventories,
        provider,
        {resource_class: Inventory(total)},
        classes=Classes.MISSING,
    )


def delete_stock(provider, resource_class):
    """DELETE of an inventory."""
    return write(
        providers.write_inventories, provider, {resource_class: None}, classes=Classes.PRESENT
    )


def release(consumer):
    """DELETE of allocations."""
    return write(allocations.write_request, ClaimRequest.release(consumer))


def group(name, *requests):
    """Requests of several clients that one transaction writes.

    A serial order has each of them in a transaction of its own.
    """

    def commit(session):
        try:
            refusals = session.store.write(allocations.write_group, requests)
        except allocations.AllRefusedError as error:
            refusals = error.refusals
        return tuple("None" if refusal is None else told(refusal) for refusal in refusals)

    operations = tuple(write(allocations.write_request, request) for request in requests)
    return Script(name, operations, commit, allocations.write_group)


def mend(kind, **item):
    """A repair of a finding."""
    return Operation(
        (), lambda session: repairs.repair(session.store, kind, item, OWNER, until=math.inf)
    )


def create(uuid, parent=None, name=None):
    """POST of a provider."""
    return write(providers.create, uuid=uuid, name=name or f"name of {uuid}", parent_uuid=parent)


def move(uuid, parent):
    """PUT of a provider with another parent."""
    return write(providers.update, uuid, name=f"name of {uuid}", parent=parent)


FOLLOW = script("read", Operation((), lambda session: session.read()))
"""A worker that knows the world as it was, and catches up."""


def _prune(session):
    session.store.housekeeper.prune(EVERYTHING)


PRUNE = script(
    "prune",
    Operation((pruning.delete_oldest,), _prune),
)
"""All that the feed can lose, in several transactions."""


def world_of_consumers(name, state):
    """A host with 8 units, 2 of them in use by somebody else, and a consumer in some state."""
    world = World(f"{name}-{state}")
    world.provider(HOST, VCPU=8)
    world.provider(SPARE, VCPU=8)
    world.consumer(OTHER)
    world.holds(OTHER, HOST, "VCPU", 2)
    if state in {"present", "left-behind"}:
        world.consumer(MINE)
    if state in {"present", "unrecorded"}:
        world.holds(MINE, HOST, "VCPU", 4)
    return world


def groups_world(state):
    """Groups of claims beside single ones, for the rows of `world_of_consumers`."""
    world = world_of_consumers("groups", state)
    mine, new = claim(MINE, UNCHECKED, host=4), claim(NEW, UNCHECKED, host=4)
    world.add(
        group("group-one-fits", ClaimRequest([mine]), ClaimRequest([new])),
        group(
            "group-refused-first",
            ClaimRequest([claim(NEW, None, host=7)]),
            ClaimRequest([claim(MINE, UNCHECKED, spare=3)]),
            ClaimRequest([claim(OTHER, 1, host=1, spare=6)]),
        ),
        group(
            "group-release-and-refill",
            ClaimRequest.release(MINE),
            ClaimRequest([claim(NEW, None, host=6)]),
        ),
        group(
            "group-all-refused",
            ClaimRequest([claim(NEW, None, host=9)]),
            ClaimRequest([claim(MINE, 7, host=1)]),
        ),
        group(
            "group-exchange",
            ClaimRequest([claim(OTHER, UNCHECKED), claim(NEW, UNCHECKED, host=4)]),
            ClaimRequest([claim(MINE, UNCHECKED)]),
        ),
        group(
            "group-with-placement",
            ClaimRequest([claim(MINE, None, host=4)], is_placement=True),
            ClaimRequest([claim(NEW, UNCHECKED, host=4)]),
        ),
    )
    world.add(
        script("put-null", put(claim(MINE, None, host=4))),
        script("put-other", put(claim(NEW, None, host=6))),
        script("move", put(claim(MINE, UNCHECKED, spare=4))),
        script("delete", release(MINE)),
        script("shrink", set_stock(HOST, VCPU=2)),
        FOLLOW,
        are_explored=True,
    )
    return world


def claims_world(state):
    """Single claims, and all that meets them, for the rows of `world_of_consumers`."""
    world = world_of_consumers("claims", state)
    world.add(
        script("put-null", put(claim(MINE, None, host=4))),
        script("put-old", put(claim(MINE, UNCHECKED, host=4))),
        script("move", put(claim(MINE, UNCHECKED, spare=4))),
        script("put-away", put(claim(MINE, 1, spare=4))),
        script("put-empty-null", put(claim(MINE, None))),
        script("put-empty", put(claim(MINE, 1))),
        script("post-exchange", put(claim(MINE, UNCHECKED), claim(NEW, UNCHECKED, host=6))),
        script("post-two", put(claim(NEW, UNCHECKED, spare=8), claim(MINE, UNCHECKED, host=1))),
        script("place-two", place(claim(MINE, None, spare=4), claim(NEW, None, host=6))),
        script("place-mine", place(claim(MINE, None, host=4))),
        script("delete", release(MINE)),
        script("delete-and-refill", release(MINE), put(claim(NEW, None, host=6))),
        script(
            "born-and-gone",
            put(claim(MINE, UNCHECKED, host=4)),
            release(MINE),
            put(claim(NEW, UNCHECKED, host=6)),
        ),
        script(
            "born-and-moved",
            put(claim(MINE, UNCHECKED, host=4)),
            put(claim(MINE, UNCHECKED, spare=4)),
        ),
        script(
            "reshape",
            write(
                reshaper.reshape,
                [
                    ReshapedInventory(HOST, GENERATION, stock(VCPU=2)),
                    ReshapedInventory(SPARE, GENERATION, stock(VCPU=8)),
                ],
                [claim(MINE, UNCHECKED, spare=4)],
            ),
        ),
        script("record-owners", write(data_migrations.create_incomplete_consumers, 100, OWNER)),
    )
    # These do not touch the consumer, whose record alone is what the last two states lack or have.
    world.add(
        script("put-other", put(claim(NEW, None, host=6))),
        script("shrink", set_stock(HOST, VCPU=2)),
        script("delete-inventory", delete_stock(HOST, "VCPU")),
        script("delete-all-inventories", write(providers.write_inventories, SPARE, {})),
        script("delete-provider", write(providers.delete, SPARE)),
        PRUNE,
        FOLLOW,
        are_explored=state not in {"absent", "present"},
    )
    if state == "left-behind":
        world.add(script("repair-empty", mend(FindingKind.EMPTY_CONSUMER, consumer=MINE)))
    if state == "unrecorded":
        world.add(script("repair-record", mend(FindingKind.WITHOUT_CONSUMER, consumer=MINE)))
    return world


def trees_world():
    """Two trees of three and one."""
    world = World("trees")
    world.provider("root")
    world.provider("child", parent="root")
    world.provider("leaf", parent="child")
    world.provider("other")
    world.rows["resource_providers"].append(
        {"id": 9, "uuid": "rootless", "name": "rootless", "generation": GENERATION}
    )
    world.add(
        script("create-root", create("made")),
        script("create-below", create("made", "leaf")),
        script("create-namesake", create("second", "other", "name of made")),
        script("rename", write(providers.update, "leaf", name="name of made")),
        script("move-child", move("child", "other")),
        script("move-root", move("root", "other")),
        script("move-other", move("other", "leaf")),
        script("unparent", move("child", None)),
        script("delete-leaf", write(providers.delete, "leaf")),
        script("replace-leaf", write(providers.delete, "leaf"), create("made", "child")),
        script("delete-other", write(providers.delete, "other")),
        script("repair-root", mend(FindingKind.BROKEN_ROOT, provider="rootless")),
        script("move-rootless", move("rootless", "leaf")),
        script("set-roots", write(data_migrations.set_root_provider_ids, 100, OWNER)),
        PRUNE,
        FOLLOW,
    )
    return world


def classes_world(*, stocked):
    """A custom class, with its last inventory or without any."""
    world = World("classes-stocked" if stocked else "classes-free")
    world.resource_class(GOLD)
    world.provider(HOST, **({GOLD: 8} if stocked else {"VCPU": 8}))
    world.add(
        script("delete-class", write(resource_classes.delete, GOLD)),
        script("create-class", write(resource_classes.create, SILVER)),
        script("ensure-class", write(resource_classes.ensure, SILVER)),
        script("rename-class", write(resource_classes.rename, GOLD, LEAD)),
        script(
            "swap-class",
            *([delete_stock(HOST, GOLD)] if stocked else []),
            write(resource_classes.delete, GOLD),
            write(resource_classes.create, SILVER),
            *([add_stock(HOST, SILVER)] if stocked else []),
        ),
        script("add-inventory", add_stock(HOST, GOLD)),
        script("replace-inventories", set_stock(HOST, **{GOLD: 4})),
        script(
            "replace-inventory",
            write(
                providers.write_inventories,
                HOST,
                {GOLD: Inventory(2)},
                GENERATION,
                classes=Classes.PRESENT,
            ),
        ),
        script("delete-inventory", delete_stock(HOST, GOLD)),
        script("claim", put(claim(NEW, None, GOLD, host=2))),
        script("claim-silver", put(claim(NEW, None, SILVER, host=2))),
        script(
            "create-class-and-host",
            write(resource_classes.ensure, SILVER),
            create(SPARE),
            add_stock(SPARE, SILVER),
        ),
        script("claim-spare", put(claim(NEW, None, SILVER, spare=2))),
        script(
            "reshape",
            write(
                reshaper.reshape,
                [ReshapedInventory(HOST, GENERATION, stock(**{GOLD: 4}))],
                [claim(NEW, None, GOLD, host=2)],
            ),
        ),
        FOLLOW,
    )
    return world


def parts_world():
    """Two providers in an aggregate, one of them sharing, and a custom trait."""
    world = World("parts")
    world.provider(HOST, VCPU=8)
    world.provider(SHARE)
    world.rows["traits"].append({"id": 2, "name": GOLD})
    world.rows["placement_aggregates"].append({"id": 1, "uuid": "rack"})
    for provider in (1, 2):
        world.rows["resource_provider_aggregates"].append(
            {"resource_provider_id": provider, "aggregate_id": 1}
        )
    world.rows["resource_provider_traits"].append({"trait_id": 1, "resource_provider_id": 2})
    world.rows["treeclaim_attributes"].append(
        {"resource_provider_id": 2, "name": "ecc", "value": "1"}
    )
    world.add(
        script("join", write(providers.replace_aggregates, HOST, ["rack", "row"], GENERATION)),
        script("join-other", write(providers.replace_aggregates, SHARE, ["row"], None)),
        script("repair-aggregate", mend(FindingKind.UNUSED_AGGREGATE, uuid="row")),
        script("leave", write(providers.replace_aggregates, SHARE, [], None)),
        script("give-trait", write(providers.replace_traits, HOST, GENERATION, [GOLD])),
        script("clear-traits", write(providers.replace_traits, SHARE, None, [])),
        script(
            "describe",
            write(providers.replace_attributes, HOST, GENERATION, {"ecc": 1, "gib": 80}),
        ),
        script(
            "describe-other",
            write(providers.replace_attributes, SHARE, GENERATION, {"ecc": True}),
        ),
        script("create-trait", write(trait_names.ensure, SILVER)),
        script("delete-trait", write(trait_names.delete, GOLD)),
        script("swap-trait", write(trait_names.delete, GOLD), write(trait_names.ensure, SILVER)),
        script("delete-provider", write(providers.delete, SHARE)),
        script("swap-provider", write(providers.delete, SHARE), create("made")),
        script(
            "apply-all",
            batch(
                BatchEntry(
                    HOST,
                    None,
                    values={
                        "traits": {GOLD},
                        "aggregates": {"row"},
                        "attributes": {"ecc": True},
                        "inventories": stock(VCPU=2),
                    },
                ),
                BatchEntry("made", "name of made", parent=HOST),
            ),
        ),
        script(
            "apply-parts",
            batch(
                BatchEntry(SHARE, None, parent=HOST, values={"aggregates": frozenset()}),
                BatchEntry(HOST, "renamed", parent=Omission.OMITTED, generation=GENERATION),
            ),
        ),
        PRUNE,
        FOLLOW,
    )
    return world


def consumes(*entries):
    """Return the consumption of an inventory: names of provider and class, and the amount."""
    return tuple(Consumes(*entry) for entry in entries)


def consuming_stock(provider, **amounts):
    """PUT of an inventory whose units consume of the host's."""
    entries = consumes(*((HOST, name, amount) for name, amount in amounts.items()))
    new = {"MEMORY_MB": Inventory(8, consumes=entries)}
    return write(providers.write_inventories, provider, new, GENERATION)


def consumption_world():
    """A host with eight units, which two others below it consume by threes."""
    world = world_of_consumers("consumption", "absent")
    world.rows["resource_providers"][1] |= {"parent_provider_id": 1, "root_provider_id": 1}
    world.provider(SHARE, parent=HOST, MEMORY_MB=8)
    for number, provider in enumerate((SPARE, SHARE), 2):
        if provider == SPARE:
            world.rows["inventories"][1] |= {"resource_class_id": 1}
        world.rows["treeclaim_consumption"].append(
            {
                "resource_provider_id": number,
                "resource_class_id": 1,
                "consumed_provider_id": 1,
                "consumed_class_id": 0,
                "amount": 3,
            }
        )
    world.consumer(HELD)
    world.holds(HELD, SHARE, "MEMORY_MB", 1)
    world.add(
        script("claim-spare", put(claim(MINE, None, "MEMORY_MB", spare=1))),
        script("claim-share", put(claim(NEW, None, "MEMORY_MB", share=1))),
        script("claim-host", put(claim(NEW, None, host=3))),
        script("place-spare", place(claim(MINE, None, "MEMORY_MB", spare=1))),
        script("move", put(claim(HELD, UNCHECKED, "MEMORY_MB", spare=1))),
        script("release", release(HELD)),
        script("consume-more", consuming_stock(SHARE, VCPU=4)),
        script("consume-nothing", consuming_stock(SHARE)),
        script("delete-inventory", delete_stock(HOST, "VCPU")),
        script("delete-provider", write(providers.delete, SPARE)),
        script("part", move(SHARE, None)),
        script(
            "reshape",
            write(
                reshaper.reshape,
                [
                    ReshapedInventory(
                        SPARE,
                        GENERATION,
                        {"MEMORY_MB": Inventory(8, consumes=consumes((HOST, "VCPU", 2)))},
                    )
                ],
                [claim(HELD, UNCHECKED, "MEMORY_MB", spare=2)],
            ),
        ),
        script(
            "apply",
            batch(
                BatchEntry(
                    SPARE,
                    None,
                    values={
                        "inventories": {
                            "MEMORY_MB": Inventory(8, consumes=consumes((HOST, "VCPU", 4)))
                        }
                    },
                )
            ),
        ),
        FOLLOW,
    )
    return world


def shared_shard_world():
    """Writers that wait for one shard of the feed."""
    world = World("shared-shard", shares_a_shard=True)
    world.provider(HOST, VCPU=8)
    world.add(
        script("claim", put(claim(NEW, None, host=2))),
        script("shrink", set_stock(HOST, VCPU=2)),
        PRUNE,
        FOLLOW,
    )
    return world


def followed_world():
    """Claims in different shards of the feed, which are followed by single looks."""
    world = world_of_consumers("followed", "present")
    world.add(
        script("put-old", put(claim(MINE, UNCHECKED, host=3))),
        script("move", put(claim(MINE, UNCHECKED, spare=4))),
        script("post-two", put(claim(NEW, UNCHECKED, spare=1), claim(MINE, UNCHECKED, host=1))),
        script("place-new", place(claim(NEW, None, spare=1, host=1))),
        script("delete-and-refill", release(MINE), put(claim(NEW, None, host=6))),
        group(
            "group-release-and-refill",
            ClaimRequest.release(MINE),
            ClaimRequest([claim(NEW, None, host=6)]),
        ),
        script("shrink", set_stock(HOST, VCPU=2)),
        PRUNE,
        script("read-often", *(FOLLOW.operations * 3)),
    )
    return world


def holds_world(*, ended):
    """A hold that returns, 2 of whose 8 units are drawn; its time is over, or it has none."""
    world = World("holds-ended" if ended else "holds")
    world.provider(HOST, VCPU=12)
    world.provider(SPARE, VCPU=8)
    world.rows["consumer_types"].append({"id": 1, "name": HOLD_TYPE})
    for consumer in (HELD, MINE, OTHER):
        world.consumer(consumer)
        world.rows["consumers"][-1]["consumer_type_id"] = 1 if consumer == HELD else None
    for consumer, used in ((HELD, 6), (MINE, 2), (OTHER, 1)):
        world.holds(consumer, HOST, "VCPU", used)
    world.rows["treeclaim_holds"].append(
        {"uuid": HELD, "ends_at": BEGINNING if ended else None, "returns": True}
    )
    world.rows["treeclaim_draws"].append(
        {
            "consumer_uuid": MINE,
            "provider_id": 1,
            "class_id": 0,
            "hold_uuid": HELD,
            "amount": 2,
        }
    )
    mine, new = claim(MINE, UNCHECKED), claim(NEW, UNCHECKED, host=4)
    drawing = replace(new, from_holds=[HELD])
    terms = HoldTerms(returns=True, projects=("other",))
    kept = replace(claim(OTHER, UNCHECKED, host=1), request=["resources=VCPU:1"])
    world.add(
        script("draw", put(drawing)),
        script("draw-all", put(replace(claim(OTHER, UNCHECKED, host=7), from_holds=[HELD]))),
        script("claim", put(claim("more", None, host=3))),
        script("return", release(MINE)),
        script("return-some", put(claim(MINE, UNCHECKED, host=1))),
        script("pass-on", put(mine, claim(NEW, UNCHECKED, host=2))),
        script("place", place(replace(claim(NEW, None, host=4), from_holds=[HELD]))),
        script("write-hold", put(replace(claim(HELD, UNCHECKED, host=3), hold=terms))),
        script("end", release(HELD)),
        script("end-by-time", write(hold_writes.end, [HELD])),
        script("forget", write(hold_writes.change_terms, {HELD: {"returns": False}})),
        script("keep-alive", write(hold_writes.change_terms, {HELD: {"note": "alive"}})),
        script("mend", write(hold_writes.forget_beyond, MINE)),
        script("keep-request", put(kept), release(OTHER)),
        script(
            "name-request", write(kept_requests.keep_requests_for, {OTHER: ["resources=VCPU:2"]})
        ),
        script(
            "prune-requests",
            write(kept_requests.mark_without_record, [OTHER, NEW]),
            write(kept_requests.delete_old),
        ),
        script(
            "reshape",
            write(
                reshaper.reshape,
                [ReshapedInventory(SPARE, GENERATION, stock(VCPU=8))],
                [claim(MINE, UNCHECKED, spare=2)],
            ),
        ),
        group(
            "group-draw-and-return",
            ClaimRequest([drawing]),
            ClaimRequest.release(MINE),
            ClaimRequest([replace(claim(OTHER, UNCHECKED, host=4), from_holds=[HELD])]),
        ),
    )
    if not ended:
        # A write that finds a hold after its end removes that first, in a transaction of its own, and a
        # reader may see what is between the two.
        world.add(FOLLOW)
    return world


def conditions_world(*, armed):
    """A host with a card and its slice, and another host; a condition may wait for its first use."""
    world = World("conditions-armed" if armed else "conditions")
    world.provider(HOST, VCPU=8)
    world.provider(CARD, parent=HOST, VCPU=8)
    world.provider(SLICE, parent=CARD, VCPU=8)
    world.provider(SPARE, VCPU=8)
    world.consumer(MINE)
    world.holds(MINE, CARD, "VCPU", 2)
    if armed:
        row = {"effect": 1, "on_use": True, "began": False, "reason": '""'}
        world.rows["treeclaim_conditions"] += [
            {"resource_provider_id": 1, "name": "ONCE"} | row,
            {"resource_provider_id": 2, "name": "ENDED", "ends_at": BEGINNING}
            | row
            | {"on_use": False, "began": True},
        ]
    tolerant = replace(claim("tolerant", None, slice=1), tolerates=frozenset({"CLEANING", "ONCE"}))
    world.add(
        script("put", write(conditions.put, HOST, Condition("CLEANING", Effect.NO_NEW))),
        script("put-below", write(conditions.put, SLICE, Condition("CLEANING", Effect.LEAVE))),
        script("arm", write(conditions.put, HOST, replace(ONCE, reason="again"))),
        script("put-and-delete", *_put_and_delete()),
        script("delete", write(conditions.delete, HOST, "ONCE")),
        script("end", write(conditions.end, [(2, "ENDED"), (1, "ONCE")])),
        script("claim-host", put(claim(NEW, None, host=2))),
        script("claim-slice", put(claim("more", None, slice=2))),
        script("claim-both", put(claim("both", None, slice=1), claim("two", None, spare=1))),
        script("claim-tolerant", put(tolerant)),
        script("hand-over", put(claim(MINE, UNCHECKED), claim(NEW, None, slice=2))),
        script("release", release(MINE)),
        script("place-two", place(claim("first", None, host=1), claim("second", None, card=1))),
        script("move-below", move(SPARE, SLICE)),
        script("move-away", move(CARD, SPARE)),
        script("claim-spare", put(claim("third", None, spare=2))),
        script(
            "create-below",
            create("made", SLICE),
            add_stock("made", "VCPU"),
            put(claim(OTHER, None, made=2)),
        ),
        script("delete-slice", write(providers.delete, SLICE)),
        group(
            "group-of-two",
            ClaimRequest([claim(NEW, None, card=1)]),
            ClaimRequest([claim(OTHER, None, slice=1)]),
        ),
        FOLLOW,
    )
    return world


def _put_and_delete():
    yield write(conditions.put, CARD, Condition("CLEANING", Effect.NO_NEW))
    yield write(conditions.delete, CARD, "CLEANING")


def names_world():
    """A new database, which two services fill with the standard names at once."""
    world = World("names")
    world.rows["traits"].clear()
    world.rows["resource_classes"].clear()
    world.add(
        script("sync-names", write(standard_names.sync_standard_names)),
        script("create-trait", write(trait_names.ensure, GOLD)),
        script("create-class", write(resource_classes.ensure, GOLD)),
    )
    return world


def words_world():
    """A mix, and an aggregate with a name: what is kept beside Placement's tables, for people."""
    world = World("words")
    world.rows["treeclaim_mixes"].append({"name": "day", "slot": 0, "body": "{}"})
    world.rows["treeclaim_aggregate_names"].append({"uuid": NAMED, "name": '"rack"'})
    world.add(
        script("replace-mix", write(mixes.put, "day", {"requests": {}})),
        script("replace-mix-otherwise", write(mixes.put, "day", {"requests": {"a": {}}})),
        script("make-mix", write(mixes.put, "night", {"requests": {}})),
        script("make-mix-otherwise", write(mixes.put, "night", {"requests": {"a": {}}})),
        script("delete-mix", write(mixes.delete, "day")),
        script(
            "rename", write(aggregate_names.change_names, {NAMED: "rack 7", UNNAMED: "rack 8"})
        ),
        script("name", write(aggregate_names.change_names, {UNNAMED: "rack 9"})),
        script("take-name", write(aggregate_names.change_names, {NAMED: None})),
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
