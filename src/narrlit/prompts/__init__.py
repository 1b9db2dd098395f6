"""What language models are asked to do: one text file a prompt, whose digest stands in every key and record."""

from narrlit.prompts.prompt import Prompt, load_prompt

__all__ = ["Prompt", "load_prompt"]
