# SPDX-License-Identifier: Apache-2.0
"""At the level DEBUG the log says why a question went to a child, and why a Forest was loaded."""

import logging

from tests.replica.scripted import scripted
from tests.replica.worlds import claim, question
from treeclaim.replica import Replica


def lines_of(caplog):
    """What was said since the last look, without what it was about before."""
    said = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return said


def test_why_a_question_goes_to_a_child(store, caplog):
    caplog.set_level(logging.DEBUG, "treeclaim.replica")
    replica = Replica(store)
    list(replica.answer(question(key="short")))
    assert lines_of(caplog) == ["The Forest is loaded: it has no position"]

    replica._long.note(question(key="long").key)
    list(replica.answer(question(key="long")))
    assert lines_of(caplog) == ["A question goes to a child: it was long before"]

    list(replica.answer(scripted(lambda _forest, _budget: [b"an answer"], b"hard")))
    assert lines_of(caplog) == ["A question goes to a child: it is hard by its form"]


def test_a_forest_that_disagrees_with_the_feed_is_told_of(replica, store, caplog, monkeypatch):
    list(replica.answer(question()))
    caplog.set_level(logging.DEBUG, "treeclaim.replica")
    monkeypatch.setattr(type(replica.forest), "agrees_with", lambda forest, changes: False)
    claim(store, 1)
    list(replica.answer(question(key="again")))
    assert lines_of(caplog) == [
        "The Forest does not agree with the change feed, and is loaded anew",
        "The Forest is loaded: the feed does not lead on, or is too long",
    ]
