# SPDX-License-Identifier: Apache-2.0
"""Typed errors for every refusal of a question or a write; each carries the facts.

The API turns each into a status, an error code and the contract's phrase; nothing below it
knows of HTTP. The message of each error is readable by itself.
"""

from collections.abc import Sequence

from treeclaim.model.inventory import Consumes, Inventory


class TreeclaimError(Exception):
    """Base of all errors that a caller can cause or must handle."""


class ProviderNotFoundError(TreeclaimError):
    """No provider has this uuid."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"No resource provider with uuid {uuid} found.")
        self.uuid = uuid


class DuplicateProviderError(TreeclaimError):
    """The uuid, the name or both belong to another provider."""

    def __init__(self, *, uuid: str | None = None, name: str | None = None) -> None:
        parts = [f"uuid: {uuid}"] if uuid is not None else []
        parts += [f"name: {name}"] if name is not None else []
        super().__init__(f"Conflicting resource provider {', '.join(parts)} already exists.")
        self.uuid = uuid
        self.name = name


class InvalidParentError(TreeclaimError):
    """A provider cannot have this parent; the message is the contract's phrase."""


class ProviderHasChildrenError(TreeclaimError):
    """A provider with children cannot be deleted."""

    def __init__(self, uuid: str) -> None:
        super().__init__(
            f"Unable to delete parent resource provider {uuid}: It has child resource providers."
        )
        self.uuid = uuid


class ProviderInUseError(TreeclaimError):
    """A provider with allocations cannot be deleted, nor one from which others consume.

    Attributes:
        by: Provider and class of an inventory that consumes from it (contract page 102, section 2);
            None where it has allocations.
    """

    def __init__(self, uuid: str, *, by: tuple[str, str] | None = None) -> None:
        super().__init__(
            f"Unable to delete resource provider {uuid}: Resource provider has allocations."
        )
        self.uuid = uuid
        self.by = by


class ProviderGenerationConflictError(TreeclaimError):
    """The provider's generation is not the one the client gave, or changed meanwhile.

    Attributes:
        actual: Its generation; None where there is no such provider.
    """

    def __init__(self, uuid: str, *, actual: int | None, given: int) -> None:
        super().__init__(
            f"resource provider generation conflict for provider {uuid}: "
            f"actual: {actual}, given: {given}"
        )
        self.uuid = uuid
        self.actual = actual
        self.given = given


class InventoryNotFoundError(TreeclaimError):
    """The provider has no inventory of the class."""

    def __init__(self, provider_uuid: str, resource_class: str) -> None:
        super().__init__(f"No inventory of class {resource_class} for {provider_uuid}")
        self.provider_uuid = provider_uuid
        self.resource_class = resource_class


class InventoryExistsError(TreeclaimError):
    """The provider already has an inventory of the class."""

    def __init__(self, provider_uuid: str, resource_class: str) -> None:
        super().__init__(f"Inventory of class {resource_class} for {provider_uuid} already exists")
        self.provider_uuid = provider_uuid
        self.resource_class = resource_class


class InventoryInUseError(TreeclaimError):
    """Inventories to be removed have allocations; the classes are in order of their ids.

    Attributes:
        used: Units allocated of the first class.
        by: Provider and class of an inventory that consumes from it (contract page 102, section 2);
            None where it is allocated itself.
    """

    def __init__(
        self,
        provider_uuid: str,
        resource_classes: Sequence[str],
        used: int,
        *,
        by: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(
            f"Inventory for '{', '.join(resource_classes)}' on resource provider "
            f"'{provider_uuid}' in use."
        )
        self.provider_uuid = provider_uuid
        self.resource_classes = tuple(resource_classes)
        self.used = used
        self.by = by


class ConsumptionError(TreeclaimError):
    """An inventory would consume what it must not (contract page 102, section 2)."""

    def __init__(self, what: str, consumes: Sequence[Consumes]) -> None:
        names = ", ".join(f"{entry.resource_class} of {entry.provider}" for entry in consumes)
        super().__init__(f"What an inventory consumes {what}: {names}.")


class CapacityTooSmallError(TreeclaimError):
    """The reserved part leaves less capacity than the microversion allows."""

    def __init__(self, resource_class: str, provider_uuid: str, *, zero_allowed: bool) -> None:
        relation = "greater than" if zero_allowed else "greater than or equal to"
        super().__init__(
            f"Invalid inventory for '{resource_class}' on resource provider "
            f"'{provider_uuid}'. The reserved value is {relation} total."
        )
        self.resource_class = resource_class
        self.provider_uuid = provider_uuid


class ResourceClassNotFoundError(TreeclaimError):
    """No resource class has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No such resource class {name}.")
        self.name = name


class ResourceClassExistsError(TreeclaimError):
    """The name belongs to another resource class."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Resource class {name} already exists.")
        self.name = name


