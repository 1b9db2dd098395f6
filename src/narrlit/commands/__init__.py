"""One file a command, one typed function each, which calls the library as `narrlit.NAME`: it loads on use."""
