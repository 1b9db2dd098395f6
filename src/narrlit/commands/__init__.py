"""One file a command, one typed function each; heavy imports stay inside the functions."""
