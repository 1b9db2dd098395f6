"""Objectives that train a head on a frozen encoder, whose embeddings are computed once."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor, nn

from narrlit.compat.lightning import undeclared
from narrlit.data.batch import ExampleBatch, Packed, PackedFeatures
from narrlit.data.schema import FloatArray, Story, TripleRole
from narrlit.embedding_cache.embeddings import CachedEmbeddings, FrozenFeatures, frozen_features
from narrlit.embedding_cache.sources import EmbeddingSource
from narrlit.errors import ModelError, OptionError
from narrlit.models.config import EncoderConfig
from narrlit.models.heads import apply_head, build_head
from narrlit.objectives.base import Objective, Optimization, check_numbers
from narrlit.objectives.triplet_margin import triplet_terms

SPACE = "narrlit_embedding_space"
MAY_DIFFER = ("stored", "dropout")
"""Settings that may differ between a checkpoint and the run that resumes from it."""


class FrozenObjective(Objective):
    """Base class of objectives with a frozen encoder; a subclass defines the head on its embeddings.

    The embeddings of all stories of a stage are computed, or read from the cache, in `setup`. The encoder is then
    released.

    Attributes:
        unit: unit that is embedded: the whole story, or each of its sentences.
        dimension: dimension D of a frozen embedding; known after `setup`.
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
                raise OptionError("encoder_never_trained", option=f"encoder.{name}", objective=type(self).__name__)

    def save_settings(self, **settings: object) -> None:
        """Also save the source of embeddings, and the settings of the head."""
        super().save_settings(embeddings=asdict(self.embeddings), head=self.head_settings(), **settings)

    @abstractmethod
    def head_settings(self) -> dict[str, Any]:
        """Return the settings of the head as plain data, including its `kind`."""

    def initial_head(self) -> nn.Module:
        """Build the head with its initial weights."""
        return build_head(dimension=self.dimension, **self.head_settings())

    def setup(self, stage: str) -> None:
        """Compute or read the embeddings of all stories of the stage."""
        data = undeclared(self.trainer).datamodule
        if stage == "fit" and not data.examples.negatives.shape[1]:
            raise OptionError("objective_needs_negatives", objective=type(self).__name__)
        data.prepare_inputs(TrainerFn(stage).value)
        self.cached.release()

    def story_inputs(self, stories: Sequence[Story], name: str) -> FrozenFeatures:
        """Return the frozen embeddings of stories; those that are not cached are computed."""
        truncated_before, made_before = self.cached.truncated, self.cached.made
        inputs = frozen_features(self.cached, stories, unit=self.unit)
        self.dimension = inputs.dimension
        truncated, made = self.cached.truncated - truncated_before, self.cached.made - made_before
        if truncated:
            rank_zero_info(f"{name}: {truncated} of {made} embedded texts were truncated")
        return inputs

    def text_embeddings(self, texts: Sequence[str], role: TripleRole = "anchor") -> FloatArray:
        """Embed N texts with the frozen encoder, (N, D)."""
        return self.cached.embeddings(texts, role)

    @property
    def cached(self) -> CachedEmbeddings:
        """Cached embeddings of the encoder."""
        if self._cached is None:
            self._cached = CachedEmbeddings(self.encoder_config, self.embeddings, self.trainer.strategy.root_device)
        return self._cached

    def configure_model(self) -> None:
        """Build the head, once; raise OptionError for sharded strategies."""
        if hasattr(self, "head"):
            return
        if self.device_mesh is not None:
            raise OptionError("sharded_head", objective=type(self).__name__)
        self.head = self.initial_head()
        self.hparams["head"]["dimension"] = self.dimension

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Also save the settings that affect the frozen embeddings."""
        super().on_save_checkpoint(checkpoint)
        checkpoint[SPACE] = self.cached.space

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the head and the frozen embeddings have the settings of the checkpoint."""
        self.check_objective(checkpoint)
        saved_head = checkpoint["hyper_parameters"].get("head", {})
        _check_settings("checkpoint_of_other_head", saved_head, self.hparams["head"])
        _check_settings("checkpoint_of_other_encoder", checkpoint.get(SPACE, {}), self.cached.space)
        super().on_load_checkpoint(checkpoint)

    def forward(self, stories: Packed) -> Tensor:
        """Embed stories, (U, output)."""
        if not isinstance(stories, PackedFeatures):
            raise TypeError("frozen embeddings are needed, not tokens")
        # In half precision, rounding errors would exceed the effect of a projection close to the identity.
        with torch.autocast(self.device.type, enabled=False):
            return apply_head(self.head, stories.features, stories.lengths if self.unit == "sentence" else None)

    def frozen_embeddings(self, stories: Packed) -> Tensor:
        """Average the frozen embeddings of each story, (U, D): one per story, or one per sentence."""
        if not isinstance(stories, PackedFeatures):
            raise TypeError("frozen embeddings are needed, not tokens")
        embeddings_by_story = torch.split(stories.features, list(stories.lengths))
        return torch.stack([embeddings.mean(0) for embeddings in embeddings_by_story])


def _check_settings(code: str, saved: Mapping[str, object], current: Mapping[str, object]) -> None:
    """Raise ModelError with a code if the settings of a checkpoint's head or encoder differ from those of this run."""
    for name in dict.fromkeys([*saved, *current]):
        saved_value, value = saved.get(name), current.get(name)
        if name not in MAY_DIFFER and saved_value != value:
            raise ModelError(code, name=name, recorded=saved_value, found=value)


class Projection(FrozenObjective):
    """Mean of max(0, margin - (cos(x, p) - cos(x, n))) over projected embeddings e' = W e / |W e|.

    W is square, without bias, and initialized as the identity plus noise. With `learning_rate: 0` and no noise it
    remains the identity, as a control experiment. Comhis samples hard examples more often: see `data.hard_examples`.

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
        """Set the loss and the initial weights.

        Args:
            encoder: frozen encoder of the stories.
            optimization: optimizer of the projection.
            embeddings: source of frozen embeddings.
            margin: margin of the triplet loss, in cosine distance.
            noise: standard deviation of the noise in W, before division by the square root of the dimension.
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
        """Compute the loss, and `active`, the share of triplets with a loss above 0."""
        self.count_anchors((batch.negatives >= 0).any(1))
        return triplet_terms(embeddings, batch, self.margin)


class MLPHead(FrozenObjective):
    """Triplet margin loss on cosine distance, after linear layers with ReLU between them, or a single linear map.

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
            encoder: frozen encoder of the stories.
            optimization: optimizer of the head.
            embeddings: source of frozen embeddings.
            hidden: sizes of the hidden layers; None: no hidden layers.
            output: dimension of a story's embedding.
            margin: margin of the triplet loss, in cosine distance.
        """
        if min([output, *(hidden or [])]) < 1:
            raise OptionError("sizes_of_head", hidden=hidden, output=output)
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
        """Compute the loss, and `active`, the share of triplets with a loss above 0."""
        self.count_anchors((batch.negatives >= 0).any(1))
        return triplet_terms(embeddings, batch, self.margin)
