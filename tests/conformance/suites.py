# SPDX-License-Identifier: Apache-2.0
"""The form of the conformance suites.

A suite is a gabbi file. Beside `tests` it may have these keys:

`world`
    Requests that fill an empty service.
`rules`
    Requests by the rule that they prove. Each rule begins with a new service that has only the world.
`questions`
    The same for requests that change nothing; all of them share one world.
`databases: [sqlite]`
    The rules do not depend on the database, and run on one.
`options`
    Options of the service, by "group.option".
`policy`
    The policy file of the service: checks by rule.
`users`
    Passwords by user of the file for HTTP Basic.
`prefix`
    The path prefix of the service.
`page`
    The number of the contract page. UUIDs are derived from it, and some responses are ordered by them.

A rule may change rows beside the service: `SQL: [statement, ...]` instead of a request.

Long lists are written as `!list [number, member]` and `!mapping [number, [name, value]]`; in each member or pair,
NUMBER stands for its number, from 1, and UUID for a new UUID.

Without `defaults`, an administrator sends and accepts JSON: at the extension in a suite with a world, else at
`placement latest`. `headers` are added to those, or replace them.

`<name>` stands for the UUID of a name, anywhere in a suite that has a world; in capitals, for that UUID in
capitals.
"""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import yaml

from tests.conformance import services
from tests.conformance.services import ANEW, BY_HAND

_ON_SQLITE_ALONE: set[str] = set()
_NAME = r"<([\w -]+)>"
_JSON = "application/json"
_HEADERS = {"x-auth-token": "admin", "accept": _JSON, "content-type": _JSON}


class _Loader(yaml.CSafeLoader):
    """The loader in C: that in Python takes seconds for all suites."""


def _list(loader: Any, node: Any) -> list[Any]:
    count, member = loader.construct_sequence(node, deep=True)
    text = json.dumps(member)
    return [
        json.loads(text.replace("NUMBER", str(number)).replace("UUID", str(uuid.UUID(int=number))))
        for number in range(1, count + 1)
    ]


_Loader.add_constructor("!list", _list)
_Loader.add_constructor("!mapping", lambda loader, node: dict(_list(loader, node)))


def load(yaml_file: str, **_: Any) -> dict[str, Any]:
    """Read a suite, and turn its rules and questions into tests."""
    suite = yaml.load(Path(yaml_file).read_text(), Loader=_Loader)
    if has_world := "world" in suite:
        # After the long lists have been made: their members may have names of their own.
        namespace = uuid.UUID(int=suite.pop("page", 97))
        text = json.dumps(suite, ensure_ascii=False)
        suite = json.loads(re.sub(_NAME, lambda name: _uuid_of(name[1], namespace), text))
    if suite.pop("databases", None) == ["sqlite"]:
        _ON_SQLITE_ALONE.add(Path(yaml_file).stem)
    version = "placement 1.39, treeclaim 1.0" if has_world else "placement latest"
    headers = _HEADERS | {"openstack-api-version": version} | suite.pop("headers", {})
    suite.setdefault("defaults", {"request_headers": headers})
    _configure_fixture(suite, Path(yaml_file).stem)
    if not has_world:
        return suite
    world, rules, questions = (suite.pop(key, {}) for key in ("world", "rules", "questions"))
    empty = _beside_the_api(ANEW)
    sections = [("the world", world)] if questions else []
    sections += questions.items()
    sections += [(rule, [empty, *world, *requests]) for rule, requests in rules.items()]
    suite["tests"] = [
        {"name": f"{sentence}, {number}", **_request(request)}
        for sentence, requests in sections
        for number, request in enumerate(requests, 1)
    ]
    return suite


def _beside_the_api(path: str, **request: Any) -> dict[str, Any]:
    """Return a request that the application does not see."""
    return {"POST": path, "status": 204, "response_promises": {"kept": False}, **request}


def _request(entry: dict[str, Any]) -> dict[str, Any]:
    return _beside_the_api(BY_HAND, data=entry["SQL"]) if "SQL" in entry else entry


def _configure_fixture(suite: dict[str, Any], name: str) -> None:
    """Give a suite a fixture of its own, with its settings."""
    names = ("options", "policy", "users", "prefix")
    settings = {key: suite.pop(key) for key in names if key in suite}
    fixture = f"FreshService_{name}"
    setattr(services, fixture, type(fixture, (services.FreshService,), settings))
    suite["fixtures"] = [fixture]


def is_for_sqlite_alone(suite: Any) -> bool:
    """Whether the rules of a suite do not depend on the database."""
    return next(iter(suite)).test_base_name.removeprefix("conformance_") in _ON_SQLITE_ALONE


def _uuid_of(name: str, namespace: uuid.UUID) -> str:
    text = str(uuid.uuid5(namespace, name.lower()))
    return text.upper() if name.isupper() else text
