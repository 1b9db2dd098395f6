"""What a back-translation made, what it left out, and how near its versions are to their sources."""

from typing import TYPE_CHECKING

import numpy as np

from narrlit.experiments.report import Entry, row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from narrlit.metrics.bertscore import BERTScores
    from narrlit.models.back_translation import Versions

PAPER = {"fr": (0.87, 0.05), "ru": (0.82, 0.05), "hi": (0.83, 0.05)}
"""Mean and standard deviation of BERTScore F1 by pivot, Mendel292, section 2.5; their encoder is not told."""

SCORES = ("precision", "recall", "f1")


def figures(found: "Versions", divided: int, scores: "BERTScores | None") -> Entry:
    """One pivot's entry: versions, those left out by reason, and statistics of the scores, None without scores."""
    entry: Entry = {
        "versions": sum(example is not None for example in found.examples),
        "left_out": dict(found.left_out),
        "stories": len(found.stories),
        "divided": divided,
    }
    if scores is None:
        return {**entry, "truncated": None, **dict.fromkeys(SCORES)}
    return {**entry, "truncated": scores.truncated, **{name: statistics(getattr(scores, name)) for name in SCORES}}


def statistics(values: "NDArray[np.float64]") -> Entry | None:
    """Mean, sample standard deviation (None for one value) and quartiles; None for no value.

    >>> found = statistics(np.array([1.0, 2.0, 4.0]))
    >>> [round(value, 3) for value in found.values()]
    [3, 2.333, 1.528, 1.0, 1.5, 2.0, 3.0, 4.0]
    """
    if not len(values):
        return None
    low, first, median, third, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    spread = {"lowest": low, "first_quartile": first, "median": median, "third_quartile": third, "highest": high}
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"n": len(values), "mean": float(np.mean(values)), "standard_deviation": deviation, **spread}


def table(entry: Entry) -> str:
    """The content of report.md."""
    lines = [
        "| pivot | versions | left out | stories | precision | recall | F1 | F1, quartiles | F1 in the paper |",
        "|---|---:|---:|---:|---|---|---|---|---|",
    ]
    for name, found in entry["pivots"].items():
        counts = [found["versions"], sum(found["left_out"].values()), found["stories"]]
        paper = entry["paper"].get(name)
        beside = "none" if paper is None else "{:.2f} ± {:.2f}".format(*paper)
        cells = [_spread(found[score]) for score in SCORES]
        lines.append(row([name, *counts, *cells, _quartiles(found["f1"]), beside]))
    lines += ["", f"{entry['rows']} rows, {entry['versions']} versions of them."]
    for name, found in entry["pivots"].items():
        lines += [f"Left out through {name}: {count}, {reason}." for reason, count in found["left_out"].items()]
        if found["divided"]:
            lines.append(
                f"Longer than the models of {name} read, and translated in parts: {found['divided']} sentences."
            )
    return "\n".join([*lines, *_notes(entry)]) + "\n"


def _notes(entry: Entry) -> list[str]:
    settings = entry["settings"]
    if settings["bertscore"] == "none":
        return []
    truncated = max((found["truncated"] for found in entry["pivots"].values()), default=0)
    cut = f" At most {truncated} texts of a pivot were longer than it reads and cut." if truncated else ""
    return [
        "Mean ± standard deviation over different stories. BERTScore by greedy matching, without weights by rarity and "
        f"not rescaled; token vectors of layer {settings['bertscore_layer']} of {settings['bertscore']}.{cut}",
        "The paper does not name its encoder, roberta-large by its tool's default: its figures stand beside these, and "
        "can't be compared with them unless that encoder made both.",
    ]


def _spread(found: Entry | None) -> str:
    if found is None:
        return "none"
    deviation = found["standard_deviation"]
    return f"{found['mean']:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _quartiles(found: Entry | None) -> str:
    if found is None:
        return "none"
    return ", ".join(f"{found[name]:.3f}" for name in ("first_quartile", "median", "third_quartile"))
