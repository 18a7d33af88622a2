# SPDX-License-Identifier: Apache-2.0
"""The statements of SECURITY.md are true."""

import re
from wsgiref.util import setup_testing_defaults

import pytest

from tests.paths import ROOT
from tests.service import fresh_database, start_on
from treeclaim.api.routes import OPERATIONS

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def named_in(title):
    """The names in the first column of the table below a title, each as a path of its own."""
    section = PAGE.split(f"### {title}\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    addresses = []
    for row in rows:
        names = re.findall("`([^`]+)`", row)
        folder = names[0].rpartition("/")[0]
        addresses += [name if "/" in name else f"{folder}/{name}" for name in names]
    return addresses


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
    with start_on(fresh_database(folder), folder, **how) as service:
        yield service


def status_of(application, path, method):
    answered = []
    environment = {"REQUEST_METHOD": method, "PATH_INFO": path}
    setup_testing_defaults(environment)
    chunks = application(environment, lambda status, headers, *_: answered.append(status))
    list(chunks)
    return answered[0]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_open_paths_are_those_documented(application, method):
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
