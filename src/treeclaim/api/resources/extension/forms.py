# SPDX-License-Identifier: Apache-2.0
"""Forms of the filters that the lists of the extension have in common (contract page 20)."""

from treeclaim.api.protocol.request.patterns import MEMBER_OF, listed, text
from treeclaim.api.protocol.request.wording import Schema

_TRAIT = "[A-Z0-9_]+"

SELECTION: dict[str, Schema] = {
    "resources": text(listed("[A-Z0-9_]+:[1-9][0-9]*")),
    "required": text(f"(in:{listed(_TRAIT)}|{listed(f'!?{_TRAIT}')})"),
    "member_of": MEMBER_OF,
}
"""Names have the form of those that may exist: others are refused, whatever else is asked."""
