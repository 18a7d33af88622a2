# SPDX-License-Identifier: Apache-2.0
"""What SECURITY.md says is so."""

import ast
import re
from wsgiref.util import setup_testing_defaults

import pytest

from tests.paths import ROOT
from tests.repository.sources import trees
from tests.service import fresh_database, start_on
from treeclaim.api.routes import OPERATIONS

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

KEYWORD = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|VALUES|SET|SHOW|PRAGMA|CREATE|ALTER|DROP|LOCK|FROM|WHERE)\b"
)
TAKES_SQL = {"literal_column", "text", "exec_driver_sql", "mogrify"}
"""Functions whose first argument is SQL, or that make some."""


def named_in(title):
    """The names in the first column of the table below a title, each as a path of its own."""
    section = PAGE.split(f"### {title}\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    found = []
    for row in rows:
        names = re.findall("`([^`]+)`", row)
        folder = names[0].rpartition("/")[0]
        found += [name if "/" in name else f"{folder}/{name}" for name in names]
    return found


def writes_sql(node, fixed):
    """Whether an expression puts something into a text that is SQL; `fixed` are names of plain texts."""
    if isinstance(node, ast.JoinedStr):
        return bool(KEYWORD.search(" ".join(ast.unparse(part) for part in node.values)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        sides = (node.left, node.right)
        return any(isinstance(side, ast.Constant) and sql_in(side.value) for side in sides)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in {"join", "format", "replace"}:
        return isinstance(node.func.value, ast.Constant) and sql_in(node.func.value.value)
    is_fixed = not node.args or isinstance(node.args[0], ast.Constant)
    is_fixed = is_fixed or (isinstance(node.args[0], ast.Name) and node.args[0].id in fixed)
    return node.func.attr in TAKES_SQL and (node.func.attr == "mogrify" or not is_fixed)


def writes_sql_in(tree):
    fixed = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(writes_sql(node, fixed) for node in ast.walk(tree))


def sql_in(value):
    return isinstance(value, str) and bool(KEYWORD.search(value))


def test_each_place_where_sql_is_written_as_text_is_named():
    found = {
        path for path, tree in trees().items() if path.startswith("store/") and writes_sql_in(tree)
    }
    assert found == set(named_in("Where SQL is written as text"))


@pytest.mark.slow
def test_no_other_room_writes_sql():
    for path, tree in trees().items():
        if path.startswith("store/"):
            continue
        called = {
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        # Others have a `text` of their own.
        assert called & TAKES_SQL <= {"text"}, path


PATHS = sorted({re.sub(r"\{[^}]*\}", "x", operation.path) for operation in OPERATIONS})
OTHERS = [
    "/ui",
    "/ui/",
    "/ui/app.js",
    "/ui/nosuch",
    "/nosuch",
    "/x/y",
    "//",
    "/openapi",
    "/uix",
    "/Treeclaim",
]


@pytest.fixture(scope="module", params=["noauth2", "keystone"])
def application(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    how = {
        "api.auth_strategy": request.param,
        "treeclaim.pages": "true",
        "keystone_authtoken.www_authenticate_uri": "http://127.0.0.1:1",
        "keystone_authtoken.auth_type": "none",
    }
    with start_on(fresh_database(folder), folder, **how) as found:
        yield found


def status_of(application, path, method):
    answered = []
    environment = {"REQUEST_METHOD": method, "PATH_INFO": path}
    setup_testing_defaults(environment)
    chunks = application(environment, lambda status, headers, *_: answered.append(status))
    list(chunks)
    return answered[0]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_the_paths_without_a_token_are_those_that_are_named(application, method):
    named = named_in("Paths without a token")
    open_ = {
        path
        for path in (*PATHS, *OTHERS)
        if not status_of(application, path, method).startswith("401")
    }
    expected = {
        path
        for path in (*PATHS, *OTHERS)
        if path in named or ("/ui/…" in named and path.startswith("/ui/"))
    }
    assert open_ == expected
