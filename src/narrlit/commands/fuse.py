"""narrlit fuse: compare fusion weights of text and views on labeled triples."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LabelOptions, LoadOptions, TextOptions, listed
from narrlit.files import Output


def fuse(  # noqa: PLR0913 (options)
    triples: str,
    *,
    models: str,
    loading: LoadOptions,
    reading: TextOptions,
    labels: LabelOptions,
    settings: str | None = None,
    grid: float = 0.1,
    folds: int = 5,
    fold_seed: int = 0,
    out: Annotated[str | None, Output.result("fuse")] = None,
) -> None:
    """Compare fusion weights of text and views on labeled triples; each model embeds every text and view only once.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        models: comma-separated models: folders, runs, checkpoints, hub ids, narrlit-mini or minilm.
        loading: how models are loaded.
        reading: how stories are read: views and pseudonyms.
        labels: labels of the triples.
        settings: YAML file with one line per setting, NAME: [full, theme, action, outcome]; default: the settings of
            ttda704.
        grid: step of the weights in the grid search.
        folds: number of folds of the grid search; triples that share a story are in the same fold.
        fold_seed: seed of the folds.
        out: folder for the report (fuse.json, .md, .csv, .tex and .svg), which is written after each model.
    """
    encoders = [reading.load(name, loading) for name in listed(models)]
    result = narrlit.fuse(
        triples,
        encoders,
        settings=settings,
        grid=grid,
        folds=folds,
        fold_seed=fold_seed,
        labels=labels.labels,
        strict=labels.strict,
        out=out,
        progress=True,
    )
    print(result)
