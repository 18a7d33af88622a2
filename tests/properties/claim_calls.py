# SPDX-License-Identifier: Apache-2.0
"""Random claims, as values of `tests.reference.model` and as bodies of clients of all versions."""

import math
import re
from collections import Counter
from datetime import datetime

from hypothesis import strategies as st

from tests.reference.model import HOLD, Claim, Condition

CONSUMERS = [f"c0000000-0000-0000-0000-{number:012}" for number in range(8)]
HOLDS, PLAIN_CONSUMERS = CONSUMERS[:4], CONSUMERS[4:]
"""The consumers that are holds in most writes, and those that are not."""

ROOT, CHILD, MOVER = PROVIDERS = [f"a0000000-0000-0000-0000-{number:012}" for number in range(3)]
PARENTS = {ROOT: None, CHILD: ROOT, MOVER: None}
TRAITS = dict(zip(PROVIDERS, ("CUSTOM_ROOT", "CUSTOM_CHILD", "CUSTOM_MOVER"), strict=True))

SLICES, PARTS = (ROOT, "CUSTOM_SLICE"), (CHILD, "CUSTOM_PART")
SHARED = [(uuid, name) for uuid in (ROOT, CHILD) for name in ("VCPU", "MEMORY_MB")]
"""The inventories that a reshape may delete."""

INVENTORIES = [*SHARED, SLICES, PARTS, (MOVER, "VCPU")]
TOTALS = {"VCPU": 12, "MEMORY_MB": 8, "CUSTOM_SLICE": 7, "CUSTOM_PART": 4}
STEP_SIZES = {"VCPU": 1, "MEMORY_MB": 2, "CUSTOM_SLICE": 1, "CUSTOM_PART": 1}
CONSUMES = {PARTS: {SLICES: 2}}

NEWEST = "1.39, treeclaim 1.0"
VERSIONS = ("1.7", "1.12", "1.13", "1.28", "1.39", *[NEWEST] * 9)
INCOMPLETE = "00000000-0000-0000-0000-000000000000"
"""The project of consumers that a client below 1.8 writes."""

CONDITION_KEYS = ("CLEANING", "ONCE")

QUERIES = [
    "resources=VCPU:2",
    "resources=VCPU:1&resources_B=VCPU:1,MEMORY_MB:2&group_policy=none",
    "resources=MEMORY_MB:4&required=!HW_CPU_X86_AVX2",
    "resources=VCPU:3,MEMORY_MB:2&limit=7",
]
REQUESTS = ["unchanged", "unchanged", "unchanged", None, *[[q] for q in QUERIES], QUERIES[1:]]

TERMS = st.fixed_dictionaries(
    {
        "until": st.sampled_from([None, None, 3, 9]),
        "returns": st.sampled_from([True, True, True, False]),
        "projects": st.sampled_from([["p", "q"], ["p"], []]),
    }
)
"""Terms of holds; `until` in seconds from now."""


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


@st.composite
def amounts(draw, most):
    """Draw amounts, nearly all of them in steps."""
    drawn_amounts = draw(
        st.dictionaries(st.sampled_from(INVENTORIES), st.integers(1, most), max_size=3)
    )
    if draw(st.integers(0, 19)) == 7:
        return drawn_amounts
    return {
        (provider, name): math.ceil(amount / STEP_SIZES[name]) * STEP_SIZES[name]
        for (provider, name), amount in drawn_amounts.items()
    }


@st.composite
def several_claims(draw, most=3):
    """Draw claims of different consumers, none of which is a source of another."""
    pool = draw(st.sampled_from([*[PLAIN_CONSUMERS] * 5, *[CONSUMERS] * 3, HOLDS]))
    consumers = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=most, unique=True))
    sources = [uuid for uuid in HOLDS if uuid not in consumers] or PLAIN_CONSUMERS[:1]
    return [draw(claim_of(consumer, sources)) for consumer in consumers]


