"""What objectives over a frozen encoder share: its vectors are made once, and a head alone trains."""

from abc import abstractmethod
from dataclasses import asdict
from typing import Any

import torch
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor, nn

from narrlit.data.batch import Packed, PackedVectors
from narrlit.errors import ModelError, OptionError
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization
from narrlit.stores.features import FeatureTable, Units, feature_table, whole
from narrlit.stores.frozen import FrozenVectors
from narrlit.stores.sources import VectorOptions

SPACE = "narrlit_vector_space"
FREE = ("stored", "dropout")
"""Settings that may differ between a checkpoint and the run that goes on from it."""


class FrozenObjective(Objective):
    """Base of the objectives that never train their encoder: a subclass says which head stands on its vectors.

    Vectors of all stories of a stage are made, or found in the store, in `setup`; the encoder is then let go of.
    """

    head: nn.Module
    units: Units = staticmethod(whole)
    """What of a story has a vector of its own: the whole, or each sentence."""

    def __init__(self, encoder: EncoderConfig, optimization: Optimization, vectors: VectorOptions) -> None:
        super().__init__(encoder, optimization)
        self.vectors = VectorOptions.from_dict(vectors) if isinstance(vectors, dict) else vectors
        self._frozen: FrozenVectors | None = None
        self.dimension = 0
        """D, numbers of a frozen vector; known after `setup`."""
        config = self.encoder_config
        trains = {"lora": config.lora, "frozen_layers": config.frozen_layers, "dropout": config.dropout}
        for name, value in trains.items():
            if value:
                raise OptionError(
                    f"encoder.{name} is set, but {type(self).__name__} never trains its encoder: leave it"
                )

    def keep_hyperparameters(self, **own: Any) -> None:
        """Also where vectors come from, and what the head is, from which alone it can be built anew."""
        super().keep_hyperparameters(vectors=asdict(self.vectors), head=self.head_settings(), **own)

    @abstractmethod
    def head_settings(self) -> dict[str, Any]:
        """What the head is, as plain data; its `kind` names it."""

    @abstractmethod
    def build_head(self, dimension: int) -> nn.Module:
        """The head for frozen vectors of D numbers, with its first weights."""

    def setup(self, stage: str) -> None:
        """See to it that the store holds the vectors of all of the stage's stories."""
        data: Any = self.trainer.datamodule  # type: ignore[attr-defined]
        if stage == "fit":
            if not data.indexed.negatives.shape[1]:
                raise OptionError(f"{type(self).__name__} needs negatives, and no training example has one")
            self.check(data)
        tables = [data.training_table()] if stage == "fit" else []
        tables += [data.judged_table(name) for name in data.stages_of(stage)]
        self.dimension = tables[0].dimension
        self.prepare(stage, data)
        if self._frozen is not None:
            self._frozen.release()

    def check(self, data: Any) -> None:
        """Refuse data that a fit can't use, before the first vector is made, which may take hours."""

    def prepare(self, stage: str, data: Any) -> None:
        """What a subclass does with the stage's vectors before training or judging."""

    def story_table(self, texts: list[str], name: str) -> FeatureTable:
        """What batches hold of each story: its frozen vectors, made first where the store lacks them."""
        before = self.frozen.truncated
        table = feature_table(self.frozen, texts, type(self).units)
        cut = self.frozen.truncated - before
        if cut:
            made = table.provenance["vectors"]["made"]
            rank_zero_info(f"{name}: {cut} of {made} texts that were embedded now were cut, they are too long")
        return table

    @property
    def frozen(self) -> FrozenVectors:
        """The encoder's vectors, from the store."""
        if self._frozen is None:
            self._frozen = FrozenVectors(self.encoder_config, self.vectors, self.trainer.strategy.root_device)
        return self._frozen

    def configure_model(self) -> None:
        """Build the head, once.

        Raises:
            OptionError: under a sharded strategy.
        """
        if hasattr(self, "head"):
            return
        if self.device_mesh is not None:
            raise OptionError(
                f"{type(self).__name__} trains a small head: use --trainer.strategy ddp, nothing is sharded"
            )
        self.head = self.build_head(self.dimension)
        self.hparams["head"]["dimension"] = self.dimension

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Also keep what decides the vectors that the head was trained on."""
        super().on_save_checkpoint(checkpoint)
        checkpoint[SPACE] = self.frozen.space

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """See that the head and the vectors under it are those of the checkpoint.

        Raises:
            ModelError: naming the setting that differs.
        """
        super().on_load_checkpoint(checkpoint)
        head, now = checkpoint["hyper_parameters"].get("head") or {}, dict(self.hparams["head"])
        sides = [("head", head, now), ("encoder", checkpoint.get(SPACE) or {}, self.frozen.space)]
        for what, kept, here in sides:
            for name in kept | here:
                if name not in FREE and kept.get(name) != here.get(name):
                    raise ModelError(
                        f"the checkpoint is of another {what}: {name} is {kept.get(name)!r} there, {here.get(name)!r} "
                        "here; give the run's own config (config.yaml beside its checkpoints)"
                    )

    def forward(self, stories: Packed) -> Tensor:
        """Vectors (U, output) of stories."""
        if not isinstance(stories, PackedVectors):
            raise TypeError("frozen vectors are needed, not tokens")
        # In half precision a projection near the identity would move vectors by less than they are rounded.
        with torch.autocast(self.device.type, enabled=False):
            return self.apply_head(stories)

    def apply_head(self, stories: PackedVectors) -> Tensor:
        """What `forward` computes, in the weights' own precision."""
        vectors: Tensor = self.head(stories.vectors)
        return vectors


def positive_and_negative_cosines(table: FeatureTable, examples: Any) -> tuple[Tensor, Tensor]:
    """Cosines (N,) of each anchor's frozen vector with its positive's, and with its nearest negative's.

    Args:
        table: the training stories' vectors, one a story.
        examples: IndexedExamples; one without a negative gets -inf, as nothing is nearer than its positive.
    """
    near, far = [], []
    for start in range(0, len(examples), EXAMPLES_A_BLOCK):
        chosen = slice(start, start + EXAMPLES_A_BLOCK)
        columns = [
            table.places(examples.anchors[chosen], "anchor"),
            table.places(examples.positives[chosen], "candidate"),
            table.places(examples.negatives[chosen], "candidate"),
        ]
        stories, (anchors, positives, negatives) = table.pack(columns)
        unit = nn.functional.normalize(stories.vectors, dim=-1)
        near.append((unit[anchors] * unit[positives]).sum(-1))
        cosines = torch.einsum("bd,bkd->bk", unit[anchors], unit[negatives.clamp(min=0)])
        lowest = cosines.new_full((len(cosines), 1), -torch.inf)
        far.append(torch.cat([cosines.masked_fill(negatives < 0, -torch.inf), lowest], dim=1).amax(1))
    return torch.cat(near), torch.cat(far)


EXAMPLES_A_BLOCK = 4096
