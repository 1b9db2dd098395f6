"""Folds of a cross-validation, described without data."""

from narrlit.datamodules.fold_data import FoldDescription


def described_fold(fold):
    """A fold of 10 evaluated examples."""
    return FoldDescription(
        fold=fold,
        folds=2,
        fold_seed=0,
        ungrouped=False,
        groups=10,
        trained=10,
        evaluated=10,
        left_out=10,
        all_rows=20,
        all_groups=10,
        largest_group=2,
        never_evaluated=0,
        synthetic=0,
        sha256="",
    )
