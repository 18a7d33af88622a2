# SPDX-License-Identifier: Apache-2.0
"""Worlds and requests of every kind, for hypothesis."""

from dataclasses import replace

from hypothesis import strategies as st

from tests.reference.candidates import SHARING
from tests.reference.expressions import NAMES, attributes, expressions
from tests.reference.world import Group, Provider, Request, Stock, World

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "FPGA")
TRAITS = ("HW_NUMA_ROOT", "STORAGE_DISK_SSD", "CUSTOM_FAST")
AGGREGATES = ("A", "B", "C")
UNKNOWN = "unknown"
"""Name of no provider, and of no aggregate that anybody is in."""


@st.composite
def stocks(draw):
    """An inventory; mostly generous, sometimes full, overcommitted or picky."""
    total = draw(st.integers(1, 12))
    picky = draw(st.integers(0, 3)) == 0
    return Stock(
        total=total,
        reserved=draw(st.integers(0, total)) if picky else 0,
        min_unit=draw(st.integers(1, 2)) if picky else 1,
        max_unit=draw(st.integers(1, 6)) if picky else 2147483647,
        step_size=draw(st.sampled_from([1, 1, 2, 3])) if picky else 1,
        allocation_ratio=draw(st.sampled_from([1.0, 1.0, 0.5, 1.25, 1.5, 16.0])),
        used=draw(st.one_of(st.just(0), st.integers(0, 14))),
    )


@st.composite
def worlds(draw):
    """A few trees up to depth 4, with sharing providers at roots and below."""
    providers = []
    depth = {}
    for number in range(draw(st.integers(1, 9))):
        possible = [None] + [provider.name for provider in providers if depth[provider.name] < 4]
        parent = draw(st.sampled_from(possible)) if draw(st.integers(0, 3)) else None
        traits = draw(st.sets(st.sampled_from(TRAITS), max_size=2))
        if draw(st.integers(0, 3)) == 0:
            traits = traits | {SHARING}
        drawn_provider = Provider(
            name=f"p{number}",
            parent=parent,
            stock=draw(st.dictionaries(st.sampled_from(CLASSES), stocks(), max_size=3)),
            traits=frozenset(traits),
            aggregates=frozenset(draw(st.sets(st.sampled_from(AGGREGATES), max_size=2))),
            attributes=draw(attributes),
        )
        providers.append(drawn_provider)
        depth[drawn_provider.name] = 1 if parent is None else depth[parent] + 1
    return World(tuple(providers))


@st.composite
def consuming(draw, world):
    """Return the same world, in which inventories consume others of their provider or its ancestors."""
    parents = {provider.name: provider.parent for provider in world.providers}

    def is_at_or_above(above, name):
        while name not in (None, above):
            name = parents[name]
        return name is not None

    keys = [(provider.name, name) for provider in world.providers for name in provider.stock]
    consumed = set(draw(st.lists(st.sampled_from(keys), max_size=3))) if keys else set()
    new_providers = []
    for old_provider in world.providers:
        consumes = {}
        for name in old_provider.stock:
            near_keys = sorted(
                key for key in consumed if is_at_or_above(key[0], old_provider.name)
            )
            if (old_provider.name, name) in consumed or not near_keys:
                continue
            chosen_keys = draw(st.lists(st.sampled_from(near_keys), max_size=2, unique=True))
            if chosen_keys:
                consumes[name] = tuple(
                    (*key, draw(st.integers(1, 3))) for key in sorted(chosen_keys)
                )
        new_providers.append(replace(old_provider, consumes=consumes))
    return World(tuple(new_providers))


def seldom(strategy, otherwise):
    """Draw from a strategy now and then."""
    return st.integers(0, 3).flatmap(lambda die: strategy if die == 0 else st.just(otherwise))


@st.composite
def consuming_at_times(draw, kind):
    """A world of a kind, in which at times some inventories consume others."""
    world = draw(kind)
    return draw(seldom(consuming(world), world))


required_sets = st.lists(
    st.frozensets(st.sampled_from((*TRAITS, SHARING)), min_size=1, max_size=2), max_size=2
)
wheres = st.lists(expressions, min_size=1, max_size=2).map(tuple)
aggregate_names = st.sampled_from((*AGGREGATES, UNKNOWN))


