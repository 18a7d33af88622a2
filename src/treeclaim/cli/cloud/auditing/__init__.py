# SPDX-License-Identifier: Apache-2.0
"""`treeclaim audit`: what is wrong with the records, and its repair."""
