# SPDX-License-Identifier: Apache-2.0
"""No client writes a line of the log, or the rest of one."""

import logging
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oslo_log.formatters import ContextFormatter

from tests.servers import eventually
from treeclaim import config, logs, request_lines
from treeclaim.api.middleware.layers import _target
from treeclaim.logs import LOG_FILE, OneLine, PatientStream
from treeclaim.model.texts import one_line
from treeclaim.request_lines import (
    _MOST_LINES,
    _WORTH_A_FORM,
    RequestLine,
    _form_of,
    _Forms,
    _texts,
    _write,
    tell_request,
)

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
    return OneLine(
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


class Sink(logging.StreamHandler):
    """A handler that keeps what was written, write by write."""

    def __init__(self, formatter, level=logging.NOTSET):
        super().__init__(self)
        self.level = level
        self.writes = []
        self.setFormatter(formatter)

    def write(self, text):
        self.writes.append(text)

    def flush(self):
        pass


class Records(logging.Handler):
    """A handler that keeps records, as one does that sends them elsewhere."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def told(number, caller=None, text="asked for %s"):
    """The line of a request."""
    known = {"user": "me", "project": "here"} | (caller or {})
    arguments = (f"/{number}",) if "%" in text else ()
    return RequestLine(text, arguments, lambda: known, f"req-{number}", None, {"status": "200"})


@pytest.fixture
def handlers(monkeypatch, formatter):
    """The handlers of all messages: one that writes lines, one for errors, one for records."""
    found = Sink(formatter), Sink(formatter, logging.ERROR), Records()
    monkeypatch.setattr(logging.getLogger(), "handlers", list(found))
    return found


def test_lines_of_requests_are_written_together_as_each_would_be(handlers, formatter):
    sink, errors, records = handlers
    lines = [told(number, {"user": "a\nb"}) for number in range(3)]
    waiting = SimpleQueue()
    for line in (*lines, None):
        waiting.put(line)
    _write(waiting)
    (written,) = sink.writes
    assert written.splitlines() == [formatter.format(line.record()) for line in lines]
    assert "[None req-0 a\\nb here" in written
    assert errors.writes == []
    assert records.messages == ["asked for /0", "asked for /1", "asked for /2"]


def test_a_line_that_cannot_be_written_does_not_stop_the_others(handlers):
    def fails():
        raise ValueError("no caller")

    waiting = SimpleQueue()
    broken = RequestLine("asked for %s", ("/",), fails, "req-0", None, {})
    written = threading.Thread(target=_write, args=(waiting,))
    written.start()
    waiting.put(broken)
    # Until the failure is told, what comes may be written with it.
    eventually(lambda: handlers[0].writes, "the failure is told")
    waiting.put(told(1))
    waiting.put(None)
    written.join()
    assert "could not be written" in handlers[0].writes[0]
    assert "asked for /1" in handlers[0].writes[-1]


def test_a_record_tells_when_and_where_the_request_was(handlers):
    line = told(1)
    line.created -= 60
    record = line.record()
    assert record.created == line.created
    assert record.threadName == threading.current_thread().name
    assert record.extra == {"status": "200"}


ENDS_WITHIN_A_LOG = """
import logging, sys
from treeclaim import config, logs, request_lines

options = config.load(config_files=[]).options
logs.set_up(options, "treeclaim")
request_lines.write_behind()
request_lines.tell_request(
    request_lines.RequestLine("asked for %s", ("/",), dict, "req-1", None, {})
)
# As a handler of a signal does, that comes while this thread writes to the log.
for handler in logging.getLogger().handlers:
    handler.acquire()
sys.exit(3)
"""


def test_a_process_ends_in_the_middle_of_its_log():
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WITHIN_A_LOG],
        env=os.environ | {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://"},
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert ended.returncode == 3, ended.stderr


WRITES_A_LOG = """
import logging
from treeclaim import config, logs

logs.set_up(config.load(config_files=[]).options, "treeclaim")
logging.getLogger("treeclaim").warning("a line")
"""


def test_a_folder_of_logs_gets_one_file_whatever_a_process_was_begun_with(tmp_path):
    (tmp_path / "begun.py").write_text(WRITES_A_LOG)
    environment = os.environ | {
        "OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://",
        "OS_DEFAULT__LOG_DIR": str(tmp_path / "log"),
    }
    (tmp_path / "log").mkdir()
    for begun in (["-c", WRITES_A_LOG], ["begun.py"], ["-m", "begun"]):
        subprocess.run(
            [sys.executable, *begun], env=environment, cwd=tmp_path, timeout=60, check=True
        )
    assert [path.name for path in (tmp_path / "log").iterdir()] == [LOG_FILE]


def test_clients_cannot_outrun_the_log(handlers, monkeypatch):
    sink, _, _ = handlers
    waiting = SimpleQueue()
    monkeypatch.setattr(request_lines, "_behind", waiting)
    for number in range(_MOST_LINES):
        tell_request(told(number))
    assert sink.writes == []
    tell_request(told(_MOST_LINES))
    assert waiting.qsize() == _MOST_LINES
    assert f"asked for /{_MOST_LINES}" in "".join(sink.writes)


@pytest.fixture(params=["pipe", "pipe of others", "socket"])
def unread(request, monkeypatch):
    """What a log is written to that nobody reads yet, and its other end."""
    if request.param == "socket":
        near, far = socket.socketpair()
        writer, reader = near.detach(), far.detach()
    else:
        reader, writer = os.pipe()
    if request.param == "pipe of others":

        def refused(*_given):
            raise PermissionError

        monkeypatch.setattr(os, "open", refused)
    stream = PatientStream(writer)
    yield stream, reader
    stream.close()
    os.close(writer)
    os.close(reader)


def everything_in(descriptor):
    """What can be read now."""
    os.set_blocking(descriptor, False)
    found = b""
    with suppress(BlockingIOError):
        while piece := os.read(descriptor, 1 << 16):
            found += piece
    return found.decode()


def test_a_log_that_nobody_reads_is_waited_for_once(unread, monkeypatch):
    waits = []
    has_room = logs._has_room

    def waited(descriptor, seconds):
        waits.append(seconds)
        return has_room(descriptor, min(seconds, 0.01))

    monkeypatch.setattr(logs, "_has_room", waited)
    stream, reader = unread
    messages = [f"{number:0999}\n" for number in range(2_000)]
    for message in messages:
        stream.write(message)
    assert len([seconds for seconds in waits if seconds > 0]) == 1
    first = everything_in(reader)
    stream.write("there is room\n")
    lines = (first + everything_in(reader)).splitlines()
    whole = "".join(messages).splitlines()
    begun = len(lines) - 2
    assert lines[:begun] == whole[:begun], "messages are whole, and in order"
    assert lines[begun:] == [
        f"{2_000 - begun} messages were lost: nobody read this log",
        "there is room",
    ]
    assert 30 < begun < 2_000


def test_a_log_in_a_file_goes_on_at_its_end(tmp_path):
    path = tmp_path / "log"
    with path.open("w") as file:
        file.write("before\n")
        file.flush()
        stream = PatientStream(file.fileno())
        stream.write("behind\n")
        os.write(file.fileno(), b"others\n")
        stream.write("last\n")
        stream.close()
    assert path.read_text() == "before\nbehind\nothers\nlast\n"


def test_a_log_that_is_read_slowly_loses_nothing(unread):
    stream, reader = unread
    text = "".join(f"{number:0999}\n" for number in range(2_000))
    found = []

    def read():
        while len(b"".join(found)) < len(text):
            found.append(os.read(reader, 4_096))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    for line in text.splitlines(keepends=True):
        stream.write(line)
    reading.join(60)
    assert b"".join(found).decode() == text


NOON = 1_800_000_000
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


def asked(text, caller, global_id, moment):
    """The line of a request at some moment."""
    line = RequestLine("%s", (text,), lambda: caller, f"req-{moment}", global_id, {"status": text})
    line.created = NOON + moment
    return line


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


@given(
    st.lists(REQUESTS, max_size=6),
    st.sampled_from(FORMATS),
    st.sampled_from([1, _WORTH_A_FORM, 3 * _WORTH_A_FORM]),
)
def test_many_lines_are_what_the_formatter_writes_of_each(formatter, requests, form, copies):
    lines = [asked(*request) for request in requests for _ in range(copies)]
    with in_format(formatter, form):
        written = [formatter.format(line.record()) for line in lines]
        forms = _Forms()
        assert _texts(lines, formatter, forms) == written
        assert _texts(lines, formatter, forms) == written


@contextmanager
def in_format(formatter, form):
    """Let the operator have configured another format."""
    options = formatter._inner.conf
    if form is not None:
        options.set_override("logging_context_format_string", form)
    try:
        yield
    finally:
        options.clear_override("logging_context_format_string")


def test_a_form_serves_all_lines_of_a_caller_in_a_second(formatter, monkeypatch):
    made, forms = [], _Forms()

    def making(line, by):
        made.append(line)
        return _form_of(line, by)

    monkeypatch.setattr(request_lines, "_form_of", making)
    for moment in (0.1, 0.4, 0.9):
        lines = [asked("/", CALLERS[0], None, moment) for _ in range(_WORTH_A_FORM)]
        assert _texts(lines, formatter, forms) == [
            formatter.format(line.record()) for line in lines
        ]
    assert len(made) == 1


def test_the_usual_format_is_learned(formatter):
    assert _form_of(asked("/", CALLERS[0], None, 0.5), formatter) is not None
    with in_format(formatter, "%(created)f %(message)s"):
        assert _form_of(asked("/", CALLERS[0], None, 0.5), formatter) is None
