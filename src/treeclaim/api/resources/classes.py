# SPDX-License-Identifier: Apache-2.0
"""Resource classes (contract page 60)."""

from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import ApiError
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
from treeclaim.api.protocol.request.schemas import CUSTOM_NAME, LINKS, Shape, record
from treeclaim.api.protocol.request.validation import Checker, require_body
from treeclaim.api.protocol.texts import now
from treeclaim.model.errors import (
    ResourceClassExistsError,
    ResourceClassInUseError,
    StandardResourceClassError,
)
from treeclaim.model.microversions import Feature
from treeclaim.store.operations.catalogue import resource_classes as store

_CLASS: Shape = {"name": str, "links": LINKS}

CREATED = DescribedResponse(HTTPStatus.CREATED, has_cache_headers=False, has_location=True)
EXISTED = DescribedResponse(HTTPStatus.NO_CONTENT, has_cache_headers=False, has_location=True)
_CLASS_BODY = record({"name": CUSTOM_NAME})
_NAME_CHECKER = Checker(_CLASS_BODY)


def _make_path(name: str) -> str:
    return f"/resource_classes/{name}"


def _make_document(name: str, call: Call) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": call.link(_make_path(name))}]}


@operation(
    "GET /resource_classes",
    policy="placement:resource_classes:list",
    shows={"resource_classes": [_CLASS]},
    since=Feature.RESOURCE_CLASSES,
)
def list_classes(call: Call) -> Reply:
    """List resource classes (section 2)."""
    with call.services.replica.borrow_forest() as forest:
        entries = list(forest.catalogue.resource_classes.values())
    return Reply(
        body={"resource_classes": [_make_document(entry.name, call) for entry in entries]},
        modified_at=max((entry.modified_at or now() for entry in entries), default=now()),
    )


@operation(
    "POST /resource_classes",
    policy="placement:resource_classes:create",
    status=HTTPStatus.CREATED,
    has_cache_headers=False,
    has_location=True,
    since=Feature.RESOURCE_CLASSES,
    body=VersionedSchema(_CLASS_BODY),
    refusals=(
        Refusal(
            "Conflicting resource class already exists: {error.name}", ResourceClassExistsError
        ),
    ),
)
def create_class(call: Call) -> Reply:
    """Create a custom resource class (section 3)."""
    name = call.read_body()["name"]
    call.services.store.write(store.create, name)
    return Reply(location=_make_path(name))


@operation(
    "GET /resource_classes/{name}",
    policy="placement:resource_classes:show",
    shows=_CLASS,
    since=Feature.RESOURCE_CLASSES,
)
def show_class(call: Call) -> Reply:
    """Show a resource class (section 4)."""
    name = call.arguments["name"]
    with call.services.replica.borrow_forest() as forest:
        entry = forest.catalogue.resource_classes.get(name)
    if entry is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"No such resource class {name}.")
    return Reply(body=_make_document(name, call), modified_at=entry.modified_at)


@operation(
    "PUT /resource_classes/{name}",
    policy="placement:resource_classes:update",
    responses=(CREATED, EXISTED),
    since=Feature.RESOURCE_CLASSES,
    body=VersionedSchema(_CLASS_BODY),
    forms=ValueForms(path={"name": CUSTOM_NAME}),
    body_until=Feature.ENSURE_RESOURCE_CLASS,
    refusals=(
        Refusal("Cannot update standard resource class {name}", StandardResourceClassError),
        Refusal("Resource class already exists: {error.name}", ResourceClassExistsError),
    ),
)
def put_class(call: Call) -> Answer:
    """Create a custom resource class if it does not exist (below 1.7: rename it)."""
    if call.has(Feature.ENSURE_RESOURCE_CLASS):
        return _ensure_class(call)
    return _rename_class(call)


def _ensure_class(call: Call) -> Reply:
    name = call.arguments["name"]
    require_body(_NAME_CHECKER, {"name": name}, len(name))
    created = call.services.store.write(store.ensure, name)
    status = HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT
    return Reply(status, location=_make_path(name))


def _rename_class(call: Call) -> Reply:
    new_name = call.read_body()["name"]
    call.services.store.write(store.rename, call.arguments["name"], new_name)
    return Reply(HTTPStatus.OK, body=_make_document(new_name, call))


@operation(
    "DELETE /resource_classes/{name}",
    policy="placement:resource_classes:delete",
    since=Feature.RESOURCE_CLASSES,
    refusals=(
        Refusal(
            "Error in delete resource class: Cannot delete standard resource class {name}",
            StandardResourceClassError,
        ),
        Refusal("Error in delete resource class: {error}", ResourceClassInUseError),
    ),
)
def delete_class(call: Call) -> None:
    """Delete a custom resource class (section 7)."""
    call.services.store.write(store.delete, call.arguments["name"])
