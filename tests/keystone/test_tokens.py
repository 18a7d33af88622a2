# SPDX-License-Identifier: Apache-2.0
"""Tokens of a real Keystone, and the rights that they give (contract page 05, sections 1.2 and 2)."""

import uuid

import httpx
import pytest

from tests.keystone.service import behind, memcached_server, stats_of
from tests.ports import free_port
from tests.servers import eventually

pytestmark = pytest.mark.slow

PROVIDER = str(uuid.UUID(int=1))


def with_token(token):
    return {"x-auth-token": token}


def test_version_document_ignores_a_missing_or_invalid_token(http):
    versions = http.get("/", headers=with_token("nonsense"))
    assert versions.status_code == 200
    assert versions.json()["versions"][0]["max_version"] == "1.39"


@pytest.mark.parametrize(("user", "project"), [("admin", "admin"), ("service", "service")])
def test_admins_and_services_may_read_and_write(http, keystone, user, project):
    headers = with_token(keystone.token(user, project))
    name = f"host of {user}"
    created = http.post("/resource_providers", json={"name": name}, headers=headers)
    assert created.status_code == 200
    listed = http.get("/resource_providers", params={"name": name}, headers=headers).json()
    assert listed["resource_providers"] == [created.json()]


def test_only_a_service_may_reshape(http, keystone):
    admin = with_token(keystone.token("admin", "admin"))
    provider = {"name": "reshaped", "uuid": PROVIDER}
    http.post("/resource_providers", json=provider, headers=admin).raise_for_status()
    of_provider = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
    body = {"inventories": {PROVIDER: of_provider}, "allocations": {}}
    for user, status in (("admin", 403), ("service", 204)):
        headers = with_token(keystone.token(user, user))
        assert http.post("/reshaper", json=body, headers=headers).status_code == status


def test_a_reader_sees_the_usage_of_the_own_project_only(http, keystone):
    headers = with_token(keystone.token("reader", "department"))
    department, admin = keystone.project_ids["department"], keystone.project_ids["admin"]
    assert (
        http.get("/usages", params={"project_id": department}, headers=headers).status_code == 200
    )
    assert http.get("/usages", params={"project_id": admin}, headers=headers).status_code == 403
    assert http.get("/usages", headers=headers).status_code == 403
    denied = http.get("/resource_providers", headers=headers)
    assert denied.status_code == 403
    rule = "Policy does not allow placement:resource_providers:list to be performed."
    assert rule in denied.json()["errors"][0]["detail"]


@pytest.mark.parametrize(("user", "own_usage"), [("member", 200), ("nobody", 403)])
def test_member_role_implies_reader(http, keystone, user, own_usage):
    headers = with_token(keystone.token(user, "department"))
    query = {"project_id": keystone.project_ids["department"]}
    assert http.get("/usages", params=query, headers=headers).status_code == own_usage
    assert http.get("/resource_providers", headers=headers).status_code == 403


def test_an_invented_token_is_refused(http, keystone):
    refused = http.get("/resource_providers", headers=with_token("gAAAAABinvented"))
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Keystone uri="{keystone.url}"'


def test_a_revoked_token_is_refused(http, keystone):
    token = keystone.token("admin", "admin")
    keystone.revoke(token)
    assert http.get("/resource_providers", headers=with_token(token)).status_code == 401


def test_expired_token_is_refused(http, keystone):
    headers = with_token(keystone.brief_token("admin", "admin"))

    def refused():
        return http.get("/resource_providers", headers=headers).status_code == 401

    assert eventually(refused, "the token ends", seconds=30)


def test_system_and_domain_tokens_are_refused(http, keystone):
    # A service that passes such a token on changes nothing.
    service = {"x-service-token": keystone.token("service", "service")}
    for token in (keystone.system_token(), keystone.domain_token()):
        for headers in (with_token(token), with_token(token) | service):
            for path in ("/resource_providers", "/traits", "/usages"):
                assert http.get(path, headers=headers).status_code == 403


def test_forged_identity_headers_are_ignored(http, keystone):
    invented = {
        "x-user-id": "admin",
        "x-project-id": keystone.project_ids["admin"],
        "x-roles": "admin,service",
        "x-identity-status": "Confirmed",
    }
    assert http.get("/resource_providers", headers=invented).status_code == 401
    reader = invented | with_token(keystone.token("reader", "department"))
    assert http.get("/resource_providers", headers=reader).status_code == 403
    query = {"project_id": keystone.project_ids["admin"]}
    assert http.get("/usages", params=query, headers=reader).status_code == 403


def test_service_token_is_validated_beside_the_user_token(http, keystone):
    headers = with_token(keystone.token("admin", "admin")) | {
        "x-service-token": keystone.token("service", "service")
    }
    assert http.get("/resource_providers", headers=headers).status_code == 200
    wrong = headers | {"x-service-token": "invented"}
    assert http.get("/resource_providers", headers=wrong).status_code == 401


def test_cached_tokens_work_during_a_keystone_outage(keystone, tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    known, unknown = (keystone.token("admin", "admin") for _ in range(2))
    with (
        behind(keystone, tmp_path, url),
        httpx.Client(base_url=url, timeout=120) as http,
    ):

        def status(token):
            return http.get("/resource_providers", headers=with_token(token)).status_code

        assert status(known) == 200
        keystone.stop()
        try:
            assert status(unknown) == 503
            assert status(known) == 200
            assert http.get("/").status_code == 200
        finally:
            keystone.start()
        assert eventually(lambda: status(unknown) == 200, "the token is accepted")


def test_the_service_starts_while_keystone_is_down(keystone, tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    token = keystone.token("admin", "admin")
    keystone.stop()
    try:
        server = behind(keystone, tmp_path, url)
        with server, httpx.Client(base_url=url, timeout=120) as http:
            headers = with_token(token)
            assert http.get("/").status_code == 200
            assert http.get("/resource_providers", headers=headers).status_code == 503
            keystone.start()

            def accepted():
                return http.get("/resource_providers", headers=headers).status_code == 200

            assert eventually(accepted, "the token is accepted")
    finally:
        keystone.stop()
        keystone.start()


def test_tokens_are_cached_in_memcached_and_survive_its_outage(keystone, tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    with (
        memcached_server() as (process, address),
        behind(keystone, tmp_path, url, address),
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        headers = with_token(keystone.token("admin", "admin"))
        assert client.get("/resource_providers", headers=headers).status_code == 200
        assert int(stats_of(address)["curr_items"]) >= 1
        process.kill()
        process.wait()
        assert client.get("/resource_providers", headers=headers).status_code == 200
        refused = client.get("/resource_providers", headers=with_token("nonsense"))
        assert refused.status_code == 401
