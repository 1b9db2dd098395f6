"""Systems that commands evaluate and compare, by the names that a person types."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from narrlit.commands.options import Baseline, LoadOptions, ModelOptions, ScorerOptions, StoryOptions, listed
from narrlit.errors import OptionError
from narrlit.experiments.systems import ANSWER_SUFFIXES, System, open_systems
from narrlit.measures import Lexical, Similarity
from narrlit.metrics.baselines import BASELINES
from narrlit.metrics.meanmax import MeanMax


@dataclass(frozen=True)
class SystemOptions:
    """Options of the systems that are compared, with the first one named.

    Attributes:
        models: runs, folders, checkpoints, hub ids, narrlit-mini or minilm, with commas between; meanmax:MODEL
            compares sentence with sentence, passages:MODEL matches passages; files, as for --answers, may be among
            them.
        answers: files of answers to the triples, with commas between; text_a_is_closer (.jsonl, .csv), as judge and
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
        baselines = list(BASELINES) if self.baselines == "all" else listed(self.baselines)
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

    def open(self, loading: LoadOptions, reading: StoryOptions, meanmax: MeanMax) -> dict[str, System]:
        """Return the systems by their names, models loaded by a command's options; as `open_systems`."""
        return open_systems(self.names, partial(reading.load, loading=loading), meanmax=meanmax, texts=reading.texts)


def model_or_baseline(
    loading: ModelOptions, reading: StoryOptions, scoring: ScorerOptions, baseline: Baseline | None
) -> Similarity:
    """Return the measure by a model, or the baseline that is named in its place.

    Raises:
        ModelError: if there is no such model.
        OptionError: if both or neither are named, or a baseline has options of models.
    """
    if (loading.model is None) == (baseline is None):
        raise OptionError("give one of --model and --baseline")
    if loading.model is not None:
        return scoring.measure(reading.load(loading.model, loading))
    if scoring.scorer != "cosine":
        raise OptionError(f"--scorer {scoring.scorer} needs a model: give --model in place of --baseline")
    if reading.reads_views or reading.fusion is not None or reading.postprocess is not None:
        raise OptionError("--views, --missing-views, --fusion and --postprocess need --model")
    return Lexical(str(baseline), reading.texts)
