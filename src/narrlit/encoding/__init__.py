"""How a story becomes a vector: preparation of its text, the model, post-processing and the cache of embeddings."""
