# SPDX-License-Identifier: Apache-2.0
"""`order_by`, `preferred` and `root_in_tree` (contract pages 98, 101 and 102, sections 2, 3, 1).

Every function raises ApiError, a 400 that names the parameter, for what it cannot read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from treeclaim.api.protocol import errors
from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.api.protocol.texts import quote_value
from treeclaim.model.attributes import is_attribute_name
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.extension.order import MOST_CANDIDATES, Order, Preference, Term, TermName
from treeclaim.model.names import normalised_uuid
from treeclaim.model.query_parameters import Repetition, parameter_named
from treeclaim.model.request import NO_GROUP, CandidateRequest

_MOST_TERMS = 16
_MOST_WEIGHT = 1_000
_WEIGHT = re.compile(r"[1-9][0-9]{0,3}")
_SEED = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MIX_AND_CLASS = 2
"""The number of arguments of `keep`."""

Values = Mapping[str, list[str]]
"""All values of each parameter, in order."""

_OF_CLASSES = frozenset(
    {TermName.PACK, TermName.PACK_PROVIDERS, TermName.SPREAD, TermName.SPREAD_PROVIDERS}
)


def require_once(values: Values) -> None:
    """Refuse parameters that are given twice."""
    for name, value_texts in values.items():
        parameter = parameter_named(name) if len(value_texts) > 1 else None
        if parameter is not None and parameter.repeated is Repetition.REFUSED:
            raise bad_request(
                f"Query parameter {quote_value(name)!r} may be specified only once.",
                errors.DUPLICATE_KEY,
            )


def root_in_tree(values: Values) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read `root_in_tree`: uuids whose trees are wanted, and uuids whose trees are not."""
    if "root_in_tree" not in values:
        return (), ()
    value = values["root_in_tree"][0]
    text = value.strip()
    uuid_list = text.removeprefix("!")
    uuids = [uuid_list]
    if uuid_list.startswith("in:"):
        uuids = [uuid.strip() for uuid in uuid_list.removeprefix("in:").split(",")]
    if not all(map(normalised_uuid, uuids)):
        raise bad_parameter(
            "root_in_tree", f"expected a uuid, or in:uuid,uuid. Got: {quote_value(value)}"
        )
    return ((), tuple(uuids)) if text.startswith("!") else (tuple(uuids), ())


def preferences(name: str, suffix: str, value: str) -> tuple[Preference, ...]:
    """Read `preferred`, of the group with a suffix."""
    listed = []
    for item in value.split(","):
        text, weight = _split_weight(name, item)
        trait = text.removeprefix("!")
        if not trait or trait.startswith("!"):
            raise bad_parameter(
                name, f"expected TRAIT[*WEIGHT],… or !TRAIT. Got: {quote_value(value)}"
            )
        listed.append(Preference(suffix, trait, not text.startswith("!"), weight))
    return tuple(listed)


def order(
    values: Values,
    groups: Mapping[str, Mapping[str, int]],
    preferred: Sequence[Preference],
    limit: int | None,
) -> Order | None:
    """Read `order_by`, given what each group asks for, and what they prefer.

    The mixes that it names are not known here: see `with_mixes`.
    """
    terms = []
    if "order_by" in values:
        items = values["order_by"][0].split(",")
        if len(items) > _MOST_TERMS:
            raise bad_parameter("order_by", f"{len(items)} terms are more than {_MOST_TERMS}.")
        terms = [_term(item, groups) for item in items]
    is_named = any(term.name is TermName.PREFERRED for term in terms)
    if is_named and not preferred:
        raise bad_parameter("order_by", "the term 'preferred' needs the parameter of that name.")
    if preferred and not is_named:
        terms.append(Term(TermName.PREFERRED))
    if not terms:
        return None
    if limit is not None and limit > MOST_CANDIDATES:
        raise bad_parameter(
            "limit", f"an ordered search returns at most {MOST_CANDIDATES} candidates."
        )
    return Order(tuple(terms), tuple(preferred))


