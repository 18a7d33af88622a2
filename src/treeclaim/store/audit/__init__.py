# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rows, and repairs of that (contract page 99, section 5).

Knows the operations. Each finder reads in the snapshot that it is given; each repair is a
transaction of its own that first checks that the finding holds.
"""
