# SPDX-License-Identifier: Apache-2.0
"""Providers in bulk: GET /treeclaim/providers (contract page 99, section 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import orjson

from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    Forms,
    Reply,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    INTEGER,
    LINKS,
    STRING,
    TEXT_OR_NULL,
    Schema,
    list_pattern,
    mapping,
    record,
    text,
)
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.extension.parts import SHOWN
from treeclaim.forest.listing.selection import Page, ProviderSelection, page_of, select_rows
from treeclaim.forest.listing.texts import CONSUMPTION
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Cursor
from treeclaim.model.extension import cursor_text
from treeclaim.model.parts import INVENTORIES, SHOWN_PARTS
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading import holdings_of_many

PATH = "/treeclaim/providers"

_ALLOCATIONS = "allocations"
_INCLUDES = {
    INVENTORIES.name: INVENTORIES.read_rule,
    "usages": "placement:resource_providers:usages",
    **{part.name: part.read_rule for part in SHOWN_PARTS},
    _ALLOCATIONS: "placement:resource_providers:allocations:list",
}
"""Values of `include`, each with the rule of its own URL (contract page 98, section 1)."""


def _texts(include: frozenset[str]) -> frozenset[str]:
    """Return which texts are asked for: those of inventories show what they consume (page 102)."""
    if INVENTORIES.name in include:
        return include - {INVENTORIES.name} | {CONSUMPTION}
    return include


_PARAMETERS: dict[str, Schema] = {
    "name": STRING,
    "uuid": lists.UUIDS,
    "member_of": STRING,
    "resources": STRING,
    "in_tree": lists.UUIDS,
    "required": STRING,
    "include": text(list_pattern(f"({'|'.join(_INCLUDES)})")),
}

QUERY = VersionedSchema(record({}, _PARAMETERS | lists.PARAMETERS))


_PROVIDER = record(
    {
        "uuid": STRING,
        "name": STRING,
        "generation": INTEGER,
        "parent_provider_uuid": TEXT_OR_NULL,
        "root_provider_uuid": STRING,
    },
    {
        "usages": AMOUNTS,
        **{part.name: schema for part, schema in SHOWN.items()},
        _ALLOCATIONS: mapping(
            ".*", record({"resources": AMOUNTS, "consumer_generation": INTEGER})
        ),
    },
)

_PROVIDERS = Answer(
    body=record(
        {"providers": {"type": "array", "items": _PROVIDER}, "cursor": STRING, "links": LINKS}
    )
)
"""A page of providers."""


_KIND = "providers"

_PREPARED_AT_ONCE = 1_000
"""Providers whose texts are written before others have their turn at the Forest: 10 ms."""

_PREPARED_WITH_ATTRIBUTES = 100
"""The bound where there are attributes: 10 ms if each of them has 64."""

_FEW_GROUPS_OF = 4_096
"""The same where each has classes of its own: as many classes as go with so many rows that are copied."""

_MOST_TURNS = 120
"""Turns in which texts are prepared; whatever changes faster than that is written in the last."""


@dataclass(frozen=True, slots=True)
class _Query:
    """The query of a request.

    Attributes:
        selection: Which providers.
        include: What belongs to them.
        after: Id behind which the page begins.
        limit: How many at most.
    """

    selection: ProviderSelection
    include: frozenset[str]
    after: int
    limit: int

    def page(self, forest: Forest) -> Page:
        """Return the rows of the page."""
        with lists.classes_named_by("resources"):
            rows = select_rows(forest, self.selection)
        return page_of(forest, rows, self.after, self.limit)


@operation(
    "GET /treeclaim/providers",
    policy="placement:resource_providers:list",
    answers=(_PROVIDERS,),
    query=QUERY,
    forms=Forms(query=lists.SELECTION),
    needs_opt_in=True,
    media_first=True,
)
def list_providers_in_bulk(call: Call) -> Reply:
    """List resource providers in bulk, with everything that belongs to them."""
    pairs = call.query()
    query = _read_query(call, pairs, require_query(QUERY.at(call.version), pairs))
    _prepare(call, query)
    replica = call.services.replica
    if _ALLOCATIONS in query.include:
        page = replica.at_one_moment(partial(_take_page, call, query), _add_allocations)
    else:
        with replica.current() as forest:
            page = _take_page(call, query, forest, replica.cursor)
        call.deadline.look()
    links = lists.links(call.link(PATH), pairs, _KIND, page.next_after)
    tail = orjson.dumps({"cursor": page.cursor, "links": links})
    texts = [b"%b}" % b"},".join(page.texts)] if page.texts else []
    body = b"".join([b'{"providers":[', *texts, b"],", tail[1:]])
    return Reply(body=[body], modified_at=now(), is_ready_made=True)


def _read_query(call: Call, pairs: Sequence[tuple[str, str]], query: Mapping[str, str]) -> _Query:
    include = frozenset(lists.several(query.get("include")))
    for name, rule in _INCLUDES.items():
        if name in include:
            call.require_allowed(rule)
    most = lists.MOST_WITH_ALLOCATIONS if _ALLOCATIONS in include else lists.MOST
    selection = ProviderSelection(
        name=query.get("name") or None,
        uuids=frozenset(lists.several(query["uuid"])) if "uuid" in query else None,
        conditions=lists.conditions_of(call, pairs, query),
        resources=parameters.resources(query["resources"]) if "resources" in query else {},
    )
    return _Query(
        selection,
        include,
        lists.number_marker_of(query, _KIND),
        lists.limit_of(query, most),
    )


def _prepare(call: Call, query: _Query) -> None:
    """Write the texts that the page needs, some in each turn, so that others get theirs."""
    replica = call.services.replica
    for _ in range(_MOST_TURNS):
        call.deadline.look()
        with replica.current() as forest:
            missing = replica.listing.stale(forest, query.page(forest).rows)
            is_short = forest.attributes.is_empty
            at_once = _PREPARED_AT_ONCE if is_short else _PREPARED_WITH_ATTRIBUTES
            rows = forest.with_few_groups(missing[:at_once], _FEW_GROUPS_OF)
            replica.listing.prepare(forest, rows)
        if len(rows) == len(missing):
            return


class _TakenPage(NamedTuple):
    """A page as it was taken from the Forest.

    Attributes:
        ids: Ids of the providers in the database.
        texts: JSON of each, without the closing brace.
        cursor: The moment, as clients have it.
        next_after: Id behind which the next page begins.
    """

    ids: list[int]
    texts: list[bytes]
    cursor: str
    next_after: int | None


def _take_page(call: Call, query: _Query, forest: Forest, cursor: Cursor) -> _TakenPage:
    page = query.page(forest)
    return _TakenPage(
        forest.id.values[page.rows].tolist(),
        call.services.replica.listing.each(forest, page.rows, _texts(query.include)),
        cursor_text.write_cursor(cursor),
        page.next_after,
    )


def _add_allocations(transaction: ReadTransaction, page: _TakenPage) -> _TakenPage:
    held = holdings_of_many.of_providers(transaction, page.ids)
    texts = [
        b'%b,"allocations":%b' % (text, orjson.dumps(held.get(provider_id, {})))
        for provider_id, text in zip(page.ids, page.texts, strict=True)
    ]
    return page._replace(texts=texts)