@st.composite
def groups(draw, suffix, world, *, resourceless=False):
    """A request group."""
    required = tuple(draw(seldom(required_sets, [])))
    forbidden = draw(seldom(st.frozensets(st.sampled_from(TRAITS), max_size=2), frozenset()))
    names = [provider.name for provider in world.providers]
    return Group(
        suffix=suffix,
        resources={}
        if resourceless
        else draw(
            st.dictionaries(
                st.sampled_from(CLASSES), st.integers(1, 3), min_size=1, max_size=3 - bool(suffix)
            )
        ),
        required=tuple(s for s in required if not s <= forbidden),
        forbidden=forbidden,
        member_of=tuple(
            draw(
                seldom(
                    st.lists(st.frozensets(aggregate_names, min_size=1, max_size=2), max_size=2),
                    [],
                )
            )
        ),
        not_member_of=draw(seldom(st.frozensets(aggregate_names, max_size=2), frozenset())),
        in_tree=draw(seldom(st.sampled_from([*names, UNKNOWN]).map(lambda name: (name,)), ())),
    )


@st.composite
def requests(draw, world):
    """A request that passes every check of the API."""
    drawn_groups = []
    if draw(st.booleans()):
        drawn_groups.append(draw(groups("", world)))
    suffixes = [f"_{letter}" for letter in "XYZ"[: draw(st.integers(0 if drawn_groups else 1, 3))]]
    drawn_groups += [draw(groups(suffix, world)) for suffix in suffixes]
    if suffixes and len(drawn_groups) == 1 and draw(st.booleans()):
        # Request the same twice, so that groups compete.
        drawn_groups.append(
            Group(
                "_W",
                drawn_groups[-1].resources,
                drawn_groups[-1].required,
                drawn_groups[-1].forbidden,
            )
        )
        suffixes.append("_W")
    bare_suffixes = []
    if draw(st.integers(0, 2)) == 0:
        bare_suffixes.append("_R")
        drawn_groups.append(draw(groups("_R", world, resourceless=True)))
    named_suffixes = suffixes + bare_suffixes
    lists = draw(
        st.lists(st.lists(st.sampled_from(named_suffixes), min_size=1, unique=True), max_size=2)
        if named_suffixes
        else st.just([])
    )
    if bare_suffixes and not any("_R" in items for items in lists):
        lists.append(["_R", *named_suffixes[:1]] if draw(st.booleans()) else ["_R"])
    wanted_traits = draw(seldom(st.frozensets(st.sampled_from(TRAITS), max_size=1), frozenset()))
    unwanted_traits = draw(
        seldom(st.frozensets(st.sampled_from((*TRAITS, SHARING)), max_size=1), frozenset())
    )
    return Request(
        groups=tuple(drawn_groups),
        root=Group(
            required=tuple(frozenset({trait}) for trait in wanted_traits),
            forbidden=unwanted_traits - wanted_traits,
        ),
        same_subtree=tuple((tuple(dict.fromkeys(items)), ()) for items in lists),
        isolated=frozenset(named_suffixes if draw(st.booleans()) else ()),
        nested=draw(st.integers(0, 5)) > 0,
    )


@st.composite
def extended_requests(draw, world):
    """A request that uses what page 97, section 2, adds, and little else."""
    request = draw(requests(world))
    drawn_groups = [draw(extended_groups(group, world)) for group in request.groups]
    suffixes = [group.suffix for group in drawn_groups if group.suffix]
    lists = request.same_subtree
    if suffixes:
        outside = st.sets(st.sampled_from(suffixes), max_size=2)
        lists = tuple(
            (inside, tuple(sorted(draw(outside) - set(inside))))
            for inside, _ in lists
            if "_R" in inside or draw(st.booleans())
        )
    split = draw(splits(drawn_groups))
    return replace(
        request,
        groups=tuple(
            replace(
                group, resources={name: n + split.get(name, 0) for name, n in resources.items()}
            )
            if not group.suffix and (resources := group.resources)
            else group
            for group in drawn_groups
        ),
        nested=True,
        root=draw(seldom(extended_roots(), Group())),
        same_subtree=lists,
        isolated=draw(st.frozensets(st.sampled_from(suffixes), max_size=2))
        if suffixes
        else frozenset(),
        values=draw(seldom(comparisons(suffixes), ())) if len(suffixes) > 1 else (),
        can_split=frozenset(split),
        split_policy=draw(st.sampled_from(["pack", "even"])),
    )


