"""Embedding cache, addressed by content: filled once by an encoder, a server or vLLM, and read by every later run."""
