# SPDX-License-Identifier: Apache-2.0
"""Who looks for the tests of a folder of src finds them in the folder of the same name."""

from tests.paths import ROOT

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
