"""narrlit: embeddings of stories, near when theme, course of action and outcome agree."""

__version__ = "0.1.0"
