"""What commands open from options, without a command line."""

import pytest
from deferred import deferred
from refusals import refused

from narrlit.commands import opening
from narrlit.measures import Cosine, Lexical, MeanMaxSimilarity
from narrlit.measures.meanmax import MeanMax
from narrlit.measures.names import BASELINE_NAMES
from narrlit.statistics.baselines import BASELINES


def test_every_baseline_is_an_option():
    assert tuple(BASELINES) == BASELINE_NAMES


def test_a_scorer_is_a_measure_with_its_settings(tiny):
    encoder = deferred(model=str(tiny()))
    settings = MeanMax(gamma=0.5, windows=3)
    measure = opening.system(encoder=encoder, scorer="meanmax", meanmax=settings)
    assert isinstance(measure, MeanMaxSimilarity)
    assert measure.settings == settings
    assert isinstance(opening.system(encoder=encoder), Cosine)
    with refused("options_of_meanmax"):
        opening.system(encoder=encoder, meanmax=settings)


def test_systems_are_named_in_the_order_of_models_files_and_baselines():
    encoder = deferred("compare")
    systems = opening.systems(models=["minilm"], answers=["c.jsonl"], baselines=["tfidf"], encoder=encoder)
    assert list(systems) == ["minilm", "c.jsonl", "tfidf"]
    assert list(opening.systems(baselines=["all"], encoder=encoder)) == list(BASELINES)
    with refused("no_systems"):
        opening.systems(encoder=encoder)


def test_a_baseline_replaces_a_model():
    none, minilm = deferred("evaluate"), deferred("evaluate", model="minilm")
    assert isinstance(opening.system(encoder=none, baseline="tfidf"), Lexical)
    assert opening.system(encoder=minilm).encoder.name == "minilm"


@pytest.mark.parametrize(("model", "baseline"), [(None, None), ("minilm", "tfidf")])
def test_either_a_model_or_a_baseline_is_evaluated(model, baseline):
    with refused("model_or_baseline"):
        opening.system(encoder=deferred("evaluate", model=model), baseline=baseline)
