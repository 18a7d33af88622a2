# SPDX-License-Identifier: Apache-2.0
"""The pages behind a proxy that serves the service below a path (contract page 99, section 7)."""

from contextlib import contextmanager

import pytest

from tests.clouds.bulk import write_world
from tests.server.fronts import running
from tests.service import start_on
from tests.ui.changes import claimed, uuid_of
from tests.ui.worlds import QUESTION, small
from treeclaim.client import Client

pytestmark = pytest.mark.long

PREFIX = "/cloud-1/placement"


@contextmanager
def served_below_a_path(folder):
    """The pages, which do not know the path that is taken off before their service.

    Yields:
        Its URL with the path, its URL without, and the paths of requests elsewhere.
    """
    database = f"sqlite:///{folder}/placement.db"
    write_world(database, small())
    elsewhere = []
    with start_on(database, folder, **{"treeclaim.pages": "true"}) as application:

        def below_the_path(environment, start_response):
            path = environment["PATH_INFO"]
            if not path.startswith(f"{PREFIX}/"):
                elsewhere.append(path)
                start_response("404 Not Found", [("Content-Length", "0")])
                return []
            environment["PATH_INFO"] = path.removeprefix(PREFIX)
            return application(environment, start_response)

        with (
            running(application, threads=8) as plain,
            running(below_the_path, threads=8) as server,
        ):
            urls = [f"http://127.0.0.1:{front.address[1]}" for front in (server, plain)]
            yield f"{urls[0]}{PREFIX}", urls[1], elsewhere


def test_pages_and_event_stream_work_below_a_path(visit, tmp_path):
    with (
        served_below_a_path(tmp_path) as (url, direct, elsewhere),
        Client(direct, "admin") as client,
    ):
        visitor = visit(url)
        page = visitor.open(token=None)
        # The address without its last slash leads to the pages too.
        page.goto(f"{url}/ui")
        assert page.url == f"{url}/ui/"
        page.get_by_label("Token").fill("admin")
        page.keyboard.press("Enter")
        visitor.see("12 trees")
        visitor.see("live: changes come as they are made")
        with claimed(client, {uuid_of(client, "host-6_numa1_device"): {"VGPU": 3}}):
            visitor.see("3 of 40 used")
        page.get_by_role("button", name="Table").click()
        page.get_by_role("link", name="host-2", exact=True).click()
        page.get_by_role("heading", name="host-2", level=1).wait_for()
        page.locator("table.holdings tbody th a").first.click()
        page.get_by_role("heading", name="Consumers").wait_for()
        page.locator("table.holdings tbody tr").first.wait_for()
        page.get_by_role("link", name="Audit").click()
        page.locator(".findings").wait_for()
        page.get_by_role("link", name="Fit").click()
        page.get_by_role("button", name="Count").click()
        page.locator(".fit tbody tr").first.wait_for()
        page = visitor.open(f"#/ask?{QUESTION}")
        page.locator(".candidate .bar").first.wait_for()
        page.get_by_role("button", name="curl").click()
        assert f"{url}/allocation_candidates?" in page.get_by_label("curl").inner_text()
        page.get_by_role("button", name="Why not more trees?").click()
        page.locator(".verdict").wait_for()
        page.get_by_role("link", name="Treeclaim").click()
        visitor.see("12 trees")
        assert page.url.startswith(f"{url}/ui/")
    # Browsers request this by themselves when a picture is opened alone.
    assert set(elsewhere) <= {"/favicon.ico"}
