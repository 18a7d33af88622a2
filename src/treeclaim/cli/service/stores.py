# SPDX-License-Identifier: Apache-2.0
"""The configuration and the store that a command works with; every failure becomes a sentence.

The lines of the configuration files are read here too: oslo.config does not tell where an option is set.
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import config
from treeclaim.cli.output import CommandError
from treeclaim.config import CONFIG_DIR_VARIABLE, PROJECT, Configuration
from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.database.connecting.engine import database_words

_CONNECTION = "[placement_database]/connection"


@contextmanager
def opened_store(configuration: Configuration) -> Iterator[Store]:
    """Give the store of a configuration for a block.

    Raises:
        CommandError: if the URL is none of a database, or for what a use in the block fails with.
    """
    try:
        store = Store(configuration.database)
    except (SQLAlchemyError, ImportError, ValueError) as error:
        raise CommandError(f"{_CONNECTION}: {database_words(error)}") from error
    try:
        yield store
    except SchemaRevisionError as error:
        raise CommandError(str(error)) from error
    except StoreUnavailableError as error:
        raise CommandError(error.for_operators) from error
    except DBAPIError as error:
        raise CommandError(f"the database: {' '.join(str(error.orig).split())}") from error
    except (SQLAlchemyError, ImportError) as error:
        raise CommandError(f"{_CONNECTION}: {database_words(error)}") from error
    finally:
        store.close()


def configuration_of(options: argparse.Namespace) -> config.Configuration:
    """Load the configuration that a command's options name."""
    try:
        return config.load(config_files=options.config_file, config_dirs=options.config_dir)
    except config.ConfigurationError as error:
        raise CommandError(*error.lines) from error


DEFAULT = "DEFAULT"


@dataclass(frozen=True, slots=True)
class SettingLine:
    """A line of a file.

    Attributes:
        file: Which.
        number: Counted from 1.
        group: Section that it is in.
        name: The option's name, with underscores; None for the beginning of a section.
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
