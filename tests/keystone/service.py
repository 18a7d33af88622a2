# SPDX-License-Identifier: Apache-2.0
"""A Treeclaim with the `placement.conf` that an operator writes for Keystone."""

import os
import socket
import subprocess
from contextlib import contextmanager

from tests.ports import free_port
from tests.servers import eventually, serving, usual_environment

_CONFIGURATION = """\
[DEFAULT]
use_stderr = true

[placement_database]
connection = sqlite:///{folder}/placement.db
sync_on_startup = true

[api]
auth_strategy = keystone

[keystone_authtoken]
www_authenticate_uri = {keystone}
{login}
service_token_roles = service
service_token_roles_required = true
memcached_servers = {memcached}
"""


def configuration_for(keystone, folder, lines="", memcached=""):
    """Write the configuration file, and return its path."""
    path = folder / "placement.conf"
    text = _CONFIGURATION.format(
        folder=folder,
        keystone=keystone.url,
        login=keystone.service_options(),
        memcached=memcached,
    )
    path.write_text(text + lines)
    return path


@contextmanager
def memcached_server():
    """Run memcached for a block; yields its process, and where it listens."""
    port = free_port()
    options = ["-l", "127.0.0.1", "-p", str(port), "-m", "16"]
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen(["memcached", *options, *user])
    try:
        address = f"127.0.0.1:{port}"
        eventually(lambda: stats_of(address), "memcached answers")
        yield process, address
    finally:
        process.kill()
        process.wait()


def stats_of(address):
    """The statistics of a memcached by name; None while it does not answer."""
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"stats\r\nquit\r\n")
            lines = connection.makefile().read().splitlines()
    except OSError:
        return None
    return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("STAT "))


def behind(keystone, folder, url, memcached=""):
    """Run `treeclaim serve` on a URL for a block; yields the server."""
    configuration = configuration_for(keystone, folder, memcached=memcached)
    return serving(usual_environment(folder), folder, f"--config-file={configuration}", url=url)
