"""narrlit crossval: k-fold cross-validation of a config, with one fit per fold."""

from typing import Annotated

import narrlit
from narrlit.commands.fit_words import read_fit_words
from narrlit.commands.seeds import read_seeds
from narrlit.files import Output


def crossval(
    *fit: str,
    out: Annotated[str, Output(continued=True, parameter="folder")],
    folds: int = 5,
    fold_seed: int = 0,
    ungrouped: bool = False,
    evaluate_synthetic: bool = False,
    seeds: str | None = None,
) -> None:
    """Fit and evaluate a config once per fold; options such as --config are passed to `narrlit fit`.

    The training examples are divided into folds; examples that share a story are in the same fold. Each fold is
    evaluated by a model fitted on the other folds. Repeat the command to resume: finished folds are kept.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the runs of the folds (fold_0, ...) and the result (crossval.json, .md, .csv and .tex).
        folds: number of folds.
        fold_seed: seed of the division into folds, separate from --seed_everything so that runs with different seeds
            share folds.
        ungrouped: assign examples to folds individually, so that a story may occur in both training and evaluation;
            shows how much this inflates the accuracy.
        evaluate_synthetic: evaluate synthetic examples (--data.extra.synthetic) as well, instead of only training on
            them; accuracies are then also given for synthetic and other examples separately.
        seeds: comma-separated seeds; all folds are fitted once per seed (seed_1_fold_0, ...), and the result has
            mean, standard deviation and tests over the seeds.
    """
    result = narrlit.crossval(
        read_fit_words(fit),
        folder=out,
        folds=folds,
        fold_seed=fold_seed,
        ungrouped=ungrouped,
        evaluate_synthetic=evaluate_synthetic,
        seeds=read_seeds(seeds),
    )
    result.write()
    print(result)
