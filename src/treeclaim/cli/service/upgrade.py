# SPDX-License-Identifier: Apache-2.0
"""`treeclaim upgrade check`: is anything to be done first? (contract page 05, section 4.2)."""

import argparse

from oslo_config import cfg
from oslo_upgradecheck import common_checks
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from treeclaim.cli.output import CommandError
from treeclaim.cli.service.stores import opened_store
from treeclaim.store import Store
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.schema import revisions as schema
from treeclaim.store.takeover.data_migrations import PROVIDERS_WITHOUT_ROOT, count_rows

_REMEDY = 'Run the "placement-manage db online_data_migrations" command.'


def check(options: argparse.Namespace) -> int:
    """Run the checks; return the worst of their codes."""
    try:
        with opened_store(options) as (store, configuration):
            _require_tables(store)
            return int(_Checks(store, configuration.options).check())
    except (BrokenPipeError, CommandError):
        raise
    except Exception as error:
        raise CommandError(str(error)) from error


def _require_tables(store: Store) -> None:
    with store.engine.connect() as connection:
        if schema.version(connection) is None:
            raise CommandError("the database is empty; 'treeclaim db sync' makes its tables")


class _Checks(UpgradeCommands):
    """The checks with their names, which tools expect."""

    def __init__(self, store: Store, options: cfg.ConfigOpts) -> None:
        self._store = store
        self._upgrade_checks = (
            ("Missing Root Provider IDs", _Checks._roots),
            ("Incomplete Consumers", _Checks._consumers),
            (
                "Policy File JSON to YAML Migration",
                (common_checks.check_policy_json, {"conf": options}),
            ),
        )

    def _roots(self) -> Result:
        if not self._store.read(count_rows, PROVIDERS_WITHOUT_ROOT):
            return Result(Code.SUCCESS)
        return Result(
            Code.FAILURE,
            "There is at least one resource provider table record which misses its root "
            f"provider id. {_REMEDY}",
        )

    def _consumers(self) -> Result:
        missing = self._store.read(count_rows, CONSUMERS_WITHOUT_RECORD)
        if not missing:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            f"There are {missing} incomplete consumers table records for existing allocations. "
            f"{_REMEDY}",
        )
