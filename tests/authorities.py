# SPDX-License-Identifier: Apache-2.0
"""Tests trust a single certificate authority, whose key was deleted, and use no proxy of the environment.

Otherwise OpenSSL reads more than a hundred authorities for each TLS context, which takes 40 ms of CPU time. PyMySQL and
most HTTP clients create a context for each connection, even an unencrypted one.
"""

import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

VARIABLE = "SSL_CERT_FILE"
"""Names the file of authorities for OpenSSL; child processes inherit the variable."""

_USUAL = f"USUAL_{VARIABLE}"
"""Keeps the former value for the processes of xdist."""

_AUTHORITY = str(Path(__file__).with_name("authority.pem"))


_PROXY = re.compile("(https?|all|no)_proxy", re.IGNORECASE)
_USUAL_PROXY = "USUAL_PROXY_"


def use_no_proxy():
    """Hide the proxies of the environment from this process and its children."""
    for name in [name for name in os.environ if _PROXY.fullmatch(name)]:
        os.environ[_USUAL_PROXY + name] = os.environ.pop(name)


def trust_one():
    """Trust only the tests' authority, in this process and its children."""
    if os.environ.get(VARIABLE) != _AUTHORITY:
        os.environ[_USUAL] = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = _AUTHORITY


@contextmanager
def those_of_the_machine():
    """Restore the usual authorities and proxies for a block, as for the installation of packages."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(_USUAL_PROXY)]:
            patch.setenv(name.removeprefix(_USUAL_PROXY), os.environ[name])
        if usual := os.environ.get(_USUAL):
            patch.setenv(VARIABLE, usual)
        else:
            patch.delenv(VARIABLE)
        yield
