"""narrlit tune: search hyperparameters on one fold and evaluate them on the others."""

from typing import Annotated

import narrlit
from narrlit.commands.fit_words import read_fit_words
from narrlit.files import Output


def tune(
    *fit: str,
    space: str,
    trials: int,
    out: Annotated[str, Output(continued=True, parameter="folder")],
    folds: int = 5,
    fold_seed: int = 0,
    epochs_before_pruning: int = 1,
    trials_before_pruning: int = 5,
) -> None:
    """Search hyperparameters on one fold, and evaluate on the others; options such as --config go to `narrlit fit`.

    The training examples are divided into folds, of which the search uses fold 0. Examples that share a story are in
    the same fold. Every trial trains on the other folds and is evaluated on fold 0 at its best epoch; a trial below the
    median of earlier trials is pruned. The winner's accuracy on fold 0 is biased upwards, because the winner was
    selected by it. Therefore the winner and the unchanged config are then fitted and evaluated once for each other
    fold. Repeat the command to resume, or to add trials with a larger --trials.

    Args:
        *fit: options of `narrlit fit`.
        space: YAML file of the search space: options of `narrlit fit`, each with {low, high} and optionally step or
            log, or with {choices}.
        trials: number of trials, including pruned and failed ones.
        out: folder for the study (tune.db), the runs and the result (tune.json, .md, .csv and .tex).
        folds: number of folds; fold 0 selects the winner, the others evaluate it.
        fold_seed: seed of the division into folds, separate from --seed_everything, which seeds the trials.
        epochs_before_pruning: minimum number of epochs before a trial can be pruned.
        trials_before_pruning: minimum number of finished trials before one can be pruned.
    """
    result = narrlit.tune(
        read_fit_words(fit),
        space=space,
        trials=trials,
        folder=out,
        folds=folds,
        fold_seed=fold_seed,
        epochs_before_pruning=epochs_before_pruning,
        trials_before_pruning=trials_before_pruning,
    )
    result.write()
    print(result)
