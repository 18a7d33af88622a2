# SPDX-License-Identifier: Apache-2.0
"""The time that the upkeep of stores follows."""

from datetime import UTC, datetime


def utc_now():
    """The present time as the tables hold it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)
