# SPDX-License-Identifier: Apache-2.0
"""The command line, `treeclaim …`, and its plugin, `openstack treeclaim …`."""
