# SPDX-License-Identifier: Apache-2.0
"""Forms of the parameters of searches (contract page 90, section 1, and page 97, section 2)."""

from treeclaim.api.protocol.operations import Forms
from treeclaim.api.protocol.request.patterns import ANY_UUID, MEMBER_OF, UUID, listed, text
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.extension.conditions import KEY
from treeclaim.model.query_parameters import QUERY_PARAMETERS, Grammar

_CLASS = "[A-Z0-9_]+"
_TRAIT = "[A-Z0-9_]+"
_SIGNED_TRAITS = f"!?{_TRAIT}(,!?{_TRAIT})*"
_SUFFIX = "[a-zA-Z0-9_-]{1,64}"

_FORMS: dict[Grammar, Schema] = {
    Grammar.AMOUNTS: text(listed(f"{_CLASS}:[1-9][0-9]*")),
    Grammar.TRAITS: text(_SIGNED_TRAITS),
    Grammar.TRAITS_OR_ANY: text(f"(in:{listed(_TRAIT)}|{_SIGNED_TRAITS})"),
    Grammar.PREFERENCES: text(listed(rf"!?{_TRAIT}(\*[1-9][0-9]?)?")),
    Grammar.AGGREGATES: MEMBER_OF,
    Grammar.TREE: ANY_UUID,
    Grammar.TREES: text(f"({UUID}|in:{listed(UUID)})"),
    Grammar.TREES_OR_NOT: MEMBER_OF,
    Grammar.UUIDS: text(listed(UUID)),
    Grammar.CLASSES: text(listed(_CLASS)),
    Grammar.KEYS: text(listed(KEY)),
    Grammar.SUFFIXES: text(listed(_SUFFIX)),
    Grammar.SUFFIXES_OR_NOT: text(listed(f"!?{_SUFFIX}")),
    Grammar.EXPRESSION: text(r"(exists )?[a-z][a-z0-9_]{7}( (==|!=) ('[a-z]*'|[1-9]))?"),
    Grammar.VALUE_LIST: text(rf"[a-z][a-z0-9_]{{7}}(:{_SUFFIX}){{2,}}"),
    Grammar.TERMS: text(listed(r"(pack|spread)(_providers)?(\*[1-9][0-9]?)?")),
}
"""By grammar; the schemas themselves have those of numbers and choices."""

_SEARCH: dict[str, Schema] = {
    parameter.name: _FORMS[parameter.newest_grammar]
    for parameter in QUERY_PARAMETERS
    if parameter.newest_grammar in _FORMS
}

_REPEATED = frozenset(
    parameter.name for parameter in QUERY_PARAMETERS if parameter.repeated_since is not None
)
"""Those that can say more by coming again."""

_HELP = {parameter.name: parameter.help for parameter in QUERY_PARAMETERS}

SEARCH = Forms(query=_SEARCH, help=_HELP, repeated_query=_REPEATED)
"""Of a search."""

EXPLANATION = Forms(
    query=_SEARCH | {"nearest": text("([0-4]?[0-9]|50)"), "tree": ANY_UUID},
    help=_HELP,
    repeated_query=_REPEATED,
)
"""Of an explanation."""
