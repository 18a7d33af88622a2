# SPDX-License-Identifier: Apache-2.0
"""Forms of the filters of GET /resource_providers (contract page 20, section 2)."""

from treeclaim.api.protocol.request.patterns import MEMBER_OF, listed, text
from treeclaim.api.protocol.request.wording import Schema

_BLANK = r"\s\x00-\x1f\x7f-\x9f"
"""What may be stripped from an element of a list: regular expressions differ about blanks."""

_TRAIT = f"[^!,{_BLANK}]([^,]*[^,{_BLANK}])?"
_SIGNED_TRAITS = f"(?!in:)!*{_TRAIT}(,!*{_TRAIT})*"

QUERY: dict[str, Schema] = {
    "resources": text(listed("[^:,]*:[1-9][0-9]*")),
    "required": text(f"(in:{listed(_TRAIT)}|{_SIGNED_TRAITS})"),
    "member_of": MEMBER_OF,
}
"""Names of every form may stand here: whether a name exists is not asked where the other filters
leave no provider."""
