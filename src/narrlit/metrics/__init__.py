"""How good: accuracy over triples, intervals, and scorers that need no training."""
