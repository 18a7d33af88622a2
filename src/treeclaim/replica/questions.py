# SPDX-License-Identifier: Apache-2.0
"""The questions that can take long."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from treeclaim.forest.answer.body import Answer
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explained
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.microversions import Version
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions
from treeclaim.replica.asking import NO_HOLDS, HeldAsked

_FEW_GROUPS = 32
"""Request groups up to which a search is tried in the worker itself. Flavors with devices have a
dozen; with very many, single steps of a search may be long, between which nothing looks at the
clock."""

_FEW_LISTS = 32
"""Lists of `same_subtree` up to which the same holds: to plan with 500 takes ten milliseconds."""

_FEW_PARTS = 512
"""Classes, sets of traits and sets of aggregates of all groups, as well: a dozen for each of some groups."""

_DIGEST_BYTES = 16
"""Bytes of the key of a question: two that differ do not meet by chance, and it takes no memory."""


def key_of(kind: str, version: Version, *parts: str) -> bytes:
    """Return a short key of a question, whatever its length.

    Args:
        kind: What is asked.
        version: At which it is answered; the extension's counts, too.
        parts: All else that the answer depends on.
    """
    at = f"{version.minor} {version.is_extended}"
    text = "\0".join((kind, at, *parts)).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def are_hard(requests: Iterable[CandidateRequest]) -> bool:
    """Tell whether one of some searches is not even tried in the worker itself."""
    return any(map(_is_hard, requests))


def _is_hard(request: CandidateRequest) -> bool:
    if request.can_split or len(request.groups) > _FEW_GROUPS:
        return True
    parts = sum(
        [
            len(group.resources)
            + len(group.conditions.required)
            + len(group.conditions.member_of)
            + len(group.conditions.where)
            for group in request.groups
        ]
    )
    lists = len(request.same_subtree) + len(request.values)
    return lists > _FEW_LISTS or parts > _FEW_PARTS


class OnePiece:
    """An answer in the making that is written in one piece, and has no candidates to count."""

    def __init__(self, written: Callable[[], bytes]) -> None:
        """Take what works the whole answer out."""
        self.candidates = 0
        self._written = written

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the body."""
        yield self._written()


@dataclass(frozen=True, slots=True)
class CandidateQuestion:
    """Which combinations of providers satisfy a request (contract page 90)?

    Attributes:
        request: What is asked.
        options: What the operator configured.
        form: How the answer is written.
        key: See `key_of`; None to remember nothing of it.
    """

    request: CandidateRequest
    options: SearchOptions
    form: BodyForm
    key: bytes | None = None

    @property
    def is_repeatable(self) -> bool:
        """Tell whether the answer is the same as long as nothing changes."""
        return not self.options.randomize and not self.request.from_holds

    @property
    def holds(self) -> HeldAsked:
        """Return what it asks about holds. They change without a change of the Forest."""
        named = self.request.from_holds
        return HeldAsked(frozenset(named)) if named else NO_HOLDS

    @property
    def is_hard(self) -> bool:
        """Tell whether to skip the attempt in the worker itself."""
        return _is_hard(self.request)

    def begin(self, forest: Forest, budget: Budget) -> Answer:
        """Begin the search."""
        return search(forest, self.request, self.options, self.form, budget)


@dataclass(frozen=True, slots=True)
class ExplainQuestion:
    """Why does a request have the candidates that it has (contract page 97, section 3)?

    Attributes:
        request: What is to be explained.
        focus: Which trees one by one.
        key: See `key_of`; None to remember nothing of it.
        shows_held: Whether it tells what holds have.
    """

    request: CandidateRequest
    focus: Focus
    key: bytes | None = None
    shows_held: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Tell whether the answer is the same as long as nothing changes."""
        return not self.holds

    @property
    def holds(self) -> HeldAsked:
        """Return what it asks about holds."""
        return HeldAsked.of((self.request,), everywhere=self.shows_held)

    @property
    def is_hard(self) -> bool:
        """Tell that it is not even tried in the worker itself: it takes many searches."""
        return True

    def begin(self, forest: Forest, budget: Budget) -> OnePiece:
        """Look whether the tree in focus exists.

        Raises:
            ProviderNotFoundError: if it does not.
        """
        if self.focus.tree is not None and forest.row_of(self.focus.tree) is None:
            raise ProviderNotFoundError(self.focus.tree)
        return OnePiece(lambda: orjson.dumps(explained(forest, self.request, self.focus, budget)))
