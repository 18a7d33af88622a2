# SPDX-License-Identifier: Apache-2.0
"""The documentation site: `make docs` writes it to build/site.

Pages link to files of the repository as they lie there, so that links work in a checkout too. The
pages of the repository's root and the API reference are written to `docs/site/` before each build.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

DOCS = Path(__file__).parent
ROOT = DOCS.parent
WRITTEN = DOCS / "site"
PAGES_OF_THE_ROOT = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md")

project = "Treeclaim"
author = "The authors of Treeclaim"
extensions = ["myst_parser", "sphinx_copybutton", "oslo_config.sphinxext"]
html_theme = "furo"
html_title = "Treeclaim"
html_show_copyright = False
exclude_patterns = ["README.md"]
myst_enable_extensions = ["attrs_inline", "attrs_block"]
myst_heading_anchors = 4
nitpicky = True
# The contract leaves out parts of JSON with "…"; its pages are not ours to change.
suppress_warnings = ["myst.xref_ambiguous", "misc.highlighting_failure"]

_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def setup(app: Any) -> None:
    """Write the pages that are made of other files."""
    app.add_lexer("request", TextLexer)
    WRITTEN.mkdir(exist_ok=True)
    for name in PAGES_OF_THE_ROOT:
        (WRITTEN / name).write_text(_LINK.sub(_from_site, (ROOT / name).read_text()))
    description = json.loads((DOCS / "openapi.json").read_text())
    (WRITTEN / "api.md").write_text(_reference(description))


def _from_site(match: re.Match[str]) -> str:
    """Return a link of a page of the root as it is from `docs/site/`."""
    target = match[1].rstrip("/")
    if (ROOT / target).is_dir() and (ROOT / target / "README.md").exists():
        target = posixpath.join(target, "README.md")
    if target in PAGES_OF_THE_ROOT:
        return f"]({target}{match[2] or ''})"
    if target == "README.md":
        return "](../index.md)"
    return f"](../../{target}{match[2] or ''})"


def _reference(description: dict[str, Any]) -> str:
    """Write the API description as a page: a table of operations, then each of them."""
    lines = ["# The API, operation by operation", "", description["info"]["description"], ""]
    lines += ["| operation | since | what it does |", "| --- | --- | --- |"]
    operations = [
        (path, method.upper(), operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if isinstance(operation, dict) and "responses" in operation
    ]
    for path, method, operation in operations:
        anchor = operation["operationId"].replace("_", "-")
        since = operation.get("x-since", "1.0")
        lines.append(f"| [`{method} {path}`](#{anchor}) | {since} | {operation['summary']} |")
    for path, method, operation in operations:
        lines += _section(path, method, operation)
    return "\n".join(lines) + "\n"


def _section(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    anchor = operation["operationId"].replace("_", "-")
    yield from ("", f"({anchor})=", f"## {method} {path}", "", operation["summary"], "")
    parameters = [
        parameter
        for parameter in operation.get("parameters", [])
        if parameter["in"] in {"query", "path"}
    ]
    if parameters:
        yield from ("| parameter | in | form |", "| --- | --- | --- |")
        for parameter in parameters:
            form = _cell(json.dumps(parameter.get("schema", {}), ensure_ascii=False))
            yield f"| `{parameter['name']}` | {parameter['in']} | `{form}` |"
        yield ""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield from (f"Body, `{media_type}`:", "", "```json")
        yield json.dumps(content.get("schema", {}), indent=1, ensure_ascii=False)
        yield from ("```", "")
    yield from ("| status | meaning |", "| --- | --- |")
    for status, response in operation["responses"].items():
        yield f"| {status} | {_cell(response.get('description', ''))} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
