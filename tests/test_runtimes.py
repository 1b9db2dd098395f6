"""The benchmark of runtimes: changes are measured against torch in float32, and rates are medians of rounds."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from backend_files import hide_openvino

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def runtimes(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    runtimes = importlib.import_module("runtimes")
    hide_openvino(monkeypatch, runtimes)
    return runtimes


def test_changes_are_those_of_cosines_and_rankings(runtimes):
    generator = np.random.default_rng(0)
    plots = np.repeat(generator.normal(size=(12, 8)), 2, axis=0)
    exact = plots + 0.3 * generator.normal(size=plots.shape)
    noisy = exact + 1.0 * generator.normal(size=plots.shape)
    labeled = runtimes.LabeledStories([str(row) for row in range(24)], [str(row // 2) for row in range(24)])
    ways = {
        runtimes.EXACT: runtimes.Runtime(lambda texts: exact),
        "longer": runtimes.Runtime(lambda texts: 3 * exact, size=5),
        "noisy": runtimes.Runtime(lambda texts: noisy),
    }

    figures, ranking = runtimes.changes(ways, labeled)
    differences = ranking.differences.query("metric == 'MRR' and subset == 'all'").set_index("system")["value"]

    longer, other = figures["longer"], figures["noisy"]
    assert longer.size == 5
    assert longer.largest_change < 1e-6  # float32
    assert (longer.nearest_kept, longer.spearman) == (1, pytest.approx(1))
    assert differences["longer"] == 0
    assert differences["noisy"] < 0
    assert 0.01 < other.mean_change < other.largest_change
    assert 0 < other.nearest_kept < 1
    assert 0 < other.spearman < 1


def test_nearest_stories_exclude_the_story_itself(runtimes):
    order = np.arange(11) / 100  # with 11 stories, the ten nearest are all others
    exact = np.tile(order, (11, 1))
    assert runtimes.nearest_kept(exact[:, ::-1] + np.eye(11), exact) == 1


def test_rates_are_medians_and_ratios_are_of_the_same_round(runtimes):
    times = {runtimes.EXACT: [2.0, 8.0, 4.0], "fast": [1.0, 2.0, 2.0]}
    result = runtimes.rates(times, 8)
    assert result["fast"] == {"rate": 4.0, "ratio": 2.0}
    assert result[runtimes.EXACT] == {"rate": 2.0, "ratio": 1.0}


@pytest.mark.long
@pytest.mark.slow
def test_every_runtime_embeds_the_same_stories(runtimes, tmp_path):
    pytest.importorskip("onnxruntime")
    ways = runtimes.runtimes("minilm", tmp_path, threads=1)
    texts = runtimes.stories().texts[:12]
    exact = runtimes.cosines(ways[runtimes.EXACT].embed(texts))
    largest = {name: np.abs(runtimes.cosines(way.embed(texts)) - exact).max() for name, way in ways.items()}
    assert largest["ONNX Runtime float32"] < runtimes.LARGEST_CHANGE
    assert largest["ONNX Runtime float32"] < largest["ONNX Runtime float16"] < largest["ONNX Runtime int8"] < 0.2
    assert ways["ONNX Runtime int8"].size < ways["ONNX Runtime float16"].size < ways["ONNX Runtime float32"].size
