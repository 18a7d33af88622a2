# SPDX-License-Identifier: Apache-2.0
"""Watching (contract page 99, section 4), line by line."""

import threading
from datetime import timedelta

import pytest

from tests.api.resources.extension.clouds import EXTENDED, uuid_of
from tests.api.resources.extension.watchers import EVENTS, PATH, place_on
from tests.databases import EACH_DATABASE
from tests.service import client_of, services_on

ALL = [
    "provider",
    "inventories",
    "traits",
    "aggregates",
    "allocations",
    "attributes",
    "conditions",
]


@pytest.fixture(scope="module", autouse=True)
def many_comments():
    """Send comments between all events, as on a machine that stalls now and then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treeclaim.watching.watches.COMMENT_SECONDS", 0.02)
        yield


@pytest.fixture(scope="module", params=EACH_DATABASE)
def place(request, tmp_path_factory):
    """A service with watchers, on each database."""
    with place_on(request.param, tmp_path_factory.mktemp("watching")) as place:
        yield place


@pytest.fixture
def name(request):
    return request.node.name


def changed_parts(answer):
    """The changed parts of each provider of an answer."""
    return {change["uuid"]: change.get("what", "deleted") for change in answer["changes"]}


def test_long_poll_waits_for_a_change_of_its_tree(place, name):
    provider, other = place.add(name), place.add(f"{name} other")
    cursor = place.cursor

    def write():
        place.stock(other)
        place.stock(provider)

    writer = threading.Timer(0.5, write)
    writer.start()
    answer = place.changes(since=cursor, wait=60, in_tree=provider)
    writer.join()
    assert changed_parts(answer) == {provider: ["inventories"]}
    assert place.changes(since=answer["cursor"], in_tree=provider)["changes"] == []


@pytest.mark.slow
def test_timed_out_long_poll_is_empty(place):
    cursor = place.cursor
    assert place.changes(since=cursor, wait=1)["changes"] == []


def test_stream_sends_each_write_with_its_cursor(place, name):
    provider = place.add(name)
    with place.stream() as events:
        first = next(events)
        assert (first.name, first.data["changes"]) == ("changes", [])
        assert first.id == first.data["cursor"]
        for generation in (1, 2):
            place.stock(provider, total=generation)
            event = next(events)
            assert event.name == "changes"
            assert event.id == event.data["cursor"]
            assert event.data["changes"] == [
                {"uuid": provider, "generation": generation, "what": ["inventories"]}
            ]
    place.until_watching(0)


def test_last_event_id_overrides_since(place, name):
    provider, early = place.add(name), place.cursor
    place.stock(provider)
    late = place.cursor
    place.claim(uuid_of(name), provider)
    with place.stream(since=early) as events:
        assert changed_parts(next(events).data) == {provider: ["inventories", "allocations"]}
    with place.stream({"last-event-id": late}, since=early) as events:
        assert changed_parts(next(events).data) == {provider: ["allocations"]}
    place.until_watching(0)


@pytest.mark.slow
def test_one_write_is_one_event(place, name):
    providers = [place.add(f"{name} {number}") for number in range(5)]
    for provider in providers:
        place.stock(provider)
    with place.stream() as events:
        next(events)
        for generation in (None, 1, 2):
            place.claim(uuid_of(name), *providers, generation=generation)
            assert set(changed_parts(next(events).data)) == set(providers)
    place.until_watching(0)


def test_cursor_of_pruned_changes_has_expired(tmp_path):
    with (
        services_on(tmp_path) as (services, application),
        client_of(application, **EXTENDED) as client,
    ):
        cursor = client.get(PATH).json()["cursor"]
        client.post("/resource_providers", json={"name": "a"})
        assert len(client.get(PATH, params={"since": cursor}).json()["changes"]) == 1
        services.store.housekeeper.prune(timedelta(0))
        answer = client.get(PATH, params={"since": cursor})
        assert answer.status_code == 410
        assert answer.json()["errors"][0]["code"] == "treeclaim.cursor_expired"


def test_server_without_watcher_support_neither_waits_nor_streams(tmp_path):
    with services_on(tmp_path) as (_, application), client_of(application, **EXTENDED) as client:
        cursor = client.get(PATH).json()["cursor"]
        answer = client.get(PATH, params={"since": cursor, "wait": "60"})
        assert (answer.status_code, answer.json()["changes"]) == (200, [])
        assert client.get(PATH, headers=EVENTS).status_code == 406
        both = {"accept": "text/event-stream, application/json;q=0.1"}
        assert client.get(PATH, headers=both).headers["content-type"] == "application/json"


def test_watchers_beyond_the_limit_get_503_with_retry_after(tmp_path):
    with place_on("sqlite", tmp_path, {"watchers": 2}) as place:
        cursor = place.cursor
        with place.stream(), place.stream():
            place.until_watching(2)
            for headers, parameters in ((EVENTS, {}), ({}, {"since": cursor, "wait": 5})):
                answer = place.http.get(PATH, headers=headers, params=parameters)
                assert answer.status_code == 503
                assert int(answer.headers["retry-after"]) > 0
            assert place.changes(since=cursor)["changes"] == []
        place.until_watching(0)
        with place.stream():
            place.until_watching(1)


@pytest.mark.slow
def test_stream_ends_after_its_maximum_duration(tmp_path):
    with (
        place_on("sqlite", tmp_path, **{"treeclaim.watch_seconds": 1.0}) as place,
        place.stream() as events,
    ):
        assert [event.name for event in events] == ["changes"]
        place.until_watching(0)


def test_stopping_server_ends_streams_and_answers_long_polls(tmp_path):
    with place_on("sqlite", tmp_path) as place:
        cursor = place.cursor
        answers = []
        waiting = threading.Thread(
            target=lambda: answers.append(place.changes(since=cursor, wait=60))
        )
        waiting.start()
        with place.stream() as events:
            place.until_watching(2)
            place.server.begin_stop()
            assert [event.name for event in events] == ["changes"]
        waiting.join()
        assert answers == [{"changes": [], "catalogue": False, "cursor": cursor}]


@pytest.mark.slow
def test_idle_stream_sends_keep_alive_comments(tmp_path):
    with place_on("sqlite", tmp_path) as place, place.stream(comments=True) as heard:
        assert next(heard).name == "changes"
        for _ in range(2):
            comment = next(heard)
            assert (comment.id, comment.name, comment.data) == (None, None, None)
        other = place.add("other")
        event = next(event for event in heard if not event.is_comment)
        assert changed_parts(event.data) == {other: ALL}


@pytest.mark.slow
def test_idle_stream_advances_its_cursor(tmp_path):
    with place_on("sqlite", tmp_path) as place:
        tree = place.add("tree")
        with place.stream(in_tree=tree, comments=True) as heard:
            next(heard)
            place.add("other")
            late = next(event.id for event in heard if event.id)
        assert place.changes(since=late)["changes"] == []
