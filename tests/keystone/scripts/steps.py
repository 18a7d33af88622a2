# SPDX-License-Identifier: Apache-2.0
"""Helpers of the scripts in this folder; Python finds the module because it is beside them."""

import sys
from contextlib import contextmanager


def do_all(steps, subject):
    """Run the steps with a subject, and print the present one."""
    for step in steps:
        print("step", step.__name__, file=sys.stderr)
        step(subject)


@contextmanager
def refused(action, *errors):
    """Check that a block raises one of some errors; otherwise the service accepted an invalid request."""
    try:
        yield
    except errors:
        return
    raise AssertionError(f"{action} was accepted")


def require_all_used(kind, used):
    """Fail if a public method of a class was not used."""
    public = {
        name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")
    }
    assert public <= used, public - used
