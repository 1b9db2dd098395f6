"""Server: the page, the HTTP API, collections and imports."""
