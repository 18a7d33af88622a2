# SPDX-License-Identifier: Apache-2.0
"""Forms of the parameters of searches (contract page 90, section 1, and page 97, section 2)."""

from treeclaim.api.protocol.operations import Forms
from treeclaim.api.protocol.request.patterns import ANY_UUID, MEMBER_OF, UUID, listed, text
from treeclaim.api.protocol.request.wording import Schema

_AMOUNT = "[A-Z0-9_]+:[1-9][0-9]*"
_TRAIT = "[A-Z0-9_]+"
_SIGNED_TRAITS = f"!?{_TRAIT}(,!?{_TRAIT})*"
_SUFFIX = "[a-zA-Z0-9_-]{1,64}"
_SUFFIXES = listed(_SUFFIX)
_UUIDS: Schema = text(f"({UUID}|in:{listed(UUID)})")

_SEARCH: dict[str, Schema] = {
    "resources": text(listed(_AMOUNT)),
    "required": text(f"(in:{listed(_TRAIT)}|{_SIGNED_TRAITS})"),
    "member_of": MEMBER_OF,
    "in_tree": ANY_UUID,
    "root_required": text(_SIGNED_TRAITS),
    "same_subtree": text(_SUFFIXES),
}

_EXTENSION: dict[str, Schema] = {
    "in_tree": _UUIDS,
    "in_subtree": _UUIDS,
    "root_required": _SEARCH["required"],
    "root_member_of": MEMBER_OF,
    "same_subtree": text(listed(f"!?{_SUFFIX}")),
    "isolate": text(_SUFFIXES),
    "can_split": text(listed("[A-Z0-9_]+")),
    "order_by": text(listed(r"(pack|spread)(_providers)?(\*[1-9][0-9]?)?")),
    "preferred": text(listed(rf"!?{_TRAIT}(\*[1-9][0-9]?)?")),
    "root_in_tree": MEMBER_OF,
}
"""What the extension reads differently, or in addition."""

_REQUIRED = frozenset({"resources"})
"""A search needs one `resources`, and those with a suffix are not described as parameters."""

SEARCH = Forms(query=_SEARCH, required_query=_REQUIRED)
"""Of a search."""

EXPLANATION = Forms(
    query=_SEARCH | _EXTENSION | {"nearest": text("([0-4]?[0-9]|50)"), "tree": ANY_UUID},
    required_query=_REQUIRED,
)
"""Of an explanation."""
