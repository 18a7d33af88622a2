# SPDX-License-Identifier: Apache-2.0
"""What the API description says of values beyond the schemas that the service checks them by.

The service reads some values itself, after their schema: grammars in query strings, names in paths,
spellings of uuids. Here they are as patterns, for the newest microversion. A pattern has what
clients should send; blanks around the elements of a list, and other spellings of a number, are
tolerated by the service and not described.
"""

import re
from collections.abc import Mapping
from typing import Any

from treeclaim.api.protocol.schemas import CLASS_NAME, CUSTOM_NAME
from treeclaim.api.protocol.wording import Schema

_ANY_UUID = r"(urn:uuid:)?\{?(-?[0-9a-fA-F]){32}\}?"
_AMOUNT = "[A-Z0-9_]+:[1-9][0-9]*"
_TRAIT = "[A-Z0-9_]+"
_SIGNED_TRAITS = f"!?{_TRAIT}(,!?{_TRAIT})*"
_SUFFIX = "[a-zA-Z0-9_-]{1,64}"


def _text(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^{pattern}$"}


def _list(element: str) -> str:
    return f"{element}(,{element})*"


UUID: Schema = _text(_ANY_UUID) | {
    "description": "A uuid in any spelling: dashes, braces, `urn:uuid:` and case do not matter."
}
"""Contract page 00, section 12. JSON Schema's own format admits only the spelling with dashes."""

SEGMENT: Schema = _text("[^/]+")
"""A segment of a path, which has no other form (contract page 00, section 1)."""

_MEMBER_OF: Schema = _text(f"!?({_ANY_UUID}|in:{_list(_ANY_UUID)})")
_UUIDS: Schema = _text(f"({_ANY_UUID}|in:{_list(_ANY_UUID)})")
_SUFFIXES = _list(_SUFFIX)

_SEARCH: dict[str, Schema] = {
    "resources": _text(_list(_AMOUNT)),
    "required": _text(f"(in:{_list(_TRAIT)}|{_SIGNED_TRAITS})"),
    "member_of": _MEMBER_OF,
    "in_tree": UUID,
    "root_required": _text(_SIGNED_TRAITS),
    "same_subtree": _text(_SUFFIXES),
}
"""Contract page 90, section 1."""

_BLANK = r"\s\x00-\x1f\x7f-\x9f"
"""What may be stripped from an element of a list: regular expressions differ about blanks."""
_ANY_TRAIT = f"[^!,{_BLANK}]([^,]*[^,{_BLANK}])?"
_SIGNED_ANY = f"(?!in:)!*{_ANY_TRAIT}(,!*{_ANY_TRAIT})*"

_MARKER: Schema = {"type": "string", "description": "As a link to the next page has it."}

_LISTED: dict[str, Schema] = {
    "resources": _SEARCH["resources"],
    "required": _SEARCH["required"],
    "member_of": _MEMBER_OF,
    "marker": _MARKER,
}
"""Contract page 99, section 1: unknown names are refused, whatever else is asked."""

_QUERIES: dict[str, dict[str, Schema]] = {
    "list_providers": {
        # Whether a name exists is not asked where no provider is left by the other filters, so
        # names of every form may stand here.
        "resources": _text(_list("[^:,]*:[1-9][0-9]*")),
        "required": _text(f"(in:{_list(_ANY_TRAIT)}|{_SIGNED_ANY})"),
        "member_of": _MEMBER_OF,
    },
    "list_traits": {
        "name": {"type": "string", "pattern": ":"},
        "associated": _text("([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])"),
    },
    "list_candidates": _SEARCH,
    "explain_candidates": _SEARCH
    | {
        # Page 97, section 2: what the extension reads differently.
        "in_tree": _UUIDS,
        "in_subtree": _UUIDS,
        "root_required": _SEARCH["required"],
        "root_member_of": _MEMBER_OF,
        "same_subtree": _text(_list(f"!?{_SUFFIX}")),
        "isolate": _text(_SUFFIXES),
        "can_split": _text(_list("[A-Z0-9_]+")),
        "nearest": _text("([0-4]?[0-9]|50)"),
        "tree": UUID,
    },
    "list_providers_in_bulk": _LISTED,
    "list_allocations_in_bulk": {"member_of": _MEMBER_OF, "marker": _MARKER},
    "show_totals": {"required": _SEARCH["required"], "member_of": _MEMBER_OF, "marker": _MARKER},
}
"""Of parameters of queries, by handler."""

REQUIRED_QUERIES = {"list_candidates": {"resources"}, "explain_candidates": {"resources"}}
"""Parameters without which a query is refused, beyond those that its schema requires: a search needs
one `resources`, and those with a suffix are not described as parameters."""

SUFFIXED = (
    "With a suffix, as in `{name}_COMPUTE`, it is of a request group of its own; a suffix is up to "
    "64 letters, digits, dashes and underscores."
)

_PATHS: dict[tuple[str, str], Schema] = {
    ("ensure_trait", "name"): CUSTOM_NAME,
    ("put_class", "name"): CUSTOM_NAME,
    ("replace_allocations", "consumer_uuid"): UUID,
}
"""Of variables of paths that the service looks at before it looks for what they name."""

_NAMES: Schema = {"name": {"minLength": 1}}
_INVENTORIES: Schema = {"inventories": {"propertyNames": {"pattern": CLASS_NAME}}}
_BODIES: dict[str, dict[str, Schema]] = {
    "create_provider": _NAMES,
    "update_provider": _NAMES,
    "replace_inventories": _INVENTORIES,
}
"""More about members of bodies."""


def path_form(handler: str, name: str) -> Schema:
    """Return the form of a variable of an operation's path."""
    return _PATHS.get((handler, name), SEGMENT)


def query_form(handler: str, name: str, checked_by: Schema) -> Schema:
    """Return the form of a parameter, which is that of its schema unless more is known."""
    return _QUERIES.get(handler, {}).get(name) or described(checked_by)


def body_form(handler: str, checked_by: Schema) -> Schema:
    """Return the form of an operation's body."""
    form: Schema = described(checked_by)
    for name, more in _BODIES.get(handler, {}).items():
        form["properties"][name] |= more
    if handler == "reshape":
        for one in form["properties"]["inventories"]["patternProperties"].values():
            one["properties"]["inventories"] |= _INVENTORIES["inventories"]
    return form


def described(schema: Any) -> Any:
    """Return a copy of a schema in which `format` is not stricter than the service."""
    if isinstance(schema, Mapping):
        if schema.get("format") == "uuid" and "pattern" not in schema:
            return dict(UUID)
        return {name: described(inner) for name, inner in schema.items()}
    if isinstance(schema, list):
        return [described(inner) for inner in schema]
    return schema


def suffixed_names(schema: Schema) -> dict[str, Schema]:
    """Return the parameters of a query that may have a suffix, by their plain names."""
    found = ((re.match(r"\^(\w+)\(", key), one) for key, one in _patterns(schema))
    return {match[1]: one for match, one in found if match is not None}


def _patterns(schema: Schema) -> list[tuple[str, Schema]]:
    return list(schema.get("patternProperties", {}).items())
