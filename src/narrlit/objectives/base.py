"""Base class of objectives: encoder, training step, evaluation, optimizer with schedule, and hyperparameters."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
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
from narrlit.data.schema import PADDING, FloatArray, Story, TrainingExamples, TripleRole
from narrlit.distributed import averages, rank, summed
from narrlit.errors import ModelError, OptionError
from narrlit.losses.matryoshka import unit_prefixes
from narrlit.models import capabilities
from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.run_file import Evaluation
from narrlit.models.weights import build_encoder
from narrlit.seeds import run_seed, seed_step
from narrlit.statistics.triples import TripleAccuracy, answered_correctly

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
}


def check_numbers(owner: str, *, positive: Mapping[str, float] = {}, minimum_0: Mapping[str, float] = {}) -> None:
    """Check that settings are finite numbers, above 0 or at least 0."""
    for name, value in {**positive, **minimum_0}.items():
        needed = "a finite number above 0" if name in positive else "a finite number of at least 0"
        too_low = value <= 0 if name in positive else value < 0
        if too_low or not math.isfinite(value):
            raise OptionError("config_value", option=f"{owner}{name}", found=value, needed=needed)


@dataclass(frozen=True)
class Optimization:
    """Settings of the optimizer.

    Attributes:
        optimizer: name of the optimizer.
        learning_rate: maximum learning rate; 0 leaves the weights unchanged, for control experiments.
        weight_decay: weight decay of matrices; biases and normalization weights have none.
        warmup: share of all steps in which the learning rate increases linearly from 0.
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
            needed = "a share of the steps from 0 to 1"
            raise OptionError("config_value", option="optimization.warmup", found=self.warmup, needed=needed)
        numbers = {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay}
        check_numbers("optimization.", minimum_0=numbers)


