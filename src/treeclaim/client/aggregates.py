# SPDX-License-Identifier: Apache-2.0
"""Names of aggregates, which a service keeps for people; Placement knows aggregates only by uuid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from treeclaim.client.client import Client
from treeclaim.client.errors import ClientError
from treeclaim.client.session import in_batches
from treeclaim.model.names import normalised_uuid

LONGEST_NAME = 255
"""Characters of a name."""

_NAMES = "/treeclaim/aggregates/names"

_MOST_NAMES = 10_000
"""Names of a page, and of a call that writes them."""


@dataclass(frozen=True, slots=True)
class AggregateNames:
    """Names by uuid, however that is spelled.

    Attributes:
        names: By uuid in the usual spelling.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def kept_by(cls, client: Client) -> "AggregateNames | None":
        """Read all names; None where the server keeps none, or the policy hides them.

        Raises:
            ClientError: if the endpoint fails otherwise.
        """
        if client.extension is None:
            return None
        names: dict[str, str] = {}
        try:
            for page in client.pages(_NAMES, limit=str(_MOST_NAMES)):
                names |= page["names"]
        except ClientError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            return None
        return cls(names)

    @classmethod
    def read(cls, client: Client) -> "AggregateNames":
        """Read all names to show them: none if they cannot be read.

        Raises:
            ClientError: if the endpoint fails.
        """
        return cls.kept_by(client) or NO_NAMES

    def name_of(self, uuid: str) -> str | None:
        """Return the name of an aggregate, None if it has none."""
        return self.names.get(normalised_uuid(uuid) or uuid)

    def shown(self, uuid: str) -> str:
        """Return an aggregate as people see it: its uuid, and its name before that."""
        name = self.name_of(uuid)
        return uuid if name is None else f"{name} ({uuid})"

    def all_shown(self, uuids: Iterable[str]) -> list[str]:
        """Return aggregates as people see them, in order."""
        return sorted(map(self.shown, uuids))

    def changes_to(self, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return those of some names that differ from the present ones; None stands for no name."""
        named = {normalised_uuid(uuid) or uuid: name for uuid, name in wanted.items()}
        return {uuid: name for uuid, name in named.items() if self.names.get(uuid) != name}


NO_NAMES = AggregateNames()
"""Stands in where no aggregate is shown."""


def name_aggregates(client: Client, names: Mapping[str, str | None]) -> None:
    """Name any number of aggregates by uuid; None removes a name.

    Raises:
        ClientError: if the endpoint fails.
    """
    for batch in in_batches(list(names.items()), _MOST_NAMES):
        client.call("POST", _NAMES, {"names": dict(batch)})
