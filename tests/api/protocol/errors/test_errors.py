# SPDX-License-Identifier: Apache-2.0
"""Errors as clients see them have nothing that a browser would run."""

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.errors.documents import render_error
from treeclaim.model.microversions import MAXIMUM

REQUEST_ID = "req-6f3b1a52-7a7d-4f0e-9a55-0c1c2f7f8a10"

TAG = re.compile(r"<[^>]*>")


def document(detail, accept):
    """The body of a refusal."""
    return render_error(bad_request(detail), accept=accept, version=MAXIMUM, request_id=REQUEST_ID)


MARKUP = st.lists(
    st.sampled_from(
        ["<", ">", "&", "<script", "</", "<!--", "&lt;", "&#60;", "<?", "a", " ", "'", '"', "="]
    ),
    max_size=12,
).map("".join)


@given(detail=MARKUP | st.text(max_size=30))
def test_error_page_escapes_the_detail_text(detail):
    """HTML shows the same text as JSON, and a browser finds no tag in it."""
    content_type, written = document(detail, "text/html")
    page, usual_page = written.decode(), document("usual", "text/html")[1].decode()
    assert content_type == "text/html; charset=UTF-8"
    assert TAG.findall(page) == TAG.findall(usual_page)
    shown = json.loads(document(detail, "application/json")[1])["errors"][0]["detail"]
    assert shown in html.unescape(TAG.sub("", page))


@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/plain"])
def test_markup_is_left_out(accept):
    """Contract page 00, section 6."""
    _, written = document("a <b class='c'>d</b> <!-- e --> f", accept)
    assert b"a d  f" in written


def test_plain_text_is_not_escaped():
    assert b"a & b < c > d" in document("a & b < c > d", "text/plain")[1]
