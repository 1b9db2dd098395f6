"""What stands where an encoder stands and makes a story's vector out of those of an encoder inside."""

from typing import Any

from torch import nn

from narrlit.models.config import EncoderConfig, Role


class Wrapper(nn.Module):
    """Answers for the encoder inside; `narrlit.models.embedding.embed` computes a wrapper's vectors."""

    inner: Any

    @property
    def config(self) -> EncoderConfig:
        """What the encoder inside is."""
        config: EncoderConfig = self.inner.config
        return config

    @property
    def max_length(self) -> int:
        """Tokens that the encoder inside reads of a text, prompt and special tokens included."""
        return int(self.inner.max_length)

    @property
    def normalized(self) -> bool:
        """Whether vectors have length 1: always."""
        return True

    @property
    def has_adapters(self) -> bool:
        """Whether adapters stand beside the weights of the encoder inside."""
        return bool(self.inner.has_adapters)

    @property
    def quantized(self) -> bool:
        """Whether weights of the encoder inside are kept in fewer bits."""
        return bool(self.inner.quantized)

    def merge(self) -> None:
        """Make the encoder inside a plain one, in place."""
        self.inner.merge()

    def prompt(self, role: Role) -> str:
        """The text put before each text that the encoder inside reads, in this role."""
        return str(self.inner.prompt(role))

    def require_one_prompt(self, purpose: str) -> None:
        """Refuse role prompts where one vector serves both roles.

        Raises:
            ModelError: if the anchor's, the candidate's and the story's prompts differ.
        """
        self.inner.require_one_prompt(purpose)
