# SPDX-License-Identifier: Apache-2.0
"""Traits (contract page 50)."""

from http import HTTPStatus

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    DescribedResponse,
    Refusal,
    Reply,
    ValueForms,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request.schemas import (
    CUSTOM_NAME,
    GENERATION,
    SHORT_TEXT,
    STRING,
    Shape,
    record,
    text,
)
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.resources.providers.provider_json import GENERATION_CHANGED, require_row
from treeclaim.model.changes import Catalogue
from treeclaim.model.errors import TraitsNotFoundError
from treeclaim.model.microversions import Feature
from treeclaim.model.names import is_custom_name, quote_value
from treeclaim.model.parts import TRAITS
from treeclaim.store.operations.catalogue import traits as store
from treeclaim.store.operations.providers.entries import write_part

PROVIDER_TRAITS: Shape = {"traits": [str], "resource_provider_generation": int}
CREATED = DescribedResponse(HTTPStatus.CREATED, has_location=True)
EXISTED = DescribedResponse(HTTPStatus.NO_CONTENT, has_location=True)
TRAITS_BODY = VersionedSchema(
    record({"traits": {"type": "array", "items": SHORT_TEXT}} | GENERATION)
)
QUERY = VersionedSchema(record({}, {"name": STRING, "associated": STRING}))


@operation(
    "GET /traits",
    policy="placement:traits:list",
    shows={"traits": [str]},
    since=Feature.TRAITS,
    query=QUERY,
    forms=ValueForms(
        query={
            "name": {"type": "string", "pattern": ":"},
            "associated": text("([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])"),
        }
    ),
)
def list_traits(call: Call) -> Reply:
    """List traits (section 2)."""
    query = require_query(QUERY.at(call.version), call.read_query())
    associated = _parse_associated(query.get("associated"))
    operator, _, value = _parse_name_filter(query.get("name")).partition(":")
    with call.services.replica.borrow_forest() as forest:
        catalogue = forest.catalogue
        names = list(catalogue.traits)
        if associated is not None:
            associated_names = forest.associated_traits()
            names = [name for name in names if (name in associated_names) is associated]
    if operator == "in":
        named_traits = set(value.split(","))
        names = [name for name in names if name in named_traits]
    elif operator == "startswith":
        names = [name for name in names if name.startswith(value)]
    return Reply(body={"traits": names}, modified_at=_find_newest_time(catalogue, names))


def _parse_associated(value: str | None) -> bool | None:
    if value is None:
        return None
    if value.lower() not in {"true", "false"}:
        raise bad_request(
            f'The query parameter "associated" only accepts "true" or "false". Got: "{quote_value(value)}"'
        )
    return value.lower() == "true"


def _parse_name_filter(value: str | None) -> str:
    if value is None:
        return ""
    if ":" not in value:
        raise bad_request(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{quote_value(value)}"'
        )
    return value


def _find_newest_time(catalogue: Catalogue, names: list[str]) -> float | None:
    times = [catalogue.traits[name].modified_at for name in names]
    return max((time for time in times if time is not None), default=None)


@operation(
    "GET /traits/{name}",
    policy="placement:traits:show",
    status=HTTPStatus.NO_CONTENT,
    since=Feature.TRAITS,
)
def show_trait(call: Call) -> Reply:
    """Check whether a trait exists (section 3)."""
    name = call.arguments["name"]
    with call.services.replica.borrow_forest() as forest:
        catalogue = forest.catalogue
    if name not in catalogue.traits:
        raise ApiError(HTTPStatus.NOT_FOUND, f"No such trait(s): {quote_value(name)}.")
    return Reply(modified_at=_find_newest_time(catalogue, [name]))


@operation(
    "PUT /traits/{name}",
    policy="placement:traits:update",
    forms=ValueForms(path={"name": CUSTOM_NAME}),
    responses=(CREATED, EXISTED),
    since=Feature.TRAITS,
)
def ensure_trait(call: Call) -> Reply:
    """Create a custom trait if it does not exist (section 4)."""
    name = call.arguments["name"]
    if not is_custom_name(name):
        raise bad_request(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start "
            'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    trait = call.services.store.write(store.ensure, name)
    return Reply(
        HTTPStatus.CREATED if trait is None else HTTPStatus.NO_CONTENT,
        location=f"/traits/{name}",
        modified_at=None if trait is None else trait.modified_at,
    )


@operation(
    "DELETE /traits/{name}",
    policy="placement:traits:delete",
    since=Feature.TRAITS,
    refusals=(Refusal("{error}", TraitsNotFoundError, status=HTTPStatus.NOT_FOUND),),
)
def delete_trait(call: Call) -> None:
    """Delete a custom trait (section 5)."""
    call.services.store.write(store.delete, call.arguments["name"])


@operation(
    "GET /resource_providers/{uuid}/traits",
    policy="placement:resource_providers:traits:list",
    shows=PROVIDER_TRAITS,
    since=Feature.TRAITS,
)
def list_provider_traits(call: Call) -> Answer:
    """Show the traits of a resource provider (section 6)."""
    with call.services.replica.borrow_forest() as forest:
        row = require_row(forest, call.arguments["uuid"])
        names = forest.traits(row)
        existing_names = [name for name in names if name in forest.catalogue.traits]
        modified_at = _find_newest_time(forest.catalogue, existing_names)
        return _make_reply(names, forest.provider(row).generation, modified_at)


@operation(
    "PUT /resource_providers/{uuid}/traits",
    policy="placement:resource_providers:traits:update",
    shows=PROVIDER_TRAITS,
    since=Feature.TRAITS,
    body=TRAITS_BODY,
    refusals=(GENERATION_CHANGED,),
)
def replace_provider_traits(call: Call) -> Answer:
    """Replace the traits of a resource provider (section 7)."""
    body = call.read_body()
    written_provider = call.services.store.write(
        write_part,
        call.arguments["uuid"],
        TRAITS,
        set(body["traits"]),
        int(body["resource_provider_generation"]),
    )
    names = list(dict.fromkeys(body["traits"]))
    return _make_reply(names, written_provider.generation, written_provider.modified_at)


def _make_reply(names: list[str], generation: int, modified_at: float | None) -> Reply:
    return Reply(
        body={"traits": names, "resource_provider_generation": generation},
        modified_at=modified_at,
    )


@operation(
    "DELETE /resource_providers/{uuid}/traits",
    policy="placement:resource_providers:traits:delete",
    since=Feature.TRAITS,
)
def clear_provider_traits(call: Call) -> None:
    """Remove all traits of a resource provider (section 8)."""
    call.services.store.write(write_part, call.arguments["uuid"], TRAITS, set())
