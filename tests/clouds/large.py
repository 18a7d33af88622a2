# SPDX-License-Identifier: Apache-2.0
"""Worlds of which something is many: classes, aggregates, providers of one tree."""

import uuid

from tests.clouds.world import World, WorldMaker

_STOCK = {"VCPU": 64, "MEMORY_MB": 262_144}
_CLASSES_EACH = 3
_DEVICES_OF_A_CARD = 100


def many_classes(classes: int) -> World:
    """Twice as many hosts as custom classes, three of them each, and a host with two in five of all."""
    maker = WorldMaker(11)
    names = [f"CUSTOM_DEVICE_{number}" for number in range(classes)]
    for number in range(2 * classes):
        own = {names[(number * 7 + step) % classes]: 8 for step in range(_CLASSES_EACH)}
        maker.add(f"host-{number}", _STOCK | own)
    maker.add("store", _STOCK | dict.fromkeys(names[: classes * 2 // 5], 100))
    query = f"resources=VCPU:1,MEMORY_MB:512,{names[0]}:1"
    return World(f"{classes} classes", maker.providers, query, (1000,), {"VCPU": 1})


def many_aggregates(aggregates: int) -> World:
    """As many hosts as aggregates, two small ones each, and half of the hosts in one more."""
    maker = WorldMaker(12)
    uuids = [str(uuid.UUID(int=(1 << 64) + number)) for number in range(aggregates)]
    for number in range(aggregates):
        own = (uuids[number], uuids[number * 7 % aggregates])
        half = (uuids[0],) if number % 2 else ()
        maker.add(f"host-{number}", _STOCK, aggregates=tuple(dict.fromkeys((*half, *own))))
    some = ",".join(uuids[1 : aggregates : max(aggregates // 1000, 1)])
    query = f"resources=VCPU:1,MEMORY_MB:512&member_of=in:{some}"
    return World(f"{aggregates} aggregates", maker.providers, query, (1000,), {"VCPU": 1})


def one_tree(providers: int) -> World:
    """Return a single tree: a root, cards, and a hundred devices on each card."""
    maker = WorldMaker(13)
    root = maker.add("root", {name: 1_000 * total for name, total in _STOCK.items()})
    card = root
    for number in range(providers - 1):
        if number % (_DEVICES_OF_A_CARD + 1) == 0:
            card = maker.add(f"card-{number}", {"DISK_GB": 100}, root)
        else:
            maker.add(f"device-{number}", {"FPGA": 4}, card)
    query = "resources_A=VCPU:1,MEMORY_MB:512&resources_B=FPGA:1&group_policy=none"
    return World(f"one tree of {providers}", maker.providers, query, (1000,), {"VCPU": 1})
