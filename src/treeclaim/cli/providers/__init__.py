# SPDX-License-Identifier: Apache-2.0
"""Commands on providers: shown, loaded, edited and compared."""
