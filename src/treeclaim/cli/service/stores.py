# SPDX-License-Identifier: Apache-2.0
"""The configuration and the store that a command works with; every failure becomes a sentence."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import config
from treeclaim.cli.output import CommandError
from treeclaim.config import Configuration
from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.database.engine import describe_engine_error

_CONNECTION = "[placement_database]/connection"


@contextmanager
def opened_store(options: argparse.Namespace) -> Iterator[tuple[Store, Configuration]]:
    """Open the store of the configuration that a command's options name; yield both."""
    configuration = configuration_of(options)
    try:
        store = Store(configuration.database)
    except (SQLAlchemyError, ImportError, ValueError) as error:
        raise CommandError(f"{_CONNECTION}: {describe_engine_error(error)}") from error
    try:
        yield store, configuration
    except SchemaRevisionError as error:
        raise CommandError(str(error)) from error
    except StoreUnavailableError as error:
        raise CommandError(error.for_operators) from error
    except DBAPIError as error:
        raise CommandError(f"the database: {' '.join(str(error.orig).split())}") from error
    except (SQLAlchemyError, ImportError) as error:
        raise CommandError(f"{_CONNECTION}: {describe_engine_error(error)}") from error
    finally:
        store.close()


def configuration_of(options: argparse.Namespace) -> config.Configuration:
    """Load the configuration that a command's options name."""
    try:
        return config.load(config_files=options.config_files, config_dirs=options.config_dirs)
    except config.ConfigurationError as error:
        raise CommandError(*error.lines) from error