@st.composite
def extended_groups(draw, group, world):
    """A group, mostly without its usual conditions, sometimes with those of the extension."""
    names = st.lists(
        st.sampled_from([*(provider.name for provider in world.providers), UNKNOWN]),
        min_size=1,
        max_size=4,
    ).map(tuple)
    plain = Group(group.suffix, group.resources)
    return replace(
        draw(seldom(st.just(group), plain)),
        in_tree=draw(seldom(names, ())),
        in_subtree=draw(seldom(names, ())),
        where=draw(seldom(wheres, ())),
    )


@st.composite
def extended_roots(draw):
    """Conditions on the anchor root."""
    members = st.lists(st.frozensets(aggregate_names, min_size=1, max_size=3), max_size=2)
    return Group(
        required=tuple(draw(seldom(required_sets, []))),
        forbidden=draw(seldom(st.frozensets(st.sampled_from(TRAITS), max_size=1), frozenset())),
        member_of=tuple(draw(members)),
        not_member_of=draw(seldom(st.frozensets(aggregate_names, max_size=1), frozenset())),
        where=draw(seldom(wheres, ()))[:1],
    )


@st.composite
def comparisons(draw, suffixes):
    """Draw groups that have equal or distinct values of an attribute."""
    names = st.sampled_from(NAMES)
    suffix_tuples = st.lists(st.sampled_from(suffixes), min_size=2, max_size=3, unique=True).map(
        tuple
    )
    result = st.lists(st.tuples(names, suffix_tuples, st.booleans()), min_size=1, max_size=2)
    return tuple(draw(result))


@st.composite
def splits(draw, groups):
    """Draw the classes to split, each with an addition to its amount that makes a split necessary."""
    classes = sorted({name for group in groups if not group.suffix for name in group.resources})
    return {name: draw(st.integers(0, 9)) for name in classes if draw(st.booleans())}


@st.composite
def divided(draw):
    """Draw hosts with children of different limits, and a request that divides an amount over them."""
    step = st.sampled_from([1, 1, 2, 2, 3])
    providers = []
    for host in range(draw(st.integers(1, 2))):
        root = f"host{host}"
        providers.append(Provider(root, None, {"DISK_GB": Stock(9)}, aggregates=frozenset({"A"})))
        providers += [
            Provider(f"{root}c{child}", root, {"VCPU": draw(divisible(step))})
            for child in range(draw(st.integers(1, 4)))
        ]
    if draw(st.booleans()):
        stock = {"VCPU": draw(divisible(step))}
        pool = Provider("pool", None, stock, frozenset({SHARING}), frozenset({"A"}))
        providers.insert(draw(st.sampled_from([0, len(providers)])), pool)
    world = draw(seldom(consuming(World(tuple(providers))), World(tuple(providers))))
    groups = [Group("", {"VCPU": draw(st.integers(2, 14))})]
    groups += [Group("_X", {"VCPU": draw(st.integers(1, 3))})] * draw(st.integers(0, 1))
    if draw(st.booleans()):
        groups[0] = replace(groups[0], in_subtree=("host0",))
    policy = draw(st.sampled_from(["pack", "even"]))
    request = Request(tuple(groups), can_split=frozenset({"VCPU"}), split_policy=policy)
    return world, request


@st.composite
def divisible(draw, step):
    """An inventory that gives parts of an amount."""
    return Stock(
        total=draw(st.integers(1, 9)),
        min_unit=draw(st.sampled_from([1, 1, 2, 3])),
        max_unit=draw(st.sampled_from([4, 6, 9, 9])),
        step_size=draw(step),
        used=draw(st.sampled_from([0, 0, 1, 2])),
    )


