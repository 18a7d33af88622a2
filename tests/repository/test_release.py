# SPDX-License-Identifier: Apache-2.0
"""A release is built only from a committed tree with a changelog section."""

import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import nullcontext

import pytest

from tests.paths import ROOT
from tests.servers import command_environment
from tools.release import (
    EXTRAS,
    NotReadyError,
    build_wheels,
    locked,
    require_ready,
    section_of,
    take,
)
from treeclaim import __version__

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-22\n\n- A thing.\n\n## 1.1.0 - 2026-01-01\n"


PACKED = ("src", "requirements", "deploy/placement-names", "*.toml", "*.md", "LICENSE")


@pytest.fixture
def repository(git, tmp_path):
    """A repository that is ready for the release of 1.2.0."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    run_git(tmp_path, "init", "--quiet")
    run_git(tmp_path, "add", "CHANGELOG.md")
    run_git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example", "commit", "-qm", "All")
    return tmp_path


def run_git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def test_a_clean_tree_with_its_section_is_ready(repository):
    require_ready(repository, "1.2.0")


@pytest.mark.parametrize(
    ("version", "spoil", "message"),
    [
        ("1.3.0", lambda _: None, "no section"),
        ("1.2.0", lambda folder: (folder / "stray").touch(), "not committed"),
        ("1.2.0", lambda folder: run_git(folder, "tag", "v1.2.0"), "tagged already"),
    ],
)
def test_undescribed_uncommitted_or_tagged_version_is_not_released(
    repository, version, spoil, message
):
    spoil(repository)
    with pytest.raises(NotReadyError, match=message):
        require_ready(repository, version)


def test_release_notes_are_the_changelog_section():
    assert section_of(CHANGELOG, "1.2.0") == "- A thing."
    assert section_of(CHANGELOG, "1.2") is None


def test_changelog_describes_the_current_version():
    assert section_of((ROOT / "CHANGELOG.md").read_text(), __version__)


def test_wheels_cover_all_extras_except_dev():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {*EXTRAS, "dev"} == project["optional-dependencies"].keys()


def test_release_lock_has_the_packages_of_its_extras_with_hashes():
    entries = [entry for entry in re.split(r"^(?=\S)", locked(ROOT), flags=re.MULTILINE) if entry]
    names = {entry.partition("==")[0] for entry in entries}
    assert all("--hash=sha256:" in entry for entry in entries)
    runtime = (ROOT / "requirements" / "runtime.txt").read_text()
    direct = re.findall(r"^([\w.-]+)==[^;\n]*\\$", runtime, re.MULTILINE)
    assert set(direct) <= names
    assert names >= {"openstacksdk", "python-openstackclient", "opentelemetry-sdk", "certifi"}
    assert not names & {"pytest", "hypothesis", "mypy", "treeclaim-placement-names"}


def test_unlocked_package_stops_the_release(tmp_path):
    (tmp_path / "requirements").mkdir()
    text = (ROOT / "requirements" / "dev.txt").read_text()
    (tmp_path / "requirements" / "dev.txt").write_text(text.replace("\nfalcon==", "\nother=="))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with pytest.raises(NotReadyError, match="falcon"):
        locked(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
def test_package_with_wrong_hash_is_refused(tmp_path, is_right):
    (entry,) = re.findall(r"^os-resource-classes==(?:.*\\\n)*.*\n", locked(ROOT), re.MULTILINE)
    pins = tmp_path / "pins.txt"
    pins.write_text(entry if is_right else re.sub(r"sha256:\w+", "sha256:" + "0" * 64, entry))
    with nullcontext() if is_right else pytest.raises(subprocess.CalledProcessError):
        take(pins, tmp_path / "wheels")
    assert len(list(tmp_path.glob("wheels/*.whl"))) == is_right


ANSWER = """
import openstack, opentelemetry.sdk
from wsgiref.util import setup_testing_defaults
from placement.wsgi.api import application
request = {}
setup_testing_defaults(request)
print(b"".join(application(request, lambda *_: None)))
"""


def run(*command, environment=None):
    result = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    return result.stdout


@pytest.mark.slow
def test_release_installs_from_the_wheel_folder_only(history, tmp_path):
    source = tmp_path / "source"
    names = subprocess.run(
        ["git", "ls-files", *PACKED],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    build_wheels(source, tmp_path / "wheels")
    # Modules that are imported once need no compiled file, and pip need not be installed.
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "environment"))
    programs = tmp_path / "environment" / "bin"
    requirement = f"treeclaim[{','.join(EXTRAS)}]"
    offline = ("--quiet", "--no-index", "--no-compile", "--find-links", str(tmp_path / "wheels"))
    pip = (sys.executable, "-m", "pip", "--python", str(programs / "python"))
    # The client and the command line, the service as the page about replacing installs it, and then everything.
    run(*pip, "install", *offline, "treeclaim")
    assert "usage" in run(str(programs / "treeclaim"), "candidates", "--help")
    serve = [str(programs / "treeclaim"), "serve"]
    refused = subprocess.run(serve, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.endswith("pip install 'treeclaim[service]'\n")
    assert not list(tmp_path.glob("environment/lib/*/site-packages/numpy"))
    hashes = ("--require-hashes", "--requirement", str(tmp_path / "wheels" / "requirements.txt"))
    run(*pip, "install", *offline, *hashes)
    assert "treeclaim" in run(str(programs / "treeclaim"), "--version")
    run(*pip, "install", *offline, requirement)
    assert "treeclaim" in run(str(programs / "treeclaim"), "--version")
    assert "usage" in run(str(programs / "openstack"), "help", "treeclaim", "fit")
    environment = command_environment(tmp_path)
    run(str(programs / "placement-manage"), "db", "sync", environment=environment)
    run(str(programs / "placement-status"), "upgrade", "check", environment=environment)
    answer = run(str(programs / "python"), "-c", ANSWER, environment=environment)
    assert "max_version" in answer
