# SPDX-License-Identifier: Apache-2.0
"""Behind a mount, every address that the service writes leads through it (contract page 00)."""

from urllib.parse import urljoin

import httpx
import pytest

from tests.api.resources.extension.clouds import EXTENDED, uuid_of
from tests.bodies import claim_of
from tests.service import HEADERS, make_application

MOUNT = "/placement"


@pytest.fixture(scope="module")
def mounted(tmp_path_factory):
    """A client of a service behind a mount, with more of all than a page shows."""
    folder = tmp_path_factory.mktemp("mounted")
    application = make_application(folder, **{"treeclaim.pages": "true"})
    transport = httpx.WSGITransport(app=application, script_name=MOUNT)
    headers = HEADERS | EXTENDED
    with httpx.Client(transport=transport, base_url="http://any", headers=headers) as client:
        for number in range(3):
            uuid = uuid_of(f"host {number}")
            client.post("/resource_providers", json={"name": f"host {number}", "uuid": uuid})
            body = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
            client.put(f"/resource_providers/{uuid}/inventories", json=body)
            claim = claim_of({uuid: {"resources": {"VCPU": 1}}})
            answer = client.put(f"/allocations/{uuid_of(f'consumer {number}')}", json=claim)
            assert answer.is_success, answer.text
        yield client


def addresses(found):
    """Every `href` of a document."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "href":
                yield value
            else:
                yield from addresses(value)
    elif isinstance(found, list):
        for value in found:
            yield from addresses(value)


def test_links_include_the_mount_and_resolve(mounted):
    host = f"/resource_providers/{uuid_of('host 0')}"
    for path in (
        "/resource_providers",
        host,
        f"{host}/inventories",
        "/resource_classes",
        "/resource_classes/VCPU",
        "/treeclaim/providers?limit=1",
        "/treeclaim/allocations?limit=1",
        "/treeclaim/totals?by=tree&limit=1",
    ):
        links = list(addresses(mounted.get(path).json()))
        assert links or path.endswith("inventories"), path
        for link in links:
            assert link.startswith(f"{MOUNT}/"), (path, link)
            assert mounted.get(link.removeprefix(MOUNT)).status_code != 404, link


def test_the_pages_are_found_below_the_mount(mounted):
    answer = mounted.get("/ui")
    assert answer.status_code == 308
    target = urljoin(f"{MOUNT}/ui", answer.headers["location"])
    assert target == f"{MOUNT}/ui/"
    assert mounted.get(target.removeprefix(MOUNT)).is_success
