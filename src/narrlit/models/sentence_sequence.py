"""A sentence-transformers module: stories in, a vector of each of their sentences, a BiLSTM's vector of a story out.

A copy of this file, and of those that it imports from this package, lies in every folder that
`narrlit.models.sentence_encoder.SentenceEncoder.save` writes, and works there without the package. Here it only writes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule

from narrlit.models.bilstm import BiLSTM
from narrlit.text.sentences import sentences

INNER = "inner"
"""The subfolder with the model of sentences, itself a sentence-transformers folder."""


class SentenceSequence(InputModule):
    """The only module of a model: sentences by rule, each embedded with the prompt before it, and a BiLSTM over them.

    The model of sentences is frozen: no gradient reaches it.
    """

    def __init__(self, inner: SentenceTransformer, head: BiLSTM) -> None:
        """Args: model of sentences; BiLSTM over their vectors."""
        super().__init__()
        self.inner = inner
        self.head = head

    @property
    def max_seq_length(self) -> int | None:
        """Tokens of a sentence that are read."""
        length: int | None = self.inner.max_seq_length
        return length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self.inner.max_seq_length = value

    def get_embedding_dimension(self) -> int:
        """Numbers of a story's vector."""
        return self.head.dimension

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Cut U stories into sentences: all of these one after the other, and how many are each story's."""
        pieces = [sentences(text) for text in inputs]
        prompted = [(prompt or "") + part for parts in pieces for part in parts]
        return {"sentences": prompted, "lengths": [len(parts) for parts in pieces]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add the stories' vectors, (U, output), as `sentence_embedding`.

        Raises:
            ValueError: for a story without a sentence.
        """
        vectors = self.inner.encode(features["sentences"], prompt="", convert_to_tensor=True, show_progress_bar=False)
        # A copy, because gradients of the BiLSTM can't be computed from what encode's inference mode returns.
        vectors = vectors.clone().to(self.head.linear.weight)
        return {**features, "sentence_embedding": self.head(vectors, features["lengths"])}

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model of sentences into a subfolder, and the BiLSTM beside it."""
        self.inner.save(str(Path(output_path) / INNER), create_model_card=False)
        self.head.save(Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> "SentenceSequence":
        """What `save` wrote, from a folder or a model hub.

        Args:
            model_name_or_path: as sentence-transformers has it.
            subfolder: where in it.
            options: of loading; those that concern transformers go to the model of sentences.
        """
        hub = {name: options[name] for name in _HUB if name in options}
        folder = Path(cls.load_dir_path(model_name_or_path, subfolder, **hub))
        inner = {name: options[name] for name in _INNER_OPTIONS if name in options}
        model = SentenceTransformer(str(folder / INNER), device="cpu", local_files_only=True, **inner)
        return cls(model, BiLSTM.load(folder))


_HUB = ("token", "cache_folder", "revision", "local_files_only")
_INNER_OPTIONS = ("trust_remote_code", "model_kwargs", "processor_kwargs", "config_kwargs", "backend")