@st.composite
def claim_of(draw, consumer, sources):
    """Draw a claim of a consumer; one in ten takes a hold for another consumer, or the reverse."""
    is_hold = (consumer in HOLDS) != (draw(st.integers(0, 9)) == 7)
    terms = draw(st.one_of(TERMS, TERMS, st.none())) if is_hold else None
    drawn_sources = draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2, unique=True))
    return Claim(
        consumer,
        draw(amounts(6 if is_hold else 4)),
        draw(st.sampled_from("pppq")),
        draw(st.sampled_from([*["actual"] * 9, None])),
        HOLD if is_hold else "INSTANCE",
        hold=terms,
        sources=[] if is_hold or draw(st.integers(0, 9)) == 7 else drawn_sources,
        request=draw(st.sampled_from(REQUESTS)),
        tolerates=frozenset(draw(st.sets(st.sampled_from(CONDITION_KEYS), max_size=1))),
    )


def minor_of(version):
    """Return the minor number of a microversion of Placement."""
    return int(re.match(r"1\.(\d+)", version)[1])


def text_of(time: datetime | None):
    """Return a time as the service shows it."""
    return None if time is None else f"{time.isoformat()}Z"


def nested(flat_amounts):
    """Return amounts by inventory in the form of a body."""
    body = {}
    for (provider, name), amount in flat_amounts.items():
        body.setdefault(provider, {"resources": {}})["resources"][name] = amount
    return body


def flat(body):
    """Return the amounts of a body by inventory."""
    return {
        (provider, name): amount
        for provider, part in body.items()
        for name, amount in part.get("resources", part).items()
    }


def body_of(claim, version):
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
    if claim.tolerates:
        body["tolerates"] = sorted(claim.tolerates)
    return body


def inventories_of(capacity, provider, *, with_consumption=True):
    """Return the inventories of a provider as a body writes them."""
    inventories = {}
    for (uuid, name), total in capacity.items():
        if uuid == provider and total is not None:
            inventories[name] = {"total": total, "step_size": STEP_SIZES[name]}
            consumed = CONSUMES.get((uuid, name), {})
            if consumed and with_consumption:
                inventories[name]["consumes"] = [
                    {"provider": at, "resource_class": other, "amount": amount}
                    for (at, other), amount in consumed.items()
                ]
    return inventories


def query_of(claim):
    """Return a query that only the one provider of a claim can serve."""
    ((provider, _), *_) = claim.amounts
    resources = ",".join(f"{name}:{amount}" for (_, name), amount in claim.amounts.items())
    tolerated = f"&tolerates_X={','.join(sorted(claim.tolerates))}" if claim.tolerates else ""
    return f"resources_X={resources}&required_X={TRAITS[provider]}{tolerated}"


def placement_of(claim):
    """Return the request that places the consumer of a claim."""
    body = body_of(claim, NEWEST)
    for name in ("allocations", "consumer_generation", "tolerates"):
        body.pop(name, None)
    return body | {"alternatives": body.pop("request"), "consumers": [claim.consumer]}


def classes_of(query):
    """Return the amounts by class that a query requests."""
    requested = Counter()
    for part in re.findall(r"resources\w*=([^&]+)", query):
        pairs = (pair.split(":") for pair in part.split(","))
        requested.update({name: int(amount) for name, amount in pairs})
    return requested


_REASONS = {
    "over_capacity": "capacity",
    "amount_unit": "units",
    "no_inventory": "no inventory",
    "inventory_in_use": "in use",
    "consumer_generation": "generation",
}
"""Kinds of conflicts, in the words of the model."""


def is_expected(reason, expected):
    """Return whether a reason is the expected one, or one of several that the contract puts in no order."""
    return reason == expected or (expected is not None and reason in expected.split(" or "))


def reason_of(response):
    """Return why a call was refused, in the words of the model; None if it was not."""
    if response.is_success:
        return None
    (error,) = response.json()["errors"]
    conflict = error.get("conflict", {})
    if error.get("code") == "treeclaim.hold":
        return f"{conflict['reason']} {conflict['uuid']}"
    if error.get("code") == "treeclaim.condition":
        return f"condition {conflict['provider']} {conflict['key']}"
    if error.get("code") == "treeclaim.consumer_exists":
        return "exists"
    return {400: "misused", 404: "nothing"}.get(response.status_code) or _REASONS.get(
        conflict.get("kind"), "conflict"
    )
