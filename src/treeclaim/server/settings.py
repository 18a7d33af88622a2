# SPDX-License-Identifier: Apache-2.0
"""How the service listens and how its processes live, as the command line says it."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

ALLOW_NOAUTH2 = "--allow-noauth2"
"""The switch that takes responsibility for believing every caller."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What `treeclaim serve` was told.

    Attributes:
        host: Address to listen on.
        port: Port to listen on.
        unix_socket: Path of a Unix socket to listen on instead.
        unix_socket_mode: Its permissions, None for what the umask leaves.
        workers: Number of processes.
        threads: Requests that a process handles at a time.
        certificate: PEM file with the certificate and its chain; None for no TLS.
        key: PEM file with its key.
        client_authority: PEM file with the authority that clients' certificates must be from.
        lifetime: Seconds after which a worker is replaced, None for never.
        memory: MiB of resident memory above which a worker is replaced, None for never.
        config_files: Configuration files that were named; none for the usual ones.
        allow_noauth2: Whether every caller may be believed on addresses that others reach.
    """

    host: str
    port: int
    unix_socket: str | None
    unix_socket_mode: int | None
    workers: int
    threads: int
    certificate: str | None
    key: str | None
    client_authority: str | None
    lifetime: int | None
    memory: int | None
    config_files: list[str] = field(default_factory=list)
    allow_noauth2: bool = False

    def to_json(self) -> str:
        """Return a text for the command line of a loader."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ServerSettings":
        """Read what `to_json` wrote, perhaps in a release that has more settings; those are left out."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in names})

    def where(self) -> str:
        """Return where the service listens, for people."""
        scheme = "https" if self.certificate else "http"
        if self.unix_socket:
            return f"{scheme}+unix:{Path(self.unix_socket)}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"
