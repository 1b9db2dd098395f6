"""A linear or MLP head on a frozen encoder's vectors of whole stories (Mendel292's models beside the BiLSTM)."""

from typing import Any

from torch import Tensor, nn

from narrlit.data.batch import ExampleBatch
from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.heads import build_head
from narrlit.objectives.base import Optimization
from narrlit.objectives.frozen import FrozenObjective
from narrlit.objectives.triplet import triplet_terms
from narrlit.stores.sources import VectorOptions


class StoryHead(FrozenObjective):
    """Triplet margin loss on cosine distance, over linear layers with ReLU between them; none hidden: a linear map.

    Source: Mendel292, appendix B, item 2.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        vectors: VectorOptions = VectorOptions(),  # noqa: B008 (frozen)
        hidden: list[int] | None = None,
        output: int = 256,
        margin: float = 1.0,
    ) -> None:
        """Args: see the class; `hidden` are the sizes of hidden layers, `output` the numbers of one vector.

        Raises:
            OptionError: for a size below 1 or a margin below 0.
        """
        if min([output, *(hidden or [])]) < 1:
            raise OptionError(f"hidden {hidden} and output {output}: sizes of at least 1 are needed")
        if not margin >= 0:
            raise OptionError(f"margin is {margin}: a number of at least 0 is needed")
        super().__init__(encoder, optimization, vectors)
        self.hidden = list(hidden or [])
        self.output = output
        self.margin = margin
        self.keep_hyperparameters(margin=margin)

    def head_settings(self) -> dict[str, Any]:
        """Layers and their sizes."""
        return {"kind": "layers", "hidden": self.hidden, "output": self.output}

    def build_head(self, dimension: int) -> nn.Module:
        """The layers, as torch draws them."""
        return build_head(dimension=dimension, **self.head_settings())

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class; `active` is the share of triplets that still pull."""
        return triplet_terms(vectors, batch, self.margin)
