"""`narrlit.fuse`: compare fusion weights of text and views on labeled triples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from narrlit.api import Model, encoder_of
from narrlit.configuration import read_yaml
from narrlit.console import say, say_truncated
from narrlit.data.readers import read_labeled_triples
from narrlit.data.schema import Triples
from narrlit.encoding.model_loading import pick_device
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError, reading
from narrlit.experiments.fusion_evaluation import GridSearch, ModelFusions
from narrlit.experiments.fusion_report import FusionData, fusion_report
from narrlit.experiments.report import Report
from narrlit.models.checkpoints import seen_in_training
from narrlit.models.config import PARTS, PRESETS, Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class FusionComparison:
    """Accuracies of one or more models by fusion weights of text and views.

    Attributes:
        models: accuracies of each model.
        search: folds of the triples, and the grid of weights.
        data: the triples, and which texts of their stories are read.
    """

    models: Sequence[ModelFusions]
    search: GridSearch
    data: FusionData

    @cached_property
    def report(self) -> Report:
        """Tables, notes and plain data."""
        return fusion_report(self.models, self.search, self.data)

    def table(self) -> pd.DataFrame:
        """Tabulate the settings of each model: weights, n, correct, accuracy, ties, difference to the full text."""
        return self.report.table()

    def plot(self) -> "Axes":
        """Plot the accuracies with 95 % intervals, and return the matplotlib axes."""
        return self.report.plot()

    def write(self, folder: str | Path) -> None:
        """Write fuse.json, .md, .csv (the table), .tex and (with matplotlib) .svg."""
        self.report.write(Path(folder), "fuse")

    def __str__(self) -> str:
        """Format tables and notes in Markdown."""
        return self.report.markdown().rstrip("\n")


def fuse(  # noqa: PLR0913 (options)
    triples: str | Path | Triples,
    models: Sequence[Model],
    *,
    settings: Mapping[str, Fusion] | str | Path | None = None,
    grid: float = 0.1,
    folds: int = 5,
    fold_seed: int = 0,
    labels: str | Path | None = None,
    strict: bool = False,
    out: str | Path | None = None,
    progress: bool = False,
) -> FusionComparison:
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
        A `FusionComparison`: `.table()`, `.models`, `.plot()`, `.write(folder)`. It is printed as its tables.

    Raises:
        DataError: if a file can't be read, or a story has no views.
        ModelError: if a model can't be loaded.
        OptionError: if a setting is invalid, or models read stories differently.

    Source: ttda704, section 4.2, Table 2 and appendix A.4.

    >>> from narrlit.data.schema import StoryTable
    >>> from narrlit.data.storyworld import StoryWorld, synthetic_triples
    >>> triples = synthetic_triples(StoryWorld(0).triples(3, "validation"), StoryTable(), views=True)
    >>> fuse(triples, ["minilm"], grid=0.5, folds=2).table()[["name", "n", "correct"]]
               name  n correct
    0     submitted  3       0
    1         equal  3       0
    2     full_only  3       0
    3  higher_theme  3       0
    4   action_only  3       2
    """
    weights = read_settings(settings) if isinstance(settings, str | Path) else settings or PRESETS
    encoders = _encoders(models)
    labeled = read_labeled_triples(triples, labels, strict=strict, progress=progress)
    data = FusionData(labeled, encoders[0].texts)
    _check_views(data)
    search = GridSearch.divide(labeled, data.texts.prepare_triples(labeled), grid, folds, fold_seed)
    compared: list[ModelFusions] = []
    for encoder in encoders:
        compared.append(_evaluate(encoder, search, weights, data.path, progress))
        if out is not None:
            FusionComparison(compared, search, data).write(out)
    return FusionComparison(compared, search, data)


def read_settings(path: str | Path) -> dict[str, Fusion]:
    """Read fusion settings: NAME: [full, theme, action, outcome] in a YAML file."""
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise OptionError(f"`settings={path}`: write lines NAME: [{', '.join(PARTS)}]")
    settings = {}
    for name, weights in content.items():
        with reading("`settings`", f"{path}: {name}", f"give four weights, {', '.join(PARTS)}", OptionError):
            full, theme, action, outcome = map(float, weights)
            settings[str(name)] = Fusion(full, theme, action, outcome)
    return settings


def _encoders(models: Sequence[Model]) -> list[StoryEncoder]:
    """Load the encoders of models.

    Raises:
        OptionError: if models are equal, read stories differently or are post-processed, or there is no such device.
    """
    encoders = [encoder_of(model) for model in models]
    names: set[str] = set()
    for encoder in encoders:
        if encoder.name in names:
            raise OptionError(f"`models`: {encoder.name} is named twice; give different models")
        if encoder.texts != encoders[0].texts:
            raise OptionError(f"`models`: {encoder.name} reads other views or names than {encoders[0].name}")
        if encoder.postprocessing is not None:
            raise OptionError(f"`models`: {encoder.name} has `postprocess`, which does not apply here; load it without")
        pick_device(encoder.loading.device)  # an invalid device is reported before the computation
        names.add(encoder.name)
    if not encoders:
        raise OptionError("`models` is empty: name at least one")
    return encoders


def _check_views(data: FusionData) -> None:
    """Check that all stories have views, before names are replaced.

    Raises:
        OptionError: if a story has none.
    """
    if data.texts.views is not None:
        return
    for index in data.triples.indices.ravel().tolist():
        if data.triples.stories[index].views is None:
            raise OptionError("views are needed: give `views=FILE`, or `missing_views=positional`")


def _evaluate(
    encoder: StoryEncoder, search: GridSearch, settings: Mapping[str, Fusion], triples: str | None, progress: bool
) -> ModelFusions:
    """Embed every text and view once, and evaluate all settings."""
    if progress:
        say(f"{encoder.name} embeds texts and views")
    encoder = encoder.without_cache()  # its weights are freed before the next model is loaded
    encoder.require_one_prompt("fuse")
    embeddings, coverage = encoder.embed_parts(search.triples.stories, progress)
    max_length = encoder.facts.max_length
    if progress:
        say_truncated(coverage, max_length, "text or view", "texts and views")
    accuracies = search.evaluate(embeddings, settings)
    seen = None if triples is None else seen_in_training(encoder.name, triples)
    return ModelFusions(encoder.name, accuracies, max_length, encoder.loading.long, coverage, seen)