def _split_weight(name: str, item: str) -> tuple[str, int]:
    """Split an item from its weight."""
    text, star, weight = item.strip().partition("*")
    if not star:
        return text, 1
    if not _WEIGHT.fullmatch(weight) or int(weight) > _MOST_WEIGHT:
        raise bad_parameter(
            name, f"a weight is a number from 1 to {_MOST_WEIGHT}. Got: {quote_value(item)}"
        )
    return text, int(weight)


def with_mixes(request: CandidateRequest, mixes: Mapping[str, Mix]) -> CandidateRequest:
    """Return a request that knows the mixes which its order names.

    Args:
        request: What was asked.
        mixes: By name; at least those of them that exist.

    Raises:
        ApiError: 400, for an unknown mix, or a class that no request of it asks for.
    """
    order = request.order
    if order is None or not order.mix_names:
        return request
    for term in order.terms:
        if term.name is TermName.KEEP:
            name, resource_class = term.arguments
            if name not in mixes:
                raise bad_parameter("order_by", f"there is no mix {quote_value(name)!r}.")
            if not mixes[name].asks_for(resource_class):
                raise bad_parameter(
                    "order_by",
                    f"no request of the mix {quote_value(name)!r} requests {quote_value(resource_class)!r}.",
                )
    named_mixes = tuple(mixes[name] for name in sorted(order.mix_names))
    return replace(request, order=replace(order, mixes=named_mixes))


def _term(item: str, groups: Mapping[str, Mapping[str, int]]) -> Term:
    text, weight = _split_weight("order_by", item)
    term_text, *arguments = text.split(":")
    name = TermName(term_text) if term_text in list(TermName) else None
    if name is None:
        raise bad_parameter("order_by", f"there is no term {quote_value(term_text)!r}.")
    is_of_attribute = name in (TermName.MOST, TermName.LEAST)
    problem = (
        _problem_of_attribute(arguments, groups)
        if is_of_attribute
        else _problem(name, arguments, groups)
    )
    if problem is not None:
        raise bad_parameter("order_by", f"{problem} Got: {quote_value(item)}")
    return Term(name, tuple(arguments), weight)


def _problem(
    name: TermName, arguments: Sequence[str], groups: Mapping[str, Mapping[str, int]]
) -> str | None:
    """Say what is wrong with the arguments of a term."""
    if name in _OF_CLASSES:
        requested = {resource_class for group in groups.values() for resource_class in group}
        strange = [name for name in arguments if name not in requested]
        return f"{quote_value(strange[0])!r} is not requested." if strange else None
    if name in (TermName.NEAR, TermName.FAR):
        strange = [name for name in arguments if name == NO_GROUP or name not in groups]
        if strange:
            return f"no suffixed group has the suffix {quote_value(strange[0])!r}."
        is_one = len(set(arguments)) < 2  # noqa: PLR2004 - of one thing nothing is near
        return "two or more different suffixes are needed." if is_one else None
    if name is TermName.SHUFFLE:
        is_seed = len(arguments) == 1 and _SEED.fullmatch(arguments[0])
        return None if is_seed else "one seed of [A-Za-z0-9_.-]{1,64} is needed."
    if name is TermName.KEEP:
        is_pair = len(arguments) == _MIX_AND_CLASS and all(arguments)
        return None if is_pair else "the name of a mix and a class are needed."
    return "it takes no arguments." if arguments else None


def _problem_of_attribute(
    arguments: Sequence[str], groups: Mapping[str, Mapping[str, int]]
) -> str | None:
    """Say what is wrong with the arguments of a term about an attribute."""
    name, *suffixes = arguments or [""]
    if not is_attribute_name(name) or len(suffixes) != 1:
        return "the name of an attribute and a suffix are needed."
    if suffixes[0] == NO_GROUP or suffixes[0] not in groups:
        return f"no suffixed group has the suffix {quote_value(suffixes[0])!r}."
    return None


def bad_parameter(name: str, problem: str) -> ApiError:
    """Return the 400 for a parameter of the extension."""
    return bad_request(
        f"Invalid query string parameters: '{name}' cannot be used like this: {problem}",
        errors.BAD_VALUE,
    )
