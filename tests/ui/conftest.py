# SPDX-License-Identifier: Apache-2.0
"""A browser, and services with pages."""

import json
import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

from tests.clouds.bulk import write_world
from tests.servers import service_environment, serving
from tests.ui.changes import uuid_of
from tests.ui.worlds import HOPELESS, QUESTION, small
from treeclaim.client import Client

_WAIT_MILLISECONDS = 30_000
"""Seconds for which a test waits for a page; judging machines are busy."""


@pytest.fixture(scope="session")
def browser(browser):
    """Chromium of the distribution, without a window."""
    program = shutil.which("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


class Visitor:
    """A user with one browser tab.

    Attributes:
        page: The tab.
        errors: Errors in the browser: exceptions, violations of the policy.
    """

    def __init__(self, context, url):
        self.page = context.new_page()
        self.page.set_default_timeout(_WAIT_MILLISECONDS)
        self.errors = []
        self.url = url
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message):
        # An answer of 400 or more is a matter of the page, which says so; the browser notes it too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def open(self, route="#/cloud", token="admin"):
        """Open a page, signed in if there is a token."""
        self.page.goto(f"{self.url}/ui/icon.svg")
        if token:
            self.page.evaluate("token => sessionStorage.setItem('treeclaim.token', token)", token)
        else:
            self.page.evaluate("sessionStorage.clear()")
        self.page.goto(f"{self.url}/ui/{route}")
        return self.page

    def go(self, route):
        """Go to a page as by a link, without earlier data and drawings.

        Loading all modules for each page takes five times as long. The browser first visits another page, so that an
        awaited element cannot be from before.
        """
        if not self.page.url.startswith(f"{self.url}/ui/#"):
            return self.open(route)
        between = "Consumers" if route.startswith("#/fit") else "Fit"
        self._turn_to(f"#/{between.lower()}", f"document.title.startsWith('{between}')")
        return self._turn_to(route, f"!document.title.startsWith('{between}')")

    def _turn_to(self, route, is_there):
        self.page.evaluate("route => { location.hash = route; }", route)
        self.page.wait_for_function(f"() => {is_there}")
        return self.page

    def see(self, text):
        """Wait until a text can be seen."""
        self.page.get_by_text(text).first.wait_for()


@pytest.fixture(scope="module")
def context_of(browser):
    """A function that returns the browser's context for some options, created once.

    Tabs of a context share the loaded modules of the pages; each tab has its own token.
    """
    contexts = {}

    def make(how):
        key = json.dumps(how, sort_keys=True)
        if key not in contexts:
            usual = {"viewport": {"width": 1280, "height": 860}}
            contexts[key] = browser.new_context(**usual | how)
        return contexts[key]

    yield make
    for context in contexts.values():
        context.close()


@pytest.fixture
def visit(context_of):
    """A function that makes a visitor of a service; nothing may be wrong in the page in the end."""
    visitors = []

    def make(url, **how):
        visitors.append(Visitor(context_of(how), url))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.page.close()
    assert [visitor.errors for visitor in visitors if visitor.errors] == []


def read_map(place):
    """Read the texts of the map at a place, in the order of the map."""
    place.locator(".map-box").focus()
    place.page.keyboard.press("Home")
    texts = []
    while (text := place.locator(".map-told").inner_text()) not in texts[-1:]:
        texts.append(text)
        place.page.keyboard.press("ArrowRight")
    return texts


@contextmanager
def service_with(folder, world=None, *options, **variables):
    """Run `treeclaim serve` with a world."""
    environment = service_environment(folder, **variables)
    if world is not None:
        write_world(environment["OS_PLACEMENT_DATABASE__CONNECTION"], world)
    with serving(environment, folder, *options) as server:
        yield server


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """The address of a service with twelve trees."""
    with service_with(tmp_path_factory.mktemp("cloud"), small()) as server:
        yield server.url


@pytest.fixture
def client(cloud):
    """A client of the service with twelve trees."""
    with Client(cloud, "admin") as service_client:
        yield service_client


@pytest.fixture(scope="module")
def routes(cloud):
    """Each page, with an element that shows that it is drawn."""
    with Client(cloud, "admin") as client:
        uuid = uuid_of(client, "host-2")
    return {
        "#/cloud": ".map-told",
        "#/cloud?view=table&by=aggregates": "table.trees tbody tr",
        "#/tree": "table.trees tbody tr",
        f"#/tree/{uuid}": "table.holdings tbody tr",
        f"#/ask?{QUESTION}&limit=3": ".candidate .bar",
        f"#/ask?{HOPELESS}": ".nearest li",
        f"#/ask?{QUESTION}&limit=3&if_more=2:host-1": ".candidate .bar",
        "#/fit": "textarea",
        "#/survival?domains=aggregates": ".map-told",
        "#/plan?goal=empty&hosts=host-2": ".before-after, .failure",
        "#/consumers": "table.holdings tbody tr",
        "#/audit": ".findings, .failure",
        "#/nowhere": ".empty a",
    }
