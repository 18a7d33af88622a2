# SPDX-License-Identifier: Apache-2.0
"""A worker process; `treeclaim serve` starts it."""

import sys

from treeclaim.server.processes.worker import main

main(sys.argv[1:])
