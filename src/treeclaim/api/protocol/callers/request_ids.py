# SPDX-License-Identifier: Apache-2.0
"""Request ids (contract page 00, section 7)."""

import random
import re
from collections.abc import Mapping
from typing import Any

REQUEST_ID = "treeclaim.request_id"
GLOBAL_REQUEST_ID = "treeclaim.global_request_id"
HEADER = "x-openstack-request-id"

_GLOBAL = re.compile(r"req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}")


def assign_request_id(environment: dict[str, Any]) -> str:
    """Give a request an id of its own; keep the client's as the global one, for logs only."""
    own = _new_id()
    environment[REQUEST_ID] = own
    given = environment.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
    if _GLOBAL.fullmatch(given):
        environment[GLOBAL_REQUEST_ID] = given
    return own


def request_id_of(environment: Mapping[str, Any]) -> str:
    """Return the id that a request was given."""
    return str(environment.get(REQUEST_ID, ""))


def _new_id() -> str:
    """Return an id in the form of a random uuid.

    It is no secret, so its bits are Python's own random numbers, with another seed in each process.
    To ask the kernel for them would let another thread go on before this one.
    """
    digits = f"{random.getrandbits(120):030x}"
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:]}"
