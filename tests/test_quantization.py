"""The benchmark of vectors' number formats runs, and formats of fewer bytes take less room."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import unit_vectors

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.long
@pytest.mark.slow
def test_every_number_format_is_measured(monkeypatch, tiny):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    quantization = importlib.import_module("quantization")
    encoder = load(tiny())
    generator = np.random.default_rng(0)
    vectors = unit_vectors(generator.normal(size=(1200, encoder.dimension)).astype(np.float32))
    exact, half, int8, binary = quantization.measure(vectors, vectors[:3], encoder)

    assert [row.vectors for row in (exact, half, int8, binary)] == ["float32", "float16", "int8", "binary"]
    assert exact.recall == 1
    assert half.recall > 0.9  # of ten, rounding may exchange the last
    assert exact.disk_bytes - half.disk_bytes == pytest.approx(2 * encoder.dimension, rel=0.2)
    assert half.disk_bytes < binary.disk_bytes < int8.disk_bytes
