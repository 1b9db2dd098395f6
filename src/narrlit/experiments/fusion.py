"""`narrlit.fuse`: compare fusion weights of text and views on labeled triples.

Letters in shapes: T triples, U different stories, W weights, D dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from narrlit.api import EncoderLike, encoder_of
from narrlit.configuration import read_yaml
from narrlit.console import say, say_truncated
from narrlit.data.readers import read_labeled_triples
from narrlit.data.rows import file_digest
from narrlit.data.schema import DoubleArray, FloatArray, IntArray, TrainingExamples, Triples, example_of
from narrlit.data.splits import grouped_folds, story_groups, story_numbers
from narrlit.encoding.model_loading import pick_device
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import OptionError, reading
from narrlit.experiments.fusion_weights import best_elsewhere, best_setting, fused_answers, simplex_grid
from narrlit.models.checkpoints import seen_in_training
from narrlit.models.config import PARTS, PRESETS, Fusion
from narrlit.results import Note, Result, Row, difference, estimate
from narrlit.statistics.significance import SharedStories

FULL_ONLY, ELSEWHERE, HERE = "full_only", "best on other folds", "best on these triples"


def fuse(  # noqa: PLR0913 (options)
    triples: str | Path | Triples,
    models: Sequence[EncoderLike],
    *,
    settings: Mapping[str, Fusion] | str | Path | None = None,
    grid: float = 0.1,
    folds: int = 5,
    fold_seed: int = 0,
    labels: str | Path | None = None,
    strict: bool = False,
    out: str | Path | None = None,
    progress: bool = False,
) -> Result:
    """Compare fusion weights of text and views on labeled triples; each model embeds every text and view only once.

    In addition to the settings, a grid of weights is searched: each fold of the triples is evaluated with the weights
    that are best on the other folds.

    Args:
        triples: a file of labeled triples (JSON Lines, CSV), or triples as `read_triples` returns them.
        models: encoders from `narrlit.load` with the same `views`; or names of models, if the stories of the triples
            have views.
        settings: weights by name, or a YAML file with lines NAME: [full, theme, action, outcome]; None: the settings of
            ttda704, and the course of action alone.
        grid: step of the weights in the grid search.
        folds: number of folds; triples that share a story are in the same fold.
        fold_seed: seed of the folds.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        out: folder for the report, which is written after each model, so that no result is lost if a model fails.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `Result` with systems named MODEL, SETTING, which are compared with the model's full text alone. The grid is
        `best on other folds`: its rows of the subset `folds` have the weights and accuracy of each fold, those of
        `other folds` the accuracy that chose the weights. `best on these triples` is no result: they chose its weights.

    Raises:
        DataError: if a file can't be read, or a story has no views.
        ModelError: if a model can't be loaded.
        OptionError: if a setting is invalid, or models read stories differently.

    Source: ttda704, section 4.2, Table 2 and appendix A.4.

    >>> from narrlit.data.schema import StoryTable
    >>> from narrlit.data.storyworld import StoryWorld, synthetic_triples
    >>> triples = synthetic_triples(StoryWorld(0).triples(3, "validation"), StoryTable(), views=True)
    >>> fuse(triples, ["minilm"], grid=0.5, folds=2).figures[["system", "n", "value"]].head(3)
                  system  n  value
    0  minilm, full_only  3    0.0
    1  minilm, submitted  3    0.0
    2      minilm, equal  3    0.0
    """
    given = PRESETS if settings is None else settings
    named = read_fusions(given) if isinstance(given, str | Path) else given
    named = {FULL_ONLY: PRESETS[FULL_ONLY], **named}
    if any(named[FULL_ONLY].weights[1:]):
        raise OptionError("reserved_setting", name=FULL_ONLY)
    encoders = _encoders(models)
    labeled = read_labeled_triples(triples, labels, strict=strict, progress=progress)
    texts = encoders[0].texts
    if texts.views is None and any(labeled.stories[index].views is None for index in labeled.indices.ravel().tolist()):
        raise OptionError("views_needed")
    prepared = texts.prepare_triples(labeled)
    # Stories are compared by the texts in the file: equal stories may have different placeholders in `prepared`.
    stories = story_numbers(labeled)
    groups = story_groups(TrainingExamples(labeled.stories, list(map(example_of, labeled))))
    weights = simplex_grid(grid)
    fold_rows = grouped_folds(groups, folds, fold_seed)

    notes = [
        Note.of("fusion_weights", parts=list(PARTS)),
        Note.of("best_elsewhere", system=ELSEWHERE, folds=folds, n=len(weights), step=f"{grid:g}"),
        Note.of("best_here", system=HERE, n=len(weights)),
    ]
    if "submitted" in named:
        notes.append(Note.of("submitted"))
    figures: list[Row] = []
    differences: list[Row] = []
    records: list[dict[str, object]] = []
    record = _record(labeled, texts)
    record |= {"grid": grid, "grid_settings": len(weights), "folds": folds, "fold_seed": fold_seed}
    record |= {"groups": len(np.unique(groups)), "models": records}
    for encoder in encoders:
        vectors, about = _embed(encoder, prepared, progress)
        seen = None if labeled.report is None else seen_in_training(encoder.name, labeled.report.path)
        if seen is not None:
            notes.append(Note.of("seen_in_training", system=encoder.name, reason=seen))
        records.append({"model": encoder.name, **about, "seen_in_training": seen})
        model_figures, model_differences = fusion_rows(
            encoder.name,
            vectors,
            prepared,
            settings=named,
            grid=weights,
            folds=fold_rows,
            stories=stories,
            seen=seen,
        )
        figures += model_figures
        differences += model_differences
        result = Result.of("fuse", figures, differences, settings=record, notes=notes)
        if out is not None:
            result.write(out)
    return result


def fusion_rows(
    model: str,
    vectors: FloatArray,
    triples: Triples,
    *,
    settings: Mapping[str, Fusion],
    grid: DoubleArray,
    folds: Sequence[IntArray],
    stories: IntArray,
    seen: str | None = None,
) -> tuple[list[Row], list[Row]]:
    """Compute the accuracies of a model with settings of the weights, and with the best of a grid.

    Args:
        model: name of the model.
        vectors: (U, 4, D) unit vectors of the texts and views of the stories.
        triples: T labeled triples of these stories.
        settings: settings by name; the others are compared with the first.
        grid: (W, 4) weights of the grid.
        folds: triples of each fold, which is evaluated with the weights of the grid that are best on the other folds.
        stories: (T, 3) numbers of the stories of the triples; equal stories have the same number.
        seen: reason why the accuracies are not valid results; None if there is none.

    Returns:
        Rows of figures, and rows of differences.
    """
    shared = SharedStories(stories)
    all_triples = np.arange(len(triples))
    full_text = f"{model}, {next(iter(settings))}"
    figures, differences = [], []
    setting_weights = np.array([setting.weights for setting in settings.values()])
    right, ties = fused_answers(vectors, triples.indices, triples.labels, setting_weights)
    for number, (name, setting) in enumerate(settings.items()):
        columns: Row = {"weights": list(setting.weights), "ties": int(ties[number].sum()), "flags": seen}
        figures.append(estimate(right[number], shared).row(f"{model}, {name}", **columns))
        if number:
            differences.append(difference(right[number], right[0], shared).row(f"{model}, {name}", full_text))

    grid_right, grid_ties = fused_answers(vectors, triples.indices, triples.labels, grid)
    best_of_triple = best_elsewhere(grid_right, grid, folds)  # the same row of the grid for all triples of a fold
    answers = grid_right[best_of_triple, all_triples]
    num_ties = int(grid_ties[best_of_triple, all_triples].sum())
    system = f"{model}, {ELSEWHERE}"
    figures.append(estimate(answers, shared).row(system, ties=num_ties, flags=seen))
    differences.append(difference(answers, right[0], shared).row(system, full_text))
    for number, fold in enumerate(folds):
        best_of_fold = best_of_triple[fold[0]]
        others = np.delete(all_triples, fold)
        about_fold: Row = {"fold": number, "weights": grid[best_of_fold].tolist()}
        figures.append(estimate(answers[fold], stories[fold]).row(system, subset="folds", **about_fold))
        on_others = estimate(grid_right[best_of_fold, others], stories[others])
        figures.append(on_others.row(system, subset="other folds", **about_fold))

    best_here = best_setting(grid_right, grid)
    about_best: Row = {"weights": grid[best_here].tolist(), "ties": int(grid_ties[best_here].sum())}
    in_sample = estimate(grid_right[best_here], shared)
    figures.append(in_sample.row(f"{model}, {HERE}", **about_best, flags="NOT A RESULT"))
    return figures, differences


def read_fusions(path: str | Path) -> dict[str, Fusion]:
    """Read fusion settings: NAME: [full, theme, action, outcome] in a YAML file."""
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise OptionError("not_fusion_settings", path=path, parts=PARTS)
    settings = {}
    for name, weights in content.items():
        with reading("broken_fusion_setting", path, error=OptionError, name=name, parts=PARTS):
            full, theme, action, outcome = map(float, weights)
            settings[str(name)] = Fusion(full, theme, action, outcome)
    return settings


def _encoders(models: Sequence[EncoderLike]) -> list[StoryEncoder]:
    """Load the encoders of models.

    Raises:
        OptionError: if models are equal, read stories differently or are post-processed, or there is no such device.
    """
    encoders = [encoder_of(model) for model in models]
    names: set[str] = set()
    for encoder in encoders:
        if encoder.name in names:
            raise OptionError("model_twice", name=encoder.name)
        if encoder.texts != encoders[0].texts:
            raise OptionError("models_read_differently", name=encoder.name, other=encoders[0].name)
        if encoder.postprocessing is not None:
            raise OptionError("postprocessed_model", name=encoder.name)
        pick_device(encoder.loading.device)  # an invalid device is reported before the computation
        names.add(encoder.name)
    if not encoders:
        raise OptionError("empty_list", option="models")
    return encoders


def _embed(encoder: StoryEncoder, triples: Triples, progress: bool) -> tuple[FloatArray, dict[str, object]]:
    """Embed every text and view of the stories once, (U, 4, D); also return how they were read."""
    if progress:
        say(f"{encoder.name} embeds texts and views")
    encoder = encoder.without_cache()  # its weights are freed before the next model is loaded
    encoder.require_one_prompt("fuse")
    vectors, coverage = encoder.embed_parts(triples.stories, progress)
    max_length = encoder.facts.max_length
    if progress:
        say_truncated(coverage, max_length, "text or view", "texts and views")
    return vectors, {"max_length": max_length, "long": encoder.loading.long, **coverage.record}


def _record(triples: Triples, texts: StoryTexts) -> dict[str, object]:
    """Describe triples, views and pseudonyms as plain data."""
    file: dict[str, object] = {}
    if triples.report is not None:
        path = str(triples.report.path)
        file = {"path": path, "sha256": file_digest(path)}
    return {
        "triples": {**file, "n": len(triples)},
        "views": texts.provenance,
        "pseudonyms": None if texts.pseudonyms is None else asdict(texts.pseudonyms),
    }
