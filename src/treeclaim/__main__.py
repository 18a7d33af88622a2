# SPDX-License-Identifier: Apache-2.0
"""Makes `python -m treeclaim` run the command line."""

import sys

from treeclaim.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
