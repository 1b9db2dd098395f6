"""Export to sentence-transformers folders that load without this package, and averaging of weights."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense

from narrlit.console import say
from narrlit.data.readers import read_stories
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import ModelError, OptionError
from narrlit.exporting.backends import (
    Backend,
    BackendFile,
    WeightFormat,
    check_backend,
    check_exportable,
    write_backend_files,
)
from narrlit.exporting.card import CardFacts, model_card
from narrlit.exporting.origin import AVERAGE, AverageFile, Origin
from narrlit.exporting.strengths import describe
from narrlit.files import atomic_folder, check_writable
from narrlit.models.averaging import average_weights
from narrlit.models.config import UNLIMITED, EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_unmerged
from narrlit.models.weights import save_encoder

MODULES = "modules.json"
"""File that every sentence-transformers folder contains."""
LARGEST_DIFFERENCE = 1e-5
"""Maximum difference of two float32 embeddings that differ only in the order of summation."""


@dataclass(frozen=True)
class ExportedModel:
    """Sentence-transformers folder written by `export`.

    Attributes:
        path: the folder.
        dimension: dimension D of its embeddings.
        max_length: maximum length of a text in tokens.
        backend_files: files that sentence-transformers loads with `backend=`.
    """

    path: Path
    dimension: int
    max_length: int
    backend_files: tuple[BackendFile, ...] = ()

    def __str__(self) -> str:
        """Format folder, dimension and maximum length as one line, and each file of a backend as another."""
        limit = "any number of tokens" if self.max_length == UNLIMITED else f"{self.max_length} tokens at most"
        line = f"{self.path}: {self.dimension} dimensions, {limit}"
        return "\n".join([line, *map(str, self.backend_files)])


def export(
    encoder: str | PathLike[str] | StoryEncoder,
    out: str | Path,
    *,
    to: Backend | None = None,
    weights: WeightFormat = "float32",
    name: str | None = None,
    profile: str | Path | None = None,
    overwrite: bool = False,
) -> ExportedModel:
    """Write a sentence-transformers folder that loads without narrlit and gives the same embeddings.

    Its model card, README.md, has the metadata that a hub reads, and describes training, accuracy and use, as far as
    they are recorded. It contains no paths and no stories.

    Args:
        encoder: a run (its best checkpoint), a checkpoint, a model folder, a hub id, `narrlit-mini` or `minilm`; or an
            encoder from `narrlit.load`, with its fusion and post-processing. It is not changed.
        out: folder to write; must be new, empty, or with `overwrite` an exported model.
        to: `onnx` or `openvino`: also write a file in float32 that sentence-transformers loads with `backend=`.
        weights: also write a file with smaller weights for the backend: `float16`, or `int8` for `onnx`.
        name: name of the model in its card, such as OWNER/NAME on a hub; None: that of the folder.
        profile: profile.json of this model, from `narrlit.profile`: the card then states what the model is good for.
        overwrite: replace an exported model.

    Returns:
        An `ExportedModel`: `.path`, `.dimension`, `.max_length`, `.backend_files`.

    Raises:
        DataError: if the profile can't be read.
        MissingExtraError: if the packages of the extra `onnx` or `openvino` are not installed.
        ModelError: if the model can't be loaded or, for `to`, reads views or sentences, has more than 400 million
            weights, or can't be converted.
        OptionError: if the folder is not empty, the model reads both views and sentences, the profile is of another
            model, or the backend has no such weights.

    >>> print(export("minilm", getfixture("tmp_path") / "model").dimension)
    384
    """
    check_writable(out, folder=True, replaces=MODULES, overwrite=overwrite)
    if to is not None:
        check_backend(to, weights)
    elif weights != "float32":
        raise OptionError("weights_need_backend", weights=weights)
    encoder = copy.deepcopy(encoder) if isinstance(encoder, StoryEncoder) else load(encoder, device="cpu")
    encoder = encoder.fitted_for([])
    strengths = None if profile is None else describe(profile, encoder.name)
    module = _with_postprocessing(encoder).to("cpu")
    if to is not None:
        check_exportable(module, encoder.name)
    origin = Origin.of(encoder.name, module.config.model)
    if not encoder.is_as_trained:
        origin = replace(origin, evaluation=None)
    postprocess = encoder.about.get("postprocess")
    files = write_model_folder(
        module,
        Path(out),
        origin,
        to=to,
        weights=weights,
        name=name,
        postprocess=postprocess,
        strengths=strengths,
        overwrite=overwrite,
    )
    if module.mixes_padding:
        say(
            f"warning: padding changes the embeddings of {encoder.name}: with sentence-transformers, encode with "
            "batch_size=1"
        )
    return ExportedModel(Path(out), module.dimension, module.max_length, files)


def _with_postprocessing(encoder: StoryEncoder) -> Encoder:
    """Attach the fitted post-processing of an encoder to its model, in place."""
    module, affine_map = encoder.module, encoder.affine_map
    if affine_map is not None:
        weight = torch.from_numpy(affine_map.weight).float().contiguous()
        bias = torch.from_numpy(affine_map.bias).float().contiguous()
        outputs, inputs = weight.shape
        module.postprocess(Dense(inputs, outputs, True, torch.nn.Identity(), weight, bias))
    return module


def check_export(folder: str | Path, stories: str | Path) -> float:
    """Compare the embeddings of sentence-transformers and narrlit for an exported folder.

    Args:
        folder: folder of the exported model, which gives float32 unit vectors.
        stories: file of stories, as `narrlit.read_stories` reads it.

    Returns:
        The largest absolute difference between components of the embeddings.

    Raises:
        ModelError: if the difference is above 1e-5.
    """
    texts = [story.text for story in read_stories(stories)]
    exported = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)
    embeddings = load(folder, device="cpu").embed(texts)
    difference = float(np.abs(exported - embeddings).max())
    if not difference <= LARGEST_DIFFERENCE:  # or NaN
        raise ModelError("sentence_transformers_differ", folder=folder, difference=difference)
    return difference


@dataclass(frozen=True)
class AveragedModel:
    """Folder with the averaged weights of several training runs, which loads as a model.

    Attributes:
        path: the folder.
        average: models that were averaged, and their shares.
        config: configuration of the encoder.
    """

    path: Path
    average: AverageFile
    config: EncoderConfig

    def __str__(self) -> str:
        """Format number of models and trained shares as one line."""
        adapter = f", adapters of rank {self.config.lora.rank}" if self.config.lora else ""
        return f"{self.average.what}{adapter}"


def average(
    models: Sequence[str | PathLike[str]],
    out: str | Path,
    *,
    trained_share: float | Sequence[float] = 1.0,
    trust_remote_code: bool = False,
    overwrite: bool = False,
) -> AveragedModel:
    """Average the weights of several training runs of one encoder, such as the seeds of a config, into a folder.

    A trained share below 1 often preserves abilities of the pretrained encoder at no cost. The folder loads as a model,
    and `narrlit.export` converts it to a sentence-transformers folder.

    Args:
        models: runs (their best checkpoints) or checkpoints; a single one is interpolated with the weights before
            training.
        out: folder to write; must be new, empty, or with `overwrite` an average of weights.
        trained_share: interpolation between the weights before training (0) and the mean of the trained weights (1), or
            one share for each training, which are added up: `[1.0, 0.5]` adds half of what the second one changed.
        trust_remote_code: run Python files that come with the model.
        overwrite: replace an average of weights.

    Returns:
        An `AveragedModel`: `.path`, `.config`.

    Raises:
        ModelError: if a model can't be loaded.
        OptionError: if the models were trained from different encoders, or are heads on a frozen encoder; if a share
            is not between 0 and 1, or the folder is not empty.

    Source: Wortsman et al. 2022, Model soups, and Robust fine-tuning of zero-shot models; Ilharco et al. 2023, Editing
    models with task arithmetic, for the sum.
    """
    if not models:
        raise OptionError("empty_list", option="models")
    check_writable(out, folder=True, replaces=AVERAGE, overwrite=overwrite)
    names = [str(model) for model in models]
    share = trained_share if isinstance(trained_share, float | int) else list(trained_share)
    if isinstance(share, list) and len(share) == 1:
        share = share[0]
    record = AverageFile(models=names, trained_share=share)
    encoders = [load_unmerged(name, trust_remote_code=trust_remote_code) for name in names]
    config, weights = average_weights(encoders, share)
    if config.lora is not None:  # halves the file size; embeddings change by less than 1e-3
        weights = {name: value.half() for name, value in weights.items()}
    with atomic_folder(Path(out), replaces=AVERAGE, overwrite=overwrite) as temporary:
        save_encoder(temporary, config, weights)
        (temporary / AVERAGE).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return AveragedModel(Path(out), record, config)


def write_model_folder(  # noqa: PLR0913 (options)
    encoder: Encoder,
    folder: Path,
    origin: Origin,
    *,
    to: Backend | None = None,
    weights: WeightFormat = "float32",
    name: str | None = None,
    postprocess: Mapping[str, Any] | None = None,
    strengths: str | None = None,
    overwrite: bool = False,
) -> tuple[BackendFile, ...]:
    """Write an encoder as a sentence-transformers folder with a model card, atomically.

    Adapters are merged and weights dequantized first, in `encoder` itself.

    Args:
        encoder: encoder to export.
        folder: folder to write; must be new, empty, or with `overwrite` an exported model.
        origin: recorded facts about the encoder, for the card.
        to: backend for which files are added; None: no backend but torch.
        weights: number format of a second file for the backend.
        name: name of the model in the card; None: that of the folder.
        postprocess: steps and stories of the encoder's post-processing, for the card.
        strengths: strengths and weaknesses of the model in Markdown, for the card.
        overwrite: replace an exported model.

    Returns:
        The files of the backend.

    Raises:
        ModelError: if the encoder can't be converted for the backend.
        OptionError: if the folder is not empty, or the encoder reads both views and sentences.
    """
    facts = CardFacts(
        name=name or folder.name,
        origin=origin,
        reads=encoder.reads,
        unit=encoder.unit[0],
        dimension=encoder.dimension,
        max_length=encoder.max_length,
        postprocess=postprocess,
        strengths=strengths,
        mixes_padding=encoder.mixes_padding,
    )
    encoder.merge()
    with atomic_folder(folder, replaces=MODULES, overwrite=overwrite) as temporary:
        encoder.save(temporary)
        files = () if to is None else write_backend_files(temporary, to, weights)
        card = model_card(replace(facts, backend=to, backend_files=files))
        card.save(temporary / "README.md")
    return files
