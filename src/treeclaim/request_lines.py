# SPDX-License-Identifier: Apache-2.0
"""One log line for each request, formatted and written behind the client's back.

A request only notes what its line tells. A thread writes what has gathered, many lines at once. The
operator's format decides how a line looks, and to follow it takes as long as a sixth of a small
request does. But most of it is the same for all requests of a caller in a second; so of many lines
the thread has some formatted, learns from them where a request's own values stand, and fills in the
others itself (`_Form`). A format that it cannot learn is followed line by line.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.util import Finalize
from queue import SimpleQueue
from typing import Any

from treeclaim.logs import Lines, OneLine
from treeclaim.model.texts import one_line

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger that has one line for each request, see `api.layers`."""

_GATHER = 0.1
"""Seconds in which lines gather before they are written."""

_MOST_LINES = 1_000
"""Lines that wait, and that are written at once. With the longest targets they take 64 MB."""

_LONGEST_END = 5.0
"""Seconds for which a process that ends waits until its lines are written."""

_WORTH_A_FORM = 8
"""Lines of one caller in one second from which on a form is made: it takes as long as three lines,
and a line by it a tenth of one."""

_MOST_FORMS = 256
"""Forms that are kept, of some kilobytes each."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class RequestLine:
    """The line of a request, noted while the client waits; it is made into a record later.

    Attributes:
        message, arguments: As for `Logger.info`.
        caller: Returns what oslo.log's formatters want to know of the caller, except for the ids of the
            request; the same object for the same caller, if possible.
        request_id, global_request_id: The ids of the request.
        extra: More for formats with named members.
        created, thread: When, and in which thread.
    """

    message: str
    arguments: tuple[object, ...]
    caller: Callable[[], Mapping[str, Any]]
    request_id: str
    global_request_id: str | None
    extra: dict[str, Any]
    created: float = field(default_factory=time.time)
    thread: threading.Thread = field(default_factory=threading.current_thread)

    @property
    def milliseconds(self) -> float:
        """Return when in its second it was."""
        return self.created % 1 * 1000

    def record(self) -> logging.LogRecord:
        """Return the record that the logger would have made."""
        ids = {"request_id": self.request_id, "global_request_id": self.global_request_id}
        more = {"context": {**self.caller(), **ids}, "extra": self.extra}
        record = REQUESTS.makeRecord(
            REQUESTS.name,
            logging.INFO,
            __file__,
            0,
            self.message,
            self.arguments,
            None,
            extra=more,
        )
        later = record.created - self.created
        record.created = self.created
        record.msecs = self.milliseconds
        record.relativeCreated -= later * 1000
        record.thread, record.threadName = self.thread.ident, self.thread.name
        return record


_behind: SimpleQueue[RequestLine | None] | None = None
"""Lines that a thread writes; None where they are written at once."""


def tell_request(line: RequestLine) -> None:
    """Log the line of a request; at once where too many wait, so that clients cannot outrun a log."""
    behind = _behind
    if behind is not None and behind.qsize() < _MOST_LINES:
        behind.put(line)
    else:
        REQUESTS.handle(line.record())


def write_behind() -> None:
    """Let a thread format and write request lines, so that no client waits for them.

    That took a fifth of the time of a small answer. All other messages are written at once.
    """
    global _behind  # noqa: PLW0603 - loggers are the process's too
    lines: SimpleQueue[RequestLine | None] = SimpleQueue()
    writer = threading.Thread(target=_write, args=(lines,), name="request-lines", daemon=True)
    writer.start()
    _behind = lines

    def write_the_rest() -> None:
        """Write the remaining lines, and those of requests under way at once.

        Not for ever: a server may end the process in a handler of a signal, and the thread that it
        interrupts may hold the lock of the log.
        """
        global _behind  # noqa: PLW0603 - see above
        _behind = None
        lines.put(None)
        writer.join(_LONGEST_END)

    # Unlike atexit, this is done at the end of a process that a server made by multiprocessing too.
    Finalize(None, write_the_rest, exitpriority=0)


def _write(lines: SimpleQueue[RequestLine | None]) -> None:
    """Write lines until None comes, many at a time: each write lets other threads in."""
    is_over, forms = False, _Forms()
    while not is_over:
        some = [lines.get()]
        if some[0] is not None:
            time.sleep(_GATHER)
        while not lines.empty() and len(some) < _MOST_LINES:
            some.append(lines.get())
        is_over = None in some
        try:
            _write_lines([line for line in some if line is not None], forms)
        except Exception:  # noqa: BLE001 - the next lines are written
            _LOG.exception("Lines of requests could not be written")


def _write_lines(lines: Sequence[RequestLine], forms: "_Forms") -> None:
    """Give lines to the handlers of all messages: in one write to those that write to a file."""
    for handler in logging.getLogger().handlers:
        if handler.level > logging.INFO or not lines:
            continue
        formatter = handler.formatter
        if not isinstance(handler, logging.StreamHandler) or not isinstance(formatter, OneLine):
            for record in _admitted(lines):
                handler.handle(record)
        elif REQUESTS.filters or handler.filters:
            admitted = [record for record in _admitted(lines) if handler.filter(record)]
            _write_texts(handler, [formatter.format(record) for record in admitted])
        else:
            _write_texts(handler, _texts(lines, formatter, forms))


def _admitted(lines: Sequence[RequestLine]) -> list[logging.LogRecord]:
    return [record for line in lines if REQUESTS.filter(record := line.record())]


def _write_texts(handler: "logging.StreamHandler[Any]", texts: Sequence[str]) -> None:
    if texts:
        handler.handle(Lines(REQUESTS.name, handler.terminator.join(texts)))


_Key = tuple[object, ...]
"""What lines of the same form have in common."""


def _texts(
    lines: Sequence[RequestLine], formatter: logging.Formatter, forms: "_Forms"
) -> list[str]:
    """Return the lines as a formatter writes them."""
    alike: defaultdict[_Key, list[int]] = defaultdict(list)
    # The callers are held here, so that no two have the same id.
    callers = [line.caller() for line in lines]
    for number, (line, caller) in enumerate(zip(lines, callers, strict=True)):
        key: _Key = (
            int(line.created),
            id(caller),
            not line.request_id,
            line.global_request_id is None,
        )
        alike[key].append(number)
    texts = [""] * len(lines)
    for key, numbers in alike.items():
        form = None
        if len(numbers) >= _WORTH_A_FORM:
            form = forms.learned(key, lines[numbers[0]], callers[numbers[0]], formatter)
        for number in numbers:
            line = lines[number]
            texts[number] = formatter.format(line.record()) if form is None else form.text(line)
    return texts


class _Forms:
    """The forms that a thread has made last: in a second it writes lines ten times."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[_Form | None, object, object]] = {}

    def learned(
        self,
        key: _Key,
        line: RequestLine,
        caller: object,
        formatter: logging.Formatter,
    ) -> "_Form | None":
        """Return the form of a line and those with the same key; None if there is none."""
        wanted = (*key, id(formatter))
        if wanted not in self._known:
            if len(self._known) >= _MOST_FORMS:
                self._known.clear()
            # What the key has the id of is held, so that nothing else gets that.
            self._known[wanted] = _form_of(line, formatter), caller, formatter
        return self._known[wanted][0]


