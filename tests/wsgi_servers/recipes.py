# SPDX-License-Identifier: Apache-2.0
"""The servers of deploy/wsgi, run from the files as they are but for places and ports."""

import os
import pwd
import shutil
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

from bench.ports import free_port
from tests.environments import environment_of
from tests.servers import answers, running, usual_environment

ROOT = Path(__file__).parents[2]
_RECIPES = ROOT / "deploy" / "wsgi"
_MODULE = ROOT / "deploy" / "placement-names" / "src"
_LIBRARIES = sysconfig.get_path("purelib")
PREFIXES = ("/placement", "")


class Recipe:
    """One server.

    Attributes:
        folder: With all its files.
        prefix: Under which the service is, empty for the root of the host.
        port: Where it listens.
    """

    packages = ()

    def __init__(self, folder, prefix):
        """Fill in a recipe for a folder and a prefix."""
        self.folder = folder
        self.prefix = prefix
        self.port = free_port()
        name = f"wsgi-{self.packages[0]}"
        self.foreign = environment_of(name, *self.packages)

    @property
    def url(self):
        """Where the service is."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def environment(self):
        """The environment of the server: configuration, and where the packages are."""
        paths = [str(_MODULE), str(ROOT / "src"), _LIBRARIES]
        return usual_environment(
            self.folder,
            PYTHONPATH=os.pathsep.join(paths),
            OS_PLACEMENT_CONFIG_DIR=str(self.folder),
            OS_PLACEMENT_DATABASE__CONNECTION=f"sqlite:///{self.folder / 'placement.db'}",
            OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP="true",
            OS_API__AUTH_STRATEGY="noauth2",
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

    def log(self):
        """Return all that server and service wrote."""
        return (self.folder / "server.log").read_text()


class Uwsgi(Recipe):
    """uWSGI."""

    packages = ("uwsgi",)

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
        return [self.foreign / "bin" / "uwsgi", "--ini", recipe]


class Gunicorn(Recipe):
    """gunicorn."""

    packages = ("gunicorn",)

    def command(self):
        """The command that an operator types."""
        replacements = {"127.0.0.1:8778": f"127.0.0.1:{self.port}"}
        if not self.prefix:
            replacements['raw_env = ["SCRIPT_NAME=/placement"]\n'] = ""
        recipe = self.fill("gunicorn.conf.py", replacements)
        return [self.foreign / "bin" / "gunicorn", "--config", recipe]


_HTTPD = """\
ServerRoot {httpd}
ServerName localhost
PidFile {folder}/httpd.pid
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule unixd_module modules/mod_unixd.so
LoadModule wsgi_module {module}
WSGISocketPrefix {folder}/wsgi
ErrorLog {folder}/httpd.log
Include {recipe}
"""


class Apache(Recipe):
    """Apache with mod_wsgi, both as the package mod_wsgi-standalone brings them."""

    packages = ("mod_wsgi-standalone",)

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
        (module,) = (self._libraries() / "mod_wsgi" / "server").glob("mod_wsgi*.so")
        main.write_text(
            _HTTPD.format(httpd=self._httpd(), folder=self.folder, module=module, recipe=recipe)
        )
        server = [self._httpd() / "bin" / "httpd", "-f", main, "-D", "FOREGROUND"]
        return [*_as_somebody_else(self.folder), *server]

    def environment(self):
        """The package has Apache's libraries beside Apache, and does not tell it."""
        return super().environment() | {"LD_LIBRARY_PATH": str(self._httpd() / "lib")}

    def _libraries(self):
        return self.foreign / "lib" / _python_name() / "site-packages"

    def _httpd(self):
        return self._libraries() / "mod_wsgi_packages" / "httpd"

    def log(self):
        """Return all that the service wrote."""
        return (self.folder / "service.log").read_text()


def _python_name():
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _as_somebody_else(folder):
    """Where the tests run as root, which Apache refuses: another user, who may read all files."""
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


SERVERS = (Uwsgi, Gunicorn, Apache)
