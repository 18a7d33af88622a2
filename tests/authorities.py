# SPDX-License-Identifier: Apache-2.0
"""Tests trust one certificate authority, whose key nobody has, and use no proxy, whatever the machine does.

For each context of TLS, OpenSSL reads those, a hundred and more, which takes 40 ms of a processor. PyMySQL
makes a context for each connection, encrypted or not, unless it is told as the service tells it
(`mariadb.py`), and so do most clients of HTTP.
"""

import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

VARIABLE = "SSL_CERT_FILE"
"""Tells OpenSSL where the authorities are; inherited by all that tests start."""

_USUAL = f"USUAL_{VARIABLE}"
"""The former value, for the processes of a run in several."""

_ONE = str(Path(__file__).with_name("authority.pem"))


_PROXY = re.compile("(https?|all|no)_proxy", re.IGNORECASE)
_USUAL_PROXY = "USUAL_PROXY_"


def use_no_proxy():
    """Hide the proxies of the environment from this process, and from what it starts."""
    for name in [name for name in os.environ if _PROXY.fullmatch(name)]:
        os.environ[_USUAL_PROXY + name] = os.environ.pop(name)


def trust_one():
    """From now on this process trusts that one, and so does what it starts."""
    if os.environ.get(VARIABLE) != _ONE:
        os.environ[_USUAL] = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = _ONE


@contextmanager
def those_of_the_machine():
    """Trust as usual during a block, by the usual proxies, as for packages that come from the network."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(_USUAL_PROXY)]:
            patch.setenv(name.removeprefix(_USUAL_PROXY), os.environ[name])
        if usual := os.environ.get(_USUAL):
            patch.setenv(VARIABLE, usual)
        else:
            patch.delenv(VARIABLE)
        yield
