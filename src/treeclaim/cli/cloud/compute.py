# SPDX-License-Identifier: Apache-2.0
"""The compute API of a cloud of clouds.yaml: for what only Nova knows."""

import argparse
import os
from typing import Any
from urllib.parse import parse_qs, urlsplit

from keystoneauth1 import adapter
from keystoneauth1.exceptions import ClientException
from keystoneauth1.session import Session

from treeclaim.cli.cloud.endpoint import region_of
from treeclaim.cli.output import CommandError
from treeclaim.client.transport import query_string

_SERVICE_TYPE = "compute"

PAGE = 1_000
"""Most items that are asked for at once; Nova's own maximum is no more."""


def compute_of(options: argparse.Namespace, wanted_by: str) -> adapter.Adapter:
    """Return what talks to the compute API of the cloud that a command's options name.

    Args:
        options: The options of the command.
        wanted_by: The option that needs it, for the message.

    Raises:
        CommandError: if no cloud is named, or nothing is known of it.
    """
    name = options.os_cloud or os.environ.get("OS_CLOUD")
    if not name:
        raise CommandError(f"{wanted_by} needs a cloud of clouds.yaml: --os-cloud or OS_CLOUD")
    with region_of(name) as region:
        return compute_in(region, region.get_session())


def compute_in(region: Any, session: Session) -> adapter.Adapter:
    """Return what talks to the compute API of a region of openstacksdk's, over a session."""
    return adapter.Adapter(
        session,
        service_type=_SERVICE_TYPE,
        region_name=region.get_region_name(_SERVICE_TYPE),
        interface=region.get_interface(_SERVICE_TYPE),
        endpoint_override=region.get_endpoint(_SERVICE_TYPE),
    )


def document(compute: adapter.Adapter, path: str, member: str, **how: Any) -> dict[str, Any]:
    """Return an answer of the compute API, which has to have a member.

    Raises:
        CommandError: if there is no such answer.
    """
    try:
        answer = compute.get(path, **how)
        body: dict[str, Any] = answer.json()
        if member not in body:
            raise ValueError(f"{answer.text[:80]!r}")  # noqa: TRY301
    except (ClientException, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"the compute API does not list its {member}: {error}") from error
    return body


def page(
    compute: adapter.Adapter, path: str, member: str, query: dict[str, str], **how: Any
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of a list, and the marker of the next page, None for the last.

    Raises:
        CommandError: if there is no such list.
    """
    body = document(compute, f"{path}?{query_string(query)}", member, **how)
    following = [link["href"] for link in body.get(f"{member}_links", ()) if link["rel"] == "next"]
    if not following:
        return body[member], None
    return body[member], parse_qs(urlsplit(following[0]).query)["marker"][0]
