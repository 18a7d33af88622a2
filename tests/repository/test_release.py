# SPDX-License-Identifier: Apache-2.0
"""A release is built from what is committed and described, or not at all."""

import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.paths import ROOT
from tools.release import EXTRAS, NotReadyError, build_wheels, require_ready, section_of

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-22\n\n- A thing.\n\n## 1.1.0 - 2026-01-01\n"


@pytest.fixture
def repository(tmp_path):
    """A repository that is ready for the release of 1.2.0."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "CHANGELOG.md")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example", "commit", "-qm", "All")
    return tmp_path


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def test_a_clean_tree_with_its_section_is_ready(repository):
    require_ready(repository, "1.2.0")


def test_a_version_without_a_dated_section_is_not_released(repository):
    with pytest.raises(NotReadyError, match="no section"):
        require_ready(repository, "1.3.0")


def test_a_tree_with_changes_is_not_released(repository):
    (repository / "stray").touch()
    with pytest.raises(NotReadyError, match="not committed"):
        require_ready(repository, "1.2.0")


def test_a_version_is_released_once(repository):
    git(repository, "tag", "v1.2.0")
    with pytest.raises(NotReadyError, match="tagged already"):
        require_ready(repository, "1.2.0")


def test_the_notes_are_what_the_changelog_says_of_the_version():
    assert section_of(CHANGELOG, "1.2.0") == "- A thing."
    assert section_of(CHANGELOG, "1.2") is None


def test_the_changelog_of_this_repository_has_a_place_for_what_is_not_released():
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheels_are_for_all_extras_but_for_that_of_work_on_the_code():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {*EXTRAS, "dev"} == project["optional-dependencies"].keys()


def run(*command):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.mark.slow
def test_everything_is_installed_from_the_folder_of_wheels_alone(tmp_path):
    source = tmp_path / "source"
    names = subprocess.run(
        [
            "git",
            "ls-files",
            "src",
            "requirements",
            "deploy/placement-names",
            "*.toml",
            "*.md",
            "LICENSE",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    build_wheels(source, tmp_path / "wheels")
    run(sys.executable, "-m", "venv", str(tmp_path / "environment"))
    programs = tmp_path / "environment" / "bin"
    wanted = f"treeclaim[{','.join(EXTRAS)}]"
    offline = ("--quiet", "--no-index", "--find-links", str(tmp_path / "wheels"))
    run(str(programs / "python"), "-m", "pip", "install", *offline, wanted)
    assert "treeclaim" in run(str(programs / "treeclaim"), "--version")
    assert "usage" in run(str(programs / "openstack"), "help", "placement", "fit")
    imported = "import placement.wsgi, openstack, opentelemetry.sdk"
    run(str(programs / "python"), "-c", imported)
