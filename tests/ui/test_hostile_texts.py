# SPDX-License-Identifier: Apache-2.0
"""Untrusted names and addresses are inert in the pages, and in texts copied from the pages."""

import ast
import shutil
import subprocess
from urllib.parse import quote

import pytest

from tests.cli.hostile import (
    CLASS,
    CONSUMER,
    FULL,
    MARK,
    NAME,
    OWNER,
    PAYLOAD,
    PROVIDER,
    TRAIT,
    find_harm,
)
from tests.cli.hostile import hostile_service as hostile_on
from tests.resources import needs
from tests.ui.changes import put_part
from treeclaim.client import Client

pytestmark = pytest.mark.long

ROUTES = {
    "Cloud": ["#/cloud?view=table", f"#/cloud?by={quote(PAYLOAD)}&class={quote(PAYLOAD)}"],
    "Tree": ["#/tree", f"#/tree/{PROVIDER}", f"#/tree/{FULL}", f"#/tree/{quote(NAME)}"],
    "Ask": [
        f"#/ask?resources=VCPU:1,{CLASS}:1&required={TRAIT}",
        f"#/ask?resources=VCPU:99&{quote(PAYLOAD)}={quote(PAYLOAD)}",
        f"#/ask?resources=VCPU:9,{CLASS}:99",
        f"#/ask?resources={CLASS}:1&if_more=2:{quote(NAME)}&if_place=1:resources%3DVCPU:1",
        f"#/ask?resources=VCPU:1&if_without={quote(PAYLOAD)}&if_more={quote(PAYLOAD)}",
    ],
    "Fit": ["#/fit", f"#/fit?if_without={quote(NAME)}"],
    "Survival": [
        "#/survival",
        "#/survival?domains=tree",
        "#/survival?domains=aggregates",
        f"#/survival?domains={quote(PAYLOAD)}&types={quote(PAYLOAD)}&if_release={quote(PAYLOAD)}",
    ],
    "Plan": [
        "#/plan",
        f"#/plan?goal=empty&hosts={PROVIDER}",
        f"#/plan?goal=empty&hosts={quote(PAYLOAD)}",
        f"#/plan?goal={quote(PAYLOAD)}&if_place={quote(PAYLOAD)}",
        f"#/plan?goal=fit&query=resources%3DVCPU:99&if_place=2:{quote(PAYLOAD)}",
    ],
    "Consumers": [
        "#/consumers",
        f"#/consumers/{CONSUMER}",
        f"#/consumers?project_id={quote(OWNER)}",
    ],
    "Audit": ["#/audit"],
}
"""Addresses of each page, by the name of its link."""

WITHOUT_NAMES = ["#/fit", "#/survival", "#/plan"]

SHOWN = """
() => {
  const read = [document.title];
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("pre, textarea")) continue;
    for (const name of ["title", "aria-label", "alt", "placeholder"]) read.push(element.getAttribute(name) ?? "");
    for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE) read.push(node.data);
  }
  return read;
}
"""
"""Each text that a page shows."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The address of a service with hostile names."""
    with hostile_on(tmp_path_factory.mktemp("hostile")) as (environment, plain):
        with Client(plain, "admin") as client:
            # Survival and plans name a consumer that fits nowhere.
            requests = {CONSUMER: [f"resources=VCPU:9,{CLASS}:2"]}
            client.call("POST", "/treeclaim/requests", {"requests": requests})
            path = f"/treeclaim/providers/{FULL}/conditions/EVIL"
            client.call("PUT", path, {"effect": "no_new", "reason": PAYLOAD})
            consumes = [{"provider": PROVIDER, "resource_class": "VCPU", "amount": 1}]
            stock = {CLASS: {"total": 8, "consumes": consumes}, "VCPU": {"total": 8}}
            put_part(client, PROVIDER, "inventories", stock)
        yield environment["TREECLAIM_ENDPOINT"]


def settled(page):
    """Wait until nothing more is read."""
    page.locator("main h1").wait_for()
    page.wait_for_function("() => !document.querySelector('.busy')")


def test_every_page_has_a_hostile_text_route(visit, hostile):
    page = visit(hostile).open()
    assert set(page.locator("nav li").all_inner_texts()) == ROUTES.keys()


