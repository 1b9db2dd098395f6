"""`narrlit.serve`: run a server with the page and the HTTP API."""

import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.console import say
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, OptionError, reason
from narrlit.files import exclusive
from narrlit.library.options import index_at
from narrlit.models.config import DEFAULT_MODEL
from narrlit.optional import require
from narrlit.serving.settings import ServerSettings, default_data_folder

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

GRACEFUL_SECONDS = 30
"""Time in which requests in flight are answered after a signal to stop."""
MOST_CONNECTIONS = 2048
"""Connections that wait to be accepted."""
OPEN_FILES = 16_384
"""Files that the server may open; each connection is one. Systems often allow 256 or 1,024 unless asked for more."""


def serve(
    source: str | Path | None = None,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    token: str | None = None,
    names: Sequence[str] = (),
    data: str | Path | None = None,
    encoder: str | StoryEncoder = DEFAULT_MODEL,
    no_browser: bool = False,
) -> None:
    """Run a server with the page and the HTTP API until it is interrupted.

    The page and the API are at http://HOST:PORT. Programs embed texts by `/v1/embeddings`, as with OpenAI's API.
    Requests in flight are answered before the server stops, and interrupted imports continue at the next start.

    Args:
        source: an index, a folder of indexes, or a file or folder of stories, which is imported; None: what is in the
            data folder.
        port: port to listen on; 0 chooses a free one.
        host: address to listen on. Any other than a loopback address needs a token.
        token: secret that each request must contain; None: none is needed on a loopback address, and one is made and
            printed for other addresses.
        names: names of other hosts under which the server answers, such as that of a reverse proxy; then a token is
            needed, too.
        data: folder of collections and imports; None: `~/.local/share/narrlit`.
        encoder: model of requests and new collections: a model folder, a run, a checkpoint, a hub id, `narrlit-mini` or
            `minilm`; or an encoder from `narrlit.load` that sets how the model is loaded.
        no_browser: do not open the page in a browser.

    Raises:
        DataError: if `source` can't be read.
        MissingExtraError: if the packages of the extra `serve` are missing.
        ModelError: if the model can't be loaded.
        OptionError: if the address can't be used, the token is too short, another server uses the data folder, or the
            encoder reads views, replaces names, or has a fusion or post-processing.
    """
    for package in ("fastapi", "uvicorn", "python_multipart", "prometheus_client"):
        require(package, "serve")
    from narrlit.serving.app import create_app
    from narrlit.serving.imports import files_of

    settings = server_settings(source, host=host, token=token, names=names, data=data, encoder=encoder)
    if settings.source is not None:
        files_of(settings.source)
    _raise_limit_of_files()
    with closing(listen(host, port)) as listening, exclusive(settings.data, "data"):
        app = create_app(settings)
        address = address_of(host, listening.getsockname()[1])
        opened = address if settings.token is None else f"{address}/?token={settings.token}"

        def announce() -> None:
            say(f"narrlit serves {settings.model} at {opened} (Ctrl-C stops)")
            if not no_browser:
                webbrowser.open(opened)

        run_app(app, listening, announce)


def server_settings(
    source: str | Path | None,
    *,
    host: str,
    token: str | None,
    names: Sequence[str],
    data: str | Path | None,
    encoder: str | StoryEncoder,
) -> ServerSettings:
    """Check the options of `serve`; a token is made for an address that other machines reach."""
    if token is not None and len(token) < 8:
        raise OptionError("short_token")
    folder = default_data_folder() if data is None else Path(data)
    indexes = indexes_in(source)
    stories = Path(source).absolute() if source is not None and not indexes else None
    if stories is not None and not stories.exists():
        raise DataError("no_source", path=source)
    encoder = StoryEncoder(encoder) if isinstance(encoder, str) else encoder
    if not encoder.is_plain:
        raise OptionError("model_of_server")
    settings = ServerSettings(
        folder.absolute(), encoder.name, host, token, tuple(names), indexes, stories, encoder.loading
    )
    if token is None and not settings.is_loopback:
        return replace(settings, token=secrets.token_urlsafe(24))
    return settings


def indexes_in(source: str | Path | None) -> tuple[Path, ...]:
    """Return an index, or the indexes in a folder; none if `source` is something else."""
    if source is None or not Path(source).is_dir():
        return ()
    folder = Path(source)
    if index_at(folder):
        return (folder.absolute(),)
    return tuple(sorted(path.absolute() for path in folder.iterdir() if index_at(path)))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Raises:
        OptionError: if the address is wrong or taken.
    """
    if not 0 <= port < 2**16:
        raise OptionError("port", port=port)
    name = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OptionError("unusable_host", host=host, reason=reason(error)) from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise OptionError("unusable_port", host=host, port=port, reason=reason(error)) from error
    return listening


def _raise_limit_of_files() -> None:
    """Raise the number of files that this process may open, as far as the system allows."""
    try:
        import resource

        limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, min(OPEN_FILES, most)), most))
    except (ImportError, OSError, ValueError):
        return  # Windows, or a system that allows no more


def address_of(host: str, port: int) -> str:
    """Return the address of the page.

    >>> address_of("127.0.0.1", 8000), address_of("::1", 80)
    ('http://127.0.0.1:8000', 'http://[::1]:80')
    """
    name = host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def run_app(
    app: "FastAPI",
    listening: socket.socket,
    announce: Callable[[], None],
    on_server: Callable[["uvicorn.Server"], None] = lambda _: None,
) -> None:
    """Run an application on a bound socket until a signal stops it.

    Args:
        app: the application.
        listening: the socket.
        announce: is called when the server answers.
        on_server: is called with the server of uvicorn, which a thread can stop.
    """
    from uvicorn import Config, Server

    class AnnouncedServer(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Begin to listen, then announce it."""
            await super().startup(sockets)
            if self.started:
                announce()

    config = Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        backlog=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    server = AnnouncedServer(config)
    on_server(server)
    with suppress(KeyboardInterrupt):  # the usual way to stop a server
        server.run(sockets=[listening])
    if not server.started:
        raise OptionError("server_not_started")
