# SPDX-License-Identifier: Apache-2.0
"""Hostile and long texts in any place of a request leave answers whole and headers intact, with little work."""

import itertools
import json
import re
from urllib.parse import quote, quote_from_bytes

import pytest

from tests.api.described import HOST, bodies, described, parameters, with_number, with_text
from tests.api.raw import require_sound, send
from tests.bodies import add_hosts
from tests.service import client_of, make_application
from treeclaim.api.routes import OPERATIONS

pytestmark = pytest.mark.usefixtures("limited_work")

HOSTILE = [
    "\n",
    "CUSTOM_X\n",
    "\nCUSTOM_X",
    "CUSTOM_X\r\nSet-Cookie: a=b",
    "VCPU\n",
    "1\n",
    f"{HOST}\n",
    'a"b',
    'a",{"b":"',
    "back\\slash\\",
    "\\u0000",
    "nul\0",
    "\x01\x08\x1b[31m\x7f\x85",
    "line\u2028paragraph\u2029",
    "\u202eright to left",
    "\ud800 lone",
    "\N{SNOWMAN}\U0001f333",
    "\N{KELVIN SIGN}\N{ARABIC-INDIC DIGIT ONE}",
    "%b%s%d{0}",
    "<script>alert('a & b')</script>",
    "a" * 300,
    "CUSTOM_" + "A" * 20_000,
    "\n" * 500,
]
LONG = 200_000
"""Characters of a text."""


def filled(unit, length=LONG):
    """A text of so many characters."""
    return (unit * (length // len(unit) + 1))[:length]


LONG_TEXTS = {
    "one letter": filled("a"),
    "beginnings of markup": filled("<a"),
    "a version of markup": "placement " + filled("<a"),
    "a version of digits": "placement 1." + filled("1"),
    "markup in markup": filled("<a<b>"),
    "closed late": "<" * (LONG - 1) + ">",
    "half quoted": filled(';a="'),
    "parameters": filled(";a=b"),
    "list": filled("a,"),
    "stars": filled("*/*,"),
    "qualities": filled("a/b;q=0.1,"),
    "versions": filled("placement 1.1,"),
    "blanks": filled(" "),
    "digits": filled("1"),
    "dots": filled("1."),
    "line ends": filled("\n"),
    "backslashes": filled('\\"'),
    "dashes": filled("a-"),
    "colons": filled("a:1,"),
    "marks": filled("!"),
    "capitals": "CUSTOM_" + filled("A_"),
    "percent": filled("%25"),
    "roles": filled("admin,member,"),
    "beyond ASCII": filled("\xc3\xa4"),
}
SLOW = LONG_TEXTS.keys() - {"markup in markup", "a version of digits"}
"""The long texts but for those that made most work before there were bounds."""

TEXTS = {f"{at}-{ascii(text)[:24]}": text for at, text in enumerate(HOSTILE)} | LONG_TEXTS
EACH_TEXT = pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=kind, marks=pytest.mark.slow if kind in SLOW else ())
        for kind, text in TEXTS.items()
    ],
)
ACCEPTS = ["application/json", "text/html", "text/plain"]
VERSIONS = ["1.0", "1.12", "1.25", "1.39", "1.39, treeclaim 1.0"]
NEWEST = "1.39, treeclaim latest"
HEADERS = (
    "http_openstack_api_version",
    "http_accept",
    "content_type",
    "content_length",
    "http_x_auth_token",
    "http_x_roles",
    "http_x_project_id",
    "http_openstack_system_scope",
    "http_x_openstack_request_id",
    "http_host",
    "http_x_forwarded_proto",
    "script_name",
)


def share_of(places, text, share):
    """Return a share of some places, of a long text an eighth of it; all places meet some of the texts."""
    share *= 1 if len(text) < LONG else 8
    return itertools.islice(places, list(TEXTS.values()).index(text) % share, None, share)


def encoded(text):
    """Percent-encode a text for a query, also a text that is not UTF-8."""
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="").encode()


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """A service with a host that has something to offer."""
    service = make_application(tmp_path_factory.mktemp("hostile"))
    with client_of(service) as client:
        add_hosts(client, HOST, VCPU=8)
    return service


@EACH_TEXT
def test_hostile_text_in_paths_is_handled(application, text):
    places = itertools.product(OPERATIONS, ACCEPTS, VERSIONS)
    for operation, accept, version in share_of(places, text, 7):
        raw = re.sub(r"\{\w+\}", lambda _: text, operation.path)
        body = b"{}" if operation.body is not None else None
        answer = send(
            application, operation.method, raw, body=body, version=version, http_accept=accept
        )
        require_sound(answer)


@pytest.mark.slow
@EACH_TEXT
def test_hostile_text_in_query_values_is_handled(application, text):
    # Encoded, it is three times as long.
    shorter = text[: LONG // 4]
    places = (
        (method, path, name, value)
        for method, path, operation in described()
        for name in parameters(operation)
        for value in (shorter, f"VCPU:{shorter}", f"!in:{shorter}")
    )
    for method, path, name, value in share_of(places, text, 3):
        needed = b"resources=VCPU:1&" if "candidates" in path else b""
        query = needed + f"{name}=".encode() + encoded(value)
        require_sound(send(application, method, path, query=query, version=NEWEST))


@EACH_TEXT
def test_hostile_text_in_parameter_names_and_suffixes_is_handled(application, text):
    places = (
        (path, name, version)
        for method, path, operation in described()
        if method == "GET"
        for name in ("", *parameters(operation))
        for version in VERSIONS[3:]
    )
    for path, name, version in share_of(places, text, 3):
        parameter = encoded(name + text)
        others = b"resources" + encoded(text) + b"=VCPU:1&group_policy=none&resources_A=VCPU:1&"
        for query in (parameter + b"=VCPU:1", others + parameter + b"=" + HOST.encode()):
            require_sound(send(application, "GET", path, query=query, version=version))


@EACH_TEXT
def test_hostile_text_in_bodies_is_handled(application, text):
    places = (
        (method, path, body)
        for method, path, operation in described()
        for value in itertools.islice(bodies(operation), 2)
        for body in [text, *with_text(json.loads(with_number(value, "1")), text)]
    )
    for method, path, body in share_of(places, text, 6):
        written = json.dumps(body).encode()
        for version, accept in (("1.6", ACCEPTS[1]), (NEWEST, ACCEPTS[0])):
            answer = send(
                application, method, path, body=written, version=version, http_accept=accept
            )
            require_sound(answer)
    # Records with such names are shown whole everywhere.
    for shown in ("", *(f"/{HOST}/{part}" for part in ("traits", "aggregates", "inventories"))):
        require_sound(send(application, "GET", f"/resource_providers{shown}"))


@EACH_TEXT
def test_hostile_text_in_headers_is_handled(application, text):
    """A server hands over Latin-1; some accept control characters."""
    sent = text.encode("utf-8", "surrogatepass").decode("latin-1")
    calls = (
        ("GET", "/resource_providers", None),
        ("GET", "/nowhere", None),
        ("POST", "/resource_providers", b"{}"),
    )
    for name, (method, path, body) in itertools.product(HEADERS, calls):
        require_sound(send(application, method, path, body=body, **{name: sent}))


def test_location_header_is_escaped(application):
    for prefix in ("/placement", "/pl\xc3\xa4 ce\n"):
        answer = send(application, "PUT", "/traits/CUSTOM_PLACE", script_name=prefix)
        host = "http://127.0.0.1" + quote(prefix.encode("latin-1"), safe="/")
        assert answer.header("location") == f"{host}/traits/CUSTOM_PLACE"
