# SPDX-License-Identifier: Apache-2.0
"""Reads entries of a topology file with pydantic; an entry may stand for many providers."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from treeclaim.client.topology.document import DocumentFault, Items, Members, PlainText
from treeclaim.client.topology.mig import CARDS, Card
from treeclaim.client.topology.planned import PLACEHOLDERS, PlannedProvider
from treeclaim.model.names import aggregate_uuid, normalised_uuid, unknown_word
from treeclaim.model.parts import AGGREGATES, INVENTORIES, PARTS, TRAITS
from treeclaim.model.provider import (
    LONGEST_TEXT,
    MAXIMUM_ALLOCATION_RATIO,
    MAXIMUM_INTEGER,
    MOST_ATTRIBUTES,
    MOST_CONSUMED_UNITS,
    is_attribute_name,
    is_attribute_value,
)

_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,3})?")
_INTEGER = re.compile("-?(?:0|[1-9][0-9]{0,18})")


def _check_name(name: str) -> str:
    if any(match[0] in ("{", "}") for match in PLACEHOLDERS.finditer(name)):
        text = "only {n} (or {n:03}) and {parent} are filled in; a brace itself is written twice"
        raise ValueError(text)
    return name


def _check_custom(name: str) -> str:
    if not re.fullmatch("[A-Z0-9_]{1,255}", name) or name == "CUSTOM_":
        raise ValueError(f"{name[:40]!r} is not a name of 1 to 255 capital letters, digits and _")
    return name


def _check_attribute_name(name: str) -> str:
    if not is_attribute_name(name):
        raise ValueError(
            f"{name!r} is not an attribute: it takes small letters, digits and _, begins with "
            "a letter, and is not a word of expressions, such as and"
        )
    return name


def _read_attribute(value: Any) -> Any:
    if isinstance(value, PlainText) and _INTEGER.fullmatch(value):
        value = int(value)
    elif isinstance(value, PlainText):
        value = {"true": True, "false": False}.get(value.lower())
    if not is_attribute_value(value):
        raise ValueError(
            f"true, false, an integer or a text of 1 to {LONGEST_TEXT} characters is expected; "
            "in quotes, anything is a text"
        )
    return value


def _read_uuid(text: str) -> str:
    if (canonical_uuid := normalised_uuid(text)) is None:
        raise ValueError(f"{text!r} is not a uuid")
    return canonical_uuid


def _check_number(value: Any) -> Any:
    """Reject ambiguous numbers, such as 010 and 1_000, which YAML and Python read differently."""
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise ValueError(f"it must be a number, not {value[:40]!r}")
    return value


def _read_card(name: Any) -> Card:
    if name not in tuple(CARDS):
        raise ValueError(unknown_word(str(name), tuple(CARDS)))
    return CARDS[name]


_Text = Annotated[str, Field(min_length=1)]
_CustomName = Annotated[_Text, AfterValidator(_check_custom)]
_Number = BeforeValidator(_check_number)
_Count = Annotated[int, _Number, Field(ge=1, le=MAXIMUM_INTEGER)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class _Consumed(_Model):
    """Consumption of each unit of an inventory (contract page 102, section 2)."""

    provider: _Text
    resource_class: _Text
    amount: Annotated[int, _Number, Field(ge=1, le=MOST_CONSUMED_UNITS)]


class _Inventory(_Model):
    """Fields of an inventory; a plain number is its total."""

    total: _Count = 0
    reserved: Annotated[int, _Number, Field(ge=0, le=MAXIMUM_INTEGER)] = 0
    min_unit: _Count = 1
    max_unit: _Count = 1
    step_size: _Count = 1
    allocation_ratio: Annotated[float, _Number, Field(ge=0, le=MAXIMUM_ALLOCATION_RATIO)] = 1.0
    consumes: list[_Consumed] = []

    @model_validator(mode="before")
    @classmethod
    def _read_total(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"total": value}
        if not isinstance(value, dict) or not value:
            raise ValueError("a total or a mapping of fields is expected")
        return value

    @model_validator(mode="after")
    def _check_reserved(self) -> "_Inventory":
        if self.total and self.reserved > self.total:
            raise ValueError("reserved must not be greater than the total")
        return self


class _Members(_Model):
    """Members of an entry; EntryReader reads `children`, each alias once."""

    name: Annotated[_Text, AfterValidator(_check_name)]
    uuid: Annotated[_Text, AfterValidator(_read_uuid)] | None = None
    count: _Count = 1
    parent: _Text | None = None
    inventories: dict[_CustomName, _Inventory] = {}
    traits: list[_CustomName] = []
    aggregates: list[_Text] = []
    attributes: Annotated[
        dict[
            Annotated[str, AfterValidator(_check_attribute_name)],
            Annotated[Any, AfterValidator(_read_attribute)],
        ],
        Field(max_length=MOST_ATTRIBUTES),
    ] = {}
    mig: Annotated[Card, BeforeValidator(_read_card)] | None = None
    children: list[Any] = []


MEMBERS = tuple(_Members.model_fields)
"""Allowed members of an entry."""


class EntryReader:
    """Reads entries, and appends their faults to the problems."""

    def __init__(self, problems: list[DocumentFault]) -> None:
        self._problems = problems
        self._providers_by_key: dict[tuple[int, bool], PlannedProvider | None] = {}

    def read_entries(self, items: Items, *, is_nested: bool) -> list[PlannedProvider]:
        """Read a list of entries; omit entries without a valid name."""
        entries = []
        for item, line in zip(items, items.lines, strict=True):
            # Aliases of an entry are the same object, which is read only once.
            key = id(item), is_nested
            if not isinstance(item, Members):
                self._report(line, "a mapping is expected, with at least a name")
            elif key not in self._providers_by_key:
                self._providers_by_key[key] = self._read_entry(item, is_nested=is_nested)
            entries.append(self._providers_by_key.get(key))
        return [entry for entry in entries if entry is not None]

    def _read_entry(self, entry: Members, *, is_nested: bool) -> PlannedProvider | None:
        children = None
        if isinstance(entry.get("children"), Items):
            children = self.read_entries(entry["children"], is_nested=True)
        members = self._validate(entry)
        if members is None:
            return None
        if is_nested and "parent" in members.model_fields_set:
            text = "a nested provider must not name a parent"
            self._report(entry.lines["parent"], text)
        if members.count > 1 and members.uuid is not None:
            self._report(entry.lines["uuid"], "one uuid cannot be given to several providers")
        values = self._read_values(entry, members)
        if members.mig is not None:
            values[INVENTORIES.name] = {
                **members.mig.list_slices(),
                **values.get(INVENTORIES.name, {}),
            }
            children = [
                *(children or ()),
                *(
                    PlannedProvider(
                        f"{{parent}}_{end}",
                        Members(entry.lines["mig"]),
                        values={INVENTORIES.name: stock},
                    )
                    for end, stock in members.mig.list_positions()
                ),
            ]
        return PlannedProvider(
            members.name,
            entry,
            members.uuid or "",
            members.parent,
            values,
            children,
            members.count,
        )

    def _validate(self, entry: Members) -> _Members | None:
        """Validate an entry; report and omit its faulty members."""
        try:
            return _Members.model_validate(entry)
        except ValidationError as error:
            faults = error.errors(include_url=False)
        self._problems.extend(_make_fault(fault, entry) for fault in faults)
        faulty_members = {fault["loc"][0] for fault in faults}
        valid_members = {
            name: value for name, value in entry.items() if name not in faulty_members
        }
        return None if "name" in faulty_members else _Members.model_validate(valid_members)

    def _read_values(self, entry: Members, members: _Members) -> dict[str, Any]:
        """Return the values of the parts in the file; report repeated names."""
        values = members.model_dump(include={part.name for part in PARTS}, exclude_unset=True)
        for part in (TRAITS.name, AGGREGATES.name):
            if part in values:
                first_lines: dict[str, int] = {}
                for name, line in zip(values[part], entry[part].lines, strict=True):
                    if name in first_lines:
                        text = f"{name!r} is given twice; line {first_lines[name]} has it too"
                        self._report(line, text)
                    first_lines.setdefault(name, line)
                values[part] = frozenset(first_lines)
        if AGGREGATES.name in values:
            values[AGGREGATES.name] = frozenset(map(aggregate_uuid, values[AGGREGATES.name]))
        return values

    def _report(self, line: int, text: str) -> None:
        self._problems.append(DocumentFault(line, text))


def _make_fault(fault: Mapping[str, Any], entry: Members) -> DocumentFault:
    """Convert a fault of pydantic; find the line of its deepest member."""
    path = [step for step in fault["loc"] if step != "[key]"]
    line, place = entry.line, entry
    for step in path:
        if not isinstance(place, Members | Items) or (
            isinstance(place, Members) and step not in place
        ):
            break
        line, place = place.lines[step], place[step]
    words = fault["msg"].replace("Input should", "it must").replace("Field required", "is needed")
    if fault["type"] == "value_error":
        words = str(fault["ctx"]["error"])
    elif fault["type"] == "extra_forbidden":
        models: Mapping[int, type[BaseModel]] = {1: _Members, 3: _Inventory}
        member_fields = models.get(len(path), _Consumed).model_fields
        words = unknown_word(str(path.pop()), tuple(member_fields))
    elif fault["type"] in ("list_type", "dict_type") and fault["input"] is None:
        empty_text = "[]" if fault["type"] == "list_type" else "{}"
        words += f"; write {empty_text} to remove them all"
    where = ".".join(step for step in path if isinstance(step, str))
    return DocumentFault(line, f"{where}: {words}" if where else words)
