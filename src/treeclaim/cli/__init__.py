# SPDX-License-Identifier: Apache-2.0
"""The command line: `treeclaim …`.

`cloud` talks to an endpoint, `service` looks after a service; the server itself is run from here.
"""
