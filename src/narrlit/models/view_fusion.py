"""A sentence-transformers module: stories joined with their views in, one vector a story out.

A copy of this file, and of those that it imports from this package, lies in every folder that
`narrlit.models.view_encoder.ViewEncoder.save` writes, and works there without the package. Here it only writes.
"""

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer

from narrlit.models.inner_model import InnerModel
from narrlit.models.views import ViewFuser
from narrlit.text.joined import split


class ViewFusion(InnerModel):
    """The only module of a model: a story's text and views, each embedded with the prompt before it, and their fusion.

    The model of texts is frozen: no gradient reaches it.
    """

    def __init__(self, inner: SentenceTransformer, fuser: ViewFuser) -> None:
        """Args: model of texts and views; what makes one vector of theirs."""
        super().__init__(inner)
        self.fuser = fuser

    def get_embedding_dimension(self) -> int:
        """Numbers of a story's vector."""
        return self.fuser.dimension

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Take U stories apart: text, theme, plot and outcome of one after the other.

        Raises:
            ValueError: for a story without views.
        """
        pieces: list[str] = []
        for number, joined in enumerate(inputs, 1):
            text, views = split(joined)
            if views is None:
                raise ValueError(
                    f"story {number} has no views: write them behind it, after lines [theme], [plot] and [outcome]"
                )
            pieces += [(prompt or "") + part for part in (text, *views.texts)]
        return {"pieces": pieces}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add the stories' vectors, (U, D), as `sentence_embedding`."""
        vectors = self.inner_vectors(features["pieces"]).unflatten(0, (-1, 4))
        weight = next(self.fuser.parameters(), None)
        return {**features, "sentence_embedding": self.fuser(vectors if weight is None else vectors.to(weight))}

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model of texts into a subfolder, and the fusion beside it."""
        self.fuser.save(self.save_inner(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> "ViewFusion":
        """What `save` wrote, from a folder or a model hub.

        Args:
            model_name_or_path: as sentence-transformers has it.
            subfolder: where in it.
            options: of loading; those that concern transformers go to the model of texts.
        """
        model, folder = cls.load_inner(model_name_or_path, subfolder, options)
        return cls(model, ViewFuser.load(folder))