@st.composite
def ordered_requests(draw, world):
    """A request with an order of its candidates."""
    request = draw(st.one_of(requests(world), extended_requests(world)))
    suffixes = [group.suffix for group in request.groups]
    preferred = draw(
        st.lists(
            st.tuples(
                st.sampled_from(suffixes),
                st.sampled_from((*TRAITS, SHARING)),
                st.booleans(),
                st.integers(1, 3),
            ),
            max_size=3,
        )
    )
    terms = draw(st.lists(terms_for(request), min_size=0 if preferred else 1, max_size=4))
    if preferred and not any(name == "preferred" for name, _, _ in terms):
        terms.append(("preferred", (), draw(st.integers(1, 3))))
    elif not preferred:
        terms = [term for term in terms if term[0] != "preferred"] or [("pack", (), 1)]
    names = [*(provider.name for provider in world.providers), UNKNOWN]
    trees = st.lists(st.sampled_from(names), min_size=1, max_size=3).map(tuple)
    return replace(
        request,
        nested=True,
        root=replace(
            request.root, in_tree=draw(seldom(trees, ())), not_in_tree=draw(seldom(trees, ()))
        ),
        order=tuple(terms),
        preferred=tuple(preferred),
    )


@st.composite
def terms_for(draw, request):
    """A term of an order, with its weight."""
    classes = sorted({name for group in request.groups for name in group.resources})
    suffixed = [group.suffix for group in request.groups if group.suffix]
    name = draw(
        st.sampled_from(
            ["pack", "spread", "pack_providers", "spread_providers", "preferred", "shuffle"]
            + (["near", "far"] if len(suffixed) > 1 else [])
            + (["most", "least"] if suffixed else [])
        )
    )
    arguments = ()
    if name in ("near", "far"):
        arguments = draw(st.lists(st.sampled_from(suffixed), min_size=2, unique=True))
    elif name == "shuffle":
        arguments = draw(st.sampled_from(["a", "b"]))
    elif name in ("most", "least"):
        arguments = draw(st.tuples(st.sampled_from(NAMES), st.sampled_from(suffixed)))
    elif name != "preferred":
        arguments = draw(seldom(st.lists(st.sampled_from(classes), min_size=1, unique=True), []))
    return name, tuple(arguments), draw(st.sampled_from([1, 1, 2, 5]))


@st.composite
def clouds(draw):
    """Draw trees that differ in used amounts only, so that there are many candidates."""
    providers = []

    def stock():
        return Stock(total=8, used=draw(st.integers(0, 5)))

    for number in range(draw(st.integers(2, 4))):
        root = f"h{number}"
        rack = frozenset(draw(st.sets(st.sampled_from(AGGREGATES), max_size=1)))
        names = {"VCPU": stock(), "DISK_GB": stock()}
        providers.append(Provider(root, None, names, aggregates=rack))
        for child in range(draw(st.integers(1, 2))):
            traits = frozenset(draw(st.sets(st.sampled_from(TRAITS), max_size=1)))
            names = {"FPGA": stock(), "MEMORY_MB": stock()}
            host_attributes = draw(attributes)
            providers.append(
                Provider(f"{root}c{child}", root, names, traits, attributes=host_attributes)
            )
    if draw(st.booleans()):
        shared = frozenset({draw(st.sampled_from(AGGREGATES))})
        names = {"DISK_GB": stock()}
        providers.append(Provider("pool", None, names, frozenset({SHARING}), shared))
    return World(tuple(providers))


@st.composite
def easy_requests(draw, world):
    """An ordered request that many providers satisfy."""
    request = draw(ordered_requests(world))
    return replace(
        request,
        groups=tuple(Group(group.suffix, dict(group.resources)) for group in request.groups),
        root=Group(),
        same_subtree=tuple(
            subtree_list
            for subtree_list in request.same_subtree
            if any("_R" in names for names in subtree_list)
        ),
        isolated=frozenset(),
        can_split=frozenset(),
    )


