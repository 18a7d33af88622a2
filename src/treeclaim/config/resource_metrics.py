# SPDX-License-Identifier: Apache-2.0
"""What the metrics tell of resources (contract page 99, section 6)."""

from dataclasses import dataclass

from oslo_config import cfg

from treeclaim.model.names import normalised_uuid

_MOST_AGGREGATES = 500
"""Named by an operator; with the usual three classes each, all of them are shown."""


@dataclass(frozen=True, slots=True)
class ResourceMetrics:
    """What is told besides the sums over the cloud.

    Attributes:
        aggregates: Uuids of those that have sums of their own.
        flavors: File with queries whose number that fits is told; None for none.
    """

    aggregates: tuple[str, ...]
    flavors: str | None


def resource_metrics(options: cfg.ConfigOpts) -> ResourceMetrics | None:
    """Return what is to be told; None for nothing of resources.

    Raises:
        ValueError: if an option is impossible.
    """
    given = options.treeclaim
    named = given.metrics_of_aggregates
    if len(named) > _MOST_AGGREGATES:
        raise ValueError(
            f"[treeclaim]/metrics_of_aggregates: {len(named)} are more than {_MOST_AGGREGATES}"
        )
    aggregates = tuple(_uuid(name) for name in named)
    if given.metrics_of_resources == "none":
        return None
    return ResourceMetrics(aggregates, given.metrics_of_flavors or None)


def _uuid(name: str) -> str:
    uuid = normalised_uuid(name)
    if uuid is None:
        raise ValueError(f"[treeclaim]/metrics_of_aggregates: {name!r} is not a uuid")
    return uuid
