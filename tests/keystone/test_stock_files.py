# SPDX-License-Identifier: Apache-2.0
"""The files that deployment tools write for Placement, read by an environment as a release installs it.

The environment has the packages of `requirements/runtime.txt` and no others, so that an option that imports a
package late is found where only the tests' packages have it.
"""

import hashlib
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.deploy.test_loggers import HELM
from tests.environments import environment_of
from tests.keystone.keystone_server import PASSWORD
from tests.keystone.service import stats_of
from tests.paths import ROOT
from tests.ports import free_port
from tests.servers import answers, running, usual_environment

pytestmark = pytest.mark.slow

LOGIN = f"""\
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = service
username = placement
password = {PASSWORD}
"""
ENCRYPTED = """\
memcached_servers = {memcached}
memcache_security_strategy = ENCRYPT
memcache_secret_key = a secret of all services
"""
DATABASE = """\
[placement_database]
connection = sqlite:///{folder}/placement.db
"""

KOLLA = f"""\
[DEFAULT]
debug = False
log_file = {{folder}}/placement-api.log
state_path = {{folder}}

[oslo_middleware]
enable_proxy_headers_parsing = true

[oslo_concurrency]
lock_path = {{folder}}/tmp

{DATABASE}connection_recycle_time = 10
max_overflow = 1000
max_pool_size = 1
max_retries = -1

[cache]
backend = oslo_cache.memcache_pool
enabled = true
memcache_servers = {{memcached}}

[keystone_authtoken]
service_type = placement
www_authenticate_uri = {{keystone}}
auth_url = {{keystone}}
cafile = {{folder}}/ca.pem
region_name = RegionOne
{LOGIN}{ENCRYPTED}"""

OPENSTACK_ANSIBLE = f"""\
[DEFAULT]
log_dir = {{folder}}

[keystone_authtoken]
insecure = False
auth_url = {{keystone}}
www_authenticate_uri = {{keystone}}
region_name = RegionOne
{LOGIN}{ENCRYPTED}
{DATABASE}"""

OPENSTACK_HELM = f"""\
[DEFAULT]
debug = false
log_config_append = {{folder}}/logging.conf
use_syslog = false

[keystone_authtoken]
www_authenticate_uri = {{keystone}}
auth_url = {{keystone}}
auth_version = v3
region_name = RegionOne
{LOGIN}{ENCRYPTED}
{DATABASE}"""

RHOSO = f"""\
[DEFAULT]
max_logfile_count=5
max_logfile_size_mb=50
log_rotation_type=size
log_file = {{folder}}/placement-api.log
debug = true

{DATABASE}
[api]
auth_strategy = keystone

[keystone_authtoken]
www_authenticate_uri = {{keystone}}
auth_url = {{keystone}}
interface = internal
{LOGIN}
[oslo_policy]
policy_file={{folder}}/policy.yaml
"""

HELM_POLICY = """\
context_is_admin: role:admin
admin_or_owner: rule:context_is_admin or project_id:%(project_id)s
default: rule:admin_or_owner
admin_api: role:admin
"placement:resource_providers:list": rule:admin_api
"placement:allocations:manage": rule:admin_api
"placement:reshaper:reshape": rule:admin_api
"""

STOCK = {
    "kolla-ansible": (KOLLA, {}),
    "openstack-ansible": (OPENSTACK_ANSIBLE, {}),
    "openstack-helm": (
        OPENSTACK_HELM,
        {"logging.conf": HELM, "policy.yaml": HELM_POLICY},
    ),
    "RHOSO": (RHOSO, {}),
}


@pytest.fixture(scope="module")
def python():
    """The interpreter of an environment without packages for development."""
    locked = ROOT / "requirements" / "runtime.txt"
    digest = hashlib.sha256(locked.read_bytes()).hexdigest()[:12]
    options = ("--no-deps", "--require-hashes", "--requirement", str(locked))
    return environment_of(f"runtime-{digest}", *options) / "bin" / "python"


@pytest.mark.parametrize("tool", STOCK)
def test_stock_file_serves_tokens_in_the_environment_of_a_release(
    tmp_path, python, keystone, memcached, tool
):
    text, additions = STOCK[tool]
    values = {"folder": tmp_path, "keystone": keystone.url, "memcached": memcached}
    (tmp_path / "placement.conf").write_text(text.format_map(values))
    (tmp_path / "ca.pem").write_text(Path(os.environ["SSL_CERT_FILE"]).read_text())
    for name, content in additions.items():
        (tmp_path / name).write_text(content)
    environment = usual_environment(
        tmp_path,
        PYTHONPATH=str(ROOT / "src"),
        OS_PLACEMENT_CONFIG_DIR=str(tmp_path),
        OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP="true",
    )
    command = [str(python), "-m", "treeclaim"]

    def hits():
        return int(stats_of(memcached)["get_hits"])

    before = hits()
    checked = subprocess.run(
        [*command, "config", "check"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    findings = [
        line for line in checked.stderr.splitlines() if line.startswith(("error", "warning"))
    ]
    assert checked.returncode == 0, checked.stderr
    expected = ("unknown section", "no operation uses", "policy_file")
    assert all(any(part in line for part in expected) for line in findings), findings
    assert hits() - before == ("ENCRYPT" in text)
    url = f"http://127.0.0.1:{free_port()}"
    serve = [*command, "serve", f"--port={httpx.URL(url).port}", "--workers=1"]
    headers = {"x-auth-token": keystone.token("admin", "admin")}
    for _ in range(2):
        with running(serve, environment, tmp_path / "output.log", answers(url)):
            answer = httpx.get(f"{url}/resource_providers", headers=headers, timeout=60)
        assert answer.status_code == 200, (tmp_path / "output.log").read_text()
    # A token that one process has stored in memcached is found by the next one.
    assert hits() - before == 2 * ("ENCRYPT" in text)
