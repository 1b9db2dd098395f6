"""What is the same for every server with an OpenAI interface: its URL, its key, and what its refusals mean."""
