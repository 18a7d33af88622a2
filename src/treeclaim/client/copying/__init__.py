# SPDX-License-Identifier: Apache-2.0
"""`treeclaim copy`: reads all that an endpoint has, and writes it to another."""
