"""Projection of a frozen encoder (Comhis): a square linear map, trained on triples, the hard ones drawn more often."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from torch import Tensor, nn

from narrlit.data.batch import ExampleBatch
from narrlit.data.records import Example, example_of
from narrlit.data.table import index_examples
from narrlit.errors import OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.hard_examples import hard_examples
from narrlit.models.heads import build_head
from narrlit.objectives.base import Optimization
from narrlit.objectives.frozen import FrozenObjective, positive_and_negative_cosines
from narrlit.objectives.triplet import triplet_terms
from narrlit.stores.sources import VectorOptions


@dataclass(frozen=True)
class Hard:
    """How training triples are weighted that the frozen vectors rank wrongly.

    Attributes:
        share: of all triples, which are taken for hard at most: of those ranked wrongly the closest calls.
        weight: how much more often than another a hard triple is drawn, each time out of all of them; 1: nothing is
            drawn, and every triple comes once an epoch.
        mine_validation: also take hard triples out of the validation data, with their labels, into training, as the
            paper does: validation accuracy then says nothing of other triples. The run is marked so.
    """

    share: float = 0.2
    weight: float = 2.0
    mine_validation: bool = False

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if not 0 <= self.share <= 1:
            raise OptionError(f"hard.share is {self.share}: a share from 0 to 1 is needed")
        if not self.weight > 0:
            raise OptionError(f"hard.weight is {self.weight}: a positive number is needed")


class Projection(FrozenObjective):
    """Mean of max(0, margin - (cos(x, p) - cos(x, n))) over projected vectors e' = W e / |W e|.

    W is square, without bias, and begins as the identity plus noise; with `learning_rate: 0` and no noise it stays the
    identity, a control. Hard triples are found once, by the frozen vectors of the training triples alone.

    Source: Comhis, Eq. 1 and 2, section 4.3 and appendix A.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        vectors: VectorOptions = VectorOptions(),  # noqa: B008 (frozen)
        margin: float = 0.2,
        noise: float = 0.01,
        hard: Hard = Hard(),
    ) -> None:
        """Args: see the class; `noise` is the length of the random part of W e for a unit vector e.

        Raises:
            OptionError: for a margin or noise below 0.
        """
        if not (margin >= 0 and noise >= 0):
            raise OptionError(f"margin {margin} and noise {noise}: numbers of at least 0 are needed")
        super().__init__(encoder, optimization, vectors)
        self.margin = margin
        self.noise = noise
        self.hard = Hard(**hard) if isinstance(hard, dict) else hard
        self.keep_hyperparameters(margin=margin, noise=noise, hard=asdict(self.hard))

    def head_settings(self) -> dict[str, Any]:
        """A projection."""
        return {"kind": "projection"}

    def build_head(self, dimension: int) -> nn.Module:
        """The identity plus noise."""
        return build_head("projection", dimension, noise=self.noise)

    def marks(self) -> dict[str, bool]:
        """Also whether validation triples were mined."""
        return {**super().marks(), "mined_validation": self.hard.mine_validation}

    def check(self, data: Any) -> None:
        """Mining validation triples needs some."""
        if self.hard.mine_validation and not data.triples["validation"]:
            raise OptionError("model.hard.mine_validation needs validation triples: give --data.validation FILE")

    def prepare(self, stage: str, data: Any) -> None:
        """Find the hard triples, and have them drawn more often."""
        if stage != "fit" or (self.hard.weight == 1 and not self.hard.mine_validation):
            return
        rows, wrong = hard_examples(
            *positive_and_negative_cosines(data.training_table(), data.indexed), self.hard.share
        )
        found: dict[str, Any] = {"wrong": wrong, "hard": len(rows)}
        weights = np.ones(len(data.indexed))
        weights[rows.numpy()] = self.hard.weight
        rank_zero_info(
            f"{wrong} of {len(weights)} training triples are ranked wrongly, {len(rows)} are drawn more often"
        )
        if self.hard.mine_validation:
            mined = self._mined(data)
            data.train_also(mined)
            weights = np.concatenate([weights, np.full(len(mined), self.hard.weight)])
            found["mined_validation"] = len(mined)
            rank_zero_warn(
                f"{len(mined)} validation triples train, too: validation accuracy says nothing of other triples"
            )
        if self.hard.weight != 1:
            data.weight(weights)
        data.training_table()
        data.provenance["train"]["hard"] = found

    def _mined(self, data: Any) -> list[Example]:
        examples = [example_of(triple) for triple in data.triples["validation"]]
        indexed = index_examples(examples)
        table = self.story_table(indexed.table.texts, "validation")
        rows, _ = hard_examples(*positive_and_negative_cosines(table, indexed), self.hard.share)
        return [examples[row] for row in rows.tolist()]

    def loss(self, vectors: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """See the class; `active` is the share of triplets that still pull."""
        return triplet_terms(vectors, batch, self.margin)