@st.composite
def rivals(draw):
    """A host or two with unlike devices, and an ordered request of groups that compete for them."""
    providers = []
    for number in range(draw(st.integers(1, 2))):
        root = f"h{number}"
        providers.append(Provider(root, None, {"VCPU": Stock(total=8)}))
        nodes = [root, *(f"{root}n{node}" for node in range(draw(st.integers(0, 2))))]
        providers += [Provider(node, root, {}) for node in nodes[1:]]
        for child in range(draw(st.integers(2, 4))):
            total = draw(st.integers(1, 8))
            stock = Stock(total=total, used=draw(st.integers(0, total)))
            traits = frozenset(draw(st.sets(st.sampled_from(TRAITS), max_size=1)))
            above = draw(st.sampled_from(nodes))
            host_attributes = draw(attributes)
            providers.append(
                Provider(
                    f"{root}d{child}", above, {"FPGA": stock}, traits, attributes=host_attributes
                )
            )
    world = World(tuple(providers))
    none: frozenset[str] = frozenset()
    amounts = draw(st.sampled_from([[1], [1, 1, 2]]))
    groups = tuple(
        Group(
            f"_{number}",
            {"FPGA": draw(st.sampled_from(amounts))},
            forbidden=draw(
                seldom(st.sampled_from(TRAITS).map(lambda trait: frozenset({trait})), none)
            ),
        )
        for number in range(draw(st.integers(2, 4)))
    )
    suffixes = [group.suffix for group in groups]
    isolated = draw(st.sampled_from([none, frozenset(suffixes), frozenset(suffixes[:2])]))
    preferred = tuple(
        (suffix, draw(st.sampled_from(TRAITS)), draw(st.booleans()), draw(st.integers(1, 2)))
        for suffix in suffixes
    )
    request = Request(groups, isolated=isolated, preferred=preferred)
    terms = draw(st.lists(terms_for(request), min_size=1, max_size=2))
    if not any(name == "preferred" for name, _, _ in terms):
        terms.append(("preferred", (), 1))
    return world, replace(request, order=tuple(terms))


@st.composite
def worlds_with_a_pool(draw):
    """Hosts in racks, and a pool that shares its disk with some of them."""
    hosts = [
        Provider(
            f"h{number}", None, {"VCPU": Stock(total=draw(st.integers(1, 3)))}, aggregates=racks
        )
        for number, racks in enumerate(
            draw(st.lists(st.frozensets(st.sampled_from(AGGREGATES)), min_size=1, max_size=3))
        )
    ]
    shared = draw(st.frozensets(st.sampled_from(AGGREGATES), min_size=1, max_size=2))
    disk = {"DISK_GB": Stock(total=draw(st.integers(2, 6)))}
    return World((*hosts, Provider("pool", None, disk, frozenset({SHARING}), shared)))


@st.composite
def requests_of_a_pool(draw):
    """A request for which the host gives nothing, or only has to be there."""
    groups = [Group(draw(st.sampled_from(["", "_D"])), {"DISK_GB": draw(st.integers(1, 2))})]
    if draw(st.booleans()):
        groups.append(Group("_V", {"VCPU": 1}))
    host = Group("_R", forbidden=frozenset({SHARING}) if draw(st.booleans()) else frozenset())
    return Request((*groups, host), same_subtree=((("_R",), ()),))


@st.composite
def cards(draw):
    """Draw one or two hosts with cards whose partitions consume the same provider, and a request for partitions."""
    providers = []
    for root in ("h0", "h1")[: draw(st.integers(1, 2))]:
        card = f"{root}card"
        memory = draw(seldom(st.fixed_dictionaries({"MEMORY_MB": slices()}), {}))
        providers += [
            Provider(root, None, {"VCPU": Stock(total=4)}),
            Provider(card, root, {"DISK_GB": draw(slices())} | memory),
        ]
        keys = [(card, name) for name in providers[-1].stock]
        for number in range(draw(st.integers(1, 3))):
            stock = {
                name: Stock(total=draw(st.integers(2, 4)), used=draw(seldom(st.just(1), 0)))
                for name in draw(seldom(st.just(("FPGA", "VCPU")), ("FPGA",)))
            }
            key_lists = st.lists(st.sampled_from(keys), min_size=1, unique=True).map(sorted)
            consumes = {
                name: tuple((*key, draw(st.integers(1, 3))) for key in draw(key_lists))
                for name in stock
            }
            card_attributes = draw(attributes)
            providers.append(
                Provider(
                    f"{root}p{number}", card, stock, attributes=card_attributes, consumes=consumes
                )
            )
    return World(tuple(providers)), draw(requests_of_cards())


@st.composite
def slices(draw):
    """Draw the consumption of partitions; at times more is used than there is."""
    ratio = draw(seldom(st.sampled_from([0.5, 1.5]), 1.0))
    used = draw(seldom(st.integers(0, 9), 0))
    return Stock(total=draw(st.integers(3, 8)), allocation_ratio=ratio, used=used)


