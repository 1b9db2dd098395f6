"""Reproduction of the tables of papers, next to the published figures."""
