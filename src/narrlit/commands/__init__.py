"""Commands, one per file: a typed function that calls the library as `narrlit.NAME`, imported on first use."""
