# SPDX-License-Identifier: Apache-2.0
"""No client writes a line of the log, or the rest of one."""

import logging
import re
import sys
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oslo_log.formatters import ContextFormatter

from treeclaim import config
from treeclaim.api.middleware.layers import _target
from treeclaim.logs import _OneLine, one_line

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from('\n\r\x00\x1b\x85\x9b\u2028\u2029\u202e\u2066\x0b\x0c\x1c\ud800"\\% '),
    ),
    max_size=60,
)
BYTES = st.binary(max_size=60).map(lambda data: data.decode("latin-1"))


@pytest.fixture(scope="module")
def formatter(tmp_path_factory):
    """What writes the lines of a service."""
    file = tmp_path_factory.mktemp("logs") / "placement.conf"
    file.write_text("[placement_database]\nconnection = sqlite://\n")
    options = config.load(config_files=[str(file)]).options
    return _OneLine(
        ContextFormatter(project="p", version="", config=options, datefmt="%Y-%m-%d %H:%M:%S")
    )


def made(message, arguments=(), context=None, failure=None):
    """A record."""
    record = logging.LogRecord("treeclaim", logging.INFO, "file", 1, message, arguments, failure)
    if context is not None:
        record.context = context
    return record


@given(HOSTILE, HOSTILE)
def test_a_record_is_one_printable_line_whatever_is_in_it(formatter, text, who):
    context = {"user": who, "project": who, "global_request_id": who, "request_id": who}
    context |= {"user_identity": f"{who} {who}"}
    line = formatter.format(made("asked for %s", (text,), context))
    assert len(line.splitlines()) == 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", line)
    line.encode()


@given(HOSTILE)
def test_every_line_of_a_traceback_begins_as_lines_begin(formatter, text):
    def fails():
        raise ValueError(text)

    try:
        fails()
    except ValueError:
        written = formatter.format(made("failed", failure=sys.exc_info()))
    for line in written.split("\n"):
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ (INFO|ERROR) ", line), written
    assert len(written.splitlines()) == written.count("\n") + 1


def test_ordinary_text_stays_as_it_is():
    text = 'Größe ☃ "quoted" 100% \\ back'
    assert one_line(text) == text


@given(BYTES, BYTES, BYTES)
def test_a_url_is_one_word_without_quotes_and_can_be_read_back(prefix, path, query):
    written = _target({"SCRIPT_NAME": prefix, "PATH_INFO": path, "QUERY_STRING": query})
    assert re.fullmatch(r"[!#-~]*", written)
    assert unquote_to_bytes(written.split("?")[0]).decode("latin-1") == prefix + path
