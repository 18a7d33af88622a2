# SPDX-License-Identifier: Apache-2.0
"""The files of the pages (contract page 99, section 7); `gabbits/pages.yaml` has how they are served."""

import hashlib
import json
import re
from importlib import resources

import httpx
import pytest

from tests.service import application_on, client_of
from tools import generated

STATIC = resources.files("treeclaim.ui") / "static"
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    with (
        application_on("sqlite", folder, **{"treeclaim.pages": "true"}) as application,
        client_of(application) as client,
    ):
        yield client


def paths(folder=STATIC, prefix=""):
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from paths(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}"


SERVED = sorted(path for path in paths() if path.endswith((".html", ".css", ".js", ".svg")))


@pytest.mark.parametrize("path", SERVED)
def test_files_are_served_without_token_and_with_security_headers(pages, path):
    answer = pages.get(f"/ui/{path}", headers={"x-auth-token": ""})
    assert answer.status_code == 200
    assert answer.content == (STATIC / path).read_bytes()
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    kind = {
        "html": "text/html",
        "css": "text/css",
        "js": "text/javascript",
        "svg": "image/svg+xml",
    }
    assert answer.headers["content-type"].split(";")[0] == kind[path.rpartition(".")[2]]


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../serving.py",
        "/ui/%2e%2e/serving.py",
        "/ui/..%2fserving.py",
        "/ui//etc/passwd",
        "/ui/%2fetc%2fpasswd",
        "/ui/vendor",
        "/ui/vendor/",
        "/ui/vendor/README.md",
        "/ui/vendor/hashes.json",
        "/ui/app.js%00.html",
        "/ui/App.js",
        "/ui/no-such-file.js",
    ],
)
def test_other_paths_return_404(pages, path):
    url = httpx.URL("http://placement.example").copy_with(raw_path=path.encode())
    answer = pages.send(pages.build_request("GET", url))
    assert answer.status_code == 404
    assert b"import" not in answer.content


def test_lines_of_javascript_have_at_most_100_columns():
    for path in SERVED:
        if path.endswith(".js") and not path.startswith("vendor/"):
            lines = (STATIC / path).read_text().splitlines()
            assert [line for line in lines if len(line) > 100] == [], path


def test_files_reference_no_other_origin():
    known = (
        "http://www.w3.org/2000/svg",
        "http://any",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1998/Math/MathML",
    )
    for path in SERVED:
        text = (STATIC / path).read_text()
        for url in re.findall(r"https?://[^\s\"'`<>)]+", text):
            assert url in known, f"{path} names {url}"


def test_vendored_libraries_match_the_registry():
    listed = json.loads((STATIC / "vendor" / "hashes.json").read_text())["files"]
    readme = (STATIC / "vendor" / "README.md").read_text()
    scripts = {path.name for path in (STATIC / "vendor").iterdir() if path.name.endswith(".js")}
    assert {entry["file"] for entry in listed} == scripts
    for entry in listed:
        text = (STATIC / "vendor" / entry["file"]).read_text()
        if "changed" in entry:
            assert text.count(entry["changed"]["to"]) == 1
            text = text.replace(entry["changed"]["to"], entry["changed"]["from"])
        assert hashlib.sha256(text.encode()).hexdigest() == entry["sha256_of_original"]
        row = re.search(rf"^\| `{re.escape(entry['file'])}` .*$", readme, re.MULTILINE)[0]
        assert entry["version"] in row
        assert entry["licence"] in row
        assert entry["original"] in row
        assert (STATIC / "vendor" / f"LICENSE.{entry['package']}").is_file()


@pytest.mark.parametrize(
    ("file", "text"),
    [(generated.PARAMETERS, generated.parameters), (generated.PARTS, generated.parts)],
    ids=["query parameters", "provider parts"],
)
def test_generated_files_are_current(file, text):
    assert file.read_text() == text(), "write it anew with `make generated`"
