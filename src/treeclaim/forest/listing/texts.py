# SPDX-License-Identifier: Apache-2.0
"""Providers with all their parts as JSON, cached until they change.

Dashboards request the same thousand hosts again and again, and few hosts change in between. Each
provider is therefore serialized once, in parts, and a page joins the requested parts. A text is
valid as long as the stamp of the provider's row in the Forest and the names stay the same.

Most hosts of a cloud are alike: equal inventories, traits and aggregates share one text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import orjson

from treeclaim.forest.listing.selection import copy_providers
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.texts import StampedTexts
from treeclaim.model.parts import (
    ATTRIBUTES,
    CONDITIONS,
    INVENTORIES,
    LINKED_PARTS,
    SHOWN_PARTS,
    TRAITS,
    ProviderPart,
)
from treeclaim.model.provider import AMOUNTS, Consumption, make_condition_documents

INCLUDABLE = (INVENTORIES.name, "usages", *(part.name for part in SHOWN_PARTS))
"""Parts that may be included, in the order in which they follow the provider's own members."""

_DOCUMENTS: Mapping[ProviderPart[Any], Callable[[Forest, int], Any]] = {
    TRAITS: Forest.traits,
    CONDITIONS: lambda forest, row: make_condition_documents(forest.conditions(row)),
}
"""Functions that return the document of a row, for parts whose document is not the links themselves."""

_MOST_BYTES = 64_000_000
"""Bytes of cached texts: those of some hundred thousand providers. A worker may take a gigabyte."""

_ROW_BYTES = 300
"""Bytes of a row besides its own texts: the tuple, two object headers, and its place in a dict."""

_INVENTORY = (
    b'{"total":%d,"reserved":%d,"min_unit":%d,"max_unit":%d,"step_size":%d,"allocation_ratio":%b,'
    b'"consumes":%b}'
)
_HEAD = (
    b'{"uuid":"%b","name":%b,"generation":%d,"parent_provider_uuid":%b,"root_provider_uuid":"%b"'
)
_NULL = b"null"


class _ClassInventories(NamedTuple):
    """The inventories of a class in some rows.

    Attributes:
        name: The name of the class as JSON.
        at: Positions of the rows that have an inventory.
        indices: Indices of these inventories in `columns`.
    """

    class_id: int
    name: bytes
    columns: ClassInventories
    at: Rows
    indices: Rows


