# SPDX-License-Identifier: Apache-2.0
"""Operations that write; each public function runs in one transaction."""
