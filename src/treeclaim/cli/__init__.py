# SPDX-License-Identifier: Apache-2.0
"""The command line: `treeclaim …`.

`cloud` calls an endpoint, `service` maintains a service; `serve` runs the server.
"""
