# SPDX-License-Identifier: Apache-2.0
"""Who looks for the tests of a folder of src finds them in the folder of the same name."""

from tests.paths import ROOT
from tools import mutants

SOURCES = ROOT / "src" / "treeclaim"
TESTS = ROOT / "tests"

CROSSCUTTING = {
    "bench": "the benchmark, which is not a part of the service",
    "blackbox": "Treeclaim beside openstack-placement, over HTTP",
    "conformance": "the contract, page by page, over HTTP",
    "deploy": "what is in the folder deploy",
    "docs": "what the documentation says",
    "faults": "kills, cut connections, full disks, other nodes",
    "keystone": "programs of OpenStack, against the service behind a real Keystone",
    "properties": "random worlds against the reference",
    "reference": "the formal definition of a candidate, by trying everything",
    "repository": "the repository's own rules",
    "store/schedules": "writes of the store in every order",
    "takeover": "databases that openstack-placement filled",
    "worlds": "small worlds with the answers that a person wrote down",
    "wsgi_servers": "other servers than the bundled one",
}
"""Folders of tests that stand across those of src, each with what it is about."""


ELSEWHERE = {
    "api/protocol/operations": "api/description/test_openapi.py",
    "client/loading": "client/test_load.py",
    "client/requests": "client/test_flavors.py",
    "forest/order/mixes": "properties/test_keep_is_what_its_page_says.py",
    "forest/planning/moves": "properties/test_moves_are_the_best_of_all_plans.py",
    "forest/question": "forest/solve/test_remembering.py",
    "forest/solve/partial": "forest/solve/test_worlds.py",
    "model/extension": "conformance/test_extension.py",
    "model/extension/batches": "api/resources/extension/test_batches.py",
    "replica/children": "replica/test_children.py",
    "replica/lanes": "replica/test_lanes.py",
    "server/connection": "server/test_hostile_clients.py",
    "server/http": "server/test_speaking_http.py",
    "server/sharing": "server/test_shared_memory.py",
    "store/database/dialects": "store/database/test_mariadb_settings.py",
    "store/database/failures": "store/database/test_outages.py",
    "store/operations/allocations": "store/operations/test_statements.py",
    "store/operations/batches": "api/resources/extension/test_batches.py",
    "store/operations/catalogue": "faults/test_locks.py",
    "store/operations/locks": "faults/test_locks.py",
    "store/operations/providers": "store/operations/test_statements.py",
    "store/schema/migrations": "store/schema/test_feed_migration.py",
    "store/schema/migrations/versions": "store/schema/test_feed_migration.py",
}
"""Folders of src without a folder of tests, each with the tests to begin with: what one of these does
is seen through another folder, as what a noun answers is over HTTP."""


def folders_of_src():
    """Every folder with a module in it, as a path below that of all sources."""
    files = (path for path in SOURCES.rglob("*.py") if path.name != "__init__.py")
    folders = {path.parent.relative_to(SOURCES) for path in files}
    return sorted(str(folder) for folder in folders if folder.parts)


def has_own_tests(folder):
    """Whether there are tests in the folder of the same name, or below it."""
    return any((TESTS / folder).rglob("test_*.py"))


def folders_of_tests():
    """Every folder with a file of Python in it, as a path below that of all tests."""
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    return sorted(folder for folder in folders if folder.parts)


def is_crosscutting(folder):
    """Whether a folder is, or is inside of, one that stands across."""
    around = [folder, *folder.parents]
    return any(str(path) in CROSSCUTTING for path in around)


def test_every_folder_of_tests_is_a_folder_of_src_or_said_to_stand_across():
    strays = [
        str(folder)
        for folder in folders_of_tests()
        if not is_crosscutting(folder) and not (SOURCES / folder).is_dir()
    ]
    assert strays == []


def test_every_folder_that_is_said_to_stand_across_exists():
    assert [name for name in CROSSCUTTING if not (TESTS / name).is_dir()] == []


def test_every_folder_of_src_has_its_tests_or_says_where_they_are():
    untested = [
        folder
        for folder in folders_of_src()
        if not has_own_tests(folder) and folder not in ELSEWHERE
    ]
    assert untested == []


def test_what_is_said_to_be_tested_elsewhere_is():
    for folder, tests in ELSEWHERE.items():
        assert folder in folders_of_src()
        assert not has_own_tests(folder), f"{folder} has tests of its own"
        assert (TESTS / tests).is_file()


def test_mutants_are_made_of_every_room():
    rooms = {path.name for path in SOURCES.iterdir() if list(path.rglob("*.py"))}
    modules = {path.name for path in SOURCES.glob("*.py") if path.name != "__init__.py"}
    assert rooms | modules == {room for room in mutants.ROOMS if "/" not in room}
    for folder in folders_of_src():
        assert mutants.tests_of(folder)
    named = {tests for row in mutants.ROOMS.values() for tests in row}
    assert [tests for tests in sorted(named) if not (ROOT / tests).exists()] == []
    assert [room for room in mutants.ROOMS if not (SOURCES / room).exists()] == []