@st.composite
def requests_of_cards(draw):
    """Draw a request for partitions, and at times for the class that they consume."""
    sampled = st.sampled_from([("VCPU",), ("FPGA", "VCPU"), ("DISK_GB",)])
    suffixes = ["_X", "_Y", "_Z"][: draw(st.integers(1, 3))]
    drawn_groups = [
        Group(suffix, {name: draw(st.integers(1, 2)) for name in draw(seldom(sampled, ("FPGA",)))})
        for suffix in suffixes
    ]
    plain = draw(st.one_of(sampled, st.just(("FPGA",)), st.just(())))
    if plain:
        drawn_groups.insert(0, Group("", {name: draw(st.integers(1, 3)) for name in plain}))
    return Request(
        groups=tuple(drawn_groups),
        isolated=draw(seldom(st.just(frozenset(suffixes)), frozenset())),
        values=draw(seldom(comparisons(suffixes), ())) if len(suffixes) > 1 else (),
        same_subtree=draw(seldom(st.just(((tuple(suffixes), ()),)), ())),
        can_split=draw(seldom(st.frozensets(st.sampled_from(plain)), frozenset()))
        if plain
        else frozenset(),
        split_policy=draw(st.sampled_from(["pack", "even"])),
    )


CONDITIONS = ("CLEANING", "FAILING")
seldom_trait = st.sets(st.sampled_from(TRAITS), max_size=1)
few_conditions = seldom(st.frozensets(st.sampled_from(CONDITIONS), max_size=2), frozenset())


@st.composite
def conditioned(draw, world):
    """Return the same world, in which some providers have conditions."""
    return World(
        tuple(replace(provider, conditions=draw(few_conditions)) for provider in world.providers)
    )


@st.composite
def tolerating(draw, kind):
    """Draw a request of a kind, with groups that tolerate conditions."""
    request = draw(kind)
    groups = tuple(
        replace(group, tolerates=draw(few_conditions) if group.resources else frozenset())
        for group in request.groups
    )
    return replace(request, groups=groups)


LARGE = st.one_of(
    st.sampled_from([2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64]),
    st.integers(1, 10**400 - 1),
)


@st.composite
def enlarged(draw, kind):
    """Draw a request of a kind in which some amounts are large, often of the same class."""
    request = draw(kind)
    amounts = draw(st.lists(LARGE, min_size=1, max_size=3))
    groups = tuple(
        replace(
            group,
            resources={
                name: draw(st.sampled_from([amount, *amounts]))
                for name, amount in group.resources.items()
            },
        )
        for group in request.groups
    )
    return replace(request, groups=groups)


@st.composite
def device_clouds(draw):
    """Draw hosts with NUMA nodes and cards with consuming partitions, and at times a shared pool.

    Any provider may have attributes, conditions and used amounts.
    """
    providers = []

    def add(name, parent, stock, **members):
        kept_stock = {
            key: draw(amount) for key, amount in stock.items() if draw(st.integers(0, 5))
        }
        consumes = {
            key: uses for key, uses in members.pop("consumes", {}).items() if key in kept_stock
        }
        provider = Provider(
            name,
            parent,
            kept_stock,
            attributes=draw(attributes),
            conditions=draw(few_conditions),
            consumes=consumes,
            **members,
        )
        providers.append(provider)
        return provider

    def stocks(least, most):
        total = st.integers(least, most)
        return total.flatmap(
            lambda n: seldom(st.integers(0, n), 0).map(lambda used: Stock(n, used=used))
        )

    for number in range(draw(st.integers(1, 3))):
        host = f"h{number}"
        racks = draw(st.frozensets(st.sampled_from(AGGREGATES), max_size=2))
        root = add(host, None, {"VCPU": stocks(1, 6)}, aggregates=racks)
        for node in range(draw(st.integers(0, 2))):
            stock = {"MEMORY_MB": stocks(1, 4), "VCPU": stocks(1, 4)}
            add(f"{host}n{node}", host, stock, traits=frozenset(draw(seldom_trait)))
        for card in range(draw(st.integers(0, 2))):
            name = f"{host}c{card}"
            slices = add(name, host, {"DISK_GB": stocks(1, 6)})
            near_keys = [(giver.name, key) for giver in (root, slices) for key in giver.stock]
            for part in range(draw(st.integers(1, 2))):
                uses = (
                    draw(st.lists(st.sampled_from(near_keys), max_size=2, unique=True))
                    if near_keys
                    else ()
                )
                each = tuple((*key, draw(st.integers(1, 2))) for key in sorted(uses))
                consumes = {"FPGA": each} if each else {}
                add(f"{name}p{part}", name, {"FPGA": stocks(1, 4)}, consumes=consumes)
    if draw(st.integers(0, 2)) == 0:
        shared = frozenset({draw(st.sampled_from(AGGREGATES))})
        pool = {"DISK_GB": stocks(2, 6), "MEMORY_MB": stocks(1, 3)}
        add("pool", None, pool, traits=frozenset({SHARING}), aggregates=shared)
    return World(tuple(providers))


