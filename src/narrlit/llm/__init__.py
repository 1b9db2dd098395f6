"""Language models behind a URL: the client, and what is asked of them."""
