# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests that many tests send."""


def claim_of(allocations, **members):
    """The claim of a new instance; some members may be other ones, or come beside."""
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    return {"allocations": allocations, "consumer_generation": None} | owner | members


def wanted_by(consumers, *alternatives, **members):
    """A request of `POST /treeclaim/placements` for new instances; members may be other ones."""
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    return {"alternatives": list(alternatives), "consumers": consumers} | owner | members


def add_hosts(client, *uuids, **totals):
    """Create hosts with the same inventories, named like their uuids."""
    stock = {name: {"total": total} for name, total in totals.items()}
    entries = [{"uuid": uuid, "name": uuid, "inventories": stock} for uuid in uuids]
    headers = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
    answer = client.post("/treeclaim/providers", json={"providers": entries}, headers=headers)
    assert answer.is_success, answer.text
