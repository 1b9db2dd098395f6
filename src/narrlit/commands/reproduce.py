"""narrlit reproduce: compute the tables of the five papers, next to the published figures."""

from collections.abc import Sequence
from typing import Annotated

import narrlit
from narrlit.commands.fit_words import read_fit_words
from narrlit.errors import OptionError
from narrlit.experiments.reproduction.tables import SYSTEMS, list_tables
from narrlit.files import Output


def reproduce(  # noqa: PLR0913 (options)
    system: str | None = None,
    *fit: str,
    list: bool = False,
    table: Sequence[str] = (),
    backbone: Sequence[str] = (),
    data: str = "narrative-similarity-dataset",
    labels_a: str | None = None,
    labels_b: str | None = None,
    seeds: int = 1,
    out: Annotated[str, Output(continued=True)] = "runs/reproduce",
) -> None:
    """Compute the tables of a system's paper, and compare each cell with the published figure.

    All other options are passed to `narrlit fit`, for instance to shorten the fits (--trainer.max_epochs 1). Repeat the
    command to resume: finished cells are kept.

    Args:
        system: hits, ttda704, nlp_fsdm, mendel292 or comhis.
        *fit: options of `narrlit fit`.
        list: list every table and figure of the papers with its cost instead of computing anything.
        table: comma-separated numbers of tables; default: all tables of the paper.
        backbone: encoder to use instead of the paper's: a name in configs/backbones, a folder or a hub id; or several,
            comma-separated, matched by name to those of the paper.
        data: folder with the layout of the task's repository (dev/dev_track_a.jsonl, synthetic/, test/labels/, ...)
            and, optionally, views/, negatives/ and augmented/.
        labels_a: file with the labels of test/test_track_a.jsonl; default: test/labels/*track_a*.
        labels_b: file of the labeled test triples of Track B; default: test/labels/*track_b*.
        seeds: number of fits per trained row, with seeds 42, 43, ...; the row gives their mean.
        out: folder for SYSTEM/record.json, the runs and the report (reproduce.md, .csv, .json and .tex).
    """
    if list:
        print(list_tables([system] if system else SYSTEMS), end="")
        return
    if system is None:
        raise OptionError("no_system")
    result = narrlit.reproduce(
        system,
        tables=table,
        backbones=backbone,
        data=data,
        labels_a=labels_a,
        labels_b=labels_b,
        seeds=seeds,
        out=out,
        config=read_fit_words(*fit),
    )
    print(result)
