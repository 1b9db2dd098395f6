"""Values that commands open from options: encoders, measures, systems, collections and indexes.

Each function is the declaration of its options; `arguments.OPENERS` names the type of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narrlit
from narrlit.arguments import OPTIONAL, Deferred
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.experiments.options import ANSWER_SUFFIXES
from narrlit.library.options import index_at, is_address
from narrlit.measures.meanmax import MeanMax
from narrlit.measures.names import BASELINE_NAMES, BaselineName, MeasureName, ScorerName
from narrlit.models.config import DEFAULT_MODEL
from narrlit.preprocessing.pseudonyms import ClusterParts, PseudonymOptions, Scope

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder
    from narrlit.experiments.systems import System
    from narrlit.library.collection import Collection
    from narrlit.library.index import Index
    from narrlit.library.vector_table import VectorTable
    from narrlit.measures import Similarity

APPLICABLE = ("model", "device", "trust_remote_code")
"""Options of a model that also apply to an index."""


def pseudonyms(
    *,
    pseudonymize: bool = False,
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    coref: bool = False,
    coref_model: str = PseudonymOptions.coref_model,
    cluster: ClusterParts = "names",
) -> PseudonymOptions:
    """Return settings of pseudonymization.

    Args:
        pseudonymize: replace names, found by spaCy, with placeholders.
        scope: texts that share one mapping from names to placeholders.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names of the same character by coreference resolution (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        cluster: parts of a coreference cluster to replace: its names, or all its mentions, also pronouns and
            descriptions.
    """
    backend: Literal["spacy", "none"] = "spacy" if pseudonymize else "none"
    options = PseudonymOptions(backend, scope, pipeline, coref, coref_model, cluster)
    if not pseudonymize and options != PseudonymOptions():
        raise OptionError("options_need_pseudonymize")
    return options


def collection(
    collection: str,
    *,
    encoder: "Deferred[StoryEncoder]",
    layout: Layout = Layout(),
    measure: MeasureName | None = None,
) -> "Collection":
    """Read the stories of an index with their embeddings, or embed the stories of a file or folder.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        encoder: the model that embeds the stories, if the collection is not an index.
        layout: how files of stories are read.
        measure: measure of similarity: passages, fused, csls, centered, cosine or lexical; default: passages, or csls
            for a model that can't embed single texts.

    Raises:
        DataError: if the stories or the index can't be read.
        OptionError: if an option does not apply to an index.
    """
    if index_at(collection):
        return open_index(collection, encoder, layout).collection().compared_by(measure)
    return narrlit.Collection.read(collection, encoder.open(), measure=measure, layout=layout, progress=True)


def index(index: str, *, encoder: "Deferred[StoryEncoder]" = OPTIONAL) -> "Index | VectorTable":
    """Open an index or, at an address, a vector table.

    Args:
        index: folder or address written by `narrlit index`.
        encoder: path of the model, if it has moved since the index was made, and device.

    Raises:
        DataError: if there is no index, or it is damaged.
        OptionError: if an option does not apply to an index.
    """
    if not is_address(index):
        return open_index(index, encoder)
    table = narrlit.VectorTable(index, **_applicable(encoder))
    _refuse_changed(index, table.settings, encoder.changed)
    return table


def searchable(
    collection: str, *, encoder: "Deferred[StoryEncoder]", layout: Layout = Layout()
) -> "Collection | Index | VectorTable":
    """Open an index, a vector table at an address, or the stories of a file or folder.

    Args:
        collection: folder or address written by `narrlit index`, or stories as `narrlit embed` reads them.
        encoder: the model that embeds the stories, if the collection is not an index.
        layout: how files of stories are read.

    Raises:
        DataError: if the stories or the index can't be read.
        OptionError: if an option does not apply to an index.
    """
    if is_address(collection):
        return index(collection, encoder=encoder)
    if index_at(collection):
        return open_index(collection, encoder, layout)
    return narrlit.Collection.read(collection, encoder.open(), layout=layout, progress=True)


def open_index(path: str | Path, encoder: "Deferred[StoryEncoder]", layout: Layout = Layout()) -> "Index":
    """Open an index with the options of a command.

    Args:
        path: folder of the index.
        encoder: path of the model, if it has moved, and device; all other options must have their defaults.
        layout: must have its defaults, because the stories were read when the index was made.

    Raises:
        DataError: if there is no index, or it is damaged.
        OptionError: if an option does not apply to an index, such as --max-length, or the model is not that of the
            index.
    """
    index = narrlit.Index(path, **_applicable(encoder))
    changed = [option.name for option in fields(layout) if getattr(layout, option.name) != option.default]
    _refuse_changed(path, index.settings, [*encoder.changed, *changed])
    return index


def _applicable(encoder: "Deferred[StoryEncoder]") -> dict[str, Any]:
    """Return the options of a model that also apply to an index."""
    model = encoder.get("model") if "model" in encoder.changed else None
    return {
        "encoder": model,
        "device": encoder.get("device"),
        "trust_remote_code": encoder.get("trust_remote_code"),
    }


def _refuse_changed(path: str | Path, settings: Mapping[str, str], changed: Sequence[str]) -> None:
    """Raise OptionError if an option is given that does not apply to an index, which has settings of its own."""
    options = [name for name in changed if name not in APPLICABLE]
    if options:
        raise OptionError("options_of_made_index", path=path, settings=settings, options=options)


def system(
    *,
    encoder: "Deferred[StoryEncoder]" = OPTIONAL,
    baseline: BaselineName | None = None,
    scorer: ScorerName = "cosine",
    meanmax: MeanMax = MeanMax(),
) -> "Similarity":
    """Open the measure of similarity of a model or of a baseline.

    Args:
        encoder: the model.
        baseline: lexical baseline to evaluate instead of a model.
        scorer: measure of similarity; cosine compares embeddings, meanmax compares sentences, passages compares the
            best matching passages.
        meanmax: settings of Mean-Max.

    Raises:
        ModelError: if there is no such model.
        OptionError: if both or neither are given, or options of a model are given with a baseline.
    """
    if (encoder.get("model") is None) == (baseline is None):
        raise OptionError("model_or_baseline")
    if scorer != "meanmax" and meanmax != MeanMax():
        raise OptionError("options_of_meanmax")
    if baseline is None:
        return narrlit.measures.scored_by(scorer, encoder.open(), meanmax)
    if scorer != "cosine":
        raise OptionError("scorer_needs_model", scorer=scorer)
    if {"views", "missing_views", "fusion", "postprocess"} & set(encoder.changed):
        raise OptionError("views_need_model")
    texts = encoder.open(model=DEFAULT_MODEL).texts
    return narrlit.measures.Lexical(str(baseline), texts)


def systems(
    *,
    models: Sequence[str] = (),
    answers: Sequence[str] = (),
    baselines: Sequence[str] = (),
    encoder: "Deferred[StoryEncoder]",
    meanmax: MeanMax = MeanMax(),
) -> "dict[str, System]":
    """Open the systems to compare; each is compared with the first one.

    Args:
        models: comma-separated models: runs, folders, checkpoints, hub ids, narrlit-mini or minilm; meanmax:MODEL
            compares sentences, passages:MODEL the best matching passages; files, as in --answers, are accepted too.
        answers: comma-separated files of answers to the triples: text_a_is_closer (.jsonl, .csv), as judge and predict
            write it, a submission (.zip), or embeddings (.npy).
        baselines: comma-separated baselines: random, jaccard, tfidf, bm25, longer; or all.
        encoder: how models are loaded, and how they read a story.
        meanmax: settings of Mean-Max.

    Raises:
        OptionError: if a baseline is unknown, a file of answers has an unknown suffix, or no system is named.
    """
    chosen = BASELINE_NAMES if list(baselines) == ["all"] else baselines
    for name in chosen:
        if name not in BASELINE_NAMES:
            raise OptionError("unknown_baselines", baseline=name, known=BASELINE_NAMES)
    for name in answers:
        if Path(name).suffix not in ANSWER_SUFFIXES:
            raise OptionError("not_answers", path=name, suffixes=ANSWER_SUFFIXES)
    names = [*models, *answers, *chosen]
    if not names:
        raise OptionError("no_systems")
    return open_named(names, encoder, meanmax)


def reported(systems: tuple[str, ...], *, encoder: "Deferred[StoryEncoder]") -> "dict[str, System]":
    """Open the systems of a report.

    Args:
        systems: runs, models, baselines or files of answers, as in `narrlit compare --models`; each is compared with
            the first.
        encoder: how models are loaded, and how they read a story.
    """
    return open_named(systems, encoder, MeanMax())


def open_named(names: Sequence[str], encoder: "Deferred[StoryEncoder]", meanmax: MeanMax) -> "dict[str, System]":
    """Return the systems with the given names; models are loaded with the options of a command."""
    # Imported here, because it imports torch: --help must be fast.
    from narrlit.experiments.systems import open_systems

    texts = encoder.open(model=DEFAULT_MODEL).texts
    return open_systems(names, lambda name: encoder.open(model=name), meanmax=meanmax, texts=texts)


def profiled(models: tuple[str, ...], *, encoder: "Deferred[StoryEncoder]") -> "dict[str, StoryEncoder]":
    """Load models by name.

    Args:
        models: models, separated by spaces or commas: runs, folders, checkpoints, hub ids, narrlit-mini or minilm.
        encoder: how the models are loaded, and how they read a story.
    """
    return {name: encoder.open(model=name) for name in models}


def encoders(*, models: Sequence[str], encoder: "Deferred[StoryEncoder]") -> "list[StoryEncoder]":
    """Load models.

    Args:
        models: comma-separated models: folders, runs, checkpoints, hub ids, narrlit-mini or minilm.
        encoder: how the models are loaded, and how they read a story.
    """
    return [encoder.open(model=name) for name in models]
