"""What every result must do."""

import json

import numpy as np
import pandas as pd
from pandas.testing import assert_frame_equal

from narrlit.results import Result
from narrlit.results.formatting import DIFFERENCES, FIGURES


def check_result(result, folder):
    """Check a result's tables, what it writes and reads back, its texts and its plot."""
    assert list(result.figures.columns[: len(FIGURES)]) == list(FIGURES)
    assert list(result.differences.columns[: len(DIFFERENCES)]) == list(DIFFERENCES)
    known = result.figures.dropna(subset=["value", "low"])
    assert (known["low"] <= known["value"]).all()
    assert (known["value"] <= known["high"]).all()
    assert result.differences["p"].dropna().between(0, 1).all()
    assert len(result.table()) == len(result.figures)

    result.write(folder)
    record = json.loads((folder / f"{result.name}.json").read_text(encoding="utf-8"))
    assert record == json.loads(json.dumps(result.record))
    again = Result.read(folder / f"{result.name}.json")
    for kept, read in ((result.figures, again.figures), (result.differences, again.differences)):
        shared = [column for column in kept if column in read]
        assert not kept.drop(columns=shared).notna().any().any()
        assert_frame_equal(without_none(kept[shared]), without_none(read[shared]))
    assert str(again) == str(result)

    file = folder / f"{result.name}.csv"
    assert len(pd.read_csv(file) if file.exists() else []) == len(result.figures)
    assert (folder / f"{result.name}.md").read_text(encoding="utf-8") == f"{result}\n"
    assert (folder / f"{result.name}.tex").exists()
    assert (folder / f"{result.name}.svg").stat().st_size > 0
    for system in dict.fromkeys(result.figures["system"]):
        assert str(system).replace("|", "\\|") in str(result) or str(system) in str(result)
    assert result._repr_html_().count("<table") == len(result.shown_tables())
    axes = result.plot()
    shown = result.figures[result.figures["subset"] == "all"]
    if len(shown):
        metric = shown["metric"].iloc[0]
        assert len(axes.get_yticklabels()) == shown[shown["metric"] == metric]["value"].notna().sum()


def without_none(frame):
    """Write empty cells in one way, and lists as texts."""
    return frame.astype(object).where(frame.notna(), np.nan).astype(str)
