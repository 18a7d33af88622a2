# SPDX-License-Identifier: Apache-2.0
"""How many items and names a schema admits, judged before anything in them is looked at.

A validator looks at every item of a list, and then says that there are too many. The bounds are those of
the schema itself (`maxItems`, `maxProperties`), at any depth.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from treeclaim.api.protocol.request.wording import Schema

_KEYWORDS: Mapping[type, str] = {list: "maxItems", dict: "maxProperties"}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bounds of a schema, and of those inside it.

    Attributes:
        most: By keyword.
        each: The bounds of the items of a list.
        named: The bounds of the members of an object, by name.
        others: The bounds of the other members of an object.
    """

    most: Mapping[str, int] = field(default_factory=dict)
    each: "Sizes | None" = None
    named: Mapping[str, "Sizes"] = field(default_factory=dict)
    others: "Sizes | None" = None

    @classmethod
    def of(cls, schema: Schema) -> "Sizes | None":
        """Return the bounds of a schema; None if it has none, and nothing inside it has."""
        # Of several forms that a value may have, at most one is a list in any of our schemas.
        forms = [schema, *schema.get("anyOf", ())]
        most = {
            keyword: form[keyword]
            for form in forms
            for keyword in _KEYWORDS.values()
            if keyword in form
        }
        items = [form["items"] for form in forms if "items" in form]
        members = {name: cls.of(inner) for name, inner in schema.get("properties", {}).items()}
        # Members that are not named have one form of value in any of our schemas.
        others = list(schema.get("patternProperties", {}).values())
        if isinstance(schema.get("additionalProperties"), dict):
            others.append(schema["additionalProperties"])
        bounds = cls(
            most,
            cls.of(items[0]) if items else None,
            {name: sizes for name, sizes in members.items() if sizes is not None},
            cls.of(others[0]) if others else None,
        )
        return None if bounds == cls() else bounds

    def excess(self, value: object, path: str = "") -> str | None:
        """Say what a value has too much of; None if nothing.

        Args:
            value: What was parsed; it may be of any form.
            path: Where it is.
        """
        keyword = _KEYWORDS.get(type(value))
        if keyword is None or not isinstance(value, list | dict):
            return None
        most = self.most.get(keyword)
        if most is not None and len(value) > most:
            return f"{len(value)} are more than {most} Failed validating {keyword!r} on instance{path}"
        for inner, part, step in self._parts(value):
            problem = inner.excess(part, f"{path}[{step!r}]")
            if problem is not None:
                return problem
        return None

    def _parts(
        self, value: "list[object] | dict[str, object]"
    ) -> Iterable[tuple["Sizes", object, object]]:
        if isinstance(value, dict):
            for name, inner in self.named.items():
                yield inner, value.get(name), name
            if self.others is not None:
                for name in value.keys() - self.named.keys():
                    yield self.others, value[name], name
        elif self.each is not None:
            for number, item in enumerate(value):
                yield self.each, item, number
