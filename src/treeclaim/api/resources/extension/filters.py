# SPDX-License-Identifier: Apache-2.0
"""Filters that the lists of the extension have in common (contract page 99, before section 1)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus

from treeclaim.api.protocol.errors import api_error, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.schemas import MEMBER_OF, listed, text
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.protocol.texts import quoted
from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.extension.holds import utc_of
from treeclaim.model.request import ProviderConditions

_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_CLASS = "[A-Z0-9_]+"


def _one_or_several(item: str) -> Schema:
    return {"type": "string", "pattern": f"^({item}|in:{item}(,{item})*)$"}


UUIDS = _one_or_several(_UUID)
"""Schema of a filter by uuid, or `in:` several."""

CLASSES = _one_or_several(_CLASS)
"""Schema of a filter by resource class, or `in:` several."""

TIME: Schema = {"type": "string", "maxLength": 64}
"""Schema of a time, which `time_of` reads."""


def time_of(query: Mapping[str, str], name: str) -> datetime | None:
    """Return a time that a filter names, naive UTC; None where it is not set.

    Raises:
        ApiError: 400 if it is not a time in the form of RFC 3339.
    """
    text = query.get(name)
    if text is None:
        return None
    moment = utc_of(text)
    if moment is None:
        raise bad_request(f"Invalid {name}: {quoted(text)} is not a time in the form of RFC 3339.")
    return moment


def several(value: str | None) -> tuple[str, ...]:
    """Return the items of a filter that takes one or `in:` several; none where it is not set."""
    if value is None:
        return ()
    return tuple(dict.fromkeys(value.removeprefix("in:").split(",")))


def conditions_of(
    call: Call, pairs: Sequence[tuple[str, str]], query: Mapping[str, str]
) -> ProviderConditions:
    """Read `member_of`, `required` and `in_tree`, as page 20 has them.

    Raises:
        ApiError: 400.
    """
    membership = parameters.member_of(
        [value for name, value in pairs if name == "member_of"], call.version
    )
    traits = parameters.Traits.together(
        parameters.required(value, call.version) for name, value in pairs if name == "required"
    )
    return ProviderConditions(
        required=traits.required,
        forbidden=traits.forbidden,
        member_of=membership.member_of,
        forbidden_aggregates=membership.forbidden,
        in_tree=several(query.get("in_tree")),
    )


@contextmanager
def classes_named_by(parameter: str) -> Iterator[None]:
    """Answer 400 where a parameter names a resource class that does not exist."""
    try:
        yield
    except ResourceClassNotFoundError as error:
        raise api_error(
            error,
            prefix=f"Invalid resource class in {parameter} parameter: ",
            status=HTTPStatus.BAD_REQUEST,
        ) from error


_TRAIT = "[A-Z0-9_]+"

SELECTION: dict[str, Schema] = {
    "resources": text(listed("[A-Z0-9_]+:[1-9][0-9]*")),
    "required": text(f"(in:{listed(_TRAIT)}|{listed(f'!?{_TRAIT}')})"),
    "member_of": MEMBER_OF,
}
"""Names have the form of those that may exist: others are refused, whatever else is asked."""
