"""Sentence-transformers folders with model cards, their upload to a hub, and averaging of weights."""
