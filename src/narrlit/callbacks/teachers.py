"""Teachers of distillation rounds: each is a model folder with a record and cached embeddings."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import lightning as L
from torch import Tensor

from narrlit.data.batch import TokenizedStories
from narrlit.data.rows import file_digest
from narrlit.datamodules.story_data import data_of
from narrlit.embedding_cache.space import CacheDtype, EmbeddingSpace, model_identity
from narrlit.embedding_cache.storage import EmbeddingCache
from narrlit.embedding_cache.teacher import TeacherEmbeddings, fill_teacher, teacher_keys
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import ModelError
from narrlit.files import atomic_folder
from narrlit.models.config import remote_code_allowed
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder
from narrlit.models.weights import CONFIG, WEIGHTS, read_weights, restore_weights, save_encoder, trained_weights
from narrlit.objectives.self_distillation import SelfDistillation

TEACHER_RECORD = "teacher.json"
EMBEDDINGS = "embeddings"
GIVEN = "given"


class Teacher(TypedDict):
    """Description of a teacher, as plain data for checkpoints.

    `name` is that of its folder, or `given`; `accuracy` is on the validation triples, from 0 to 1; `space` identifies
    its embeddings, which have dimension `dimension`, and `prompts` are by role. `source` is the model that a given
    teacher is loaded from.
    """

    name: str
    accuracy: float
    dimension: int
    space: dict[str, object]
    prompts: dict[str, str]
    source: NotRequired[str]


def promote(
    folder: Path, objective: SelfDistillation, weights: Mapping[str, Tensor], record: Mapping[str, object]
) -> None:
    """Write the best student of a round to a teacher's folder; remains of an interrupted attempt are removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    with atomic_folder(folder) as temporary:
        save_encoder(temporary, objective.encoder_config, weights)
        (temporary / TEACHER_RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def promoted_teacher(folder: Path, encoder: Encoder, accuracy: float) -> Teacher:
    """Describe a promoted teacher as plain data for checkpoints; its name is that of its folder."""
    return _description(folder.name, accuracy, encoder, folder.name, file_digest(folder / WEIGHTS))


def given_teacher(source: str, trainer: L.Trainer, objective: SelfDistillation) -> Teacher:
    """Describe a teacher that was trained elsewhere, and evaluate it on the validation triples."""
    encoder = _load(source, objective)
    if encoder.dimension != objective.encoder.dimension:
        raise ModelError(
            "dimension_of_teacher", teacher=source, found=encoder.dimension, needed=objective.encoder.dimension
        )
    triples = data_of(trainer).triples["validation"]
    with trainer.precision_plugin.forward_context():
        scores = StoryEncoder(encoder).score(triples, progress=trainer.is_global_zero)
    answers = scores[:, 0] > scores[:, 1]
    accuracy = float((answers == (triples.labels == 1)).mean())
    teacher = _description(GIVEN, accuracy, encoder, *model_identity(source))
    teacher["source"] = source
    return teacher


def teacher_embeddings(
    teacher: Teacher, folder: Path, trainer: L.Trainer, objective: SelfDistillation, dtype: CacheDtype
) -> TeacherEmbeddings:
    """Return a teacher's embeddings of the stories of a fit; those that its cache lacks are computed.

    Args:
        teacher: description of the teacher, from `promoted_teacher` or `given_teacher`.
        folder: folder of the teacher, which contains its cache.
        trainer: trainer of the fit.
        objective: the student; its encoder temporarily takes the weights of a promoted teacher.
        dtype: number format of cached embeddings.
    """
    data = data_of(trainer)
    prompts = teacher["prompts"]
    keys = teacher_keys(EmbeddingSpace(teacher["space"]), prompts, data.stories.texts)
    cache = EmbeddingCache(folder / EMBEDDINGS, dtype)
    with _encoder_of(teacher, folder, trainer, objective) as (encoder, tokens):
        table = fill_teacher(cache, keys, encoder, tokens)
    asymmetric = prompts["anchor"] != prompts["candidate"]
    return TeacherEmbeddings(table, len(data.stories) if asymmetric else 0).to(objective.device)


def check_teacher(folder: Path) -> None:
    """Check that the files of a promoted teacher exist.

    Raises:
        ModelError: if one is missing.
    """
    if not all((folder / name).is_file() for name in (TEACHER_RECORD, CONFIG, WEIGHTS)):
        raise ModelError("missing_teacher", folder=folder)


@contextmanager
def _encoder_of(
    teacher: Teacher, folder: Path, trainer: L.Trainer, objective: SelfDistillation
) -> Iterator[tuple[Encoder, TokenizedStories]]:
    """Yield the teacher's encoder and the stories tokenized for it; restore the student's weights afterwards."""
    data = data_of(trainer)
    if teacher["name"] == GIVEN:
        encoder = _load(teacher["source"], objective)
        with trainer.precision_plugin.forward_context():
            yield encoder, TokenizedStories(data.stories, encoder.tokenize, symmetric=encoder.symmetric)
        return
    check_teacher(folder)
    student = trained_weights(objective.encoder)
    restore_weights(objective.encoder, read_weights(folder / WEIGHTS))
    objective.encoder.eval()
    try:
        with trainer.precision_plugin.forward_context():
            yield objective.encoder, cast(TokenizedStories, data.prepare_inputs("fit"))
    finally:
        restore_weights(objective.encoder, student)
        objective.encoder.train()


def _load(source: str, objective: SelfDistillation) -> Encoder:
    encoder = load_encoder(source, trust_remote_code=remote_code_allowed(), long="truncate")
    if encoder.reads != "text":
        raise ModelError("teacher_of_parts", teacher=source, reads=encoder.reads)
    return encoder.to(objective.device)


def _description(name: str, accuracy: float, encoder: Encoder, model: str, files: str | None) -> Teacher:
    space = EmbeddingSpace.of_teacher(
        model, files, encoder.config, max_length=encoder.max_length, normalized=encoder.normalized
    )
    return {
        "name": name,
        "accuracy": accuracy,
        "dimension": encoder.dimension,
        "space": dict(space.record),
        "prompts": {role: encoder.prompt(role) for role in ("anchor", "candidate")},
    }
