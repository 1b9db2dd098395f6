"""Plain texts in, plain texts out: sentences, segments, pseudonymization and back-translation."""
