"""narrlit crossval: k-fold cross-validation of a config, one fit a fold."""

from typing import Annotated

import narrlit
from narrlit.commands.seeds import read_seeds
from narrlit.files import Output


def crossval(
    *fit: str,
    out: Annotated[str, Output(continued=True, parameter="folder")],
    folds: int = 5,
    fold_seed: int = 0,
    ungrouped: bool = False,
    seeds: str | None = None,
) -> None:
    """Fit and evaluate a config once a fold; all other options, --config first, are those of `narrlit fit`.

    The training examples are divided into folds; examples that share a story are in the same fold. Each fold is
    evaluated by a fit on the others. Repeat the command to resume: finished folds are kept.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the folds' runs (fold_0, ...) and the report, crossval.json, .md, .csv and .tex.
        folds: number of folds.
        fold_seed: seed of the division, separate from --seed_everything so that seeds share folds.
        ungrouped: divide by example, so that evaluated stories may have trained; shows the inflation.
        seeds: seeds with commas between; all folds are fitted with each, as seed_1_fold_0, and the report has mean,
            standard deviation and tests over the seeds.
    """
    chosen = read_seeds(seeds)
    result = narrlit.crossval([], fit, folder=out, folds=folds, fold_seed=fold_seed, ungrouped=ungrouped, seeds=chosen)
    result.write()
    print(result)