_MESSAGE, _REQUEST_ID, _GLOBAL_ID = "\ue000message\ue000", "\ue000id\ue000", "\ue000global\ue000"
"""Stand for a request's own values in the line from which a form is made. Characters of private use,
which nothing but a client's own text has in it."""

_EARLIEST, _LATEST, _BETWEEN = 0.0, 0.9995, 0.1234567
"""Parts of a second, of which the first two differ in all three digits of the milliseconds."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How the lines of one caller in one second are written.

    Attributes:
        pieces: What is the same in all; before, between and behind the values.
        values: For each gap between two pieces a function that returns what a line has there.
    """

    pieces: Sequence[str]
    values: Sequence[Callable[[RequestLine], str]]

    def text(self, line: RequestLine) -> str:
        """Return the text of a line."""
        text = self.pieces[0]
        for value, piece in zip(self.values, self.pieces[1:], strict=True):
            text += value(line) + piece
        return text


_OWN_VALUES: Mapping[str, Callable[[RequestLine], str]] = {
    _MESSAGE: lambda line: one_line(line.message % line.arguments),
    _REQUEST_ID: lambda line: one_line(line.request_id),
    _GLOBAL_ID: lambda line: one_line(line.global_request_id or ""),
}


def _form_of(line: RequestLine, formatter: logging.Formatter) -> _Form | None:
    """Return the form of a line and those like it; None if the format has more values of its own."""
    second = int(line.created)
    marked = replace(
        line,
        message="%s",
        arguments=(_MESSAGE,),
        request_id=line.request_id and _REQUEST_ID,
        global_request_id=line.global_request_id and _GLOBAL_ID,
        created=second + _EARLIEST,
    )
    early = formatter.format(marked.record())
    late = formatter.format(replace(marked, created=second + _LATEST).record())
    gaps = [(early.find(mark), len(mark), value) for mark, value in _OWN_VALUES.items()]
    differing = [at for at, pair in enumerate(zip(early, late, strict=False)) if len({*pair}) > 1]
    if differing:
        gaps.append((differing[0], 3, lambda line: f"{int(line.milliseconds):03d}"))
    form = _form_with(early, sorted((gap for gap in gaps if gap[0] >= 0), key=lambda gap: gap[0]))
    return form if _is_right(form, line, formatter) else None


def _form_with(text: str, gaps: Sequence[tuple[int, int, Callable[[RequestLine], str]]]) -> _Form:
    """Return the form with gaps in a text: where each begins, its length, and what stands there."""
    ends = [0, *(begin + length for begin, length, _ in gaps)]
    begins = [*(begin for begin, _, _ in gaps), len(text)]
    pieces = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
    return _Form(pieces, [value for _, _, value in gaps])


def _is_right(form: _Form, line: RequestLine, formatter: logging.Formatter) -> bool:
    """Tell whether a form writes another line as the formatter does; all that may differ differs."""
    other = replace(
        line,
        message="%s",
        # Longer than a format would fill up, or cut off.
        arguments=("another message" * 1_000,),
        request_id=line.request_id and "another id",
        global_request_id=line.global_request_id and "another global id",
        extra={},
        created=int(line.created) + _BETWEEN,
        thread=threading.current_thread(),
    )
    return form.text(other) == formatter.format(other.record())
