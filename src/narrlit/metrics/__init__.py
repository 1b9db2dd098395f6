"""Metrics: accuracy over triples, intervals and tests, baselines, and checks of data."""
