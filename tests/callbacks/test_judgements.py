"""Judgements: a sign for each triple, in the triples' order, look by look."""

from types import SimpleNamespace

import torch

from narrlit.callbacks.judgements import Judgements

NAN = float("nan")


def look(judgements, *batches, sanity_checking=False):
    trainer = SimpleNamespace(sanity_checking=sanity_checking)
    judgements.on_validation_start(trainer, None)
    for places, score_a, score_b, labels in batches:
        outputs = {"score_a": torch.tensor(score_a), "score_b": torch.tensor(score_b)}
        batch = SimpleNamespace(places=torch.tensor(places), labels=torch.tensor(labels))
        judgements.on_validation_batch_end(trainer, None, outputs, batch, 0)
    judgements.on_validation_end(trainer, None)


def test_each_look_has_a_sign_a_triple():
    judgements = Judgements()
    look(judgements, ([0], [1.0], [0.0], [0]), sanity_checking=True)
    # A higher: right for label 1, wrong for 0; equal scores are an answer for B.
    look(judgements, ([2, 0], [0.9, 0.9], [0.1, 0.1], [0, 1]), ([1, 3], [0.5, NAN], [0.5, 0.1], [0, 1]))
    look(judgements, ([0, 1, 2, 3], [0.1, 0.5, 0.9, 0.1], [0.9, 0.5, 0.1, NAN], [0, 1, 1, 0]))
    assert judgements.recorded() == {"judgements": ["110?", "101?"]}
