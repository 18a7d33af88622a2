# SPDX-License-Identifier: Apache-2.0
"""A Treeclaim with the `placement.conf` that an operator writes for Keystone."""

from tests.servers import serving, usual_environment

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
"""


def configuration_for(keystone, folder, more=""):
    """Write the configuration file, and return its path."""
    path = folder / "placement.conf"
    text = _CONFIGURATION.format(
        folder=folder, keystone=keystone.url, login=keystone.service_options()
    )
    path.write_text(text + more)
    return path


def behind(keystone, folder, url):
    """Run `treeclaim serve` on a URL for a block; yields the server."""
    configuration = configuration_for(keystone, folder)
    return serving(usual_environment(folder), folder, f"--config-file={configuration}", url=url)
