# SPDX-License-Identifier: Apache-2.0
"""Checks whether `[keystone_authtoken]` can validate tokens, for `/ready` and for `config check`."""

import logging
import time
from datetime import UTC, datetime
from typing import Any

from keystoneauth1 import adapter, loading
from keystoneauth1 import exceptions as errors
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg

from treeclaim.admin import FaultKind, KeystoneFault
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.names import one_line

_LOG = logging.getLogger(__name__)

_GROUP = "keystone_authtoken"

_TIMEOUT = 10.0
"""Timeout in seconds of a request to Keystone if `http_connect_timeout` is not set."""

_PAUSE = 10.0
"""Seconds between two attempts."""


def check_keystone(options: cfg.ConfigOpts) -> KeystoneFault | None:
    """Log in by `[keystone_authtoken]`, find Keystone's endpoint, and check the right to validate tokens.

    Return the fault, or None if tokens can be validated.
    """
    try:
        return _try_keystone(options)
    except errors.HTTPClientError as error:
        return _make_refusal("Keystone refuses the user", f"Keystone refuses the user: {error}")
    except (errors.HttpError, errors.ConnectFailure, errors.DiscoveryFailure) as error:
        summary = "Keystone does not answer"
        return KeystoneFault(FaultKind.UNREACHABLE, summary, one_line(f"{summary}: {error}"))
    except errors.EndpointNotFound as error:
        summary = "Keystone's catalogue has no identity endpoint for it"
        return _make_refusal(summary, f"{summary}: {error}")
    except Exception as error:  # noqa: BLE001 - the libraries raise bare exceptions for missing options
        return _make_refusal("its options cannot be used", f"its options cannot be used: {error}")


def _try_keystone(options: cfg.ConfigOpts) -> KeystoneFault | None:
    for group, group_options in list_auth_token_opts():  # type: ignore[no-untyped-call]
        options.register_opts(group_options, group=group)
    loading.register_auth_conf_options(options, _GROUP)
    section = options[_GROUP]
    auth: Any = loading.load_auth_from_conf_options(options, _GROUP)
    if auth is None:
        return _make_refusal(
            "it has no auth_type", "auth_type is missing: it names the login method"
        )
    session = loading.session.Session().load_from_options(
        cert=section.certfile,
        key=section.keyfile,
        cacert=section.cafile,
        insecure=section.insecure,
        timeout=section.http_connect_timeout or _TIMEOUT,
    )
    identity = adapter.Adapter(
        session,
        auth=auth,
        service_type="identity",
        interface=section.interface,
        region_name=section.region_name,
        min_version="3",
        max_version="3.latest",
    )
    identity.get_token()
    # Keystone's default policy requires the same role for listing revocations and for validating tokens.
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    response = identity.get("/OS-REVOKE/events", params={"since": now}, raise_exc=False)
    if response.status_code == 403:  # noqa: PLR2004 - forbidden
        return KeystoneFault(
            FaultKind.DOUBTFUL,
            "its user may not validate tokens by Keystone's default policy",
            "its user may not validate tokens by Keystone's default policy: give it the role service",
        )
    return None


def _make_refusal(summary: str, detail: str) -> KeystoneFault:
    return KeystoneFault(FaultKind.REFUSED, summary, one_line(detail))


class KeystoneState:
    """The state of token validation, checked until it succeeds once.

    Attributes:
        fault: The last fault; None once tokens could be validated.
    """

    def __init__(self, options: cfg.ConfigOpts) -> None:
        self.fault: KeystoneFault | None = KeystoneFault(
            FaultKind.UNREACHABLE, "Keystone has not answered yet", ""
        )
        self._options = options

    def start(self) -> None:
        """Check in a background thread."""
        start_helper_thread("keystone", self._run)

    def _run(self) -> None:
        while True:
            fault = check_keystone(self._options)
            if fault is not None and fault != self.fault:
                _LOG.warning("Tokens cannot be validated: [keystone_authtoken]: %s", fault.detail)
            self.fault = fault
            if fault is None or fault.kind is FaultKind.DOUBTFUL:
                return
            time.sleep(_PAUSE)
