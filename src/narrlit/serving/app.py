"""Application of a server: routes, checks and errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.staticfiles import StaticFiles

from narrlit import __version__
from narrlit.pages import PAGE
from narrlit.serving import analysis_api, checking_api, collections_api, imports_api, programs, project_api
from narrlit.serving.encoders import SharedEncoder
from narrlit.serving.middleware import (
    AnsweredFaults,
    CheckedHost,
    CheckedOrigin,
    LimitedBody,
    LimitedRequests,
    MeasuredRequests,
    RequiredToken,
    SecurityHeaders,
)
from narrlit.serving.problems import ErrorAnswer, install_handlers, missing
from narrlit.serving.settings import ServerSettings
from narrlit.serving.state import Server, ServerOf

INDEX = PAGE / "index.html"
DESCRIPTION = (
    "Embeddings of stories by theme, course of action and outcome; search, explanations and maps of collections."
)


def create_app(settings: ServerSettings, encoder: SharedEncoder | None = None) -> FastAPI:
    """Create the application of a server, for any ASGI server.

    Args:
        settings: settings of the server.
        encoder: encoder of requests that is already loaded; None: the model that the settings name.

    Raises:
        ModelError: if there is no such model, or it has separate prompts for anchors and candidates.
    """
    server = Server(settings, encoder)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await server.start()
        yield
        await server.close()

    app = FastAPI(
        title="narrlit",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # Swagger UI and ReDoc load scripts from elsewhere
        redoc_url=None,
        responses={"4XX": {"model": ErrorAnswer}, 503: {"model": ErrorAnswer}},
    )
    app.state.server = server
    install_handlers(app, server.hidden_paths)
    app.include_router(programs.router)
    app.include_router(collections_api.router)
    app.include_router(imports_api.router)
    app.include_router(checking_api.router)
    app.include_router(analysis_api.router)
    app.include_router(project_api.router)
    _add_metrics(app)
    _add_page(app)

    # The last one that is added is the first that a request meets.
    app.add_middleware(AnsweredFaults)
    app.add_middleware(LimitedBody, settings=settings)
    app.add_middleware(LimitedRequests, limit=settings.limits.requests)
    app.add_middleware(RequiredToken, token=settings.token)
    app.add_middleware(CheckedOrigin)
    app.add_middleware(CheckedHost, settings=settings)
    app.add_middleware(MeasuredRequests, metrics=server.metrics)
    app.add_middleware(SecurityHeaders)
    return app


def _add_metrics(app: FastAPI) -> None:
    @app.get("/metrics", response_class=PlainTextResponse, tags=["programs"])
    async def metrics(server: ServerOf) -> PlainTextResponse:
        """Return the metrics of the server in the format of Prometheus."""
        return PlainTextResponse(server.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_page(app: FastAPI) -> None:
    app.mount("/page", StaticFiles(directory=PAGE, check_dir=False), name="page")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        if not INDEX.is_file():
            raise missing("page", INDEX.name)
        return FileResponse(INDEX)
