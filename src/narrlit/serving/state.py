"""State of a running server, which its routes share."""

import asyncio
import time
from typing import Annotated

from fastapi import Depends, Request

from narrlit import __version__
from narrlit.errors import printable
from narrlit.explore.map_answer import MapAnswer
from narrlit.serving.analysis import Analyses
from narrlit.serving.batching import Batcher
from narrlit.serving.checking import Checking
from narrlit.serving.encoders import SharedEncoder
from narrlit.serving.imports import Imports
from narrlit.serving.metrics import ServerMetrics
from narrlit.serving.problems import RefusedError
from narrlit.serving.results import Results
from narrlit.serving.settings import ServerSettings
from narrlit.serving.shelf import Shelf
from narrlit.serving.workers import Workers

SEARCHING = 2
"""Threads that search and explain."""


class Server:
    """State that the routes of a server share.

    Attributes:
        settings: settings of the server.
        version: release of narrlit.
        started: time of the start, in seconds since 1970.
        encoder: encoder of requests and of new collections.
        metrics: counters of requests.
        batcher: thread that embeds the texts of requests.
        shelf: the collections.
        imports: imports of files into collections.
        workers: threads that search and explain.
        maps: maps of collections, drawn by a thread of their own.
        analyses: groups of retellings, computed by the same thread.
        checking: pairs to check and catalogs, computed by the same thread.
    """

    def __init__(self, settings: ServerSettings, encoder: SharedEncoder | None = None) -> None:
        """Take the settings, and an encoder that is already loaded; None: the one that the settings name."""
        self.settings = settings
        self.version = __version__
        self.started = int(time.time())
        self.encoder = SharedEncoder(settings.model, settings.loading) if encoder is None else encoder
        self.encoder.require_one_prompt("a server")
        self.metrics = ServerMetrics()
        self.batcher = Batcher(self.encoder, settings.limits, self.metrics)
        self.shelf = Shelf(settings.data, settings.indexes, self.encoder)
        self.imports = Imports(settings, self.shelf)
        self.workers = Workers(SEARCHING, settings.limits.requests, settings.limits.seconds)
        self._drawing = Workers(1, settings.limits.requests, settings.limits.seconds)
        self.maps: Results[MapAnswer] = Results(self._drawing)
        self.checking = Checking(self._drawing)
        self.analyses = Analyses(self._drawing)

    @property
    def model(self) -> str:
        """Name of the served model; of a model in a folder, the name of the folder."""
        return self.settings.model.rstrip("/").rpartition("/")[2]

    def check_model(self, name: str | None) -> None:
        """Refuse a request that names another model."""
        if name is not None and name not in (self.model, self.settings.model):
            message = f"model {printable(name, 60)!r} is not served; leave it out, or name {self.model}"
            raise RefusedError(404, message, "model", code="model_not_found")

    def check_length(self, text: str | None, parameter: str) -> None:
        """Refuse a text that is too long."""
        most = self.settings.limits.characters
        if text is not None and len(text) > most:
            message = f"{parameter}: {len(text):,} characters, but {most:,} at most"
            raise RefusedError(
                400, message, parameter, code="text_too_long", values={"characters": len(text), "limit": most}
            )

    def hidden_paths(self) -> dict[str, str]:
        """Return the folders of the server, which no message names, and the empty text that replaces them."""
        folders = [self.shelf.folder, self.settings.data]
        folders += [index.parent for index in self.settings.indexes]
        return {f"{folder}/": "" for folder in folders}

    async def start(self) -> None:
        """Load the model, begin to answer, and go on with interrupted imports."""
        await asyncio.to_thread(lambda: self.encoder.module)
        self.batcher.start()
        self.imports.start()
        if self.settings.source is not None:
            await self.imports.take(self.settings.source)

    async def close(self) -> None:
        """Finish what is in flight, and stop imports, which go on at the next start."""
        await self.imports.close()
        for part in (self.batcher, self.workers, self._drawing):
            await asyncio.to_thread(part.close)


async def server_of(request: Request) -> Server:
    """Return the server of a request; asynchronous, because FastAPI calls other functions in a thread each time."""
    server: Server = request.app.state.server
    return server


ServerOf = Annotated[Server, Depends(server_of)]
