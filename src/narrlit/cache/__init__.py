"""Embeddings on disk by content: computed once by an encoder, a server or vLLM, read by every later run."""
