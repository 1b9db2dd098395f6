"""A sentence-transformers module: stories in, a vector of each of their sentences, a BiLSTM's vector of a story out.

A copy of this file, and of those that it imports from this package, lies in every folder that
`narrlit.models.sentence_encoder.SentenceEncoder.save` writes, and works there without the package. Here it only writes.
"""

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer

from narrlit.models.bilstm import BiLSTM
from narrlit.models.inner_model import InnerModel
from narrlit.preprocessing.sentences import split_sentences as sentences


class SentenceSequence(InnerModel):
    """The only module of a model: sentences by rule, each embedded with the prompt before it, and a BiLSTM over them.

    The model of sentences is frozen: no gradient reaches it.
    """

    def __init__(self, inner: SentenceTransformer, head: BiLSTM) -> None:
        """Args: model of sentences; BiLSTM over their vectors."""
        super().__init__(inner)
        self.head = head

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
        vectors = self.inner_vectors(features["sentences"]).to(self.head.linear.weight)
        return {**features, "sentence_embedding": self.head(vectors, features["lengths"])}

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model of sentences into a subfolder, and the BiLSTM beside it."""
        self.head.save(self.save_inner(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> "SentenceSequence":
        """What `save` wrote, from a folder or a model hub.

        Args:
            model_name_or_path: as sentence-transformers has it.
            subfolder: where in it.
            options: of loading; those that concern transformers go to the model of sentences.
        """
        model, folder = cls.load_inner(model_name_or_path, subfolder, options)
        return cls(model, BiLSTM.load(folder))
