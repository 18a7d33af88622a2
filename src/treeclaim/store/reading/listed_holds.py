# SPDX-License-Identifier: Apache-2.0
"""Pages of holds, each with what it holds and what is drawn from it (contract page 100, section 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.consumers import (
    OWNED,
    Page,
    at_providers,
    load_owners,
    load_shares,
)
from treeclaim.store.reading.holds import load_holds
from treeclaim.store.schema.tables import (
    allocations,
    consumers,
    draws,
    hold_projects,
    holds,
    projects,
)


@dataclass(frozen=True, slots=True)
class HoldFilter:
    """A filter of holds; None, or nothing, for any.

    Attributes:
        project_id: The project of the hold.
        drawable_by: A project whose consumers may draw.
        providers: UUIDs of providers, at one of which the hold has amounts or draws.
        in_tree: UUIDs of providers; the same in the tree of one of them.
        until_before: The time before which it ends, naive UTC.
        after: UUID behind which the page begins; empty for the first page.
        limit: Most holds.
    """

    project_id: str | None
    drawable_by: str | None
    providers: Sequence[str]
    in_tree: Sequence[str]
    until_before: datetime | None
    after: str
    limit: int


def page_of_holds(transaction: ReadTransaction, wanted: HoldFilter) -> Page:
    """Return a page of the holds that pass all filters and hold, or have draws."""
    owners, next_after = load_owners(transaction, _narrow(wanted), wanted.after, wanted.limit)
    uuids = [row.uuid for row in owners]
    # What is not a hold any more, by another type, is not among them.
    stored = load_holds(transaction, uuids)
    shares = load_shares(transaction, uuids)
    shown = []
    for row in owners:
        hold = stored.get(row.uuid)
        if hold is None or not (shares.get(row.uuid) or hold.drawn):
            continue
        # Some collations find other spellings too.
        may_draw = {hold.project_id, *hold.terms.projects}
        if wanted.project_id not in {None, hold.project_id} or (
            wanted.drawable_by is not None and wanted.drawable_by not in may_draw
        ):
            continue
        shown.append(
            {
                "uuid": row.uuid,
                "project_id": row.project,
                "user_id": row.user,
                "consumer_generation": row.generation,
                "allocations": shares.get(row.uuid, {}),
                "hold": hold.shown(),
            }
        )
    return shown, next_after


def _narrow(hold_filter: HoldFilter) -> sa.Select[Any]:
    with_terms = sa.select(holds.c.uuid)
    if hold_filter.until_before is not None:
        with_terms = with_terms.where(holds.c.ends_at < hold_filter.until_before)
    statement = OWNED.where(consumers.c.uuid.in_(with_terms))
    somewhere = [
        consumers.c.uuid.in_(
            sa.select(uuid).where(
                *at_providers(provider, hold_filter.providers, hold_filter.in_tree)
            )
        )
        for uuid, provider in (
            (allocations.c.consumer_id, allocations.c.resource_provider_id),
            (draws.c.hold_uuid, draws.c.provider_id),
        )
    ]
    statement = statement.where(sa.or_(*somewhere))
    if hold_filter.project_id is not None:
        statement = statement.where(projects.c.external_id == hold_filter.project_id)
    if hold_filter.drawable_by is not None:
        named = sa.select(hold_projects.c.hold_uuid).where(
            hold_projects.c.project == hold_filter.drawable_by
        )
        statement = statement.where(
            sa.or_(projects.c.external_id == hold_filter.drawable_by, consumers.c.uuid.in_(named))
        )
    return statement
