# SPDX-License-Identifier: Apache-2.0
"""Commands for the `openstack` command: `openstack placement explain`, `place` and others.

They are thin: the client, the options and the questions are those of the `treeclaim` commands.
"""
