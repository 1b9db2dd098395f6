"""Encoding of stories: preparation of texts, the model, post-processing and the embedding cache."""
