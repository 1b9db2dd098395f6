"""Teachers of a fit's rounds on disk: each a folder that `--model` accepts, with its record and its vectors."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch import Tensor

from narrlit.data.places import ROLES
from narrlit.data.rows import file_digest
from narrlit.data.tokens import TokenTable
from narrlit.errors import ModelError
from narrlit.files import atomic_folder
from narrlit.metrics.triples import AccuracySummary, TripleAccuracy
from narrlit.models.embedding import cosine_scores
from narrlit.models.encoder import Encoder
from narrlit.models.source import load_encoder
from narrlit.models.weights import CONFIG, WEIGHTS, read_weights, restore_weights, save_encoder, trained_weights
from narrlit.objectives.self_distillation import SelfDistillation
from narrlit.stores.teacher import TeacherVectors, fill, teacher_keys
from narrlit.stores.vectors import StoreDtype, VectorStore

TEACHER_RECORD = "teacher.json"
VECTORS = "vectors"
GIVEN = "given"


def promote(folder: Path, objective: SelfDistillation, weights: Mapping[str, Tensor], entry: dict[str, Any]) -> None:
    """Write a round's best student as the folder of a teacher, replacing what an interrupted attempt left there."""
    shutil.rmtree(folder, ignore_errors=True)
    with atomic_folder(folder) as temporary:
        save_encoder(temporary, objective.encoder_config, weights)
        (temporary / TEACHER_RECORD).write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")


def describe(folder: Path, encoder: Encoder, accuracy: float) -> dict[str, Any]:
    """What a checkpoint keeps of a teacher that was promoted; its name is its folder's."""
    space = {"weights": file_digest(folder / WEIGHTS), **_settings(encoder)}
    return {"name": folder.name, "accuracy": accuracy, **_identity(encoder, space)}


def given(source: str, folder: Path, trainer: L.Trainer, objective: SelfDistillation) -> dict[str, Any]:
    """Describe a teacher that was trained elsewhere, and judge the validation triples by it.

    Raises:
        ModelError: if its vectors have another dimension than the student's.
    """
    encoder = _load(source, objective)
    own = objective.encoder.dimension
    if encoder.dimension != own:
        raise ModelError(
            f"the teacher {source} makes vectors of {encoder.dimension} numbers, the student of {own}: "
            "self-distillation needs a teacher of the student's architecture"
        )
    triples = trainer.datamodule.triples["validation"]  # type: ignore[attr-defined]
    with trainer.precision_plugin.forward_context():
        scores, _ = cosine_scores(encoder, triples, progress=trainer.is_global_zero)
    metric = TripleAccuracy(sync_on_compute=False)
    a, b = torch.tensor(scores, dtype=torch.float64).unbind(1)
    metric.update(a, b, torch.tensor([bool(triple.a_is_closer) for triple in triples]))
    found = AccuracySummary(int(metric.total), int(metric.correct), int(metric.ties))
    space = {"given": source, **_settings(encoder)}
    return {"name": GIVEN, "source": source, "accuracy": found.accuracy, **_identity(encoder, space)}


def vectors_of(
    teacher: Mapping[str, Any], folder: Path, trainer: L.Trainer, objective: SelfDistillation, dtype: StoreDtype
) -> TeacherVectors:
    """A teacher's vectors of all training stories, made first where the store lacks them.

    Args:
        teacher: its description.
        folder: its folder.
        trainer: of the fit.
        objective: the student, whose encoder lends its frozen weights.
        dtype: in which vectors are kept.

    Raises:
        ModelError: if the folder is gone, or holds vectors of another teacher.
    """
    if not folder.is_dir() and teacher["name"] != GIVEN:
        raise _gone(folder)
    texts = trainer.datamodule.training_texts()  # type: ignore[attr-defined]
    keys = teacher_keys(teacher["space"], teacher["prompts"], texts)
    store = VectorStore(folder / VECTORS, dtype)
    if store.dimension not in (None, teacher["dimension"]):
        raise ModelError(
            f"{store.folder} holds vectors of {store.dimension} numbers, but this teacher's have "
            f"{teacher['dimension']}: they are another's; remove the folder to have them made anew"
        )
    if store.missing(keys):
        with (
            _at_work(teacher, folder, trainer, objective) as (encoder, tokens),
            trainer.precision_plugin.forward_context(),
        ):
            fill(store, keys, encoder, tokens)
    own_prompts = teacher["prompts"]["anchor"] != teacher["prompts"]["candidate"]
    table = store.vectors(keys)
    return TeacherVectors(table, len(texts) if own_prompts else 0).to(objective.device)


def check_there(folder: Path) -> None:
    """See that a promoted teacher is still on disk.

    Raises:
        ModelError: naming the folder, if it is gone.
    """
    if not all((folder / name).is_file() for name in (TEACHER_RECORD, CONFIG, WEIGHTS)):
        raise _gone(folder)


def _gone(folder: Path) -> ModelError:
    return ModelError(
        f"{folder}: this round's teacher is gone, and the fit needs it; bring the folder back, or begin the fit anew"
    )


@contextmanager
def _at_work(
    teacher: Mapping[str, Any], folder: Path, trainer: L.Trainer, objective: SelfDistillation
) -> Iterator[tuple[Encoder, TokenTable]]:
    """The teacher as an encoder, with the training stories as its tokens; the student gets its weights back."""
    data: Any = trainer.datamodule  # type: ignore[attr-defined]
    if teacher["name"] == GIVEN:
        encoder = _load(teacher["source"], objective)
        same = len(set(teacher["prompts"].values())) == 1
        yield encoder, TokenTable(data.training_texts(), encoder.tokenize, symmetric=same)
        return
    own = trained_weights(objective.encoder)
    restore_weights(objective.encoder, read_weights(folder / WEIGHTS))
    objective.encoder.eval()
    try:
        yield objective.encoder, data.training_table()
    finally:
        restore_weights(objective.encoder, own)
        objective.encoder.train()


def _load(source: str, objective: SelfDistillation) -> Encoder:
    encoder = load_encoder(source, objective.encoder_config.trust_remote_code)
    if not isinstance(encoder, Encoder):
        raise ModelError(f"the teacher {source} reads stories as sequences of sentences, which the student does not")
    return encoder.to(objective.device)


def _settings(encoder: Encoder) -> dict[str, Any]:
    return {"encoder": encoder.config.as_dict(), "max_length": encoder.max_length, "normalized": encoder.normalized}


def _identity(encoder: Encoder, space: dict[str, Any]) -> dict[str, Any]:
    prompts = {role: encoder.prompt(role) for role in ROLES}  # type: ignore[arg-type]
    return {"dimension": encoder.dimension, "space": space, "prompts": prompts}
