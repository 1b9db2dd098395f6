"""narrlit crossval: k-fold cross-validation of a config, one fit a fold."""

from pathlib import Path


def crossval(*fit: str, out: str, folds: int = 5, fold_seed: int = 0, ungrouped: bool = False) -> None:
    """Fit and evaluate a config once a fold; all other options, --config first, are those of `narrlit fit`.

    The training examples are divided into folds; examples that share a story are in the same fold. Each fold is
    evaluated by a fit on the others. Repeat the command to resume: finished folds are kept.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the folds' runs (fold_0, ...) and the report, crossval.json, .md, .csv and .tex.
        folds: number of folds.
        fold_seed: seed of the division, separate from --seed_everything so that seeds share folds.
        ungrouped: divide by example, so that evaluated stories may have trained; shows the inflation.
    """
    from narrlit.experiments.crossval import cross_validate

    division = {"folds": folds, "fold_seed": fold_seed, "ungrouped": ungrouped}
    report = cross_validate(fit, Path(out), division)
    report.write(Path(out), "crossval")
    print(report.markdown(), end="")
