# SPDX-License-Identifier: Apache-2.0
"""The lines of configuration files: where an option is set, which oslo.config does not tell."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from treeclaim.config import CONFIG_DIR_VARIABLE, PROJECT

DEFAULT = "DEFAULT"


@dataclass(frozen=True, slots=True)
class SettingLine:
    """A line of a file.

    Attributes:
        file: Which.
        number: Counted from 1.
        group: Section that it is in.
        name: Of the option, with underscores; None for the beginning of a section.
    """

    file: str
    number: int
    group: str
    name: str | None

    @property
    def where(self) -> str:
        """Return the place as editors and compilers write it."""
        return f"{self.file}:{self.number}"


def files_read(config_files: Sequence[str], config_dirs: Iterable[str]) -> list[str]:
    """Return the files that a service with these options reads, as far as they exist."""
    files = list(config_files)
    if not files and (directory := os.environ.get(CONFIG_DIR_VARIABLE)):
        files = [str(Path(directory) / f"{PROJECT}.conf")]
    elif not files:
        files = [str(path) for path in cfg.find_config_files(project=PROJECT)]
    for directory in config_dirs:
        files += sorted(str(path) for path in Path(directory).glob("*.conf"))
    return [path for path in files if Path(path).is_file()]


def lines_of(files: Iterable[str]) -> list[SettingLine]:
    """Return all sections and settings of files; what cannot be read has none."""
    return [line for file in files for line in _lines(file)]


def _lines(file: str) -> Iterator[SettingLine]:
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    group = DEFAULT
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            group = line.strip().strip("[]")
            yield SettingLine(file, number, group, None)
        elif line and not line.startswith((" ", "\t", "#", ";")):
            name = line.partition("=")[0].partition(":")[0].strip()
            yield SettingLine(file, number, group, name.replace("-", "_"))
