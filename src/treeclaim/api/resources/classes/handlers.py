# SPDX-License-Identifier: Apache-2.0
"""/resource_classes (contract page 60)."""

from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import ApiError, api_error
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.request.validation import Checker, require_body
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.classes.schemas import resource_class
from treeclaim.model.errors import (
    ResourceClassExistsError,
    ResourceClassInUseError,
    StandardResourceClassError,
)
from treeclaim.model.microversions import MAXIMUM, Feature
from treeclaim.store.operations.catalogue import resource_classes as store

_NAME = Checker(resource_class(MAXIMUM))


def _path_of(name: str) -> str:
    return f"/resource_classes/{name}"


def _representation(name: str, call: Call) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": call.link(_path_of(name))}]}


def list_classes(call: Call) -> Reply:
    """List all resource classes (section 2)."""
    with call.services.replica.current() as forest:
        entries = list(forest.catalogue.resource_classes.values())
    return Reply(
        body={"resource_classes": [_representation(entry.name, call) for entry in entries]},
        modified_at=max((entry.modified_at or now() for entry in entries), default=now()),
    )


def create_class(call: Call) -> Reply:
    """Create a custom class (section 3)."""
    name = call.json()["name"]
    try:
        call.services.store.write(store.create, name)
    except ResourceClassExistsError as error:
        raise ApiError(
            HTTPStatus.CONFLICT, f"Conflicting resource class already exists: {name}"
        ) from error
    return Reply(HTTPStatus.CREATED, location=_path_of(name))


def show_class(call: Call) -> Reply:
    """Show a resource class (section 4)."""
    name = call.arguments["name"]
    with call.services.replica.current() as forest:
        entry = forest.catalogue.resource_classes.get(name)
    if entry is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"No such resource class {name}.")
    return Reply(body=_representation(name, call), modified_at=entry.modified_at or now())


def put_class(call: Call) -> Reply:
    """Ensure that a custom class exists; below 1.7 rename it."""
    if call.has(Feature.ENSURE_RESOURCE_CLASS):
        return _ensured(call)
    return _renamed(call)


def _ensured(call: Call) -> Reply:
    """Section 6."""
    name = call.arguments["name"]
    require_body(_NAME, {"name": name}, len(name))
    created = call.services.store.write(store.ensure, name)
    status = HTTPStatus.CREATED if created else HTTPStatus.NO_CONTENT
    return Reply(status, location=_path_of(name))


def _renamed(call: Call) -> Reply:
    """Section 5."""
    name, new_name = call.arguments["name"], call.json()["name"]
    try:
        call.services.store.write(store.rename, name, new_name)
    except StandardResourceClassError as error:
        raise ApiError(
            HTTPStatus.BAD_REQUEST, f"Cannot update standard resource class {name}"
        ) from error
    except ResourceClassExistsError as error:
        raise ApiError(
            HTTPStatus.CONFLICT, f"Resource class already exists: {new_name}"
        ) from error
    return Reply(body=_representation(new_name, call))


def delete_class(call: Call) -> Reply:
    """Delete a custom class (section 7)."""
    name = call.arguments["name"]
    try:
        call.services.store.write(store.delete, name)
    except StandardResourceClassError as error:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"Error in delete resource class: Cannot delete standard resource class {name}",
        ) from error
    except ResourceClassInUseError as error:
        raise api_error(error, prefix="Error in delete resource class: ") from error
    return Reply(HTTPStatus.NO_CONTENT)
