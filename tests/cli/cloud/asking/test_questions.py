# SPDX-License-Identifier: Apache-2.0
"""`candidates`, `explain`, `claim`, `release` and `tree` as a person runs them."""

from tests.cli.processes import call
from tests.cli.services import succeed


def test_flavor_is_accepted_as_query(environment, tmp_path):
    file = tmp_path / "flavor.yaml"
    file.write_text("{vcpus: 2, ram: 512, extra_specs: {'resources_GPU:VGPU': '1', 'hw:x': y}}")
    for arguments in (
        ["--flavor-file", str(file)],
        ["--flavor", "vcpus=2", "ram=512", "resources_GPU:VGPU=1"],
    ):
        shown = succeed(environment, "candidates", *arguments)
        assert "1 VGPU" in shown
        assert "512 MEMORY_MB" in shown


def test_os_variables_name_a_cloud(environment):
    elsewhere = environment | {
        "OS_AUTH_URL": "http://127.0.0.1:9/v3",
        "OS_USERNAME": "somebody",
        "OS_PASSWORD": "secret",
        "OS_PROJECT_NAME": "admin",
    }
    del elsewhere["TREECLAIM_ENDPOINT"]
    refused = call(elsewhere, "tree")
    assert refused.returncode == 1
    assert "127.0.0.1" in refused.stderr
    assert "Traceback" not in refused.stderr
