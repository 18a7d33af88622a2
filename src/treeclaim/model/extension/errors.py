# SPDX-License-Identifier: Apache-2.0
"""Errors of consumption, conditions, holds and mixes (contract pages 100 to 102)."""

from collections.abc import Sequence

from treeclaim.model.errors import TreeclaimError
from treeclaim.model.provider import Consumption


class ConsumptionError(TreeclaimError):
    """The consumption of an inventory is invalid (contract page 102, section 2); `fault` is a predicate."""

    fault: str
    consumes: Sequence[Consumption]

    def __str__(self) -> str:
        """Return the message with the consumed inventories."""
        names = ", ".join(f"{entry.resource_class} of {entry.provider}" for entry in self.consumes)
        return f"What an inventory consumes {self.fault}: {names}."


class ConditionedError(TreeclaimError):
    """A condition of the provider, or of an ancestor, forbids new allocations (contract page 102)."""

    provider_uuid: str
    key: str
    reason: str

    def __str__(self) -> str:
        """Return the message with the condition's reason, if any."""
        reason_suffix = f": {self.reason}" if self.reason else ""
        return (
            f"Resource provider {self.provider_uuid} gives nothing new because of its condition "
            f"{self.key}{reason_suffix}."
        )


class HoldRefusedError(TreeclaimError):
    """A write must not draw from a hold.

    Attributes:
        reason: `unknown` if the hold does not exist, `project` if its terms exclude the consumer's project.
    """

    uuid: str
    reason: str

    def __str__(self) -> str:
        """Return the message for the reason."""
        is_unknown = self.reason == "unknown"
        fault = "does not exist" if is_unknown else "does not let the consumer's project draw"
        return f"The hold {self.uuid} {fault}."


class ConsumerExistsError(TreeclaimError):
    """A consumer with allocations cannot become a hold, nor a hold a consumer of another kind."""

    consumers: Sequence[str]

    def __str__(self) -> str:
        """Return the message with the first consumer."""
        return (
            f"Consumer {self.consumers[0]} exists: what holds something cannot become a hold, nor a "
            "hold another consumer."
        )


class MixesFullError(TreeclaimError):
    """No further mix can be created."""

    message = "There are {limit} mixes already, which is the most; delete one first."
    limit: int
