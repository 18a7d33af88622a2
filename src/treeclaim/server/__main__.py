# SPDX-License-Identifier: Apache-2.0
"""A loader process; `treeclaim serve` starts it, and it becomes workers."""

import sys

from treeclaim.server.processes.loader import main

main(sys.argv[1:])
