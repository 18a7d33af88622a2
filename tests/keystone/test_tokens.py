# SPDX-License-Identifier: Apache-2.0
"""Tokens of a real Keystone, and the rights that they give (contract page 05, sections 1.2 and 2)."""

import httpx
import pytest

from tests.keystone.service import behind
from tests.ports import free_port
from tests.servers import eventually

pytestmark = pytest.mark.slow


def with_token(token):
    return {"x-auth-token": token}


@pytest.mark.parametrize(
    ("user", "project", "may_write", "sees_own", "sees_other"),
    [
        ("admin", "admin", True, True, True),
        ("service", "service", True, True, True),
        ("reader", "department", False, True, False),
        ("member", "department", False, True, False),
        ("nobody", "department", False, False, False),
    ],
)
def test_token_gives_the_rights_of_its_roles_and_project(
    http, keystone, user, project, may_write, sees_own, sees_other
):
    """`gabbits/policy-*.yaml` have the rights of each role; Keystone adds the roles that another implies."""
    headers = with_token(keystone.token(user, project))
    others = "admin" if project == "department" else "department"
    requests = [
        ("POST", "/resource_providers", {"json": {"name": f"host of {user}"}}),
        ("GET", "/usages", {"params": {"project_id": keystone.project_ids[project]}}),
        ("GET", "/usages", {"params": {"project_id": keystone.project_ids[others]}}),
    ]
    statuses = [
        http.request(method, path, headers=headers, **options).status_code
        for method, path, options in requests
    ]
    assert statuses == [200 if may else 403 for may in (may_write, sees_own, sees_other)]


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
    for scope in ({"system": {"all": True}}, {"domain": {"id": "default"}}):
        token = keystone.administrator_token(scope)
        for headers in (with_token(token), with_token(token) | service):
            for path in ("/resource_providers", "/traits", "/usages"):
                assert http.get(path, headers=headers).status_code == 403


def test_forged_identity_headers_are_ignored(http, keystone):
    project = keystone.project_ids["admin"]
    forged = {"x-user-id": "admin", "x-project-id": project, "x-roles": "admin,service"}
    forged |= with_token(keystone.token("reader", "department"))
    assert http.get("/resource_providers", headers=forged).status_code == 403
    query = {"project_id": project}
    assert http.get("/usages", params=query, headers=forged).status_code == 403


def test_service_token_is_validated_beside_the_user_token(http, keystone):
    headers = with_token(keystone.token("admin", "admin")) | {
        "x-service-token": keystone.token("service", "service")
    }
    assert http.get("/resource_providers", headers=headers).status_code == 200
    wrong = headers | {"x-service-token": "invented"}
    assert http.get("/resource_providers", headers=wrong).status_code == 401


def test_cached_tokens_work_during_a_keystone_outage(keystone, tmp_path):
    """The service has started while Keystone was down."""
    url = f"http://127.0.0.1:{free_port()}"
    known, unknown = (keystone.token("admin", "admin") for _ in range(2))
    keystone.stop()
    try:
        with (
            behind(keystone, tmp_path, url),
            httpx.Client(base_url=url, timeout=120) as http,
        ):

            def status(token):
                return http.get("/resource_providers", headers=with_token(token)).status_code

            assert http.get("/").status_code == 200
            assert status(known) == 503
            keystone.start()
            eventually(lambda: status(known) == 200, "the token is accepted")
            keystone.stop()
            assert status(unknown) == 503
            assert status(known) == 200
            keystone.start()
            eventually(lambda: status(unknown) == 200, "the token is accepted")
    finally:
        keystone.stop()
        keystone.start()
