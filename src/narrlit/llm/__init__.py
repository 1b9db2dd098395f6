"""Language models behind an OpenAI-compatible server: client, answer cache, batches, generation and judging."""
