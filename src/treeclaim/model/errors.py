# SPDX-License-Identifier: Apache-2.0
"""Typed errors of refused searches and writes.

The API maps each error to a status, an error code and the contract's phrase; no layer below depends on HTTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, ClassVar, dataclass_transform

from treeclaim.model.provider import Inventory


@dataclass_transform(eq_default=False)
class TreeclaimError(Exception):
    """Base of all errors that a caller can cause or must handle.

    A subclass with annotations is a dataclass with these fields. A subclass without annotations takes its text as the
    argument.

    Attributes:
        message: The format of the text, with fields in braces; sequences are joined by commas. Empty if the argument is
            the text.
    """

    message: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Make a subclass with annotations a dataclass."""
        super().__init_subclass__()
        if get_annotations(cls):
            dataclass(eq=False, repr=False)(cls)

    def __str__(self) -> str:
        """Return the formatted message."""
        if not self.message:
            return super().__str__()
        return self.message.format(
            **{
                name: ", ".join(value) if isinstance(value, tuple | list) else value
                for name, value in vars(self).items()
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields, which may differ from the constructor's arguments."""
        return _restore, (type(self), self.args, vars(self))


def _restore(
    kind: type[TreeclaimError], arguments: tuple[Any, ...], fields: dict[str, Any]
) -> TreeclaimError:
    error: TreeclaimError = kind.__new__(kind, *arguments)
    vars(error).update(fields)
    return error


class NotFoundError(TreeclaimError):
    """The object named by the text does not exist, or a consumer has no allocations."""


class ConflictError(TreeclaimError):
    """A write contradicts the stored state; the text is the reason."""


class InvalidValueError(TreeclaimError):
    """A value of a call is invalid; the text names it and the reason."""


class ProviderNotFoundError(NotFoundError):
    """No provider has this uuid."""

    message = "No resource provider with uuid {uuid} found."
    uuid: str


class DuplicateProviderError(TreeclaimError):
    """Another provider has the uuid, the name or both."""

    uuid: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        """Return the contract's phrase with the duplicate values."""
        values = {"uuid": self.uuid, "name": self.name}
        conflicting_values = [
            f"{field}: {value}" for field, value in values.items() if value is not None
        ]
        return f"Conflicting resource provider {', '.join(conflicting_values)} already exists."


class InvalidParentError(InvalidValueError):
    """A parent is invalid; the text is the contract's phrase."""


class ProviderHasChildrenError(TreeclaimError):
    """A provider with children cannot be deleted."""

    message = "Unable to delete parent resource provider {uuid}: It has child resource providers."
    uuid: str


class ProviderInUseError(TreeclaimError):
    """A provider with allocations, or whose inventories others consume, cannot be deleted.

    Attributes:
        by: Provider and class of a consuming inventory (contract page 102, section 2); None for allocations.
    """

    message = "Unable to delete resource provider {uuid}: Resource provider has allocations."
    uuid: str
    by: tuple[str, str] | None = None


class ProviderGenerationConflictError(TreeclaimError):
    """The provider's generation differs from the request's, or changed during the write.

    Attributes:
        actual: The provider's generation; None if the provider does not exist.
        given: The request's generation.
    """

    message = (
        "resource provider generation conflict for provider {uuid}: "
        "actual: {actual}, given: {given}"
    )
    uuid: str
    actual: int | None
    given: int


class InventoryNotFoundError(NotFoundError):
    """The provider has no inventory of the class."""

    message = "No inventory of class {resource_class} for {provider_uuid}"
    provider_uuid: str
    resource_class: str


class InventoryExistsError(TreeclaimError):
    """The provider already has an inventory of the class."""

    message = "Inventory of class {resource_class} for {provider_uuid} already exists"
    provider_uuid: str
    resource_class: str


class InventoryInUseError(TreeclaimError):
    """Inventories with allocations, or that others consume, cannot be removed.

    Attributes:
        resource_classes: In order of their ids.
        used: Allocated units of the first class.
        by: Provider and class of a consuming inventory (contract page 102, section 2); None for allocations.
    """

    message = "Inventory for '{resource_classes}' on resource provider '{provider_uuid}' in use."
    provider_uuid: str
    resource_classes: Sequence[str]
    used: int
    by: tuple[str, str] | None = None


class CapacityTooSmallError(InvalidValueError):
    """The reserved units leave less capacity than the microversion allows."""

    resource_class: str
    provider_uuid: str
    zero_allowed: bool

    def __str__(self) -> str:
        """Return the contract's phrase for the microversion."""
        relation = "greater than" if self.zero_allowed else "greater than or equal to"
        return (
            f"Invalid inventory for '{self.resource_class}' on resource provider "
            f"'{self.provider_uuid}'. The reserved value is {relation} total."
        )


class ResourceClassNotFoundError(NotFoundError):
    """No resource class has this name."""

    message = "No such resource class {name}."
    name: str


class ResourceClassExistsError(ConflictError):
    """Another resource class has the name."""

    message = "Resource class {name} already exists."
    name: str


class ResourceClassInUseError(ConflictError):
    """A class with inventories cannot be deleted."""

    message = "Cannot delete resource class {name}. Class is in use in inventory."
    name: str


class StandardResourceClassError(InvalidValueError):
    """A standard class can be neither renamed nor deleted."""

    message = "Resource class {name} is a standard one."
    name: str


class TraitsNotFoundError(InvalidValueError):
    """Traits do not exist."""

    message = "No such trait(s): {names}."
    names: Sequence[str]


class PreferredTraitsNotFoundError(TraitsNotFoundError):
    """Preferred or avoided traits of a group do not exist."""


class ConsumerGenerationConflictError(TreeclaimError):
    """The consumer's generation differs from the request's; None stands for a new consumer."""

    consumer_uuid: str
    expected: int | None
    given: int | None

    def __str__(self) -> str:
        """Return the contract's phrase with both generations."""
        expected = "null" if self.expected is None else self.expected
        return f"consumer generation conflict - expected {expected} but got {self.given}"


class AllocationProviderNotFoundError(InvalidValueError):
    """A claim names a provider that does not exist."""

    message = "Allocation for resource provider '{uuid}' that does not exist."
    uuid: str


class InventoryMissingError(TreeclaimError):
    """A claim names classes of which the provider has no inventory."""

    message = "Inventory for '{resource_classes}' on resource provider '{provider_uuid}' invalid."
    provider_uuid: str
    resource_classes: Sequence[str]


class UnitConstraintError(TreeclaimError):
    """A claimed amount violates min_unit, max_unit or step_size of the inventory."""

    message = (
        "Unable to create allocation for '{resource_class}' on resource provider "
        "'{provider_uuid}'. The requested amount would violate inventory constraints."
    )
    provider_uuid: str
    resource_class: str
    requested: int
    inventory: Inventory


class CapacityExceededError(TreeclaimError):
    """A claim exceeds the capacity of an inventory.

    Attributes:
        requested: Units that all consumers of the write request together.
        free: Units that other consumers leave; may be negative.
        by: Provider and class of a consuming inventory (contract page 102, section 2); None for a claim of this one.
    """

    message = (
        "Unable to create allocation for '{resource_class}' on resource provider "
        "'{provider_uuid}'. The requested amount would exceed the capacity."
    )
    provider_uuid: str
    resource_class: str
    requested: int
    free: int
    by: tuple[str, str] | None = None


class ConcurrentChangeError(TreeclaimError):
    """Concurrent writes changed the same rows during every attempt.

    The text contains all phrases that clients match.
    """

    message = (
        "update conflict: Update conflict: Another thread concurrently updated the resource "
        "provider data; it was updated by another process. Please retry your update"
    )


class SearchGivenUpError(InvalidValueError):
    """A search exceeded the operator's time limit."""

    message = (
        "The search for allocation candidates was given up after {seconds:g} seconds: the "
        "question has too many combinations that nearly fit. Ask for fewer groups, or narrow "
        "them by required, member_of, in_tree or limit. ([treeclaim]/search_seconds)"
    )
    seconds: float


class RequestGivenUpError(TreeclaimError):
    """A request exceeded the time limit of writes; nothing was changed."""

    message = (
        "The request was not done after {seconds:g} seconds, and nothing was changed. Send less "
        "at once, or try again."
    )
    seconds: float


class StoreUnavailableError(TreeclaimError):
    """The database cannot be reached or does not answer; as far as known, nothing was changed.

    Attributes:
        cause: The database's error. It may contain hosts, users and statements, so clients must not see it.
    """

    message = "{text}"
    text: str = "The database cannot be used."
    cause: str = ""

    @property
    def for_operators(self) -> str:
        """Return the text and the cause."""
        return f"{self} ({self.cause})" if self.cause else str(self)


class OverloadedError(TreeclaimError):
    """Too many requests wait in this process; nothing was changed, and the client may retry."""

    message = "The {resource} is busy. Try again."
    resource: str


class ClientGoneError(TreeclaimError):
    """The client closed the connection before the answer."""

    message = "The client has closed the connection."


class SearchTooLargeError(InvalidValueError):
    """A search exceeded its memory limit."""

    message = (
        "The search for allocation candidates was given up at {megabytes} MB of memory: the "
        "question has too many combinations. Ask for fewer groups, or narrow them by "
        "required, member_of, in_tree or limit. ([treeclaim]/search_megabytes)"
    )
    megabytes: int


class SchemaRevisionError(TreeclaimError):
    """The schema revision of the database is not that of this program."""


class PolicyFileError(TreeclaimError):
    """A policy file cannot be parsed; the text names file and line."""
