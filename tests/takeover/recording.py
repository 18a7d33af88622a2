# SPDX-License-Identifier: Apache-2.0
"""Every answer that a service gives about a small world, to be held against another's."""

from dataclasses import replace
from itertools import product

from tests.blackbox import differences
from tests.blackbox.requests import Request
from treeclaim.comparison.comparison import ResponsePair

PARTS = {"": 0, "/inventories": 0, "/usages": 0, "/allocations": 0, "/aggregates": 1, "/traits": 6}
LISTS = (
    "/resource_providers",
    "/resource_providers?resources=VCPU:1",
    "/resource_providers?required=CUSTOM_FAST",
    "/resource_classes",
    "/traits",
    "/traits?name=startswith:CUSTOM_",
    "/traits?associated=true",
)
CANDIDATES = (
    "resources=VCPU:1",
    "resources=VCPU:1,MEMORY_MB:512",
    "resources=VCPU:2,DISK_GB:10",
    "resources=DISK_GB:10",
    "resources=VCPU:1&required=CUSTOM_FAST",
    "resources=VCPU:1&required=!CUSTOM_FAST",
    "resources=CUSTOM_FPGA:1",
    "resources=VCPU:1000",
    "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
    "resources1=VCPU:1&resources2=CUSTOM_FPGA:1&group_policy=none",
    "resources_A=VCPU:1&resources_B=CUSTOM_FPGA:1&same_subtree=_A,_B&group_policy=none",
    "resources=VCPU:1&root_required=HW_CPU_X86_AVX2",
    "resources=VCPU:1&member_of=in:{aggregate}",
    "resources=VCPU:1&member_of=!{aggregate}",
    "resources=VCPU:1&in_tree={provider}",
    "resources=VCPU:1&required=in:CUSTOM_FAST,HW_CPU_X86_AVX2",
)
VERSIONS = (0, 18, 39)
SHORT = (12, 39)


def requests(endpoint, consumers, projects):
    """Every GET there is: the providers and aggregates are those that the endpoint names."""
    providers = endpoint.send(Request("GET", "/resource_providers")).document
    uuids = sorted(
        resource_provider["uuid"] for resource_provider in providers["resource_providers"]
    )
    parts = [
        Request("GET", f"/resource_providers/{uuid}{part}", minor)
        for uuid, (part, since), minor in product(uuids, PARTS.items(), SHORT)
        if minor >= since
    ]
    lists = [Request("GET", path, minor) for path, minor in product(LISTS, VERSIONS)]
    held = [
        Request("GET", f"/allocations/{one}", minor)
        for one, minor in product(consumers, (0, 12, 28, 39))
    ]
    used = [
        Request("GET", f"/usages?project_id={one}{more}", minor)
        for one, (more, minor) in product(
            projects, (("", 9), ("", 37), ("", 38), ("&user_id=u1", 39))
        )
    ]
    aggregates = sorted(
        {
            aggregate
            for uuid in uuids
            for aggregate in endpoint.send(
                Request("GET", f"/resource_providers/{uuid}/aggregates")
            ).document["aggregates"]
        }
    )
    places = {"aggregate": aggregates[0], "provider": uuids[0]}
    asked = [
        Request("GET", f"/allocation_candidates?{query.format_map(places)}", minor)
        for query, minor in product(CANDIDATES, (12, 29, 39))
    ]
    return [Request("GET", "/", 39), *lists, *parts, *held, *used, *asked]


def record(endpoint, consumers, projects):
    """Ask everything; return the answers with their requests."""
    asked = requests(endpoint, consumers, projects)
    return [(one, _without_order_of_traits(endpoint.send(one))) for one in asked]


def _without_order_of_traits(answer):
    """An answer whose summaries have sorted traits: openstack-placement leaves their order to the
    database, and PostgreSQL gives them as it stored them.
    """
    if not isinstance(answer.document, dict) or "provider_summaries" not in answer.document:
        return answer
    summaries = {
        uuid: one | {"traits": sorted(one.get("traits", ()))}
        for uuid, one in answer.document["provider_summaries"].items()
    }
    return replace(answer, document=answer.document | {"provider_summaries": summaries})


def changed(before, after):
    """Return the differences of two recordings, in words; empty if there are none."""
    found = []
    if [one for one, _ in before] != [one for one, _ in after]:
        return ["there are other providers than before"]
    for (request, old), (_, new) in zip(before, after, strict=True):
        if _fails_by_itself(request, old) or _fails_by_itself(request, new):
            continue
        found += [
            f"{request}: {difference}"
            for difference in differences.differences(ResponsePair(request, new, old))
        ]
    return found


def _fails_by_itself(request, answer):
    """Whether this is openstack-placement's own failure: on PostgreSQL its query for the usages of
    consumer types is refused by the database. Treeclaim never answers so, which is seen because it
    answers between two recordings of the other service.
    """
    return (
        request.route == "/usages"
        and request.minor >= 38
        and answer.status == 500
        and "GROUP BY" in answer.text
    )
