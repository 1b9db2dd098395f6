"""Systems that commands evaluate and compare, looked up by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import narrlit
from narrlit.commands.options import LoadOptions, ModelOptions, ScorerOptions, StoryOptions, listed
from narrlit.errors import OptionError
from narrlit.experiments.options import ANSWER_SUFFIXES
from narrlit.measures.meanmax import MeanMax
from narrlit.measures.names import BASELINE_NAMES, BaselineName

if TYPE_CHECKING:
    from narrlit.experiments.systems import System
    from narrlit.measures import Similarity


@dataclass(frozen=True)
class SystemOptions:
    """Options that name the systems to compare; each is compared with the first one.

    Attributes:
        models: comma-separated models: runs, folders, checkpoints, hub ids, narrlit-mini or minilm; meanmax:MODEL
            compares sentences, passages:MODEL the best matching passages; files, as in --answers, are accepted too.
        answers: comma-separated files of answers to the triples: text_a_is_closer (.jsonl, .csv), as judge and predict
            write it, a submission (.zip), or embeddings (.npy).
        baselines: comma-separated baselines: random, jaccard, tfidf, bm25, longer; or all.
    """

    models: str | None = None
    answers: str | None = None
    baselines: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of all systems: models first, then files, then baselines.

        Raises:
            OptionError: if a baseline is unknown, a file of answers has an unknown suffix, or no system is named.
        """
        baselines = list[str](BASELINE_NAMES) if self.baselines == "all" else listed(self.baselines)
        for name in baselines:
            if name not in BASELINE_NAMES:
                raise OptionError("unknown_baselines", baseline=name, known=BASELINE_NAMES)
        for name in listed(self.answers):
            if Path(name).suffix not in ANSWER_SUFFIXES:
                raise OptionError("not_answers", path=name, suffixes=ANSWER_SUFFIXES)
        names = [*listed(self.models), *listed(self.answers), *baselines]
        if not names:
            raise OptionError("no_systems")
        return names

    def open(self, loading: LoadOptions, reading: StoryOptions, meanmax: MeanMax) -> "dict[str, System]":
        """Return the systems by name, as `open_systems` does; models are loaded with the options of a command."""
        return open_systems(self.names, loading, reading, meanmax)


def open_systems(
    names: Sequence[str], loading: LoadOptions, reading: StoryOptions, meanmax: MeanMax = MeanMax()
) -> "dict[str, System]":
    """Return the systems with the given names; models are loaded with the options of a command."""
    # Imported here, because it imports torch: --help must be fast.
    from narrlit.experiments.systems import open_systems as open_with

    return open_with(names, partial(reading.load, loading=loading), meanmax=meanmax, texts=reading.texts)


def model_or_baseline(
    loading: ModelOptions, reading: StoryOptions, scoring: ScorerOptions, baseline: BaselineName | None
) -> "Similarity":
    """Return the measure of similarity of a model or of a baseline.

    Raises:
        ModelError: if there is no such model.
        OptionError: if both or neither are given, or options of a model are given with a baseline.
    """
    if (loading.model is None) == (baseline is None):
        raise OptionError("model_or_baseline")
    if loading.model is not None:
        return scoring.measure(reading.load(loading.model, loading))
    if scoring.scorer != "cosine":
        raise OptionError("scorer_needs_model", scorer=scoring.scorer)
    if reading.reads_views or reading.fusion is not None or reading.postprocess is not None:
        raise OptionError("views_need_model")
    return narrlit.measures.Lexical(str(baseline), reading.texts)
