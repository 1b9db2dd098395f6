"""Settings and limits of a server."""

import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from narrlit.encoding.options import Loading
from narrlit.models.config import DEFAULT_MODEL

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which a browser on the same machine reaches a server."""


@dataclass(frozen=True)
class Limits:
    """Limits of a server, beyond which requests are refused.

    Attributes:
        body_bytes: bytes of a request's body, except uploads.
        upload_bytes: bytes of all files of an upload.
        unpacked_bytes: bytes of all files of an upload after archives were unpacked.
        files: number of files of an upload, those in archives included.
        stories: number of stories of an import.
        texts: number of texts of a request.
        characters: characters of a text.
        waiting_texts: number of texts that wait for the model.
        requests: number of requests that are answered at the same time.
        body_seconds: time between two parts of a body.
        seconds: time to answer a request that needs the model or an index.
        reading_seconds: time to read a file of an upload.
        reading_bytes: memory to read a file of an upload.
    """

    body_bytes: int = 8 * 2**20
    upload_bytes: int = 512 * 2**20
    unpacked_bytes: int = 1024 * 2**20
    files: int = 10_000
    stories: int = 200_000
    texts: int = 2048
    characters: int = 500_000
    waiting_texts: int = 8192
    requests: int = 256
    body_seconds: float = 30
    seconds: float = 60
    reading_seconds: float = 120
    reading_bytes: int = 2 * 2**30


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server.

    Attributes:
        data: folder of collections and imports.
        model: name of the model that embeds texts and new collections.
        host: address to listen on.
        token: secret that requests must contain; None: no request needs one.
        names: names of other hosts under which the server answers, such as that of a reverse proxy.
        indexes: folders of indexes elsewhere, which are served as collections and never deleted.
        source: file or folder of stories, which is imported at the start.
        loading: how the model is loaded.
        limits: limits of requests.
    """

    data: Path
    model: str = DEFAULT_MODEL
    host: str = "127.0.0.1"
    token: str | None = None
    names: tuple[str, ...] = ()
    indexes: tuple[Path, ...] = ()
    source: Path | None = None
    loading: Loading = Loading()
    limits: Limits = field(default_factory=Limits)

    @property
    def is_loopback(self) -> bool:
        """True if only programs on the same machine reach the server."""
        return is_loopback(self.host) and not self.names


def is_loopback(host: str) -> bool:
    """Return True for an address that only programs on the same machine reach.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    address = host.strip("[]").lower()
    if address in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def default_data_folder() -> Path:
    """Return the folder of collections and imports of a server that is given none."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111  (never fails)
    return Path(home) / "narrlit"
