"""Passage matching: versions of a story are trained by the similarity of their passages that measures use."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from narrlit.data.batch import Collator, ExampleBatch, Packed, PackedParts, StoryInputs
from narrlit.data.passage_inputs import TokenizedPassages
from narrlit.data.sampling import ExampleCollator
from narrlit.data.schema import TrainingExamples
from narrlit.distributed import gather
from narrlit.errors import OptionError
from narrlit.losses.contrastive import info_nce, ranking_loss
from narrlit.losses.masks import duplicates_mask
from narrlit.losses.matching import passage_scores
from narrlit.models.config import EncoderConfig
from narrlit.objectives.base import Objective, Optimization, candidate_groups, check_numbers, positive_columns
from narrlit.preprocessing.passages import PASSAGE_WORDS
from narrlit.seeds import run_seed


class _Stories(NamedTuple):
    """Passages of N stories: unit vectors (N, K, D), and which of them (N, K) are no padding."""

    vectors: Tensor
    present: Tensor

    def gather(self) -> "_Stories":
        """Concatenate the stories of all processes."""
        return _Stories(gather(self.vectors), gather(self.present.long()) > 0)


class PassageMatching(Objective):
    """InfoNCE over the match scores of stories: each version of a story against the other stories of the batch.

    The similarity that is trained is that of the measure `passages` (`narrlit.measures.matching`), without the support
    of neighbors: passages are centered by their mean in the batch, and each is compared with the best passage at a
    similar position of the other story, in both directions. Each version is the anchor in turn. Other candidates are
    the other stories of the batch and the negatives of its examples. A candidate is never a negative if it is a version
    of the anchor or of its positive.

    The encoder is evaluated by the cosine of whole texts, as in all objectives.
    """

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),
        optimization: Optimization = Optimization(),
        scale: float = 20.0,
        passages: int = 8,
        passage_words: int = PASSAGE_WORDS,
        spread: float = 0.4,
        sharpness: float | None = None,
        whole: float = 0.0,
    ) -> None:
        """Set the loss.

        Args:
            encoder: encoder that is trained.
            optimization: optimizer of the encoder.
            scale: factor of the match score, the inverse temperature.
            passages: maximum number of passages of a story in a batch, drawn in order from equal parts of the story.
            passage_words: number of words of a passage.
            spread: standard deviation of the Gaussian of the distance between positions, as in the measure; a story has
                length 1.
            sharpness: factor of a softmax over the matches of a passage, which then all count; None: the best match.
            whole: weight of the same loss for the cosine of whole texts, cut to `encoder.max_length`; 0: whole texts
                are not embedded in training.
        """
        numbers = {"scale": scale, "sharpness": 1.0 if sharpness is None else sharpness}
        check_numbers("", positive=numbers, minimum_0={"whole": whole})
        if not spread > 0:
            raise OptionError("config_value", option="spread", found=spread, needed="above 0")
        if passages < 1 or passage_words < 1:
            raise OptionError("passages_and_words", passages=passages, passage_words=passage_words)
        super().__init__(encoder, optimization)
        self.scale = scale
        self.passages = passages
        self.passage_words = passage_words
        self.spread = spread
        self.sharpness = sharpness
        self.whole = whole
        self.save_settings(
            scale=scale,
            passages=passages,
            passage_words=passage_words,
            spread=spread,
            sharpness=sharpness,
            whole=whole,
        )

    def collator(self, examples: TrainingExamples, inputs: StoryInputs[Any]) -> Collator:
        """Create the collator of training batches, whose stories are samples of passages."""
        passages = TokenizedPassages(
            list(examples.stories),
            examples.story_indices.tolist(),
            self.encoder.tokenize,
            self.encoder.symmetric,
            self.passages,
            self.passage_words,
            whole=self.whole > 0,
            seed=run_seed(),
        )
        return ExampleCollator(examples, passages)

    def training_embeddings(self, stories: Packed) -> Tensor:
        """Embed the passages and whole texts of a batch, (P, D), each distinct text once."""
        return self.forward(_in_parts(stories).pieces)

    def loss(self, embeddings: Tensor, batch: ExampleBatch) -> dict[str, Tensor]:
        """Compute the loss, and its parts without weights: that of passages and, if it is trained, of whole texts.

        Args:
            embeddings: (P, D) embeddings of the batch's passages and whole texts.
            batch: indices of anchors, positives and negatives.
        """
        anchor_groups, positive_groups = batch.groups[batch.anchors], batch.groups[batch.positives]
        negatives = batch.negatives.flatten()
        negative_groups = gather(candidate_groups(batch, negatives))
        forth_groups = torch.cat([gather(positive_groups), negative_groups])
        back_groups = torch.cat([gather(anchor_groups), negative_groups])
        keep_forth = duplicates_mask(forth_groups, anchor_groups, positive_groups)
        keep_back = duplicates_mask(back_groups, positive_groups, anchor_groups)
        self.count_anchors(keep_forth.any(1))
        target = positive_columns(batch, embeddings.device)

        anchors, positives, others = self._stories(embeddings, batch)
        forth = torch.cat([self._scores(anchors, positives.gather()), self._scores(anchors, others.gather())], dim=1)
        back = torch.cat([self._scores(positives, anchors.gather()), self._scores(positives, others.gather())], dim=1)
        losses = [
            info_nce(forth, target, keep_forth, 1 / self.scale),
            info_nce(back, target, keep_back, 1 / self.scale),
        ]
        passage_loss = torch.stack(losses).mean()
        if not self.whole:
            return {"loss": passage_loss}
        texts = embeddings[_in_parts(batch.stories).parts[:, -1]]
        near, far = texts[batch.anchors], texts[batch.positives]
        candidates = gather(texts[negatives.clamp(min=0)])
        whole_losses = [
            ranking_loss(near, gather(far), target, candidates, keep_forth, self.scale),
            ranking_loss(far, gather(near), target, candidates, keep_back, self.scale),
        ]
        whole_loss = torch.stack(whole_losses).mean()
        terms = {"passages": passage_loss.detach(), "whole": whole_loss.detach()}
        return {"loss": passage_loss + self.whole * whole_loss, **terms}

    def _scores(self, stories: _Stories, candidates: _Stories) -> Tensor:
        """Compute the match scores (B, C) of this process's stories with candidates of all processes."""
        return passage_scores(
            stories.vectors, candidates.vectors, stories.present, candidates.present, self.spread, self.sharpness
        )

    def _stories(self, embeddings: Tensor, batch: ExampleBatch) -> tuple[_Stories, _Stories, _Stories]:
        """Return the centered passages of anchors, positives and negatives, all (.., K, D); padding is story 0.

        The mean is that of the passages of all anchors and positives, in all processes.
        """
        parts = _in_parts(batch.stories).parts[:, : self.passages]
        versions = parts[torch.cat([batch.anchors, batch.positives])]
        used = versions[versions >= 0]
        total = gather(embeddings[used].sum(0, keepdim=True)).sum(0)
        mean = total / gather(used.new_tensor([len(used)])).sum()
        centered = normalize(embeddings - mean, dim=-1)
        # Padding selects story 0, which is masked, so that the shapes are the same in every process.
        columns = (batch.anchors, batch.positives, batch.negatives.flatten().clamp(min=0))
        anchors, positives, negatives = (
            _Stories(centered[parts[rows].clamp(min=0)], parts[rows] >= 0) for rows in columns
        )
        return anchors, positives, negatives


def _in_parts(stories: Packed) -> PackedParts:
    """Return stories that are packed in parts."""
    if not isinstance(stories, PackedParts):
        raise TypeError(f"stories with passages are needed, not {type(stories).__name__}")
    return stories
