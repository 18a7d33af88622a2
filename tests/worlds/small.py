# SPDX-License-Identifier: Apache-2.0
"""The form of a small world, and of its queries."""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import parse_qsl

from tests.reference.notation import candidate_of, world_of
from tests.reference.world import Group, Request

_OF_THE_ROOT = "root_"
_OF_A_GROUP = ("resources", "required", "member_of", "in_tree", "in_subtree")


@dataclass(frozen=True)
class Question:
    """A query, and the candidates that answer it.

    Attributes:
        query: As in a URL, with <name> for the uuid of a provider and {A} for that of an aggregate.
        answer: Each candidate as contract page 95 writes it; none where nothing satisfies it.
        why: The rule that the question shows.
    """

    query: str
    answer: tuple[str, ...]
    why: str

    @property
    def candidates(self):
        """The expected candidates, as the reference has them."""
        return {candidate_of(text) for text in self.answer}

    @property
    def request(self):
        return request_of(self.query)


@dataclass(frozen=True)
class SmallWorld:
    """A few providers with questions about them.

    Attributes:
        name: Name of the tests and of the picture.
        model: The providers as contract page 95 writes them.
        questions: At least one with candidates.
    """

    name: str
    model: str
    questions: tuple[Question, ...]

    @cached_property
    def world(self):
        """The providers, as the reference has them."""
        return world_of(self.model)


def request_of(query):
    """Read a query; of each parameter only the forms that the table uses."""
    parameters = parse_qsl(query)
    suffixes = sorted({_suffix(name, "resources") for name, _ in parameters} - {None})
    known = dict(parameters)
    isolated = set(suffixes) - {""} if known.get("group_policy") == "isolate" else set()
    lists = [value.split(",") for name, value in parameters if name == "same_subtree"]
    return Request(
        groups=tuple(_group(parameters, suffix) for suffix in suffixes),
        root=_group(_of_the_root(parameters), ""),
        same_subtree=tuple(
            (
                tuple(name for name in names if not name.startswith("!")),
                tuple(name[1:] for name in names if name.startswith("!")),
            )
            for names in lists
        ),
        isolated=frozenset(isolated),
        can_split=frozenset(_listed(known.get("can_split", ""))),
        split_policy=known.get("split_policy", "pack"),
    )


def _suffix(name, kind):
    """The suffix of a parameter of a kind, or None where it is of another kind."""
    result = name.removeprefix(kind)
    return (
        result
        if name.startswith(kind) and result in ("", *(f"_{letter}" for letter in "ABC"))
        else None
    )


def _of_the_root(parameters):
    return [
        (name.removeprefix(_OF_THE_ROOT), value)
        for name, value in parameters
        if name.startswith(_OF_THE_ROOT)
    ]


def _group(parameters, suffix):
    values = {
        kind: [value for name, value in parameters if _suffix(name, kind) == suffix]
        for kind in _OF_A_GROUP
    }
    required = [condition for value in values["required"] for condition in _conditions(value)]
    members = [condition for value in values["member_of"] for condition in _conditions(value)]
    amounts = [entry.split(":") for value in values["resources"] for entry in _listed(value)]
    return Group(
        suffix=suffix,
        resources={name: int(amount) for name, amount in amounts},
        required=tuple(names for names, wanted in required if wanted),
        forbidden=frozenset().union(*(names for names, wanted in required if not wanted)),
        member_of=tuple(names for names, wanted in members if wanted),
        not_member_of=frozenset().union(*(names for names, wanted in members if not wanted)),
        in_tree=tuple(name for value in values["in_tree"] for name in _names(value)),
        in_subtree=tuple(name for value in values["in_subtree"] for name in _names(value)),
    )


def _conditions(value):
    """Each set of names of which one is wanted, or none is; `in:` makes one set of all."""
    if value.removeprefix("!").startswith("in:"):
        yield frozenset(_names(value.removeprefix("!"))), not value.startswith("!")
        return
    for entry in _listed(value):
        yield frozenset(_names(entry.removeprefix("!"))), not entry.startswith("!")


def _names(value):
    return [entry.strip("<>{}") for entry in _listed(value.removeprefix("in:"))]


def _listed(value):
    return [word for word in value.split(",") if word]
