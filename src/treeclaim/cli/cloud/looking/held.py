# SPDX-License-Identifier: Apache-2.0
"""What holds have of inventories: for whom, and until when (contract page 100)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from treeclaim.client import Client, ClientError
from treeclaim.client.reports import Reports
from treeclaim.client.requests.placing import HOLDS


@dataclass(frozen=True, slots=True)
class HeldPart:
    """What one hold has of an inventory.

    Attributes:
        hold: Its uuid.
        amount: Units.
        project_id: Whose it is.
        until: When it ends; None for never.
        note: For people; None for none.
    """

    hold: str
    amount: int
    project_id: str
    until: str | None
    note: str | None

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "hold": self.hold,
            "amount": self.amount,
            "project_id": self.project_id,
            "until": self.until,
            "note": self.note,
        }

    def in_words(self) -> str:
        """Return it as a line."""
        end = "" if self.until is None else f" until {self.until}"
        note = "" if self.note is None else f": {self.note}"
        return f"{self.amount} held for {self.project_id}{end}{note}"


Held = Mapping[str, Mapping[str, Sequence[HeldPart]]]
"""What holds have, by provider uuid and resource class."""


def held_in(client: Client, roots: Sequence[str]) -> Held:
    """Return what holds have in the trees of some providers, or everywhere.

    Nothing on servers that know of none, and where the policy hides them.

    Args:
        client: Of the server.
        roots: Uuids of providers; empty for everywhere.

    Raises:
        ClientError: if the endpoint refuses, or does not answer.
    """
    held: dict[str, dict[str, list[HeldPart]]] = {}
    if not client.versions.has(HOLDS):
        return held
    filters: dict[str, Any] = {"in_tree": f"in:{','.join(roots)}"} if roots else {}
    try:
        holds = list(Reports(client).holds(**filters))
    except ClientError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return held
    for hold in holds:
        terms = hold["hold"]
        for provider, share in hold["allocations"].items():
            for name, amount in share["resources"].items():
                part = HeldPart(
                    hold["uuid"], amount, hold["project_id"], terms["until"], terms["note"]
                )
                held.setdefault(provider, {}).setdefault(name, []).append(part)
    return held
