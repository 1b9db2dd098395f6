"""A sentence-transformers module around a whole model in a subfolder: what the modules that narrlit writes share.

A copy of this file lies in the folders that bring their code, and works there without the package.
"""

from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule

INNER = "inner"
"""The subfolder with the model inside, itself a sentence-transformers folder."""

_HUB = ("token", "cache_folder", "revision", "local_files_only")
_INNER_OPTIONS = ("trust_remote_code", "model_kwargs", "processor_kwargs", "config_kwargs", "backend")


class InnerModel(InputModule):
    """Reads texts by a model inside, which is frozen: no gradient reaches it."""

    def __init__(self, inner: SentenceTransformer) -> None:
        super().__init__()
        self.inner = inner

    @property
    def max_seq_length(self) -> int | None:
        """Tokens of a text that the model inside reads."""
        length: int | None = self.inner.max_seq_length
        return length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self.inner.max_seq_length = value

    def inner_vectors(self, texts: list[str]) -> Any:
        """Vectors (N, D) of texts with their prompts before them."""
        vectors = self.inner.encode(texts, prompt="", convert_to_tensor=True, show_progress_bar=False)
        # A copy, because gradients of what follows can't be computed from what encode's inference mode returns.
        return vectors.clone()

    def save_inner(self, output_path: str) -> Path:
        """Write the model inside into its subfolder; returns the folder around it."""
        self.inner.save(str(Path(output_path) / INNER), create_model_card=False)
        return Path(output_path)

    @classmethod
    def load_inner(cls, source: str, subfolder: str, options: dict[str, Any]) -> tuple[SentenceTransformer, Path]:
        """The model inside, and the folder around it.

        Args:
            source: a folder or a model hub's id, as sentence-transformers has it.
            subfolder: where in it.
            options: of loading; those that concern transformers go to the model inside.
        """
        hub = {name: options[name] for name in _HUB if name in options}
        folder = Path(cls.load_dir_path(source, subfolder, **hub))
        inner = {name: options[name] for name in _INNER_OPTIONS if name in options}
        return SentenceTransformer(str(folder / INNER), device="cpu", local_files_only=True, **inner), folder
