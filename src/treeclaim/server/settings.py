# SPDX-License-Identifier: Apache-2.0
"""Settings of listeners and processes from the command line."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

ALLOW_NOAUTH2 = "--allow-noauth2"
"""The switch that allows noauth2 on addresses that other machines reach."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Options of `treeclaim serve`.

    Attributes:
        unix_socket: Path of a Unix socket to listen on instead of host and port.
        unix_socket_mode: Permissions of the Unix socket; None for those of the umask.
        workers: Number of processes; 0 for the admin listener alone.
        threads: Concurrent requests of a process.
        certificate, key: PEM files with the certificate and its chain, and its key; None for no TLS.
        client_authority: PEM file with the authority of clients' certificates.
        lifetime: Seconds after which a worker is replaced; None for never.
        memory: MiB of resident memory above which a worker is replaced; None for never.
        config_files: Empty for the default files.
        allow_noauth2: Whether noauth2 is allowed on addresses that other machines reach.
    """

    host: str = "127.0.0.1"
    port: int = 0
    unix_socket: str | None = None
    unix_socket_mode: int | None = None
    workers: int = 1
    threads: int = 1
    certificate: str | None = None
    key: str | None = None
    client_authority: str | None = None
    lifetime: int | None = None
    memory: int | None = None
    config_files: list[str] = field(default_factory=list)
    config_dirs: list[str] = field(default_factory=list)
    allow_noauth2: bool = False

    def to_json(self) -> str:
        """Serialize the settings for the command line of a loader."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ServerSettings":
        """Parse the text of `to_json`; ignore the settings of other releases."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in names})

    @property
    def url(self) -> str:
        """The URL of the service for messages."""
        scheme = "https" if self.certificate else "http"
        if self.unix_socket:
            return f"{scheme}+unix:{Path(self.unix_socket)}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"
