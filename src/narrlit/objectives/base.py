"""What every objective shares: the encoder, the step, the metric, the optimizer with its schedule, hyperparameters."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import lightning as L
import torch
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from torch import Tensor

from narrlit.data.batch import ExampleBatch, Packed, TripleBatch
from narrlit.data.collate import ExampleCollator
from narrlit.data.places import PlaceTable
from narrlit.data.table import IndexedExamples
from narrlit.data.tokens import TokenTable
from narrlit.errors import ModelError, OptionError
from narrlit.metrics.triples import TripleAccuracy, answered_rightly
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.sharding import shard
from narrlit.seeds import run_seed, seed_step

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
}


@dataclass(frozen=True)
class Optimization:
    """How weights move.

    Attributes:
        optimizer: the rule.
        learning_rate: at the schedule's top; 0 leaves the weights as they are, for controls.
        weight_decay: for matrices; biases and normalisation weights are left alone.
        warmup: share of all steps in which the rate climbs linearly from 0.
        decay: `linear` to 0 at the last step, or `none`.
    """

    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 2e-5
    weight_decay: float = 0.0
    warmup: float = 0.1
    decay: Literal["linear", "none"] = "linear"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if not 0 <= self.warmup <= 1:
            raise OptionError(f"optimization.warmup is {self.warmup}: a share of the steps from 0 to 1 is needed")
        if self.learning_rate < 0 or self.weight_decay < 0:
            raise OptionError("optimization: learning_rate and weight_decay must be at least 0")


def schedule_factor(step: int, steps: int, warmup: float, decay: str) -> float:
    """The learning rate's factor at a step, counted from 0, of `steps`.

    >>> [schedule_factor(step, 10, 0.2, "linear") for step in (0, 1, 2, 6, 10)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    climb = round(warmup * steps)
    if step < climb:
        return step / climb
    return 1.0 if decay == "none" else max(0.0, (steps - step) / max(1, steps - climb))


class Objective(L.LightningModule):
    """Base of the objectives: a subclass says what its loss is, from the vectors of a batch's stories.

    Constructors take plain data and build nothing: the encoder is made in `configure_model`, so that a config can be
    instantiated without weights, and sharded strategies build it where it will live.
    """

    encoder: Encoder
    needs_unit_vectors = True
    reads_views = False
    """Whether stories are joined with views: what others would take for the story's own words."""
    learns_stories = False
    """Whether anchors train alone, so that a judged story among them has been trained on."""
    rounds = 1
    """Equal parts of the fit, each with a schedule of its own; set by the callback that divides it."""

    def __init__(self, encoder: EncoderConfig, optimization: Optimization) -> None:
        super().__init__()
        self.encoder_config = EncoderConfig.from_dict(encoder) if isinstance(encoder, dict) else encoder
        self.optimization = Optimization(**optimization) if isinstance(optimization, dict) else optimization
        # Where adapters alone train, checkpoints hold them alone; on_load_checkpoint looks after what is missing.
        self.strict_loading = self.encoder_config.lora is None
        self.validation_accuracy = TripleAccuracy(allow_nan=True)
        self.test_accuracy = TripleAccuracy(allow_nan=True)

    def keep_hyperparameters(self, **own: Any) -> None:
        """Keep a subclass's own fields with the shared ones, as plain data: checkpoints load without any class."""
        shared = {"encoder": self.encoder_config.as_dict(), "optimization": asdict(self.optimization)}
        self.save_hyperparameters({"objective": type(self).__name__, **shared, **own})

    def configure_model(self) -> None:
        """Build the encoder, once."""
        if hasattr(self, "encoder"):
            return
        # Models load in eval mode, and Lightning keeps the mode it finds: without train(), dropout would stay off.
        encoder = Encoder(self.encoder_config).train()
        if self.needs_unit_vectors and not encoder.normalized:
            raise OptionError("encoder.normalize is false, but this objective compares by cosine: set it to true")
        self.encoder = shard(encoder, self.device_mesh)

    def story_table(self, texts: list[str], name: str) -> PlaceTable[Any]:
        """What batches hold of each story: its token ids.

        Args:
            texts: a story table's, by row.
            name: of what they are the stories, for notices.
        """
        encoder = self.encoder
        same = encoder.prompt("anchor") == encoder.prompt("candidate")
        table = TokenTable(texts, encoder.tokenize, symmetric=same)
        if table.truncated:
            rank_zero_info(f"{name}: {table.truncated} of {len(texts)} texts cut to {encoder.max_length} tokens")
        return table

    def collator(self, examples: IndexedExamples, table: PlaceTable[Any]) -> Callable[[list[int]], Any]:
        """What makes a training batch of places in the examples.

        Args:
            examples: of the fit.
            table: what stands for their stories.
        """
        return ExampleCollator(examples, table)

    def marks(self) -> dict[str, bool]:
        """What a reader of the results must know of how they came about."""
        return {"transductive": False, "mined_validation": False}

    @abstractmethod
    def loss(self, vectors: Tensor, batch: Any) -> dict[str, Tensor]:
        """The loss and its terms.

        Args:
            vectors: (U, D), of the batch's stories.
            batch: says which of them are anchors, positives and negatives.

        Returns:
            `loss`, and any further scalars to log beside it.
        """

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Which negatives (B, K) the loss reads, bool; None: all. The others are not embedded."""
        return None

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Leave out stories that nothing reads, while the batch is still on the CPU."""
        used = self.negatives_used(batch) if isinstance(batch, ExampleBatch) else None
        return batch if used is None else batch.keeping(used)

    def forward(self, stories: Packed) -> Tensor:
        """Vectors (U, D) of packed stories."""
        vectors: Tensor = self.encoder(stories)
        return vectors

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Seed each step by its number, so that a resumed run draws the dropout that the unbroken run drew."""
        seed_step(run_seed() + 1 + self.batches_done * self.trainer.world_size + self.global_rank, self.device)

    @property
    def batches_done(self) -> int:
        """This process's training batches before the present one, in all epochs; a step may take several."""
        return int(self.trainer.fit_loop.epoch_loop.total_batch_idx)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """One forward pass over the batch's different stories, then the loss."""
        terms = self.loss(self.training_vectors(batch.stories), batch)
        size = len(batch.anchors)
        self.log("train/loss", terms["loss"], prog_bar=True, batch_size=size)
        self.log_dict({f"train/{k}": v for k, v in terms.items() if k != "loss"}, batch_size=size)
        return terms["loss"]

    def training_vectors(self, stories: Packed) -> Tensor:
        """What the loss reads of a batch's stories: their vectors (U, D)."""
        vectors: Tensor = self(stories)
        return vectors

    def validation_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Judge triples; the vectors and the places (B,) of wrong answers, -1 elsewhere, are handed on to callbacks."""
        return self._judge(batch, self.validation_accuracy)

    def test_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Judge triples."""
        return self._judge(batch, self.test_accuracy)

    def predict_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Scores of both candidates, and the triples' places in their file."""
        score_a, score_b = self._scores(self(batch.stories), batch)
        return {"places": batch.places, "score_a": score_a, "score_b": score_b}

    def _judge(self, batch: TripleBatch, metric: TripleAccuracy) -> dict[str, Tensor]:
        vectors = self(batch.stories)
        score_a, score_b = self._scores(vectors, batch)
        a_is_closer, counted = batch.labels == 1, (batch.labels >= 0) & (batch.places >= 0)
        metric.update(score_a, score_b, a_is_closer, counted)
        wrong = counted & ~answered_rightly(score_a, score_b, a_is_closer)
        return {"vectors": vectors, "rows": batch.stories.rows, "wrong": torch.where(wrong, batch.places, -1)}

    def _scores(self, vectors: Tensor, batch: TripleBatch) -> tuple[Tensor, Tensor]:
        cosine = torch.nn.functional.cosine_similarity
        anchors = vectors[batch.anchors].float()
        return cosine(anchors, vectors[batch.a].float()), cosine(anchors, vectors[batch.b].float())

    def on_validation_epoch_end(self) -> None:
        """Log the accuracy with its n and interval."""
        self._log_accuracy("validation", self.validation_accuracy)

    def on_test_epoch_end(self) -> None:
        """Log the accuracy with its n and interval."""
        self._log_accuracy("test", self.test_accuracy)

    def _log_accuracy(self, stage: str, metric: TripleAccuracy) -> None:
        found = metric.summary()
        metric.reset()
        low, high = found.interval
        # Every process holds the same synchronised numbers: nothing is left to reduce.
        self.log(f"{stage}/accuracy", found.accuracy, prog_bar=True)
        self.log_dict(
            {f"{stage}/accuracy_low": low, f"{stage}/accuracy_high": high, f"{stage}/triples": float(found.n)},
        )
        self.summaries = {**getattr(self, "summaries", {}), stage: found}

    @property
    def round_steps(self) -> int:
        """Optimizer steps of one round, or of the whole fit where it has one round only."""
        return max(1, int(self.trainer.estimated_stepping_batches) // self.rounds)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep adapters without the frozen weights under them, which the model's own files hold."""
        if self.encoder_config.lora is not None:
            trained = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
            checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in trained}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Loading is not strict for adapters: see to it that none is missing.

        Raises:
            ModelError: if the checkpoint is of a run with other adapters.
        """
        # Sharded strategies have loaded the weights by now, and taken them out.
        found = checkpoint.get("state_dict")
        if self.encoder_config.lora is None or found is None:
            return
        trained = {name: parameter.shape for name, parameter in self.named_parameters() if parameter.requires_grad}
        unlike = list(trained.keys() ^ found.keys())
        unlike += [name for name in trained.keys() & found.keys() if trained[name] != found[name].shape]
        if unlike:
            raise ModelError(
                f"the checkpoint and this run do not have {min(unlike)} in common: it is of a run with another model "
                "or other adapters"
            )

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """The optimizer over what trains, and linear warm-up and decay by step."""
        plan = self.optimization
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        if self.encoder_config.lora is not None and any(p.dtype != torch.float32 for p in trained):
            rank_zero_warn(
                f"adapters train in {trained[0].dtype}, which rounds small steps away; --trainer.precision bf16-mixed "
                "keeps them in float32"
            )
        groups = [
            {"params": [p for p in trained if p.ndim >= 2], "weight_decay": plan.weight_decay},
            {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
        ]
        # One kernel for all weights. With mixed precision Lightning refuses to clip the gradients of such an optimizer.
        mixed = "mixed" in str(getattr(self.trainer, "precision", ""))
        fits = plan.optimizer != "sgd" and self.device.type in {"cpu", "cuda"} and not mixed
        fused = {"fused": True} if fits else {}
        optimizer = OPTIMIZERS[plan.optimizer]([g for g in groups if g["params"]], lr=plan.learning_rate, **fused)
        steps = self.round_steps
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: schedule_factor(step, steps, plan.warmup, plan.decay)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