class ResourceClassInUseError(TreeclaimError):
    """A class with inventories cannot be deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Cannot delete resource class {name}. Class is in use in inventory.")
        self.name = name


class StandardResourceClassError(TreeclaimError):
    """A standard class can be neither renamed nor deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Resource class {name} is a standard one.")
        self.name = name


class TraitsNotFoundError(TreeclaimError):
    """Some traits do not exist."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"No such trait(s): {', '.join(names)}.")
        self.names = tuple(names)


class PreferredTraitsNotFoundError(TraitsNotFoundError):
    """Some preferred or avoided traits of a group do not exist."""


class QueryError(TreeclaimError):
    """One of several queries of a call names what does not exist.

    Attributes:
        where: Where the query stands.
        kind: What is wrong with it.
    """

    def __init__(self, where: str, error: TreeclaimError) -> None:
        super().__init__(f"{where}: {error}")
        self.where = where
        self.text = str(error)
        self.kind = type(error)


class TraitInUseError(TreeclaimError):
    """A trait of some provider cannot be deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The trait {name} is in use by a resource provider.")
        self.name = name


class StandardTraitError(TreeclaimError):
    """A standard trait cannot be deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Cannot delete standard trait {name}.")
        self.name = name


class ConsumerGenerationConflictError(TreeclaimError):
    """The consumer's generation is not the one the client gave; None stands for "new"."""

    def __init__(self, consumer_uuid: str, *, expected: int | None, given: int | None) -> None:
        wanted = "null" if expected is None else expected
        super().__init__(f"consumer generation conflict - expected {wanted} but got {given}")
        self.consumer_uuid = consumer_uuid
        self.expected = expected
        self.given = given


class AllocationProviderNotFoundError(TreeclaimError):
    """A claim names a provider that does not exist."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"Allocation for resource provider '{uuid}' that does not exist.")
        self.uuid = uuid


class InventoryMissingError(TreeclaimError):
    """A claim names classes that the provider has no inventory of."""

    def __init__(self, provider_uuid: str, resource_classes: Sequence[str]) -> None:
        super().__init__(
            f"Inventory for '{', '.join(resource_classes)}' on resource provider "
            f"'{provider_uuid}' invalid."
        )
        self.provider_uuid = provider_uuid
        self.resource_classes = tuple(resource_classes)


class UnitConstraintError(TreeclaimError):
    """A claimed amount violates min_unit, max_unit or step_size."""

    def __init__(
        self, provider_uuid: str, resource_class: str, requested: int, inventory: Inventory
    ) -> None:
        super().__init__(
            f"Unable to create allocation for '{resource_class}' on resource provider "
            f"'{provider_uuid}'. The requested amount would violate inventory constraints."
        )
        self.provider_uuid = provider_uuid
        self.resource_class = resource_class
        self.requested = requested
        self.min_unit = inventory.min_unit
        self.max_unit = inventory.max_unit
        self.step_size = inventory.step_size


class CapacityExceededError(TreeclaimError):
    """A claim would use more than exists.

    Attributes:
        requested: What all consumers of the write request together.
        free: How many units of it others leave; may be negative.
        by: Provider and class of an inventory that consumes from it (contract page 102, section 2);
            None where it is claimed itself.
    """

    def __init__(
        self,
        provider_uuid: str,
        resource_class: str,
        *,
        requested: int,
        free: int,
        by: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(
            f"Unable to create allocation for '{resource_class}' on resource provider "
            f"'{provider_uuid}'. The requested amount would exceed the capacity."
        )
        self.provider_uuid = provider_uuid
        self.resource_class = resource_class
        self.requested = requested
        self.free = free
        self.by = by


class ConcurrentChangeError(TreeclaimError):
    """Others changed the same rows again and again; all attempts are used up.

    Clients match different phrases in different places; the text has them all.
    """

    def __init__(self) -> None:
        super().__init__(
            "update conflict: Update conflict: Another thread concurrently updated the resource "
            "provider data; it was updated by another process. Please retry your update"
        )


class AllocationsNotFoundError(TreeclaimError):
    """The consumer holds nothing."""

    def __init__(self, consumer_uuid: str) -> None:
        super().__init__(f"No allocations for consumer '{consumer_uuid}'")
        self.consumer_uuid = consumer_uuid


class ConditionedError(TreeclaimError):
    """A provider gives nothing new, as it, or one above it, has a condition (contract page 102)."""

    def __init__(self, provider_uuid: str, key: str, reason: str) -> None:
        because = f": {reason}" if reason else ""
        super().__init__(
            f"Resource provider {provider_uuid} gives nothing new because of its condition {key}"
            f"{because}."
        )
        self.provider_uuid = provider_uuid
        self.key = key
        self.reason = reason


class ConditionNotFoundError(TreeclaimError):
    """A provider has no condition with this key."""

    def __init__(self, provider_uuid: str, key: str) -> None:
        super().__init__(f"Resource provider {provider_uuid} has no condition {key}.")


class ConditionsFullError(TreeclaimError):
    """A provider has as many conditions as it may have."""

    def __init__(self, provider_uuid: str, most: int) -> None:
        super().__init__(f"Resource provider {provider_uuid} has {most} conditions already.")


class HoldRefusedError(TreeclaimError):
    """A hold that a write is to draw from does not exist, or does not let the consumer's project draw.

    Attributes:
        uuid: The hold.
        reason: `unknown` or `project`.
    """

    def __init__(self, uuid: str, reason: str) -> None:
        why = (
            "does not exist" if reason == "unknown" else "does not let the consumer's project draw"
        )
        super().__init__(f"The hold {uuid} {why}.")
        self.uuid = uuid
        self.reason = reason


class ConsumerExistsError(TreeclaimError):
    """A consumer that holds something cannot become a hold, nor a hold another consumer.

    Attributes:
        consumers: Which.
    """

    def __init__(self, consumers: Sequence[str]) -> None:
        super().__init__(
            f"Consumer {consumers[0]} exists: what holds something cannot become a hold, nor a hold "
            "another consumer."
        )
        self.consumers = consumers


class HoldMisusedError(TreeclaimError):
    """A write mistakes what a hold is; the message says how."""


class MixNotFoundError(TreeclaimError):
    """No mix has this name; it is of the form that names of mixes have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No mix named {name} found.")
        self.name = name


