# SPDX-License-Identifier: Apache-2.0
"""Clients cannot forge lines of the log, and a log cannot stop the service."""

import logging
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oslo_log.formatters import ContextFormatter

from treeclaim import config, helper_threads
from treeclaim.api.middleware.layers import _quote_target
from treeclaim.log_lines import OneLineFormatter, RequestRecord, _clean
from treeclaim.log_queue import QUEUE_BYTES, LogQueue, QueuedHandler, RawStream
from treeclaim.model.names import one_line

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from('\n\r\x00\x1b\x85\x9b\u2028\u2029\u202e\u2066\x0b\x0c\x1c\ud800"\\% '),
    ),
    max_size=60,
)
BYTES = st.binary(max_size=60).map(lambda data: data.decode("latin-1"))


@pytest.fixture(autouse=True)
def uncounted(monkeypatch):
    """Do not record failures of log threads, which `/ready` of another test would report."""
    monkeypatch.setattr(helper_threads, "failure_listeners", [])


@pytest.fixture(scope="module")
def formatter(tmp_path_factory):
    """The formatter of a service."""
    file = tmp_path_factory.mktemp("logs") / "placement.conf"
    file.write_text("[placement_database]\nconnection = sqlite://\n")
    options = config.load(config_files=[str(file)]).options
    return OneLineFormatter(
        ContextFormatter(project="p", version="", config=options, datefmt="%Y-%m-%d %H:%M:%S")
    )


def made(message, arguments=(), context=None, failure=None):
    record = logging.LogRecord("treeclaim", logging.INFO, "file", 1, message, arguments, failure)
    if context is not None:
        record.context = context
    return record


@given(HOSTILE, HOSTILE)
def test_log_record_is_one_printable_line(formatter, text, origin):
    context = {
        "user": origin,
        "project": origin,
        "global_request_id": origin,
        "request_id": origin,
    }
    context |= {"user_identity": f"{origin} {origin}"}
    for record in (made("asked for %s", (text,), context), make_request_record(text, origin)):
        line = formatter.format(record)
        assert len(line.splitlines()) == 1
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", line)
        line.encode()


@given(HOSTILE)
def test_every_traceback_line_has_the_log_prefix(formatter, text):
    def fails():
        raise ValueError(text)

    try:
        fails()
    except ValueError:
        written = formatter.format(made("failed", failure=sys.exc_info()))
    for line in written.split("\n"):
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ (INFO|ERROR) ", line), written
    assert len(written.splitlines()) == written.count("\n") + 1


def test_ordinary_text_is_logged_unchanged():
    text = 'Größe ☃ "quoted" 100% \\ back'
    assert one_line(text) == text


@given(BYTES, BYTES, BYTES)
def test_logged_url_is_one_reversible_word(prefix, path, query):
    written = _quote_target({"SCRIPT_NAME": prefix, "PATH_INFO": path, "QUERY_STRING": query})
    assert re.fullmatch(r"[!#-~]*", written)
    assert unquote_to_bytes(written.split("?")[0]).decode("latin-1") == prefix + path


NOON = 1_800_000_000


class Sink(logging.StreamHandler):
    """A handler that records each write."""

    def __init__(self, formatter):
        super().__init__(self)
        self.writes = []
        self.setFormatter(formatter)

    def write(self, text):
        self.writes.append(text)

    def flush(self):
        pass


def make_request_record(text, user="me", caller=None, global_id=None, moment=0.0):
    """Return the record of a request at a time."""
    caller = {"user": user, "project": "here"} if caller is None else caller
    ids = {"request_id": f"req-{moment}", "global_request_id": global_id}
    record = RequestRecord("asked for %s", (text,), caller, ids, {"status": "200"})
    record.created = NOON + moment
    record.msecs = float(int(moment % 1 * 1000))
    return record


def test_waiting_lines_are_bounded_in_bytes_and_lost_ones_are_reported(formatter):
    sink = Sink(formatter)
    target, queue = QueuedHandler(sink), LogQueue()
    text = "x" * 4_000
    for number in range(10_000):
        queue.put(target, make_request_record(f"/{number}?{text}"))
    queue.close()
    queue.run()
    kept = sum(written.count("asked for /") for written in sink.writes)
    assert 0.5 * QUEUE_BYTES < kept * 4_000 < QUEUE_BYTES
    queue.put(target, make_request_record("/afterwards"))
    queue.close()
    queue.run()
    assert "asked for /afterwards" in sink.writes[-1]
    assert f"{10_000 - kept} log lines were lost" in "".join(sink.writes)