class ListingTexts:
    """Texts of providers of one Forest, by handle; not thread-safe."""

    def __init__(self) -> None:
        self._names_given = 0
        self._texts = StampedTexts[tuple[bytes, ...]]()
        self._shared: dict[object, bytes] = {}
        self._shared_bytes = 0

    def _clear(self) -> None:
        self._texts.clear()
        self._shared.clear()
        self._shared_bytes = 0

    @property
    def nbytes(self) -> int:
        """Return the counted bytes of all texts."""
        return self._texts.nbytes + self._shared_bytes

    def stale(self, forest: Forest, rows: Rows) -> Rows:
        """Return the rows whose texts are missing or stale."""
        return rows[self._find(forest, rows)[1]]

    def _find(self, forest: Forest, rows: Rows) -> tuple[list[tuple[bytes, ...]], list[int]]:
        """Return the texts of rows, and the positions of stale ones; drop all texts if names have changed."""
        if forest.rename_count != self._names_given:
            self._clear()
            self._names_given = forest.rename_count
        return self._texts.find(forest.handle.values[rows], forest.stamp.values[rows])

    def joined(self, forest: Forest, rows: Rows, include: Iterable[str]) -> bytes:
        """Return the JSON of providers, joined by commas, with the included parts."""
        return b"},".join(self.each(forest, rows, include)) + b"}" if len(rows) else b""

    def each(self, forest: Forest, rows: Rows, include: Iterable[str]) -> list[bytes]:
        """Return the JSON of each provider without the closing brace."""
        # `prepare` may drop all texts to free memory, but not twice in a row.
        texts, stale = self._find(forest, rows)
        while stale:
            self.prepare(forest, rows[stale])
            texts, stale = self._find(forest, rows)
        return list(map(b"".join, map(_make_selector(include), texts)))

    def prepare(self, forest: Forest, rows: Rows) -> None:
        """Write the texts of rows."""
        if not len(rows):
            return
        if self.nbytes > _MOST_BYTES:
            self._clear()
        inventories = list(_find_inventories(forest, rows))
        new_texts = zip(
            _write_heads(forest, rows),
            self._write_inventories(forest, rows, inventories),
            _write_usages(len(rows), inventories),
            *(self._write_links(forest, rows, part) for part in LINKED_PARTS),
            self._write_attributes(forest, rows),
            self._write_links(forest, rows, CONDITIONS),
            strict=True,
        )
        handles, stamps = forest.handle.values[rows], forest.stamp.values[rows]
        for handle, stamp, texts in zip(handles.tolist(), stamps.tolist(), new_texts, strict=True):
            self._texts.keep(handle, stamp, texts, _ROW_BYTES + len(texts[0]) + len(texts[2]))

    def _write_inventories(
        self, forest: Forest, rows: Rows, inventories: Iterable[_ClassInventories]
    ) -> list[bytes]:
        """Write the inventories of rows, with their consumption (contract page 102, section 2)."""
        parts: list[list[bytes]] = [[] for _ in range(len(rows))]
        for of_class in inventories:
            class_id, columns, indices = of_class.class_id, of_class.columns, of_class.indices
            stocks = zip(
                *(getattr(columns, name).values[indices].tolist() for name in AMOUNTS), strict=True
            )
            patterns = columns.pattern.values[indices].tolist()
            for at, index, pattern, stock in zip(
                of_class.at.tolist(), indices.tolist(), patterns, stocks, strict=True
            ):
                consumes = forest.consumes(int(rows[at]), class_id, index) if pattern else ()
                parts[at].append(of_class.name + b":" + self._write_inventory(stock, consumes))
        return [self._intern(b',"inventories":{%b}' % b",".join(texts)) for texts in parts]

    def _write_inventory(self, stock: tuple[Any, ...], consumes: tuple[Consumption, ...]) -> bytes:
        """Write an inventory, given the values of `AMOUNTS` and its consumption; equal ones share a text."""
        text = self._shared.get((stock, consumes))
        if text is None:
            *amounts, ratio = stock
            documents = [entry.document for entry in consumes]
            text = _INVENTORY % (*amounts, orjson.dumps(ratio), orjson.dumps(documents))
            self._shared[stock, consumes] = text
            if consumes:
                # Consumption names providers, so most such texts are distinct.
                self._shared_bytes += len(text)
        return text

    def _write_links(self, forest: Forest, rows: Rows, part: ProviderPart[Any]) -> list[bytes]:
        documents = _DOCUMENTS.get(part)
        texts = []
        for row in rows.tolist():
            links = forest.links_of(part.name, row)
            key = part.name, links
            text = self._shared.get(key)
            if text is None:
                document = links if documents is None else documents(forest, row)
                text = b',"%b":%b' % (part.name.encode(), orjson.dumps(document))
                self._shared[key] = text
            texts.append(text)
        return texts

    def _write_attributes(self, forest: Forest, rows: Rows) -> list[bytes]:
        """Write the attributes of rows, whose bytes count, as they may be long and all distinct."""
        texts = []
        for attributes in forest.attributes_of_each(rows):
            text = b',"%b":%b' % (ATTRIBUTES.name.encode(), orjson.dumps(attributes))
            if text not in self._shared:
                self._shared_bytes += len(text)
            texts.append(self._intern(text))
        return texts

    def _intern(self, text: bytes) -> bytes:
        return self._shared.setdefault(text, text)


def _find_inventories(forest: Forest, rows: Rows) -> Iterator[_ClassInventories]:
    for class_id in sorted(forest.classes_of(rows)):
        columns = forest.classes[class_id]
        has, indices = columns.indices_of(rows)
        name = orjson.dumps(forest.catalogue.class_by_id[class_id].name)
        yield _ClassInventories(class_id, name, columns, np.flatnonzero(has), indices)


def _write_usages(count: int, inventories: Iterable[_ClassInventories]) -> list[bytes]:
    parts: list[list[bytes]] = [[] for _ in range(count)]
    for of_class in inventories:
        form = of_class.name + b":%d"
        used_units = of_class.columns.used.values[of_class.indices].tolist()
        for at, usage in zip(of_class.at.tolist(), used_units, strict=True):
            parts[at].append(form % usage)
    return [b',"usages":{%b}' % b",".join(texts) for texts in parts]


def _write_heads(forest: Forest, rows: Rows) -> list[bytes]:
    return [
        _HEAD
        % (
            uuid,
            orjson.dumps(name),
            generation,
            _NULL if is_root else b'"%b"' % parent,
            root,
        )
        for uuid, name, generation, parent, root, is_root in copy_providers(forest, rows).entries()
    ]


def _make_selector(include: Iterable[str]) -> Callable[[Sequence[bytes]], Sequence[bytes]]:
    included_names = set(include)
    parts = [at for at, name in enumerate(INCLUDABLE, 1) if name in included_names]
    if not parts:
        return itemgetter(slice(1))
    return itemgetter(0, *parts)
