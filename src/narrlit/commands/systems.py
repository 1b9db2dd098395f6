"""Systems that commands evaluate and compare, by the names that a person types."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.systems import ANSWER_SUFFIXES, System
from narrlit.measures import MEANMAX, Lexical, Similarity, open_measure
from narrlit.metrics.baselines import BASELINES
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import Baseline, LoadOptions, ModelOptions, ScorerOptions, StoryOptions, listed


@dataclass(frozen=True)
class SystemOptions:
    """Options of the systems that are compared, with the first one named.

    Attributes:
        models: runs, folders, checkpoints, hub ids or minilm, with commas between; meanmax:MODEL compares sentence with
            sentence. Files, as for --answers, may be among them.
        answers: files of answers to these triples, with commas between - text_a_is_closer (.jsonl, .csv), as judge and
            predict write it, a submission (.zip), or vectors (.npy).
        baselines: random, jaccard, tfidf, longer, with commas between, or all.
    """

    models: str | None = None
    answers: str | None = None
    baselines: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of all systems: models first, then files, then baselines.

        Raises:
            OptionError: for a baseline or a file that is none, or no name at all.
        """
        baselines = listed(self.baselines)
        if baselines == ["all"]:
            baselines = list(BASELINES)
        for name in baselines:
            if name not in BASELINES:
                raise OptionError(f"--baselines {name}: give all alone, or some of {', '.join(BASELINES)}")
        for name in listed(self.answers):
            if Path(name).suffix not in ANSWER_SUFFIXES:
                raise OptionError(f"--answers {name}: no {', '.join(ANSWER_SUFFIXES)} file; name models by --models")
        names = [*listed(self.models), *listed(self.answers), *baselines]
        if not names:
            raise OptionError("name systems: --models A,B, --answers FILE or --baselines all")
        return names


def model_or_baseline(
    use: ModelOptions, read: StoryOptions, scoring: ScorerOptions, baseline: Baseline | None
) -> Similarity:
    """Return the measure by a model, or the baseline that is named in its place.

    Raises:
        ModelError: if there is no such model.
        OptionError: if both or neither are named, or a baseline has options of models.
    """
    if (use.model is None) == (baseline is None):
        raise OptionError("give one of --model and --baseline")
    if use.model is not None:
        return scoring.measure(read.load(use.model, use))
    if scoring.scorer != "cosine":
        raise OptionError(f"--scorer {scoring.scorer} needs a model: give --model in place of --baseline")
    if read.reads_views or read.fusion is not None or read.postprocess is not None:
        raise OptionError("--views, --missing-views, --fusion and --postprocess need --model")
    return Lexical(str(baseline), read.texts)


def named_systems(
    names: Sequence[str], use: LoadOptions, read: StoryOptions, meanmax: MeanMax = MeanMax()
) -> dict[str, System]:
    """Return the systems that names stand for, models loaded by a command's options.

    Raises:
        ModelError: if there is no such model.
        OptionError: if a system is named twice, or settings of Mean-Max are given and none compares by it.
    """
    if meanmax != MeanMax() and not any(name.startswith(MEANMAX) for name in names):
        raise OptionError(f"--reading, --gamma, --windows and --tau need --models {MEANMAX}MODEL")

    def load(model: str) -> StoryEncoder:
        """Load a model by the options."""
        return read.load(model, use)

    systems: dict[str, System] = {}
    for name in names:
        if name in systems:
            raise OptionError(f"{name} is named twice; a system is compared once")
        is_file = Path(name).suffix in ANSWER_SUFFIXES
        systems[name] = name if is_file else open_measure(name, load, meanmax, read.texts)
    return systems
