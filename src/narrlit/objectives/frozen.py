"""Base of the objectives over a frozen encoder: its embeddings are computed once, and a head alone trains."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor, nn

from narrlit.cache.frozen import CachedEmbeddings, FrozenFeatures, frozen_features
from narrlit.cache.sources import EmbeddingSource
from narrlit.data.batch import Packed, PackedFeatures
from narrlit.data.schema import FloatArray, Role, Story
from narrlit.errors import ModelError, OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.heads import apply_head, build_head
from narrlit.objectives.base import Objective, Optimization

SPACE = "narrlit_embedding_space"
INDIFFERENT = ("stored", "dropout")
"""Settings that may differ between a checkpoint and the run resumed from it."""


class FrozenObjective(Objective):
    """Base class: a subclass defines the head on the encoder's embeddings.

    Embeddings of all stories of a stage are computed, or read from the cache, in `setup`; the encoder is then released.

    Attributes:
        unit: what of a story is embedded: the whole story, or each of its sentences.
        dimension: D of a frozen embedding; known after `setup`.
    """

    head: nn.Module
    unit: Literal["story", "sentence"] = "story"

    def __init__(self, encoder: EncoderConfig, optimization: Optimization, embeddings: EmbeddingSource) -> None:
        super().__init__(encoder, optimization)
        self.embeddings = embeddings
        self._cached: CachedEmbeddings | None = None
        self.dimension = 0
        config = self.encoder_config
        trains = {"lora": config.lora, "frozen_layers": config.frozen_layers, "dropout": config.dropout}
        for name, value in trains.items():
            if value:
                raise OptionError(
                    f"encoder.{name} is set, but {type(self).__name__} never trains its encoder: remove it"
                )

    def save_settings(self, **own: Any) -> None:
        """Also save where embeddings come from, and what the head is built from."""
        super().save_settings(embeddings=asdict(self.embeddings), head=self.head_settings(), **own)

    @abstractmethod
    def head_settings(self) -> dict[str, Any]:
        """Return what the head is built from, as plain data; its `kind` names it."""

    def initial_head(self) -> nn.Module:
        """Build the head with its first weights."""
        return build_head(dimension=self.dimension, **self.head_settings())

    def setup(self, stage: str) -> None:
        """Fill the cache with the embeddings of all of the stage's stories."""
        data: Any = self.trainer.datamodule  # type: ignore[attr-defined]
        if stage == "fit" and not data.examples.negatives.shape[1]:
            raise OptionError(f"{type(self).__name__} needs negatives, and no training example has one")
        data.prepare_inputs(TrainerFn(stage).value)
        self.cached.release()

    def story_inputs(self, stories: Sequence[Story], name: str) -> FrozenFeatures:
        """Return the stories' frozen embeddings, computing those that the cache lacks."""
        cut, made = self.cached.truncated, self.cached.made
        inputs = frozen_features(self.cached, stories, unit=self.unit)
        self.dimension = inputs.dimension
        if self.cached.truncated > cut:
            rank_zero_info(
                f"{name}: {self.cached.truncated - cut} of {self.cached.made - made} embedded texts were cut"
            )
        return inputs

    def text_embeddings(self, texts: Sequence[str], role: Role = "anchor") -> FloatArray:
        """Embed texts (N, D) by the frozen encoder."""
        return self.cached.embeddings(texts, role)

    @property
    def cached(self) -> CachedEmbeddings:
        """The encoder's embeddings."""
        if self._cached is None:
            self._cached = CachedEmbeddings(self.encoder_config, self.embeddings, self.trainer.strategy.root_device)
        return self._cached

    def configure_model(self) -> None:
        """Build the head, once.

        Raises:
            OptionError: under a sharded strategy.
        """
        if hasattr(self, "head"):
            return
        if self.device_mesh is not None:
            raise OptionError(f"{type(self).__name__} trains a small head: use --trainer.strategy ddp")
        self.head = self.initial_head()
        self.hparams["head"]["dimension"] = self.dimension

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Also save what decides the embeddings that the head was trained on."""
        super().on_save_checkpoint(checkpoint)
        checkpoint[SPACE] = self.cached.space

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the head and the embeddings under it are those of the checkpoint.

        Raises:
            ModelError: naming the setting that differs.
        """
        settings = checkpoint.get("hyper_parameters", {})
        sides = [
            ("head", settings.get("head"), self.hparams["head"]),
            ("encoder", checkpoint.get(SPACE), self.cached.space),
        ]
        for part, saved, own in sides:
            for name in {**(saved or {}), **own}:
                there, here = (saved or {}).get(name), own.get(name)
                if settings.get("objective") == type(self).__name__ and name not in INDIFFERENT and there != here:
                    raise ModelError(
                        f"the checkpoint is of another {part}: {name} is {there!r} there, {here!r} here; give the "
                        "run's own config (config.yaml beside its checkpoints)"
                    )
        super().on_load_checkpoint(checkpoint)

    def forward(self, stories: Packed) -> Tensor:
        """Embed stories (U, output)."""
        if not isinstance(stories, PackedFeatures):
            raise TypeError("frozen embeddings are needed, not tokens")
        # In half precision a projection near the identity would move embeddings by less than they are rounded.
        with torch.autocast(self.device.type, enabled=False):
            return apply_head(self.head, stories.features, stories.lengths if self.unit == "sentence" else None)
