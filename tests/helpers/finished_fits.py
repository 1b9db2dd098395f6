"""Finished fits with given answers, without training."""

import json

from narrlit.experiments.plan import FinishedFit, PlannedFit
from narrlit.experiments.run import Run


def finished_fit(folder, name, wrong, *, n=10, stories=None, system="trained", seed=42, fold=None, flags=(), ties=0):
    """A fit whose run has these wrong answers by evaluation: last_epoch, best_epoch, reference; None: scores are NaN.

    The best epoch is the first, epoch 0, and the last one epoch 1.
    """

    def evaluation(positions, **where):
        counts = {"n": n, "ties": ties, **where}
        if positions is None:
            return {**counts, "correct": 0, "accuracy": None, "interval": None, "undefined": 1}
        right = n - len(positions)
        return {**counts, "correct": right, "accuracy": right / n, "interval": [0.0, 1.0]}

    best = evaluation(wrong["best_epoch"], epoch=0, step=1)
    last = evaluation(wrong["last_epoch"], epoch=1, step=2)
    record = {"status": "finished", "validations": [best, last], "best": best, "flags": dict.fromkeys(flags, True)}
    answers = {"triples": "", "stories": stories}
    answers["evaluations"] = [
        {"epoch": 0, "step": 1, "wrong": wrong["best_epoch"]},
        {"epoch": 1, "step": 2, "wrong": wrong["last_epoch"]},
    ]
    if "reference" in wrong:
        record["untrained"] = evaluation(wrong["reference"])
        answers["untrained"] = wrong["reference"]
    run = folder / name
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps(record))
    (run / "validation_answers.json").write_text(json.dumps(answers))
    config = {"seed_everything": seed, "trainer": {"callbacks": None}}
    return FinishedFit(PlannedFit(name, config, "a test", system, fold), Run.read(run))


def in_all_epochs(wrong):
    """The same wrong answers in both epochs."""
    return {"last_epoch": wrong, "best_epoch": wrong}
