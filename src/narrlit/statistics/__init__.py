"""Statistics: accuracy over triples, intervals and tests, metrics of rankings, lexical baselines, checks of data."""