class MixesFullError(TreeclaimError):
    """There are as many mixes as there may be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"There are {most} mixes already, which is the most; delete one first.")


class SearchGivenUpError(TreeclaimError):
    """A search took longer than the operator allows."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The search for allocation candidates was given up after {seconds:g} seconds: the "
            "question has too many combinations that nearly fit. Ask for fewer groups, or narrow "
            "them by required, member_of, in_tree or limit. ([treeclaim]/search_seconds)"
        )
        self.seconds = seconds


class RequestGivenUpError(TreeclaimError):
    """The work for a request took longer than a write may; nothing was changed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The request was not done after {seconds:g} seconds, and nothing was changed. Send less "
            "at once, or try again."
        )
        self.seconds = seconds


class StoreUnavailableError(TreeclaimError):
    """The database cannot be reached or does not answer; as far as known, nothing was changed.

    Attributes:
        cause: What the database said, for the log and for operators. It may name hosts, users and
            statements, so it is not part of the text, which clients see.
    """

    def __init__(self, text: str = "The database cannot be used.", *, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause

    @property
    def for_operators(self) -> str:
        """Return the text with its cause."""
        return f"{self} ({self.cause})" if self.cause else str(self)


class OverloadedError(TreeclaimError):
    """Too many requests wait in this process; nothing was done, and the client may ask again."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The {what} is busy. Try again.")
        self.what = what


class ClientGoneError(TreeclaimError):
    """The client has hung up; nobody would receive the answer."""

    def __init__(self) -> None:
        super().__init__("The client has closed the connection.")


class SearchTooLargeError(TreeclaimError):
    """A search took more memory than one question may."""

    def __init__(self, megabytes: int) -> None:
        super().__init__(
            f"The search for allocation candidates was given up at {megabytes} MB of memory: the "
            "question has too many combinations. Ask for fewer groups, or narrow them by "
            "required, member_of, in_tree or limit. ([treeclaim]/search_megabytes)"
        )
        self.megabytes = megabytes


class SchemaRevisionError(TreeclaimError):
    """The database is at another schema revision than this program understands."""


class InvalidValueError(TreeclaimError):
    """A value that the database cannot hold, such as a text with a NUL character."""


class PolicyFileError(TreeclaimError):
    """A policy file cannot be understood; the message names file and line."""
