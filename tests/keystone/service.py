# SPDX-License-Identifier: Apache-2.0
"""A Treeclaim with the `placement.conf` that an operator writes for Keystone."""

import sys
from urllib.parse import urlsplit

from tests.keystone.keystone_server import PASSWORD
from tests.servers import answers, running, usual_environment

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
auth_url = {keystone}
auth_type = password
username = placement
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
service_token_roles = service
service_token_roles_required = true
"""


def configuration_for(keystone, folder, more=""):
    """Write the configuration file, and return its path."""
    path = folder / "placement.conf"
    text = _CONFIGURATION.format(folder=folder, keystone=keystone.url, password=PASSWORD)
    path.write_text(text + more)
    return path


def behind(keystone, folder, url):
    """Run `treeclaim serve` on a URL for a block; yields the server."""
    configuration = configuration_for(keystone, folder)
    command = [sys.executable, "-m", "treeclaim", "serve", "--port", str(urlsplit(url).port)]
    command += ["--config-file", str(configuration)]
    environment = usual_environment(folder)
    return running(command, environment, folder / "treeclaim.log", answers(url))
