"""Vectors on disk by content: made once, read by row."""
