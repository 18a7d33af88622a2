# SPDX-License-Identifier: Apache-2.0
"""What handlers work with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.api.admission import Admission
from treeclaim.api.protocol.policy.enforcement import Policy
from treeclaim.model.request import SearchOptions
from treeclaim.replica import Batches, Replica
from treeclaim.store import Store
from treeclaim.watching import Hub


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request.

    Attributes:
        body_bytes: Longest body.
        request_groups: Most request groups in a question for candidates.
        watch_seconds: How long a stream of events goes on.
        placing_consumers, placing_rules: Most consumers, and rules, in a call that places them.
        plan_seconds: How long a plan may take.
        claim_attempts: How often consumers are placed again because others were there first.
    """

    body_bytes: int
    request_groups: int
    placing_consumers: int = 1_000
    placing_rules: int = 16
    claim_attempts: int = 10
    watch_seconds: float = 3_600.0
    plan_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running service.

    Attributes:
        store: The database.
        replica: This worker's in-memory copy of it.
        batches: Places single consumers, those together that come at the same time.
        hub: Tells watchers what changes in it.
        policy: Who may do what.
        search: The operator's options for searches.
        limits: Limits of one request.
        admission: Limits of requests at once.
        incomplete_project_id, incomplete_user_id: Owners of claims made below 1.8.
        description: The OpenAPI document.
    """

    store: Store
    replica: Replica
    batches: Batches
    hub: Hub
    policy: Policy
    search: SearchOptions
    limits: Limits
    admission: Admission
    incomplete_project_id: str
    incomplete_user_id: str
    description: Mapping[str, Any]
