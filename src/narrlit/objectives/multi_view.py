"""Contrastive alignment of theme, course of action and outcome with the full text (ttda704's multi-view system)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor
from torch.nn.functional import normalize

from narrlit.data.batch import Collator, Packed, PackedParts, StoryInputs, TokenizedViews, ViewBatch
from narrlit.data.sampling import ViewCollator
from narrlit.data.schema import ASPECTS, Story, TrainingExamples
from narrlit.errors import OptionError
from narrlit.losses.contrastive import alignment_loss, view_contrast
from narrlit.models.config import EncoderConfig, Fusion
from narrlit.models.heads import ViewFusion
from narrlit.models.weights import shard_head
from narrlit.objectives.base import Objective, Optimization, check_numbers


class MultiView(Objective):
    """Sum over the views of -log e^{cos(a,p)/tau} / (e^{cos(a,p)/tau} + e^{cos(a,n)/tau}), plus an alignment term.

    a is the full text of an anchor, p its own view, and n the same view of another story in the batch; each view has a
    head on the common encoder. The alignment term is `alignment || z_f/|z_f| - z/|z| ||^2`, where z_f is the fused
    embedding, which represents the story in evaluation, and z the mean of the unit vectors of its three views. With
    `alignment_terms: views` it is the sum of three terms, one with each view as z. The encoder embeds all distinct
    texts and views of a batch in one pass.

    `as_written`: a, p and n are outputs of the head of the view, as are the views in z and z_f.
    `as_published`: the published code compares the encoder's own embeddings, so that the heads do not affect the loss,
    and its three alignment terms compare the mean of a, p and n with itself, so that they are always 0. There are no
    heads here. In that code, heads have 256 hidden units, and the name of the view is put before its text; both differ
    from the paper.

    Source: ttda704, Eq. 1 and 2, section 4.2 and appendix A.4. Eq. 2 has one alignment term (`mean`); the appendix
    mentions three without defining them (`views`).
    """

    reads_views = True
    learns_anchors = True
    views: ViewFusion

    def __init__(  # noqa: PLR0913, PLR0917 (a config's keys)
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        variant: Literal["as_written", "as_published"] = "as_written",
        fusion: Fusion = Fusion(),
        hidden: int = 512,
        temperature: float = 0.07,
        alignment: float = 0.5,
        alignment_terms: Literal["mean", "views"] = "mean",
        dimensions: list[int] | None = None,
    ) -> None:
        """Set the loss.

        Args:
            encoder: encoder that is trained.
            optimization: optimizer of the encoder and the heads.
            variant: `as_written` in the paper or `as_published` in its code.
            fusion: weights of a story's text and views.
            hidden: number of hidden units of a head.
            temperature: temperature of the softmax over cosines.
            alignment: weight of the alignment term.
            alignment_terms: `mean`: align the fused embedding with the mean of the views; `views`: with each view.
            dimensions: sizes of the prefixes of views and fused embeddings over which the loss is summed (Matryoshka),
                such as [384, 192, 96]; None: only whole embeddings are trained.
        """
        if hidden < 1:
            raise OptionError("config_value", option="hidden", found=hidden, needed="at least 1")
        check_numbers("", positive={"temperature": temperature}, minimum_0={"alignment": alignment})
        super().__init__(encoder, optimization, dimensions)
        self.variant = variant
        self.fusion = fusion
        self.hidden = hidden if variant == "as_written" else None
        self.temperature = temperature
        self.alignment = alignment
        self.alignment_terms = alignment_terms
        self.save_settings(
            variant=variant,
            temperature=temperature,
            alignment=alignment,
            alignment_terms=alignment_terms,
            dimensions=dimensions,
            views={"fusion": asdict(fusion), "hidden": self.hidden},
        )

    def configure_model(self) -> None:
        """Build the encoder and the heads, once."""
        if hasattr(self, "views"):
            return
        super().configure_model()
        self.encoder.require_one_prompt("the fusion of a story's views")
        self.views = ViewFusion(self.encoder.dimension, asdict(self.fusion), self.hidden)
        if self.views.heads is not None:
            shard_head(self.views.heads, self.device_mesh)

    def story_inputs(self, stories: Sequence[Story], name: str) -> StoryInputs[Any]:
        """Tokenize texts and views; stories without views can't be in a batch."""
        inputs = TokenizedViews(stories, self.encoder.tokenize)
        if inputs.truncated:
            rank_zero_info(f"{name}: {inputs.truncated} texts and views cut to {self.encoder.max_length} tokens")
        return inputs

    def collator(self, examples: TrainingExamples, inputs: StoryInputs[Any]) -> Collator:
        """Create the collator of batches, which contain anchors only."""
        return ViewCollator(examples, inputs)

    def forward(self, stories: Packed) -> Tensor:
        """Embed stories by fusion of text and views, (U, D)."""
        return self.views.fuse(self.views.parts(self.training_embeddings(stories)))

    def frozen_embeddings(self, stories: Packed) -> Tensor | None:
        """Fuse the encoder's own embeddings, without heads, (U, D); None if there are no heads."""
        if self.views.heads is None:
            return None
        return self.views.fuse(normalize(self.training_embeddings(stories).float(), dim=-1))

    def training_embeddings(self, stories: Packed) -> Tensor:
        """Embed texts and views without heads, (U, 4, D), each distinct text once."""
        if not isinstance(stories, PackedParts):
            raise TypeError(f"stories with views are needed, not {type(stories).__name__}")
        embeddings: Tensor = self.encoder(stories.pieces)[stories.parts]
        return embeddings

    def loss(self, embeddings: Tensor, batch: ViewBatch) -> dict[str, Tensor]:
        """Compute the loss, the contrastive loss of each view, and the alignment term without its weight.

        Args:
            embeddings: (U, 4, D) embeddings of the batch's texts and views, without heads.
            batch: indices of anchors and of other stories.
        """
        heads = self.views.heads
        parts = self.views.parts(embeddings)
        full, views = parts[:, :1], parts[:, 1:]
        # The full text goes through the head of the view with which it is compared.
        full_by_view = full.expand_as(views) if heads is None else heads(full)
        anchors, own, other = full_by_view[batch.anchors], views[batch.anchors], views[batch.others]
        fused = self.views.fuse(parts[batch.anchors])
        terms: dict[str, Tensor] = dict.fromkeys([*ASPECTS, "alignment"], fused.new_zeros(()))
        prefixes = map(self.prefixes, (anchors, own, other, fused))
        for anchor_vectors, own_vectors, other_vectors, fused_vectors in zip(*prefixes, strict=True):
            for k, aspect in enumerate(ASPECTS):
                contrast = view_contrast(anchor_vectors[:, k], own_vectors[:, k], other_vectors[:, k], self.temperature)
                terms[aspect] = terms[aspect] + contrast
            terms["alignment"] = terms["alignment"] + self._alignment(fused_vectors, own_vectors)
        contrasts = [terms[aspect] for aspect in ASPECTS]
        loss = sum(contrasts, self.alignment * terms["alignment"])
        return {"loss": loss, **{name: term.detach() for name, term in terms.items()}}

    def _alignment(self, fused: Tensor, views: Tensor) -> Tensor:
        """Compute the alignment term, without its weight, of fused embeddings (B, d) and views (B, 3, d) of anchors."""
        mean = views.mean(1)
        if self.variant == "as_published":
            return alignment_loss(mean, mean)
        if self.alignment_terms == "mean":
            return alignment_loss(fused, mean)
        terms = [alignment_loss(fused, view) for view in views.unbind(1)]
        return torch.stack(terms).sum()
