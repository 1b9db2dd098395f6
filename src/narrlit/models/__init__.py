"""Encoders of stories: plain torch and sentence-transformers, no Lightning."""
