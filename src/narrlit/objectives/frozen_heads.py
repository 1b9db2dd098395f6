"""Objectives over a frozen encoder: its embeddings are computed once, and a head alone trains."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor, nn

from narrlit.cache.embeddings import CachedEmbeddings, FrozenFeatures, frozen_features
from narrlit.cache.sources import EmbeddingSource
from narrlit.compat.lightning import undeclared
from narrlit.data.batch import ExampleBatch, Packed, PackedFeatures
from narrlit.data.schema import FloatArray, Role, Story
from narrlit.errors import ModelError, OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.heads import apply_head, build_head
from narrlit.objectives.base import OWN_CONFIG, Objective, Optimization, check_numbers
from narrlit.objectives.triplet_margin import triplet_terms

SPACE = "narrlit_embedding_space"
INDIFFERENT = ("stored", "dropout")
"""Settings that may differ between a checkpoint and the run resumed from it."""


class FrozenObjective(Objective):
    """Base class: a subclass defines the head on the encoder's embeddings.

    Embeddings of all stories of a stage are computed, or read from the cache, in `setup`; the encoder is then released.

    Attributes:
        unit: part of a story that is embedded: the whole story, or each of its sentences.
        dimension: D of a frozen embedding; known after `setup`.
    """

    head: nn.Module
    unit: Literal["story", "sentence"] = "story"

    def __init__(self, encoder: EncoderConfig, optimization: Optimization, embeddings: EmbeddingSource) -> None:
        super().__init__(encoder, optimization)
        self.embeddings = embeddings
        self._cached: CachedEmbeddings | None = None
        self.dimension = 0
        for name in ("lora", "frozen_layers", "dropout"):
            if getattr(encoder, name):
                raise OptionError(
                    f"encoder.{name} is set, but {type(self).__name__} never trains its encoder: remove it"
                )

    def save_settings(self, **own: object) -> None:
        """Also save the source of embeddings, and the settings of the head."""
        super().save_settings(embeddings=asdict(self.embeddings), head=self.head_settings(), **own)

    @abstractmethod
    def head_settings(self) -> dict[str, Any]:
        """Return the settings of the head as plain data, with its `kind`."""

    def initial_head(self) -> nn.Module:
        """Build the head with its first weights."""
        return build_head(dimension=self.dimension, **self.head_settings())

    def setup(self, stage: str) -> None:
        """Fill the cache with the embeddings of all of the stage's stories."""
        data = undeclared(self.trainer).datamodule
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
        """Build the head, once; sharded strategies are refused."""
        if hasattr(self, "head"):
            return
        if self.device_mesh is not None:
            raise OptionError(f"{type(self).__name__} trains a small head: use `trainer.strategy=ddp`")
        self.head = self.initial_head()
        self.hparams["head"]["dimension"] = self.dimension

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Also save the settings that decide the embeddings on which the head was trained."""
        super().on_save_checkpoint(checkpoint)
        checkpoint[SPACE] = self.cached.space

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the head and the embeddings under it are those of the checkpoint."""
        self.check_objective(checkpoint)
        saved_head = checkpoint["hyper_parameters"].get("head", {})
        sides = (("head", saved_head, self.hparams["head"]), ("encoder", checkpoint.get(SPACE, {}), self.cached.space))
        for part, saved, own in sides:
            for name in saved | own:
                there, here = saved.get(name), own.get(name)
                if name not in INDIFFERENT and there != here:
                    raise ModelError(
                        f"the checkpoint is of another {part}: {name} is {there!r} there, {here!r} here; {OWN_CONFIG}"
                    )
        super().on_load_checkpoint(checkpoint)

    def forward(self, stories: Packed) -> Tensor:
        """Embed stories (U, output)."""
        if not isinstance(stories, PackedFeatures):
            raise TypeError("frozen embeddings are needed, not tokens")
        # In half precision a projection near the identity would move embeddings by less than they are rounded.
        with torch.autocast(self.device.type, enabled=False):
            return apply_head(self.head, stories.features, stories.lengths if self.unit == "sentence" else None)

    def frozen_embeddings(self, stories: Packed) -> Tensor:
        """Return the mean (U, D) of each story's frozen embeddings; of a whole story there is one."""
        if not isinstance(stories, PackedFeatures):
            raise TypeError("frozen embeddings are needed, not tokens")
        pieces = torch.split(stories.features, list(stories.lengths))
        return torch.stack([own.mean(0) for own in pieces])


class Projection(FrozenObjective):
    """Mean of max(0, margin - (cos(x, p) - cos(x, n))) over projected embeddings e' = W e / |W e|.

    W is square, without bias, and starts as the identity plus noise; with `learning_rate: 0` and no noise it stays the
    identity, a control. Comhis samples hard examples more often: `data.hard_examples`.

    Source: Comhis, Eq. 1 and 2, section 4.3 and appendix A.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        embeddings: EmbeddingSource = EmbeddingSource(),
        margin: float = 0.2,
        noise: float = 0.01,
    ) -> None:
        """Set the loss and the first weights.

        Args:
            encoder: whose embeddings are projected.
            optimization: optimizer of the projection.
            embeddings: source of frozen embeddings.
            margin: of the triplet loss, in cosine distance.
            noise: standard deviation of W's noise, before division by the root of the dimension.
        """
        check_numbers("", minimum_0={"margin": margin, "noise": noise})
        super().__init__(encoder, optimization, embeddings)
        self.margin = margin
        self.noise = noise
        self.save_settings(margin=margin, noise=noise)

    def head_settings(self) -> dict[str, Any]:
        """Return the head's kind."""
        return {"kind": "projection"}

    def initial_head(self) -> nn.Module:
        """Build the identity plus noise."""
        return build_head("projection", self.dimension, noise=self.noise)

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss; `active` is the share of triplets within the margin."""
        return triplet_terms(embeddings, batch, self.margin)


class MLPHead(FrozenObjective):
    """Triplet margin loss on cosine distance, over linear layers with ReLU between them; none hidden: a linear map.

    Source: Mendel292, appendix B, item 2, which names no activation.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        embeddings: EmbeddingSource = EmbeddingSource(),
        hidden: list[int] | None = None,
        output: int = 256,
        margin: float = 1.0,
    ) -> None:
        """Set the head and its loss.

        Args:
            encoder: whose embeddings the head maps.
            optimization: optimizer of the head.
            embeddings: source of frozen embeddings.
            hidden: sizes of hidden layers.
            output: dimension of an embedding.
            margin: of the triplet loss, in cosine distance.
        """
        if min([output, *(hidden or [])]) < 1:
            raise OptionError(f"hidden {hidden} and output {output}: both must be at least 1")
        check_numbers("", minimum_0={"margin": margin})
        super().__init__(encoder, optimization, embeddings)
        self.hidden = list(hidden or [])
        self.output = output
        self.margin = margin
        self.save_settings(margin=margin)

    def head_settings(self) -> dict[str, Any]:
        """Return the head's kind and sizes."""
        return {"kind": "mlp", "hidden": self.hidden, "output": self.output}

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss; `active` is the share of triplets within the margin."""
        return triplet_terms(embeddings, batch, self.margin)
