# SPDX-License-Identifier: Apache-2.0
"""`treeclaim compare` finds what two services answer differently, and nothing else."""

import json
import re

import pytest

from tests import peer
from tests.cli.processes import call
from tests.cli.services import (
    open_client,
    run_refused_command,
    run_service,
    run_successful_command,
)
from tests.clouds.bulk import write_world
from tests.environments import peer_programs
from tests.paths import EXAMPLE, ROOT
from tests.servers import usual_environment
from tests.ui.worlds import small
from treeclaim.comparison.known_differences import KNOWN_DIFFERENCES


@pytest.fixture
def services(tmp_path):
    """The environments of two services, of which the second has a copy of the first."""
    old_folder, new_folder = tmp_path / "old", tmp_path / "new"
    for folder in (old_folder, new_folder):
        folder.mkdir()
    with run_service(old_folder) as old, run_service(new_folder) as new:
        run_successful_command(old, "load", str(EXAMPLE))
        run_successful_command(old, "claim", "resources=VCPU:1")
        run_successful_command(old, "copy", "--from", url_of(old), "--to", url_of(new))
        yield old, new


def url_of(environment):
    return environment["TREECLAIM_ENDPOINT"]


def test_comparison_with_a_copy_finds_no_difference(services):
    old, new = services
    shown = run_successful_command(old, "compare", url_of(old), url_of(new))
    assert re.match(r"(\d+) reads compared: \1 equal, 0 known differences, 0 others", shown)
    with open_client(new) as client:
        name = client.providers()[0]["name"]
        uuid_ = client.providers()[0]["uuid"]
        client.call("PUT", f"/resource_providers/{uuid_}", json={"name": f"{name}-new"})
    result = call(old, "compare", url_of(old), url_of(new))
    assert (result.returncode, f"{name}-new" in result.stdout) == (1, True)


def test_different_response_is_reported_with_an_example(services, tmp_path):
    old, new = services
    log = tmp_path / "access.log"
    log.write_text(
        '1.2.3.4 - - [x] "GET /placement/traits?name=startswith:CUSTOM_ HTTP/1.1" 200 29\n'
        '1.2.3.4 - - [x] "GET /placement/usages?project_id=treeclaim HTTP/1.1" 200 29\n'
        '1.2.3.4 - - [x] "PUT /placement/traits/CUSTOM_X HTTP/1.1" 200 29\n'
    )
    command = ("compare", url_of(old), url_of(new), "--requests", str(log))
    assert "2 reads compared: 2 equal" in run_successful_command(old, *command)
    with open_client(new) as client:
        client.call("PUT", "/traits/CUSTOM_NEW")
    result = call(old, *command, "-f", "json")
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert (document["equal"], len(document["different"])) == (1, 1)
    assert "CUSTOM_NEW" in document["different"][0]["example"]
    assert "1 PUT is no read" in result.stderr
    assert "made at 1.39" in result.stderr


def test_log_without_reads_or_unreachable_service_is_a_failure(services, tmp_path):
    old, _ = services
    log = tmp_path / "empty.log"
    log.write_text("nothing here\n")
    message = run_refused_command(
        old, "compare", url_of(old), url_of(old), "--requests", str(log), code=2
    )
    assert "no read of the Placement API" in message
    run_refused_command(old, "compare", url_of(old), "http://127.0.0.1:1", code=2)
    run_refused_command(
        old, "compare", url_of(old), url_of(old), "--requests", str(tmp_path / "no"), code=2
    )
    run_refused_command(
        old, "compare", url_of(old), url_of(old), "--microversion", "latest", code=2
    )


def test_each_known_difference_has_a_row_with_its_number():
    rows = (ROOT / "docs" / "differences.md").read_text()
    assert [number for number in KNOWN_DIFFERENCES if f"\n| {number} | " not in rows] == []


@pytest.mark.slow
def test_openstack_placement_differs_by_known_differences_only(tmp_path):
    peer_programs()
    home = tmp_path / "ours"
    home.mkdir()
    database = f"sqlite:///{tmp_path / 'peer.db'}"
    write_world(database, small(hosts=9))
    with (
        peer.openstack_placement_on(database, tmp_path) as (url, _),
        run_service(home) as ours,
    ):
        environment = usual_environment(tmp_path, TREECLAIM_ENDPOINT=url)
        run_successful_command(environment, "copy", "--from", url, "--to", url_of(ours))
        swept = call(environment, "compare", url, url_of(ours))
        assert swept.returncode == 0, swept.stdout
        log = tmp_path / "uwsgi.log"
        targets = (
            "/allocation_candidates?resources=VCPU:1&limit=5",
            "/allocation_candidates?resources=VCPU:99999999999999999999",
            "/resource_providers?required=CUSTOM_NOT_THERE",
        )
        log.write_text(
            "".join(
                f"[pid: 1|app: 0|req: 1/1] 127.0.0.1 () {{1 vars in 2 bytes}} [Sat Nov 28 12:00:00 2026] "
                f"GET {target} => generated 29 bytes in 3 msecs (HTTP/1.1 200) 5 headers\n"
                for target in targets
            )
        )
        result = call(environment, "compare", url, url_of(ours), "--requests", str(log))
        assert result.returncode == 0, result.stdout
        assert "1 times known difference 8" in result.stdout
