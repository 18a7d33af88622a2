# SPDX-License-Identifier: Apache-2.0
"""A browser, and services to look at with it."""

import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

from bench.worlds.bulk import write_world
from tests.servers import service_environment, serving
from tests.ui.worlds import large, small

_WAIT_MILLISECONDS = 30_000
"""How long a page may take for what a test expects; machines that judge are busy."""


@pytest.fixture(scope="session")
def browser():
    """Chromium of the distribution, without a window."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


class Visitor:
    """Somebody with a tab.

    Attributes:
        page: The tab.
        errors: What the browser complained about: exceptions, violations of the policy.
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

    def see(self, text):
        """Wait until a text can be seen."""
        self.page.get_by_text(text).first.wait_for()


@pytest.fixture
def visit(browser):
    """A function that makes a visitor of a service; nothing may be wrong in the page in the end."""
    contexts, visitors = [], []

    def make(url, **how):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}} | how)
        contexts.append(context)
        visitors.append(Visitor(context, url))
        return visitors[-1]

    yield make
    for context in contexts:
        context.close()
    assert [visitor.errors for visitor in visitors if visitor.errors] == []


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


@pytest.fixture(scope="module")
def large_cloud(tmp_path_factory):
    """The address of a service with five thousand trees."""
    with service_with(tmp_path_factory.mktemp("large"), large()) as server:
        yield server.url
