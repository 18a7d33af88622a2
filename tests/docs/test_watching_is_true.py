# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/watching.md run."""

import re

from tests.api.resources.extension.watchers import place_on
from tests.paths import ROOT

_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_python_examples_of_the_watching_page_run(tmp_path, capsys):
    examples = _PYTHON.findall((ROOT / "docs" / "watching.md").read_text())
    assert len(examples) == 2
    with place_on("sqlite", tmp_path) as place:
        place.add("host")
        for example in examples:
            exec(example, {"ENDPOINT": str(place.http.base_url)})
    assert capsys.readouterr().out.splitlines() == ["1 providers", "traits or classes changed"]
