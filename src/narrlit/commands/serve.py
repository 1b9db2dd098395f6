"""narrlit serve: run a server with the page and the HTTP API."""

import narrlit
from narrlit.commands.options import ModelOptions, TextOptions, listed
from narrlit.models.config import DEFAULT_MODEL


def serve(
    source: str | None = None,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    token: str | None = None,
    names: str | None = None,
    data: str | None = None,
    no_browser: bool = False,
    loading: ModelOptions,
) -> None:
    """Run a server with the page and the HTTP API until Ctrl-C stops it.

    Args:
        source: an index, a folder of indexes, or a file or folder of stories, which is imported; default: what is in
            the data folder.
        port: port to listen on; 0 chooses a free one.
        host: address to listen on; any other than a loopback address needs a token.
        token: secret that each request must contain; for other addresses than loopback, one is made and printed.
        names: names of other hosts under which the server answers, comma-separated, such as that of a reverse proxy; a
            token is needed then, too.
        data: folder of collections and imports; default: ~/.local/share/narrlit.
        no_browser: do not open the page in a browser.
        loading: the model of requests and new collections; default: narrlit-mini.
    """
    narrlit.serve(
        source,
        port=port,
        host=host,
        token=token,
        names=listed(names),
        data=data,
        encoder=TextOptions().load(loading.model or DEFAULT_MODEL, loading, cache=None),
        browser=not no_browser,
    )
