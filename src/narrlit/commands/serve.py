"""narrlit serve: run a server with the page and the HTTP API."""

import narrlit
from narrlit.commands.options import listed
from narrlit.models.config import DEFAULT_MODEL


def serve(
    source: str | None = None,
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    token: str | None = None,
    names: str | None = None,
    data: str | None = None,
    model: str = DEFAULT_MODEL,
    no_browser: bool = False,
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
        model: model of requests and new collections.
        no_browser: do not open the page in a browser.
    """
    narrlit.serve(
        source,
        port=port,
        host=host,
        token=token,
        names=listed(names),
        data=data,
        model=model,
        browser=not no_browser,
    )
