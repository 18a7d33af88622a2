# SPDX-License-Identifier: Apache-2.0
"""Lets `python -m treeclaim` be the command line."""

import sys

from treeclaim.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
