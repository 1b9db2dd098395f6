"""Questions to language models behind OpenAI's interface, and what comes of the answers."""
