# SPDX-License-Identifier: Apache-2.0
"""The mixes that orders and reports name, as the database has them now (contract page 101)."""

from collections.abc import Callable, Collection

import orjson

from treeclaim.api.protocol.errors import BAD_VALUE, bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.resources.candidates.parameters import request_of
from treeclaim.model.extension.planning import Mix, MixRequest, is_mix_name
from treeclaim.model.microversions import NEWEST
from treeclaim.model.names import quote_value
from treeclaim.model.query.errors import InvalidQueryError
from treeclaim.model.query.order import with_mixes
from treeclaim.model.request import CandidateRequest
from treeclaim.store.operations import mixes as store


class Mixes:
    """The mixes of one call: each that is named is read from the database, once."""

    def __init__(self, call: Call, look: Callable[[], None]) -> None:
        """Begin with none.

        Args:
            call: The call.
            look: Raises if its time is over.
        """
        self._store = call.services.store
        self._most_groups = call.services.options.max_request_groups
        self._look = look
        self._known: dict[str, tuple[str, Mix] | None] = {}

    def in_order_of(self, request: CandidateRequest) -> CandidateRequest:
        """Return a request that knows the mixes which its order names.

        Raises:
            InvalidQueryError: for an unknown mix, or a class that no request of it asks for.
            StoreUnavailableError: if the database does not answer.
        """
        names = () if request.order is None else request.order.mix_names
        return with_mixes(request, self.named(names)) if names else request

    def require(self, name: str, where: str) -> Mix:
        """Return a mix that is named at a place of the call.

        Raises:
            ApiError: 400 if there is none.
            StoreUnavailableError: if the database does not answer.
        """
        by_name = self.named((name,))
        if name not in by_name:
            raise bad_request(f"{where}: there is no mix {quote_value(name)!r}.", BAD_VALUE)
        return by_name[name]

    def named(self, names: Collection[str]) -> dict[str, Mix]:
        """Return those mixes of some names that exist.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if missing := sorted(set(names) - self._known.keys()):
            texts = self._store.read(store.load_texts, list(filter(is_mix_name, missing)))
            for name in missing:
                text = texts.get(name)
                self._known[name] = None if text is None else (text, self._mix(name, text))
        return {name: entry[1] for name in names if (entry := self._known[name]) is not None}

    @property
    def texts(self) -> list[str]:
        """Return what answers depend on: the mixes that were named, with all that is in them."""
        return [
            f"{name}={entry[0]}"
            for name, entry in sorted(self._known.items())
            if entry is not None
        ]

    def _mix(self, name: str, text: str) -> Mix:
        requests = {}
        for key, entry in orjson.loads(text)["requests"].items():
            self._look()
            try:
                # As when it was written, whoever asks.
                request = request_of(entry["query"], NEWEST, self._most_groups)
            except InvalidQueryError:
                # The operator now allows fewer groups: nobody can be placed by it any more.
                continue
            requests[key] = MixRequest(request, int(entry["weight"]))
        return Mix(name, requests)
