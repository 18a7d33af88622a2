# SPDX-License-Identifier: Apache-2.0
"""Helpers of the scripts in this folder; Python finds the module because it is beside them."""

import json
import sys


def do_all(steps, subject):
    """Do the steps with a subject, and say where it is."""
    for step in steps:
        print("step", step.__name__, file=sys.stderr)
        step(subject)


def print_unused(kind, used):
    """Print the public methods of a class that were not used."""
    public = {
        name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")
    }
    print(json.dumps(sorted(public - used)))
