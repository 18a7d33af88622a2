# SPDX-License-Identifier: Apache-2.0
"""Plans: version 1.3 of the extension (contract page 101)."""

from collections.abc import Mapping, Sequence
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.reports import PLANNING
from treeclaim.client.requests.placing import TREES, Domains
from treeclaim.client.requests.queries import CandidateQuery


class Plans:
    """Plans, over a client's connection. What is to be done is up to the caller.

    Each call returns the server's document, and raises ClientError if the endpoint refuses, or does not
    answer.
    """

    def __init__(self, client: Client) -> None:
        """Use a client.

        Raises:
            UnsupportedFeatureError: if the server does not have version 1.3 of the extension.
        """
        client.versions.require(PLANNING)
        self._client = client

    def survival(
        self,
        domains: Domains = TREES,
        *,
        requests: Mapping[str, Sequence[str | CandidateQuery]] | None = None,
        shows_all: bool = False,
        given: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> dict[str, Any]:
        """Ask for each domain whether all of its consumers find a place elsewhere (section 4).

        Args:
            domains: Trees, or uuids of aggregates.
            requests: Queries by the uuid of the consumer that needs them; they go before kept ones.
            shows_all: Whether the answer also has those that survive.
            given: What is taken for granted (section 1).
            members: Others of the body: `consumer_types`, `from_holds`, `rules`, `limit`, `explain`;
                those that are None are left out.
        """
        body: dict[str, Any] = {
            "domains": domains if isinstance(domains, str) else list(domains),
            "all": shows_all,
        }
        return self._asked("survival", body, requests, given, members)

    def moves(
        self,
        goal: Mapping[str, Any],
        *,
        requests: Mapping[str, Sequence[str | CandidateQuery]] | None = None,
        given: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> dict[str, Any]:
        """Ask which moves reach a goal (section 5).

        Args:
            goal: As the page defines it.
            requests: Queries by the uuid of the consumer that needs them; they go before kept ones.
            given: What is taken for granted (section 1).
            members: Others of the body: `movable`, `rules`, `max_moves`, `both_at_once`, `explain`;
                those that are None are left out.
        """
        return self._asked("moves", {"goal": dict(goal)}, requests, given, members)

    def _asked(
        self,
        what: str,
        body: dict[str, Any],
        requests: Mapping[str, Sequence[str | CandidateQuery]] | None,
        given: Mapping[str, Any] | None,
        members: Mapping[str, Any],
    ) -> dict[str, Any]:
        if requests:
            body["requests"] = {name: list(map(str, some)) for name, some in requests.items()}
        if given:
            body["given"] = dict(given)
        body |= {name: value for name, value in members.items() if value is not None}
        answer: dict[str, Any] = self._client.call(
            "POST", f"/treeclaim/{what}", json=body, extended=True
        ).json()
        return answer
