"""What nearest neighbors share besides their plot."""

import numpy as np
import pytest
from measured import similarities_of

from narrlit.explore.agreement import neighbor_agreement
from narrlit.explore.confounds import confounds

WORDS = np.array(["river", "mountain", "castle", "forest", "harbor", "garden", "tower", "bridge"])


def stories_of(groups, seed=0):
    """Similarities of stories whose vectors are near to those of their group, and nothing else."""
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(len(set(groups)), 16))
    vectors = centers[groups] + 0.2 * generator.normal(size=(len(groups), 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    texts = [" ".join(generator.choice(WORDS, generator.integers(10, 200))) for _ in groups]
    return similarities_of(vectors, texts, "cosine"), texts


def test_a_translator_that_makes_stories_similar_is_warned_about():
    translators = np.repeat(np.arange(4), 10)
    similarities, texts = stories_of(translators)
    plots = np.tile(np.arange(10), 4)
    columns = {"type": list(map(str, plots)), "Translator": [f"T{number}" for number in translators]}
    found = {each.name: each for each in confounds(similarities, texts, columns)}

    assert next(iter(found)) == "Translator"
    assert found["Translator"].agreement.share == 1.0
    assert found["Translator"].p_adjusted == pytest.approx(len(found) / 1001)
    expected = neighbor_agreement(similarities, "type", columns["type"], 1).shares[0]
    assert found["type"].agreement == expected
    assert [each.name for each in found.values() if each.is_warning] == ["Translator"]


def test_a_column_of_plots_is_no_reason_for_a_warning():
    plots = np.repeat(np.arange(10), 4)
    similarities, texts = stories_of(plots)
    found = confounds(similarities, texts, {"type": list(map(str, plots)), "one": ["x"] * 40})
    assert found[0].name == "type"
    assert found[0].agreement.share == 1.0
    assert [each.name for each in found if each.is_warning] == []
    assert "one" not in [each.name for each in found]


def test_the_language_and_the_length_of_texts_are_compared_too():
    languages = np.repeat([0, 1], 15)
    similarities, _ = stories_of(languages)
    english = "The girl went into the forest with her brother, and they came to a house made of bread. "
    german = "Das Mädchen ging mit seinem Bruder in den Wald, und sie kamen an ein Haus aus Brot. "
    texts = [(german if language else english) * (1 + number % 3) for number, language in enumerate(languages)]
    found = {each.kind: each for each in confounds(similarities, texts, {})}
    assert set(found) == {"language", "length"}
    assert found["language"].agreement.share == 1.0
    assert (found["language"].is_warning, found["length"].is_warning) == (True, False)
