# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the URL of a database, in words."""


def database_words(error: Exception) -> str:
    """Return the fault of a database URL, or of its driver, as a sentence."""
    if isinstance(error, ImportError):
        return f"the driver is not installed: {error}"
    text = str(error).splitlines()[0]
    if text.startswith("Can't load plugin"):
        return f"there is no such kind of database ({text}); it is sqlite, postgresql or mysql"
    return text
