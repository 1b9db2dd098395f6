"""Preprocessing of plain texts: sentences, passages, segments, languages, pseudonymization and back-translation."""
