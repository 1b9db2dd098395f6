"""Theme, course of action and outcome drawn to the whole text, each by a head (ttda704's multi-view system)."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal

from lightning_utilities.core.rank_zero import rank_zero_info
from torch import Tensor

from narrlit.data.batch import Packed, PackedViews, ViewBatch
from narrlit.data.collate import ViewCollator
from narrlit.data.places import PlaceTable
from narrlit.data.table import IndexedExamples
from narrlit.data.view_tokens import ViewTable
from narrlit.errors import DataError, ModelError, OptionError
from narrlit.losses.alignment import alignment_loss
from narrlit.losses.contrastive import view_contrast
from narrlit.models.config import EncoderConfig
from narrlit.models.fusion import PARTS, Fusion
from narrlit.models.sharding import shard_head
from narrlit.models.view_encoder import story_parts
from narrlit.models.views import ViewHeads, fuse, headed
from narrlit.objectives.base import Objective, Optimization
from narrlit.text.joined import has_views

REMEDY = (
    "use --data ViewData with --data.views.files FILE (stories that are not in it: --data.views.missing positional), "
    "or --data StoryWorldData with --data.views true"
)
Variant = Literal["as_written", "as_published"]


class MultiView(Objective):
    """Sum over the views of -log e^{cos(a,p)/tau} / (e^{cos(a,p)/tau} + e^{cos(a,n)/tau}), and alignment.

    a is an anchor's whole text, p its own view, n the same view of another story of the batch; each view has a head
    over the one encoder. Alignment is `alignment || z_f/|z_f| - z/|z| ||^2`: z is the mean of the three views' vectors,
    z_f the fused vector that stands for the story in use. A story is its text joined with its views; in one pass
    the encoder embeds all different texts and views of a batch.

    `as_written`: a, p and n are the head's vectors of the view; so are the views' parts in z and z_f.
    `as_published`: the published code compares the encoder's own vectors, so no head is on the way from a loss to the
    encoder, and aligns a mean of vectors with that same mean, which is 0 whatever the weights: no head has a gradient.
    The heads are there and frozen, and use leaves them out. Its heads have 256 numbers inside, and it writes the view's
    name before a view's text, which the paper does not.

    Source: ttda704, Eq. 1 and 2, section 4.2 and appendix A.4. The appendix counts three terms of alignment, Eq. 2 has
    this one.
    """

    reads_views = True
    learns_stories = True

    def __init__(
        self,
        encoder: EncoderConfig = EncoderConfig(),  # noqa: B008 (frozen)
        optimization: Optimization = Optimization(),  # noqa: B008 (frozen)
        variant: Variant = "as_written",
        fusion: Fusion = Fusion(),  # noqa: B008 (frozen)
        hidden: int = 512,
        temperature: float = 0.07,
        alignment: float = 0.5,
    ) -> None:
        """Args: see the class; `fusion` weighs a story's vectors, `hidden` are the numbers inside a head.

        Raises:
            OptionError: for a size below 1, a temperature that is not above 0 or an alignment below 0.
        """
        if hidden < 1 or not temperature > 0 or not alignment >= 0:
            raise OptionError(
                f"hidden {hidden}, temperature {temperature}, alignment {alignment}: at least 1, above 0 and at least "
                "0 are needed"
            )
        super().__init__(encoder, optimization)
        self.variant = variant
        self.fusion = Fusion(**fusion) if isinstance(fusion, dict) else fusion
        self.hidden = hidden
        self.temperature = temperature
        self.alignment = alignment
        # What a checkpoint's reader builds: without heads where nothing has trained them.
        views = {"fusion": asdict(self.fusion), "hidden": hidden if variant == "as_written" else None}
        self.keep_hyperparameters(variant=variant, temperature=temperature, alignment=alignment, views=views)

    def configure_model(self) -> None:
        """Build the encoder and the heads, once."""
        if hasattr(self, "heads"):
            return
        super().configure_model()
        self.encoder.require_one_prompt("the fusion of a story's views")
        heads = ViewHeads(self.encoder.dimension, self.hidden)
        # Frozen, since several processes wait for the gradient of all that trains.
        heads.requires_grad_(self.variant == "as_written")
        self.heads = shard_head(heads, self.device_mesh)

    @property
    def used_heads(self) -> ViewHeads | None:
        """The heads, None where the variant leaves them out."""
        return self.heads if self.variant == "as_written" else None

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """See that the heads are those of the checkpoint.

        Raises:
            ModelError: naming the setting that differs.
        """
        super().on_load_checkpoint(checkpoint)
        kept, here = (
            settings.get("views", {}).get("hidden") for settings in (checkpoint["hyper_parameters"], self.hparams)
        )
        if kept != here:
            raise ModelError(
                f"the checkpoint has heads of {kept or 'no'} numbers inside, this run of {here or 'no'}: hidden and "
                "variant must be the checkpoint's; give the run's own config (config.yaml beside its checkpoints)"
            )

    def story_table(self, texts: list[str], name: str) -> PlaceTable[Any]:
        """Token ids of each story's text and views; a training story that nothing trains on may be without.

        Raises:
            DataError: if another story has no views.
        """
        kept = [name != "train" or has_views(text) for text in texts]
        try:
            found = iter(story_parts([text for text, there in zip(texts, kept, strict=True) if there], REMEDY))
        except DataError as error:
            raise DataError(f"{name} stories: {error}") from error
        table = ViewTable([next(found) if there else None for there in kept], self.encoder.tokenize)
        if table.truncated:
            rank_zero_info(f"{name}: {table.truncated} texts and views cut to {self.encoder.max_length} tokens")
        return table

    def collator(self, examples: IndexedExamples, table: PlaceTable[Any]) -> Callable[[list[int]], Any]:
        """Batches of anchors alone: views need no candidates.

        Raises:
            DataError: if an anchor has no views.
        """
        without = sum(not has_views(examples.table[row]) for row in examples.anchors.tolist())
        if without:
            raise DataError(f"{without} of {len(examples)} training anchors have no views: {REMEDY}")
        return ViewCollator(examples, table)

    def forward(self, stories: Packed) -> Tensor:
        """Fused vectors (U, D) of stories with views."""
        return fuse(headed(self.training_vectors(stories), self.used_heads), self.fusion)

    def training_vectors(self, stories: Packed) -> Tensor:
        """The encoder's vectors (U, 4, D) of texts and views, each different one embedded once."""
        if not isinstance(stories, PackedViews):
            raise TypeError(f"stories with views are needed, not {type(stories).__name__}")
        vectors: Tensor = self.encoder(stories.pieces)[stories.parts]
        return vectors

    def loss(self, vectors: Tensor, batch: ViewBatch) -> dict[str, Tensor]:
        """The loss, the contrastive loss of each view, and the alignment without its weight.

        Args:
            vectors: (U, 4, D), the encoder's, of the batch's texts and views, in the order of PARTS.
            batch: says which of the stories are anchors, and which stand beside them.
        """
        heads = self.used_heads
        parts = headed(vectors, heads)
        whole, views = parts[:, :1], parts[:, 1:]
        # One head's vectors of a whole text are compared with the same head's of a view.
        anchors = (whole.expand_as(views) if heads is None else heads(vectors[:, :1]).float())[batch.anchors]
        own, other = views[batch.anchors], views[batch.others]
        contrasts = {
            view: view_contrast(anchors[:, place], own[:, place], other[:, place], self.temperature)
            for place, view in enumerate(PARTS[1:])
        }
        mean = own.mean(1)
        fused = fuse(parts[batch.anchors], self.fusion)
        aligned = alignment_loss(mean if heads is None else fused, mean)
        loss = sum(contrasts.values(), self.alignment * aligned)
        return {
            "loss": loss,
            **{name: term.detach() for name, term in contrasts.items()},
            "alignment": aligned.detach(),
        }
