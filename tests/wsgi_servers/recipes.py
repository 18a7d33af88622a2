# SPDX-License-Identifier: Apache-2.0
"""The servers of deploy/wsgi, run from the files as they are but for places and ports."""

import os
import pwd
import shutil
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.environments import environment_of
from tests.paths import ROOT
from tests.ports import free_port
from tests.resources import MISSING
from tests.servers import answers, running, service_environment

_RECIPES = ROOT / "deploy" / "wsgi"
_MODULE = ROOT / "deploy" / "placement-names" / "src"
_LIBRARIES = sysconfig.get_path("purelib")
PREFIXES = ("/placement", "")
MAX_BODY_BYTES = 1_000_000
"""Below the default, so that a body beyond the limit is sent in no time."""


class Recipe:
    """A server.

    Attributes:
        folder: With all its files.
        prefix: Under which the service is, empty for the root of the host.
        port: Where it listens.
        process: Its first process, while it runs.
        settings: More environment variables of the service.
    """

    def __init__(self, folder, prefix):
        """Fill in a recipe for a folder and a prefix."""
        self.folder = folder
        self.prefix = prefix
        self.port = free_port()
        self.process = None
        self.settings = {}

    @property
    def url(self):
        """The address of the service."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def environment(self):
        """The environment of the server: configuration, and where the packages are."""
        paths = [str(_MODULE), str(ROOT / "src"), _LIBRARIES]
        return service_environment(
            self.folder,
            PYTHONPATH=os.pathsep.join(paths),
            OS_TREECLAIM__MAX_BODY_BYTES=str(MAX_BODY_BYTES),
            **self.settings,
        )

    def fill(self, name, replacements):
        """Write a recipe into the folder, with each of some texts in it replaced."""
        text = (_RECIPES / name).read_text()
        for old, new in replacements.items():
            assert old in text, f"{name} has no more {old!r}"
            text = text.replace(old, new)
        path = self.folder / name
        path.write_text(text)
        return path

    @contextmanager
    def running(self):
        """Run the server for a block; yields it."""
        log = self.folder / "server.log"
        ready = answers(self.url + "/")
        with running(self.command(), self.environment(), log, ready) as server:
            yield server

    def command(self):
        """Return the command line that starts the server."""
        raise NotImplementedError

    def log(self):
        """Return all that server and service wrote."""
        return (self.folder / "server.log").read_text()


class Uwsgi(Recipe):
    """uWSGI, as its makers package it ready for use; the other package compiles it first."""

    def command(self):
        """The command that an operator types."""
        replacements = {"127.0.0.1:8778": f"127.0.0.1:{self.port}", "/opt/treeclaim": sys.prefix}
        if not self.prefix:
            replacements |= {
                "\nmount = /placement=placement.wsgi.api:application": "",
                "\nmanage-script-name = true": "",
                "#   module = ": "module = ",
            }
        recipe = self.fill("uwsgi.ini", replacements)
        return [environment_of("wsgi-pyuwsgi", "pyuwsgi") / "bin" / "uwsgi", "--ini", recipe]


class Gunicorn(Recipe):
    """gunicorn."""

    def command(self):
        """The command that an operator types."""
        replacements = {"127.0.0.1:8778": f"127.0.0.1:{self.port}"}
        if not self.prefix:
            replacements['raw_env = ["SCRIPT_NAME=/placement"]\n'] = ""
        recipe = self.fill("gunicorn.conf.py", replacements)
        program = environment_of("wsgi-gunicorn", "gunicorn") / "bin" / "gunicorn"
        return [program, "--config", recipe]


_APACHE = "/usr/sbin/apache2"
_MODULES = Path("/usr/lib/apache2/modules")
_HTTPD = """\
ServerRoot {folder}
ServerName localhost
PidFile {folder}/httpd.pid
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule wsgi_module {module}
WSGISocketPrefix {folder}/wsgi
ErrorLog {folder}/httpd.log
Include {recipe}
"""


class Apache(Recipe):
    """Apache with mod_wsgi, as Debian and its kin package them.

    Packages of Python's index compile all of Apache first, which takes minutes.
    """

    def command(self):
        """Start it in the foreground, with the few modules that it needs."""
        libraries = "/opt/treeclaim/lib/python3.11/site-packages"
        alias = f"WSGIScriptAlias {self.prefix or '/'} {libraries}"
        replacements = {
            "127.0.0.1:8778": f"127.0.0.1:{self.port}",
            f"WSGIScriptAlias /placement {libraries}": alias,
            f"{libraries}/placement/wsgi": str(_MODULE / "placement" / "wsgi"),
            "python-home=/opt/treeclaim": f"python-home={sys.prefix}",
            "home=/var/lib/placement": f"home={self.folder}",
            "/var/log/apache2/placement.log": str(self.folder / "service.log"),
        }
        recipe = self.fill("apache.conf", replacements)
        main = self.folder / "httpd.conf"
        main.write_text(
            _HTTPD.format(folder=self.folder, modules=_MODULES, module=_mod_wsgi(), recipe=recipe)
        )
        server = [_APACHE, "-f", main, "-D", "FOREGROUND"]
        return [*_as_somebody_else(self.folder), *server]

    def environment(self):
        """The module is to run this very Python, not the distribution's of the same version."""
        return super().environment() | {"LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR")}

    def log(self):
        """Return all that the service wrote."""
        return (self.folder / "service.log").read_text()


def _mod_wsgi():
    """Return the path of the module for this Python; skip the test if there is none."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    module = _MODULES / f"mod_wsgi.so-{version}"
    if not module.exists():
        pytest.skip(
            f"{MISSING}mod_wsgi for Python {version} is not installed: "
            "apt-get install libapache2-mod-wsgi-py3"
        )
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library, which mod_wsgi could load")
    return module


def _as_somebody_else(folder):
    """Return another user who may read all files if the tests run as root, which Apache refuses."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    shutil.chown(folder, nobody.pw_uid, nobody.pw_gid)
    capability = "+dac_read_search"
    return [
        "setpriv",
        f"--reuid={nobody.pw_uid}",
        f"--regid={nobody.pw_gid}",
        "--clear-groups",
        f"--inh-caps={capability}",
        f"--ambient-caps={capability}",
    ]


SERVERS = (Uwsgi, Apache, Gunicorn)
