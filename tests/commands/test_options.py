"""Options that commands share, without a command line."""

from refusals import refused

import narrlit
from narrlit.commands.options import ModelOptions, ScorerOptions, StoryOptions
from narrlit.commands.systems import SystemOptions, model_or_baseline
from narrlit.measures import Cosine, MeanMaxSimilarity
from narrlit.measures.meanmax import MeanMax
from narrlit.measures.names import BASELINE_NAMES
from narrlit.statistics.baselines import BASELINES


def test_every_baseline_is_an_option():
    assert tuple(BASELINES) == BASELINE_NAMES


def test_a_scorer_is_a_measure_with_its_settings(tiny):
    encoder = narrlit.load(tiny())
    measure = ScorerOptions(scorer="meanmax", gamma=0.5, windows=3).measure(encoder)
    assert isinstance(measure, MeanMaxSimilarity)
    assert measure.settings == MeanMax(gamma=0.5, windows=3)
    assert isinstance(ScorerOptions().measure(encoder), Cosine)
    with refused("options_of_meanmax"):
        ScorerOptions(windows=3)


def test_systems_are_named_in_the_order_of_models_files_and_baselines():
    options = SystemOptions(models="a, b", answers="c.jsonl", baselines="tfidf")
    assert options.names == ["a", "b", "c.jsonl", "tfidf"]
    assert SystemOptions(baselines="all").names == list(BASELINES)


def test_a_baseline_replaces_a_model():
    none = ModelOptions()
    minilm = ModelOptions(model="minilm")
    assert model_or_baseline(none, StoryOptions(), ScorerOptions(), "tfidf").name == "tfidf"
    assert model_or_baseline(minilm, StoryOptions(), ScorerOptions(), None).encoder.name == "minilm"
    for use, baseline in ((none, None), (minilm, "tfidf")):
        with refused("model_or_baseline"):
            model_or_baseline(use, StoryOptions(), ScorerOptions(), baseline)