ENDS_WITHIN_A_LOG = """
import logging, sys
from treeclaim import config, log_lines, log_queue, logs

options = config.load(config_files=[]).options
logs.set_up_logging(options, "treeclaim")
log_queue.start_log_thread()
record = log_lines.RequestRecord("asked for %s", ("/",), {}, {"request_id": "req-1", "global_request_id": None}, {})
log_lines.REQUESTS.handle(record)
# As a handler of a signal does, that comes while this thread writes to the log.
for handler in logging.getLogger().handlers:
    handler.acquire()
sys.exit(3)
"""


@pytest.mark.slow
def test_process_can_exit_while_it_logs():
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WITHIN_A_LOG],
        env=os.environ | {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://"},
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert ended.returncode == 3, ended.stderr


@pytest.fixture(params=["pipe", "socket"])
def unread(request):
    """Yield a pipe as an unread log, and its other end."""
    if request.param == "socket":
        near, far = socket.socketpair()
        writer, reader = near.detach(), far.detach()
    else:
        reader, writer = os.pipe()
    yield RawStream(writer), reader
    os.close(writer)
    os.close(reader)


def everything_in(descriptor):
    """Return the bytes that can be read now."""
    os.set_blocking(descriptor, False)
    written_bytes = b""
    with suppress(BlockingIOError):
        while piece := os.read(descriptor, 1 << 16):
            written_bytes += piece
    return written_bytes.decode()


def test_unread_log_drops_lines_and_reports_their_number(unread):
    stream, reader = unread
    handler = logging.StreamHandler()
    target = QueuedHandler(handler)
    handler.setStream(stream)
    for number in range(1_000):
        target.write([made(f"{number:0999}")])
    lost = target.lost
    first = everything_in(reader)
    target.write([made("there is room")])
    lines = (first + everything_in(reader)).splitlines()
    assert 0 < lost < 1_000
    whole = [f"{number:0999}" for number in range(1_000 - lost)]
    assert lines[: len(whole)] == whole, "messages are whole, and in order"
    assert lines[-2:] == [f"{lost} log lines were lost", "there is room"]


def test_a_log_that_is_read_slowly_loses_nothing(unread):
    stream, reader = unread
    text = "".join(f"{number:0999}\n" for number in range(2_000))
    records = []

    def read():
        while len(b"".join(records)) < len(text):
            records.append(os.read(reader, 4_096))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    for line in text.splitlines(keepends=True):
        stream.write(line)
    reading.join(60)
    assert b"".join(records).decode() == text


CALLERS = [
    {"user": "me", "project": "here"},
    {"user": "a\nb", "project": "\ue000message\ue000"},
    {"user": "%(message)s", "user_identity": "%s"},
]
REQUESTS = st.tuples(
    HOSTILE,
    st.sampled_from(CALLERS),
    st.sampled_from([None, "req-global", "\ue000id\ue000"]),
    st.sampled_from([0.0, 0.0009999, 0.25, 0.9999, 1.5]),
)


FORMATS = [
    None,
    "%(request_id)s %(message)s",
    "%(asctime)s.%(msecs)03d %(message)s [%(request_id)s]",
    "%(created)f %(message)s",
    "%(isotime)s %(message)s",
    "%(message).20s %(request_id)-60s %(global_request_id)s",
    "%(message)s %(message)s",
    "%(threadName)s %(extra)s %(message)s",
    "no message at all",
]


@given(st.lists(REQUESTS, max_size=12), st.sampled_from(FORMATS))
def test_cached_request_line_equals_the_formatted_one(formatter, requests, form):
    with in_format(formatter, form):
        remembering = OneLineFormatter(formatter._inner_formatter)
        for request in requests:
            text, caller, global_id, moment = request
            record = make_request_record(text, caller=caller, global_id=global_id, moment=moment)
            assert remembering.format(record) == formatter._format_clean(_clean(record))


@contextmanager
def in_format(formatter, form):
    """Configure another format."""
    options = formatter._inner_formatter.conf
    if form is not None:
        options.set_override("logging_context_format_string", form)
    try:
        yield
    finally:
        options.clear_override("logging_context_format_string")
