"""Base of the objectives: encoder, training step, evaluation, optimizer with its schedule, hyperparameters."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import lightning as L
import torch
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from lightning_utilities.core.rank_zero import rank_zero_info, rank_zero_warn
from torch import Tensor
from torch.nn import functional as F

from narrlit.compat.torch import allow_clipping
from narrlit.data.batch import Collator, ExampleBatch, Packed, StoryInputs, TokenizedStories, TripleBatch
from narrlit.data.sampling import ExampleCollator
from narrlit.data.schema import FloatArray, Role, Story, TrainingExamples
from narrlit.distributed import averages
from narrlit.errors import ModelError, OptionError
from narrlit.metrics.significance import AccuracySummary
from narrlit.metrics.triples import TripleAccuracy, answered_correctly
from narrlit.models import capabilities
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.weights import build_encoder
from narrlit.seeds import run_seed, seed_step

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
}


OWN_CONFIG = "give the run's own config (config.yaml beside its checkpoints)"


def check_numbers(owner: str, *, positive: Mapping[str, float] = {}, minimum_0: Mapping[str, float] = {}) -> None:
    """Check that settings are finite numbers, above 0 or at least 0."""
    for name, value in {**positive, **minimum_0}.items():
        if not math.isfinite(value) or value < 0 or (name in positive and value == 0):
            needed = "above 0" if name in positive else "of at least 0"
            raise OptionError(f"{owner}{name} is {value}: must be a finite number {needed}")


@dataclass(frozen=True)
class Optimization:
    """Settings of the optimizer.

    Attributes:
        optimizer: its name.
        learning_rate: at the schedule's top; 0 leaves the weights unchanged, for controls.
        weight_decay: of matrices; biases and normalization weights have none.
        warmup: share of all steps in which the learning rate rises linearly from 0.
        decay: `linear` to 0 at the last step, or `none`.
    """

    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 2e-5
    weight_decay: float = 0.0
    warmup: float = 0.1
    decay: Literal["linear", "none"] = "linear"

    def __post_init__(self) -> None:
        """Check ranges."""
        if not 0 <= self.warmup <= 1:
            raise OptionError(f"optimization.warmup is {self.warmup}: must be a share of the steps from 0 to 1")
        numbers = {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay}
        check_numbers("optimization.", minimum_0=numbers)


def schedule_factor(step: int, steps: int, warmup: float, decay: str) -> float:
    """Compute the learning rate's factor at a step, counted from 0, of `steps`.

    >>> [schedule_factor(step, 10, 0.2, "linear") for step in (0, 1, 2, 6, 10)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    rising = round(warmup * steps)
    if step < rising:
        return step / rising
    return 1.0 if decay == "none" else max(0.0, (steps - step) / max(1, steps - rising))


class Objective(L.LightningModule):
    """Base class: a subclass defines its loss on the embeddings of a batch's stories.

    Constructors take plain data and build nothing: the encoder is built in `configure_model`, so that a config can be
    instantiated without weights, and sharded strategies build it where it will be.

    Attributes:
        needs_unit_vectors: the loss compares by cosine.
        reads_views: the encoder reads a story's views beside its text.
        learns_anchors: anchors train alone, so that an evaluated story among them has been trained on.
        rounds: equal parts of the fit, each with a schedule of its own; set by the callback that divides it.
        summaries: the last accuracy of each stage.
    """

    encoder: Encoder
    needs_unit_vectors = True
    reads_views = False
    learns_anchors = False
    rounds = 1

    def __init__(self, encoder: EncoderConfig, optimization: Optimization) -> None:
        super().__init__()
        self.encoder_config = encoder
        self.optimization = optimization
        # Where adapters alone train, checkpoints hold them alone; on_load_checkpoint checks what is missing.
        self.strict_loading = self.encoder_config.lora is None
        self.validation_accuracy = TripleAccuracy(allow_nan=True)
        self.test_accuracy = TripleAccuracy(allow_nan=True)
        self.summaries: dict[str, AccuracySummary] = {}

    def save_settings(self, **own: object) -> None:
        """Save the settings of a subclass with the shared ones, as plain data: checkpoints load without any class."""
        shared = {"encoder": self.encoder_config.as_dict(), "optimization": asdict(self.optimization)}
        self.save_hyperparameters({"objective": type(self).__name__, **shared, **own})

    def configure_model(self) -> None:
        """Build the encoder, once."""
        if hasattr(self, "encoder"):
            return
        encoder = build_encoder(self.encoder_config, self.device_mesh)
        if self.needs_unit_vectors and not encoder.normalized:
            raise OptionError("encoder.normalize is false, but this objective compares by cosine: set it to true")
        self.encoder = encoder

    # What a datamodule calls (data.batch.StoryReader)

    def story_inputs(self, stories: Sequence[Story], name: str) -> StoryInputs[Any]:
        """Tokenize stories; `name` is that of the set, for messages."""
        encoder = self.encoder
        inputs = TokenizedStories(stories, encoder.tokenize, symmetric=encoder.symmetric)
        if inputs.truncated:
            rank_zero_info(f"{name}: {inputs.truncated} of {len(stories)} texts cut to {encoder.max_length} tokens")
        return inputs

    def collator(self, examples: TrainingExamples, inputs: StoryInputs[Any]) -> Collator:
        """Return the collator of training batches from positions in the examples."""
        return ExampleCollator(examples, inputs)

    def text_embeddings(self, texts: Sequence[str], role: Role = "anchor") -> FloatArray:
        """Embed texts by a frozen encoder; an encoder that trains is refused."""
        raise OptionError(
            f"{type(self).__name__} trains its encoder: data.hard_examples and data.pseudo_labels need a frozen one "
            "(Projection, MLPHead, AspectBiLSTM)"
        )

    # Training

    @abstractmethod
    def loss(self, embeddings: Tensor, batch: Any) -> dict[str, Tensor]:
        """Compute the `loss`, and further scalars to log, with the same names in each process.

        Their mean over the processes is the value of one process with the joint batch.

        Args:
            embeddings: (U, D), of the batch's stories.
            batch: indices into them of anchors, positives and negatives.
        """

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Return which negatives (B, K) the loss reads, bool; None: all. The others are not embedded."""
        return None

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Drop stories that the loss does not read, while the batch is still on the CPU."""
        used = self.negatives_used(batch) if isinstance(batch, ExampleBatch) else None
        return batch if used is None else batch.with_negatives(used)

    def forward(self, stories: Packed) -> Tensor:
        """Embed packed stories (U, D)."""
        embeddings: Tensor = self.encoder(stories)
        return embeddings

    def frozen_embeddings(self, stories: Packed) -> Tensor | None:
        """Embed stories (U, D) by the frozen encoder alone; None: that is the model before training, without a head."""
        return None

    def training_embeddings(self, stories: Packed) -> Tensor:
        """Compute the embeddings (U, D) of a batch's stories that the loss reads."""
        return self.forward(stories)

    def on_train_batch_start(self, batch: object, batch_idx: int) -> None:
        """Seed each step by its number, so that a resumed run has the dropout of an uninterrupted one."""
        seed_step(run_seed() + 1 + self.batches_done * self.trainer.world_size + self.global_rank, self.device)

    @property
    def batches_done(self) -> int:
        """Training batches of this process before the present one, in all epochs; a step may take several."""
        return int(self.trainer.fit_loop.epoch_loop.total_batch_idx)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Embed the batch's stories once and compute the loss."""
        terms = self.loss(self.training_embeddings(batch.stories), batch)
        size = len(batch.anchors)
        shown = averages(terms)
        self.log("train/loss", shown.pop("loss"), prog_bar=True, batch_size=size)
        self.log_dict({f"train/{k}": v for k, v in shown.items()}, batch_size=size)
        return terms["loss"]

    # Evaluation

    def validation_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Evaluate triples.

        Returns:
            `embeddings` (U, D), `indices` (U,) of the stories, and `wrong` (B,), the positions of triples answered
            wrongly, -1 elsewhere; before training also `wrong_frozen` (B,), if a new head lies over the frozen encoder.
        """
        outputs = self._evaluate(batch, self.validation_accuracy)
        frozen = self.frozen_embeddings(batch.stories) if self.trainer.sanity_checking else None
        if frozen is not None:
            outputs["wrong_frozen"] = _wrong_positions(*_scores(frozen, batch), batch)
        return outputs

    def test_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Evaluate triples, as in validation."""
        return self._evaluate(batch, self.test_accuracy)

    def predict_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Return scores of both candidates, and the triples' positions in their file."""
        score_a, score_b = _scores(self(batch.stories), batch)
        return {"positions": batch.positions, "score_a": score_a, "score_b": score_b}

    def _evaluate(self, batch: TripleBatch, metric: TripleAccuracy) -> dict[str, Tensor]:
        embeddings = self(batch.stories)
        score_a, score_b = _scores(embeddings, batch)
        a_is_closer, counted = batch.labels == 1, (batch.labels >= 0) & (batch.positions >= 0)
        metric.update(score_a, score_b, a_is_closer, counted)
        wrong = _wrong_positions(score_a, score_b, batch)
        return {"embeddings": embeddings, "indices": batch.stories.indices, "wrong": wrong}

    def on_validation_epoch_end(self) -> None:
        """Log the accuracy with its n and interval."""
        self._log_accuracy("validation", self.validation_accuracy)

    def on_test_epoch_end(self) -> None:
        """Log the accuracy with its n and interval."""
        self._log_accuracy("test", self.test_accuracy)

    def _log_accuracy(self, stage: str, metric: TripleAccuracy) -> None:
        summary = metric.summary()
        metric.reset()
        low, high = summary.interval
        # Every process has the same synchronized numbers: their maximum is exact.
        joint: Any = {"sync_dist": True, "reduce_fx": "max"}
        self.log(f"{stage}/accuracy", summary.accuracy, prog_bar=True, **joint)
        interval = {f"{stage}/accuracy_low": low, f"{stage}/accuracy_high": high}
        self.log_dict({**interval, f"{stage}/triples": float(summary.n)}, **joint)
        self.summaries[stage] = summary

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save adapters without the frozen weights under them, which the model's own files hold.

        A sharded checkpoint keeps them: strategies load nothing else.
        """
        state = checkpoint["state_dict"]
        if self.encoder_config.lora is not None and not any(hasattr(value, "device_mesh") for value in state.values()):
            trained = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
            checkpoint["state_dict"] = {k: v for k, v in state.items() if k in trained}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the checkpoint is of this objective, and that its weights fit."""
        self.check_objective(checkpoint)
        # Sharded strategies have loaded the weights by now, and taken them out.
        state: dict[str, Tensor] | None = checkpoint.get("state_dict")
        if state is None:
            return
        adapters = self.encoder_config.lora is not None
        own = {k: v for k, v in self.named_parameters() if v.requires_grad} if adapters else self.state_dict()
        unlike = own.keys() ^ state.keys() | {k for k in own.keys() & state.keys() if own[k].shape != state[k].shape}
        if unlike:
            raise ModelError(
                f"the checkpoint and this run do not have {min(unlike)} in common: it is of another model or of other "
                f"adapters; {OWN_CONFIG}"
            )

    def check_objective(self, checkpoint: dict[str, Any]) -> None:
        """Check that a checkpoint is of this objective.

        Raises:
            ModelError: if it is of another.
        """
        saved, own = checkpoint.get("hyper_parameters", {}).get("objective"), type(self).__name__
        if saved != own:
            raise ModelError(f"the checkpoint is of {saved or 'another program'}, this run of {own}: {OWN_CONFIG}")

    def on_fit_start(self) -> None:
        """Warn of bfloat16 on a processor without it: the fit works, but takes many times as long."""
        precision, device = str(getattr(self.trainer, "precision", "")), self.device
        if precision.startswith("bf16") and device.type == "cpu" and not capabilities.has_bf16(device):
            rank_zero_warn(
                f"trainer.precision {precision}: {capabilities.no_bf16(device)}; training takes up to ten times as "
                "long as in float32: use trainer.precision 32-true"
            )

    # Optimizer

    @property
    def round_steps(self) -> int:
        """Optimizer steps of one round, or of the whole fit where it has one round only."""
        return max(1, int(self.trainer.estimated_stepping_batches) // self.rounds)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Build the optimizer of all trained weights, with linear warm-up and decay; half precision is refused."""
        settings = self.optimization
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        half = next((p.dtype for p in trained if p.dtype in (torch.bfloat16, torch.float16)), None)
        if half is not None and settings.learning_rate > 0:
            raise OptionError(
                f"trained weights are in {str(half).removeprefix('torch.')}, which rounds small steps away: use "
                "`trainer.precision=bf16-mixed` with `model.encoder.dtype=float32`, or train adapters "
                "(`config=configs/backbones/qwen3_8b_lora.yaml`)"
            )
        groups = [
            {"params": [p for p in trained if p.ndim >= 2], "weight_decay": settings.weight_decay},
            {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
        ]
        # One kernel for all weights. Lightning does not clip gradients that such an optimizer could unscale, but
        # bfloat16 has no scale.
        precision = str(getattr(self.trainer, "precision", ""))
        fuse = settings.optimizer != "sgd" and self.device.type in {"cpu", "cuda"} and precision != "16-mixed"
        make = partial(OPTIMIZERS[settings.optimizer], fused=True) if fuse else OPTIMIZERS[settings.optimizer]
        optimizer = make([g for g in groups if g["params"]], lr=settings.learning_rate)
        if precision == "bf16-mixed":
            allow_clipping(optimizer)
        steps = self.round_steps
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: schedule_factor(step, steps, settings.warmup, settings.decay)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def _scores(embeddings: Tensor, batch: TripleBatch) -> tuple[Tensor, Tensor]:
    """Cosines (B,) of each anchor with A and with B."""
    anchors = embeddings[batch.anchors].float()
    score_a, score_b = (F.cosine_similarity(anchors, embeddings[i].float()) for i in (batch.a, batch.b))
    return score_a, score_b


def _wrong_positions(score_a: Tensor, score_b: Tensor, batch: TripleBatch) -> Tensor:
    """Positions (B,) of labeled triples that the scores answer wrongly, -1 elsewhere."""
    wrong = (batch.labels >= 0) & ~answered_correctly(score_a, score_b, batch.labels == 1)
    return torch.where(wrong, batch.positions, -1)
