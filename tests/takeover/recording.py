# SPDX-License-Identifier: Apache-2.0
"""Every answer that a service gives about a small world, to be held against another's."""

import json
from itertools import product

from treeclaim.comparison.comparison import (
    ReadRequest,
    Response,
    ResponsePair,
    describe_differences,
)

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


def list_reads(client, consumers, projects):
    """Every GET there is: the providers and aggregates are those that the service names."""
    providers = client.providers()
    uuids = sorted(provider["uuid"] for provider in providers)
    reads = [("/", 39), *product(LISTS, VERSIONS)]
    reads += [
        (f"/resource_providers/{uuid}{part}", minor)
        for uuid, (part, since), minor in product(uuids, PARTS.items(), SHORT)
        if minor >= since
    ]
    reads += product((f"/allocations/{consumer}" for consumer in consumers), (0, 12, 28, 39))
    reads += [
        (f"/usages?project_id={project}{filters}", minor)
        for project, (filters, minor) in product(
            projects, (("", 9), ("", 37), ("", 38), ("&user_id=u1", 39))
        )
    ]
    aggregates = sorted(
        aggregate
        for uuid in uuids
        for aggregate in client.get(f"/resource_providers/{uuid}/aggregates")["aggregates"]
    )
    places = {"aggregate": aggregates[0], "provider": uuids[0]}
    queries = (f"/allocation_candidates?{query.format_map(places)}" for query in CANDIDATES)
    reads += product(queries, (12, 29, 39))
    return [ReadRequest(path, f"1.{minor}") for path, minor in reads]


def record(client, consumers, projects):
    """Read everything; return the responses with their requests."""
    reads = list_reads(client, consumers, projects)
    return [(read, _read(client, read)) for read in reads]


def _read(client, read):
    """Return the response to a read, with sorted traits of summaries.

    openstack-placement leaves their order to the database, and PostgreSQL gives them as it stored them.
    """
    version = {"OpenStack-API-Version": f"placement {read.version}"}
    answer = client.send("GET", read.path, version)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    is_json = headers.get("content-type", "").startswith("application/json")
    document = json.loads(answer.text) if is_json else None
    if isinstance(document, dict):
        for summary in document.get("provider_summaries", {}).values():
            summary["traits"] = sorted(summary.get("traits", ()))
    return Response(answer.status_code, headers, answer.text, document)


def find_changes(before, after):
    """Return the differences of two recordings, in words; empty if there are none."""
    if [read for read, _ in before] != [read for read, _ in after]:
        return ["there are other providers than before"]
    return [
        f"{read}: {difference}"
        for (read, old), (_, new) in zip(before, after, strict=True)
        if not (_is_placement_failure(read, old) or _is_placement_failure(read, new))
        for difference in describe_differences(ResponsePair(read, new, old)).values()
    ]


def _is_placement_failure(read, response):
    """Whether this is openstack-placement's own failure: on PostgreSQL its query for the usages of
    consumer types is refused by the database. Treeclaim never answers so, which is seen because it
    answers between two recordings of the other service.
    """
    return (
        read.route == "/usages"
        and read.version in ("1.38", "1.39")
        and response.status == 500
        and "GROUP BY" in response.text
    )
