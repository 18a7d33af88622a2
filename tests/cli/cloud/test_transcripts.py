# SPDX-License-Identifier: Apache-2.0
"""Commands print what transcripts show: an operator's sessions.

`$` begins a command line, `!` a line on standard error, `=` an exit status other than 0. Uuids are numbered. With
TREECLAIM_RECORD=1 the transcripts are written anew: read the difference before you keep it.
"""

import os
import re
import shlex

import pytest

from tests.cli.processes import call
from tests.cli.services import run_service
from tests.paths import ROOT

FOLDER = ROOT / "tests" / "cli" / "cloud" / "transcripts"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def run_session(environment, command_lines):
    """Run command lines; return the transcript."""
    numbers = {}
    uuids = {}

    def number(match):
        label = f"#{numbers.setdefault(match[0], len(numbers) + 1)}"
        uuids[label] = match[0]
        return label.ljust(36, "-")

    transcript = []
    for line in command_lines:
        # A command may name a uuid that was printed before by its number.
        spelled_out = re.sub(r"#\d+", lambda match: uuids[match[0]], line)
        result = call(environment, *shlex.split(spelled_out))
        transcript.append(f"$ {line}")
        transcript += [UUID.sub(number, text).rstrip() for text in result.stdout.splitlines()]
        transcript += [f"! {UUID.sub(number, text)}" for text in result.stderr.splitlines()]
        transcript += [f"= {result.returncode}"] if result.returncode else []
    return "\n".join(transcript) + "\n"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_output_matches_the_transcript(tmp_path, monkeypatch, name):
    monkeypatch.chdir(ROOT)
    file = FOLDER / f"{name}.txt"
    expected = file.read_text()
    lines = [line[2:] for line in expected.splitlines() if line.startswith("$ ")]
    with run_service(tmp_path) as environment:
        printed = run_session(environment, lines)
    if os.environ.get("TREECLAIM_RECORD"):
        file.write_text(printed)
    assert printed == expected