def schedule_factor(step: int, steps: int, warmup: float, decay: str) -> float:
    """Compute the factor of the learning rate at a step, counted from 0, of `steps`.

    >>> [schedule_factor(step, 10, 0.2, "linear") for step in (0, 1, 2, 6, 10)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    warmup_steps = round(warmup * steps)
    if step < warmup_steps:
        return step / warmup_steps
    return 1.0 if decay == "none" else max(0.0, (steps - step) / max(1, steps - warmup_steps))


class Objective(L.LightningModule):
    """Base class of objectives; a subclass defines the loss on the embeddings of a batch's stories.

    Constructors only store plain data. The encoder is built in `configure_model`, so that a config can be instantiated
    without weights, and sharded strategies build the encoder on its device.

    Attributes:
        needs_unit_vectors: True if the loss compares by cosine.
        reads_views: True if the encoder reads the views of a story besides its text.
        learns_anchors: True if training uses only the anchors.
        rounds: number of equal parts of the fit, each with its own schedule; set by the callback that divides the fit.
        dimensions: sizes of the prefixes of the embeddings that are trained (Matryoshka); None: only whole embeddings.
        evaluations: last evaluation of each stage.
    """

    encoder: Encoder
    needs_unit_vectors = True
    reads_views = False
    learns_anchors = False
    rounds = 1

    def __init__(
        self, encoder: EncoderConfig, optimization: Optimization, dimensions: Sequence[int] | None = None
    ) -> None:
        if dimensions is not None and (not dimensions or min(dimensions) < 1):
            raise OptionError("sizes_of_dimensions", dimensions=dimensions)
        super().__init__()
        self.encoder_config = encoder
        self.optimization = optimization
        self.dimensions = None if dimensions is None else list(dimensions)
        # Checkpoints of adapters contain no other weights; on_load_checkpoint checks that they are complete.
        self.strict_loading = self.encoder_config.lora is None
        self.validation_accuracy = TripleAccuracy(allow_nan=True)
        self.test_accuracy = TripleAccuracy(allow_nan=True)
        self.evaluations: dict[str, Evaluation] = {}
        self._anchors = torch.zeros(2, dtype=torch.int64)
        self._warned = False

    def save_settings(self, **settings: object) -> None:
        """Save the common settings and those of a subclass as plain data, so that checkpoints contain no classes."""
        common = {"encoder": self.encoder_config.as_dict(), "optimization": asdict(self.optimization)}
        self.save_hyperparameters({"objective": type(self).__name__, **common, **settings})

    def configure_model(self) -> None:
        """Build the encoder, once."""
        if hasattr(self, "encoder"):
            return
        encoder = build_encoder(self.encoder_config, self.device_mesh)
        if self.needs_unit_vectors and not encoder.normalized:
            raise OptionError("unit_vectors_needed")
        if self.dimensions is not None and max(self.dimensions) != encoder.dimension:
            raise OptionError(
                "largest_dimension",
                dimensions=self.dimensions,
                needed=encoder.dimension,
                model=self.encoder_config.model,
            )
        self.encoder = encoder

    # Methods for datamodules (data.batch.StoryReader)

    def story_inputs(self, stories: Sequence[Story], name: str) -> StoryInputs[Any]:
        """Tokenize stories; `name` is the name of the set in messages."""
        encoder = self.encoder
        inputs = TokenizedStories(stories, encoder.tokenize, symmetric=encoder.symmetric)
        if inputs.truncated:
            rank_zero_info(f"{name}: {inputs.truncated} of {len(stories)} texts cut to {encoder.max_length} tokens")
        return inputs

    def collator(self, examples: TrainingExamples, inputs: StoryInputs[Any]) -> Collator:
        """Create the collator of training batches, which are given as positions in the examples."""
        return ExampleCollator(examples, inputs)

    def text_embeddings(self, texts: Sequence[str], role: TripleRole = "anchor") -> FloatArray:
        """Embed texts with a frozen encoder; raise OptionError if the encoder is trained."""
        raise OptionError("frozen_encoder_needed", objective=type(self).__name__)

    # Training

    @abstractmethod
    def loss(self, embeddings: Tensor, batch: Any) -> dict[str, Tensor]:
        """Compute the `loss`, and further scalars for logging, with the same names in each process.

        The mean of a scalar over the processes must be its value for the joint batch in one process.

        Args:
            embeddings: (U, D) embeddings of the batch's stories.
            batch: indices of anchors, positives and negatives in the embeddings.
        """

    def prefixes(self, vectors: Tensor) -> list[Tensor]:
        """Return what a loss is summed over: the vectors (..., D) or, with `dimensions`, their unit prefixes."""
        return [vectors] if self.dimensions is None else unit_prefixes(vectors, self.dimensions)

    def negatives_used(self, batch: ExampleBatch) -> Tensor | None:
        """Mark the negatives that the loss uses, (B, K) bool; None: all. The others are not embedded."""
        return None

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Remove stories that the loss does not use, while the batch is still on the CPU."""
        used = self.negatives_used(batch) if isinstance(batch, ExampleBatch) else None
        return batch if used is None else batch.with_negatives(used)

    def forward(self, stories: Packed) -> Tensor:
        """Embed packed stories, (U, D)."""
        embeddings: Tensor = self.encoder(stories)
        return embeddings

    def frozen_embeddings(self, stories: Packed) -> Tensor | None:
        """Embed stories, (U, D), with the encoder but without a new head; None if the model has no new head."""
        return None

    def training_embeddings(self, stories: Packed) -> Tensor:
        """Embed the stories of a batch for the loss, (U, D)."""
        return self.forward(stories)

    def on_train_batch_start(self, batch: object, batch_idx: int) -> None:
        """Seed each step by its number, so that a resumed run has the same dropout as an uninterrupted one."""
        seed_step(run_seed() + 1 + self.batches_done * self.trainer.world_size + self.global_rank, self.device)

    @property
    def batches_done(self) -> int:
        """Number of training batches of this process before the current one, in all epochs."""
        return int(self.trainer.fit_loop.epoch_loop.total_batch_idx)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Embed the batch's stories once and compute the loss."""
        terms = self.loss(self.training_embeddings(batch.stories), batch)
        size = len(batch.anchors)
        logged = averages(terms)
        self.log("train/loss", logged.pop("loss"), prog_bar=True, batch_size=size)
        self.log_dict({f"train/{name}": value for name, value in logged.items()}, batch_size=size)
        return terms["loss"]

    def count_anchors(self, has_negative: Tensor) -> None:
        """Count the anchors (B,) of a batch, and those without a negative, which have a loss of 0."""
        counts = torch.stack([torch.ones_like(has_negative).sum(), (~has_negative).sum()])
        self._anchors = self._anchors.to(counts.device) + counts

    def on_train_epoch_end(self) -> None:
        """Warn, once in a fit, if anchors of the epoch had no negative."""
        anchors, without = summed(self._anchors.to(self.device)).tolist()
        self._anchors = torch.zeros(2, dtype=torch.int64)
        if without and not self._warned:
            self._warned = True
            rank_zero_warn(
                f"{without} of {anchors} anchors of epoch {self.current_epoch} had no negative, and no effect on the "
                "loss: raise `data.loading.batch_size`, or add negatives "
                "(`narrlit data mine`, `narrlit generate negatives`)"
            )

    # Evaluation

    def validation_step(self, batch: TripleBatch, batch_idx: int) -> dict[str, Tensor]:
        """Evaluate triples.

        Returns:
            `embeddings` (U, D) and `indices` (U,) of the stories, and `wrong` (B,), the positions of incorrectly
            answered triples, -1 for others. For a model with a new head, before training also `wrong_frozen` (B,), the
            same for the encoder without the head.
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
        """Return the scores of both candidates, and the positions of the triples in their file."""
        score_a, score_b = _scores(self(batch.stories), batch)
        return {"positions": batch.positions, "score_a": score_a, "score_b": score_b}

    def _evaluate(self, batch: TripleBatch, metric: TripleAccuracy) -> dict[str, Tensor]:
        embeddings = self(batch.stories)
        score_a, score_b = _scores(embeddings, batch)
        is_labeled, is_padding = batch.labels >= 0, batch.positions < 0
        metric.update(score_a, score_b, a_is_closer=batch.labels == 1, counted=is_labeled & ~is_padding)
        wrong = _wrong_positions(score_a, score_b, batch)
        return {"embeddings": embeddings, "indices": batch.stories.indices, "wrong": wrong}

    def on_validation_epoch_end(self) -> None:
        """Log the accuracy with n; `RunRecord` logs its interval, which depends on the stories that triples share."""
        self._log_accuracy("validation", self.validation_accuracy)

    def on_test_epoch_end(self) -> None:
        """Log the accuracy with n; `RunRecord` logs its interval, which depends on the stories that triples share."""
        self._log_accuracy("test", self.test_accuracy)

    def _log_accuracy(self, stage: str, metric: TripleAccuracy) -> None:
        evaluation = metric.evaluation()
        metric.reset()
        # All processes have the same synchronized numbers, which their maximum does not change.
        options: Any = {"sync_dist": True, "reduce_fx": "max"}
        accuracy = math.nan if evaluation.accuracy is None else evaluation.accuracy
        self.log(f"{stage}/accuracy", accuracy, prog_bar=True, **options)
        self.log(f"{stage}/triples", float(evaluation.n), **options)
        self.evaluations[stage] = evaluation

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save adapters without the frozen weights, which are in the model's own files.

        Sharded checkpoints keep the frozen weights, because sharded strategies need them for loading.
        """
        state = checkpoint["state_dict"]
        is_sharded = any(hasattr(value, "device_mesh") for value in state.values())
        if self.encoder_config.lora is not None and not is_sharded:
            trained = self.trained_parameters()
            checkpoint["state_dict"] = {name: value for name, value in state.items() if name in trained}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the checkpoint belongs to this objective, and that its weights match."""
        self.check_objective(checkpoint)
        # Sharded strategies have already loaded the weights, and removed them from the checkpoint.
        state: dict[str, Tensor] | None = checkpoint.get("state_dict")
        if state is None:
            return
        expected: Mapping[str, Tensor] = self.state_dict()
        if self.encoder_config.lora is not None:
            expected = self.trained_parameters()
        mismatches = set(expected.keys() ^ state.keys())
        for name in expected.keys() & state.keys():
            if expected[name].shape != state[name].shape:
                mismatches.add(name)
        if mismatches:
            raise ModelError("weights_of_other_run", name=min(mismatches))

    def check_objective(self, checkpoint: Mapping[str, Any]) -> None:
        """Check that a checkpoint was written by this objective.

        Raises:
            ModelError: if it was written by another objective or program.
        """
        saved = checkpoint.get("hyper_parameters", {}).get("objective")
        expected = type(self).__name__
        if saved != expected:
            if not saved:
                raise ModelError("checkpoint_of_other_program", objective=expected)
            raise ModelError("checkpoint_of_other_objective", recorded=saved, objective=expected)

    def check_continued(self, checkpoint: Mapping[str, Any]) -> None:
        """Check that a resumed fit can continue the optimizer of its checkpoint, whose contents may lack the weights.

        Raises:
            ModelError: if the checkpoint is from another objective or model.
            OptionError: if the fit has another optimizer, or trains other layers.
        """
        self.check_objective(checkpoint)
        saved = checkpoint["hyper_parameters"]
        encoder, optimization = saved.get("encoder", {}), saved.get("optimization", {})
        model = encoder.get("model", self.encoder_config.model)
        if Path(model).name != Path(self.encoder_config.model).name:  # its folder may have been moved
            raise ModelError("model_of_other_run", model=model)
        current = {
            "optimization.optimizer": (self.optimization.optimizer, optimization.get("optimizer")),
            "encoder.frozen_layers": (self.encoder_config.frozen_layers, encoder.get("frozen_layers")),
        }
        for name, (value, before) in current.items():
            if before is not None and value != before:
                raise OptionError("changed_in_fit", option=f"model.{name}", found=value, recorded=before)

    def on_fit_start(self) -> None:
        """Warn about bfloat16 on a processor without it, which takes many times as long."""
        precision, device = str(getattr(self.trainer, "precision", "")), self.device
        if precision.startswith("bf16") and device.type == "cpu" and not capabilities.has_bf16(device):
            rank_zero_warn(
                f"trainer.precision {precision}: {capabilities.no_bf16(device)}; training takes up to ten times as "
                "long as in float32: use trainer.precision 32-true"
            )

    # Optimizer

    def trained_parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return the weights that are trained, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}

    @property
    def round_steps(self) -> int:
        """Number of optimizer steps of one round, which is the whole fit unless it is divided into rounds."""
        return max(1, int(self.trainer.estimated_stepping_batches) // self.rounds)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Build the optimizer of all trained weights, with linear warm-up and decay.

        Raises:
            OptionError: if trained weights are in half precision.
        """
        settings = self.optimization
        trained = list(self.trained_parameters().values())
        if settings.learning_rate > 0:
            _check_full_precision(trained)
        groups = _parameter_groups(trained, settings.weight_decay)
        precision = str(getattr(self.trainer, "precision", ""))
        fuse = settings.optimizer != "sgd" and self.device.type in {"cpu", "cuda"} and precision != "16-mixed"
        build = partial(OPTIMIZERS[settings.optimizer], fused=True) if fuse else OPTIMIZERS[settings.optimizer]
        optimizer = build(groups, lr=settings.learning_rate)
        # Lightning refuses gradient clipping with fused optimizers in mixed precision, but bfloat16 has no loss scale.
        if precision == "bf16-mixed":
            allow_clipping(optimizer)
        steps = self.round_steps
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: schedule_factor(step, steps, settings.warmup, settings.decay)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_train_start(self) -> None:
        """Give the optimizer of a resumed fit the current settings, which the state in its checkpoint has replaced."""
        settings = self.optimization
        scheduler: Any = self.lr_schedulers()
        scheduler.last_epoch = self._scheduled_step(scheduler.last_epoch)
        factor = schedule_factor(scheduler.last_epoch, self.round_steps, settings.warmup, settings.decay)
        groups = _parameter_groups(list(self.trained_parameters().values()), settings.weight_decay)
        scheduler.base_lrs = [settings.learning_rate] * len(groups)
        for group, current in zip(scheduler.optimizer.param_groups, groups, strict=True):
            group["weight_decay"] = current["weight_decay"]
            group["initial_lr"] = settings.learning_rate
            group["lr"] = settings.learning_rate * factor

    def _scheduled_step(self, last: int) -> int:
        """Return the step of the schedule at which the fit starts; `last` is that of its checkpoint, or 0.

        With another batch size than before, an epoch has another number of steps: the schedule continues at the same
        share of the epochs. With `max_steps`, it continues at the same step.
        """
        trainer = self.trainer
        if trainer.max_steps != -1:
            return last
        batches = 0 if trainer.is_last_batch else trainer.fit_loop.epoch_loop.batch_progress.current.ready
        steps_per_epoch = math.ceil(trainer.num_training_batches / trainer.accumulate_grad_batches)
        epochs_per_round = max(1, (trainer.max_epochs or 1) // self.rounds)
        return trainer.current_epoch % epochs_per_round * steps_per_epoch + batches // trainer.accumulate_grad_batches


def positive_columns(batch: ExampleBatch, device: torch.device) -> Tensor:
    """Return the column (B,) of each anchor's positive among the positives of all processes."""
    count = len(batch.anchors)
    return torch.arange(count, device=device) + rank() * count


def candidate_groups(batch: ExampleBatch, indices: Tensor) -> Tensor:
    """Return the groups of stories by their indices in the batch; PADDING remains PADDING."""
    groups = batch.groups[indices.clamp(min=0)]
    return torch.where(indices < 0, PADDING, groups)


def _check_full_precision(parameters: Iterable[Tensor]) -> None:
    """Raise OptionError if weights are in half precision."""
    for parameter in parameters:
        if parameter.dtype in (torch.bfloat16, torch.float16):
            raise OptionError("half_precision_training", dtype=str(parameter.dtype).removeprefix("torch."))


def _parameter_groups(parameters: Sequence[Tensor], weight_decay: float) -> list[dict[str, Any]]:
    """Group weights for an optimizer: matrices have weight decay, biases and normalization weights have none."""
    matrices = [parameter for parameter in parameters if parameter.ndim >= 2]
    others = [parameter for parameter in parameters if parameter.ndim < 2]
    groups: list[dict[str, Any]] = []
    if matrices:
        groups.append({"params": matrices, "weight_decay": weight_decay})
    if others:
        groups.append({"params": others, "weight_decay": 0.0})
    return groups


def _scores(embeddings: Tensor, batch: TripleBatch) -> tuple[Tensor, Tensor]:
    """Compute the cosines (B,) of each anchor with A and with B."""
    anchors = embeddings[batch.anchors].float()
    score_a = F.cosine_similarity(anchors, embeddings[batch.a].float())
    score_b = F.cosine_similarity(anchors, embeddings[batch.b].float())
    return score_a, score_b


def _wrong_positions(score_a: Tensor, score_b: Tensor, batch: TripleBatch) -> Tensor:
    """Return the positions (B,) of labeled triples with incorrect answers, -1 for others."""
    wrong = (batch.labels >= 0) & ~answered_correctly(score_a, score_b, batch.labels == 1)
    return torch.where(wrong, batch.positions, -1)