@pytest.mark.parametrize("route", [route for routes in ROUTES.values() for route in routes])
def test_pages_show_no_control_characters(visit, hostile, route):
    page = visit(hostile).open(route)
    settled(page)
    shown = page.evaluate(SHOWN)
    assert [text for text in shown if find_harm(text.strip())] == []
    assert any(MARK in text for text in shown) or route in WITHOUT_NAMES


def copied(page, title):
    page.get_by_role("button", name=title).click()
    return page.get_by_label(title, exact=True).evaluate("element => element.textContent")


SHELLS = ["sh", *(pytest.param(shell, marks=needs(shell)) for shell in ("bash", "zsh"))]


@pytest.mark.parametrize("shell", SHELLS)
def test_copied_shell_command_executes_no_injected_code(visit, hostile, tmp_path, shell):
    attack = f"x\ntouch pwned\n'; touch pwned; '$(touch pwned)`touch pwned`\\{PAYLOAD}"
    quoted = quote(attack)
    page = visit(hostile).open(
        f"#/ask?resources=VCPU:1&required=in:{quoted}&{quoted}={quoted}&same_subtree={quoted}"
    )
    settled(page)
    for name in ("curl", "openstack"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nprintf "%s\\\\0" "$@" >> "$0.told"\n')
        program.chmod(0o755)
    for title in ("curl", "flavor extra specs"):
        text = copied(page, title)
        # A terminal interprets pasted control characters before a shell reads them.
        assert find_harm(text) == []
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "OS_TOKEN": "token", "LANG": "C.UTF-8"}
        how = {"cwd": tmp_path, "env": environment, "capture_output": True}
        subprocess.run([shutil.which(shell), "-c", text], check=False, **how)
        subprocess.run([shutil.which(shell), "-i"], input=text.encode(), check=False, **how)
    assert not (tmp_path / "pwned").exists()
    result = (tmp_path / "openstack.told").read_bytes().decode().split("\0")
    if shell != "sh":
        assert any(attack.strip() in word for word in result)


def test_copied_python_code_has_no_injected_call(visit, hostile):
    attack = f'x")\nimport os; os.system("false") #{PAYLOAD}\\'
    page = visit(hostile).open(
        f"#/ask?resources=VCPU:1&required={quote(attack)}&{quote(attack)}=1"
    )
    settled(page)
    text = copied(page, "Python")
    assert find_harm(text) == []
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    assert len(calls) == 2
    assert len(ast.parse(text).body) == 3


BORN_WITH = ("constructor", "__proto__")
"""Names that every object of JavaScript has from its birth: a function, as all others are, and an object."""


@pytest.mark.parametrize("name", BORN_WITH)
def test_builtin_javascript_property_names_are_ordinary_names(visit, cloud, name):
    visitor = visit(cloud)
    for route in (
        f"#/ask?resources=VCPU:1&{name}=1",
        f"#/ask?resources={name}:1&required={name}&same_subtree={name}",
        f"#/cloud?class={name}&by={name}&{name}=1",
        f"#/cloud?class={name}&view=table",
        f"#/consumers?{name}={name}",
        f"#/ask?resources=VCPU:1&if_{name}={name}&if_without={name}",
        f"#/survival?{name}={name}&types={name}",
        f"#/survival?domains={name}",
        f"#/plan?goal={name}&{name}={name}",
        f"#/plan?goal=keep&mix={name}",
        f"#/tree/{name}",
    ):
        page = visitor.go(route)
        settled(page)
        assert "Something went wrong in this page" not in page.inner_text("body"), route
        assert "NaN" not in page.inner_text("body"), route
    page = visitor.go(f"#/{name}")
    visitor.see("There is no page at this address")
    page = visitor.go("#/fit")
    page.get_by_role("textbox").fill(f"[{name}]\nvcpus=1\n{name}=1\nresources:{name.upper()}=0")
    page.get_by_role("button", name="Count").click()
    page.wait_for_function("() => !document.querySelector('.busy')")
    page.get_by_role("textbox").fill(f"[{name}]\nvcpus=1\n{name}=1")
    page.get_by_role("button", name="Count").click()
    row = page.locator(".fit tbody tr")
    row.wait_for()
    assert name in row.inner_text()
    assert "NaN" not in row.inner_text()