@st.composite
def device_requests(draw, world):
    """A request for a device cloud: often few constraints, so that some candidate exists."""
    kinds = [requests(world), extended_requests(world), ordered_requests(world)]
    kind = st.one_of(*kinds, *(easy_device_requests() for _ in range(3)))
    return replace(draw(tolerating(kind)), nested=True)


@st.composite
def easy_device_requests(draw):
    """Draw one to three suffixed groups, some of them isolated, and at times an unsuffixed one."""
    suffixes = ["_X", "_Y", "_Z"][: draw(st.integers(1, 3))]
    groups = [
        Group(suffix, {draw(st.sampled_from(("FPGA", *CLASSES))): draw(st.integers(1, 2))})
        for suffix in suffixes
    ]
    plain = draw(st.sampled_from([(), ("VCPU",), ("FPGA",), ("VCPU", "MEMORY_MB")]))
    if plain:
        groups.insert(0, Group("", {name: draw(st.integers(1, 4)) for name in plain}))
    return Request(
        groups=tuple(groups),
        isolated=draw(st.frozensets(st.sampled_from(suffixes))),
        same_subtree=draw(seldom(st.just(((tuple(suffixes), ()),)), ())),
        values=draw(seldom(comparisons(suffixes), ())) if len(suffixes) > 1 else (),
        can_split=draw(seldom(st.frozensets(st.sampled_from(plain)), frozenset()))
        if plain
        else frozenset(),
        split_policy=draw(st.sampled_from(["pack", "even"])),
        order=draw(
            seldom(st.sampled_from([(("pack", (), 1),), (("spread_providers", (), 1),)]), ())
        ),
    )


def any_requests(world):
    """Requests of every kind for a world of no special kind, from 1.29 on."""
    kinds = (easy_requests, ordered_requests, requests, extended_requests)
    return st.one_of(*(kind(world) for kind in kinds)).map(nested)


def nested(request):
    """Return a request of a client that knows trees."""
    return replace(request, nested=True)


@st.composite
def worlds_with_requests(draw):
    """A world of any kind, and the requests to draw for it."""
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return draw(worlds_with_a_pool()), requests_of_a_pool()
    if kind == 1:
        world = draw(device_clouds())
        return world, device_requests(world)
    world = draw(consuming_at_times(clouds() if kind == 2 else worlds()))
    return world, any_requests(world)


@st.composite
def compared_devices(draw):
    """A host or two with devices that have attributes, and requests of groups that compare these."""
    some_attributes = st.fixed_dictionaries(
        {}, optional={"node": st.sampled_from([0, 1, 2, True]), "mem_gib": st.integers(0, 2)}
    )
    providers = []
    for number in range(draw(st.integers(1, 2))):
        providers.append(Provider(f"h{number}"))
        providers += [
            Provider(
                f"h{number}d{device}",
                f"h{number}",
                {"FPGA": Stock(draw(st.integers(1, 2)))},
                attributes=draw(some_attributes),
            )
            for device in range(draw(st.integers(2, 5)))
        ]
    return World(tuple(providers)), [draw(comparing_requests()) for _ in range(4)]


@st.composite
def comparing_requests(draw):
    suffixes = [f"_{number}" for number in range(draw(st.integers(2, 4)))]
    drawn_groups = tuple(
        Group(suffix, {"FPGA": 1}, where=draw(st.sampled_from([(), ("exists mem_gib",)])))
        for suffix in suffixes
    )
    isolated = draw(st.sampled_from([frozenset(), frozenset(suffixes), frozenset(suffixes[:2])]))
    return Request(drawn_groups, isolated=isolated, values=draw(comparisons(suffixes)))
