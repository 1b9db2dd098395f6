"""narrlit tune: search hyperparameters on one fold and evaluate them on the others."""

from typing import Annotated

import narrlit
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
    """Search hyperparameters on fold 0, evaluate on the other folds; all other options are those of `narrlit fit`.

    The training examples are divided into folds; examples that share a story are in the same fold. Every trial trains
    without fold 0 and is evaluated on it, by its best epoch; a trial below the median of those before is pruned. The
    winner's accuracy on fold 0 is too high, because it was selected by it. So the winner and the config as given are
    then fitted and evaluated once for each other fold. Repeat the command to resume, or with more --trials.

    Args:
        *fit: options of `narrlit fit`.
        space: YAML file of options of `narrlit fit`, each with {low, high}, and step or log, or with {choices}.
        trials: number of trials, including pruned and failed ones.
        out: folder for the study (tune.db), the runs and the report, tune.json, .md, .csv and .tex.
        folds: number of folds; fold 0 selects the winner, the others evaluate it.
        fold_seed: seed of the division, separate from --seed_everything, which decides the trials.
        epochs_before_pruning: epochs that each trial trains at least.
        trials_before_pruning: trials that finish before one is pruned.
    """
    result = narrlit.tune(
        [],
        fit,
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
